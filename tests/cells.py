"""Small cells, their training and the comparison with an oracle's decisions."""

import naive
import numpy as np
from sklearn.svm import SVC

from daskls.records import CellReport, SolverSpec
from daskls.seeds import CELL_FOLDS
from daskls.solvers.base import CellRows
from daskls.solvers.evaluate import cell_scores
from daskls.solvers.grid import assign_folds
from daskls.solvers.registry import find_solver

SEED = (7, 3)
TIGHT = 1e-6


def fit_cell(X, codes, weights, spec, report, seed):
    """Train the model of one cell by the solver of its loss."""
    return next(find_solver(spec).fit([CellRows(X, codes, weights, report, seed)], spec))


def binary_cell(seed=0, m=60, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 2.0
    return X, np.where(np.sin(2 * X[:, 0]) + 0.4 * rng.normal(size=m) > 0, 4, 1)


def class_cell(n_classes, seed=0, m=72, d=2):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, m) * 2 + 1
    return rng.normal(size=(m, d)) + 1.2 * rng.normal(size=(20, d))[codes], codes


def fit(X, codes, weights=None, seed=SEED, **spec):
    """Train with every combination, to the plain gap, unless told otherwise."""
    weights = np.ones(len(X)) if weights is None else weights
    spec = {"search": "full", "clipped_gap": False, **spec}
    return fit_cell(X, codes, weights, SolverSpec(**spec), CellReport(5, 2, 0, 0, 0.0), seed)


def queries(X, n=25):
    return X.mean(axis=0) + 1.5 * np.random.default_rng(99).normal(size=(n, X.shape[1]))


def mean_of_svcs(X, y, queries, **params):
    """Return mean decisions of scikit-learn's SVCs, each without a fold of a fit's only cell."""
    folds = assign_folds(np.unique(y, return_inverse=True)[1], 5, CELL_FOLDS(0, leaf=0, cell=0))
    models = [SVC(**params, tol=1e-8).fit(X[folds != f], y[folds != f]) for f in range(5)]
    return np.mean([model.decision_function(queries) for model in models], axis=0)


def check_model(model, expected, X_query, atol=5e-3):
    """Compare decisions with the oracle's (n_queries, n_pairs)."""
    scores = cell_scores(model, X_query)
    if expected.shape[1] == 1:
        np.testing.assert_allclose(scores, expected[:, 0], atol=atol)
        return
    clear = np.abs(expected).min(axis=1) > 2 * atol
    assert clear.mean() > 0.8
    n_classes = len(model.classes)
    winners = [naive.one_vs_one_winner(row, n_classes) for row in expected]
    np.testing.assert_array_equal(scores.argmax(axis=1)[clear], np.array(winners)[clear])
    votes = np.round(scores[clear])
    assert (votes.sum(axis=1) == expected.shape[1]).all()
