"""The chosen fold models reach ``tol`` in the plain duality gap, or say so."""

import naive
import numba
import numpy as np
import pytest
from cells import SEED, class_cell, fit_cell, queries
from support import PAPERS, few

from daskls import VoronoiSVC
from daskls.errors import NonConvergenceWarning
from daskls.kernels.frame import decide_pairs
from daskls.records import CellReport, SolverSpec
from daskls.solvers.grid import assign_folds, resolve_grid
from daskls.solvers.hinge.width import HingePairSolver
from daskls.solvers.rows import LocalRows
from daskls.solvers.search import GridSearch

# Every kernel that is called here has its own test without compilation.
pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="many minutes without compilation")

TOLS = [1e-3, 1e-4, 1e-5]
GRID = {"gamma": (0.1, 0.5, 3.0, 20.0), "C": (0.3, 5.0, 60.0)}
HARD = {"gamma": (3.0,), "C": (60.0,)}
# Rows deep on the wrong side: clipping forgives them, so the clipped gap says least.
WIDE = {"gamma": (0.1,), "C": (0.5,)}


def noisy(n_classes, seed=0, m=90):
    X, codes = class_cell(n_classes, seed, m)
    rng = np.random.default_rng(seed)
    wrong = rng.random(m) < 0.25
    codes[wrong] = rng.choice(np.unique(codes), wrong.sum())
    return X, codes


def finished(X, codes, weights=None, **spec):
    """Search as `fit_cell` does; return the search and its choice, fold models finished."""
    weights = np.ones(len(X)) if weights is None else weights
    spec = SolverSpec(**{"cv": 3, **spec})
    own = LocalRows.of(X, codes, weights, spec)
    _, cell = own.data(assign_folds(own.present, spec.cv, SEED))
    grid = own.in_units(resolve_grid(spec, own.radius, len(X), X.shape[1]))
    search = GridSearch(cell, spec, grid, HingePairSolver)
    return search, search.choose(finish=True)


def shares_of_limit(search, choice):
    """Return each chosen fold model's gap over ``tol C m``, in float64 and plain Python kernels."""
    cell, kernel, spec = search.cell, choice.kernel, search.spec
    options = {"degree": kernel.degree, "coef0": kernel.coef0}
    K = naive.kernel_matrix(cell.rows, cell.rows, kernel.name, kernel.gamma, **options)
    betas, offsets = search.models
    shares = []
    for p, (_, _, rows, y) in enumerate(cell.pairs()):
        for at, fold in enumerate(search.folds):
            beta = betas[at, search.pairs.slice_of(p)].astype(float)
            offset = offsets[at, p]
            held_out = cell.folds[rows] == fold
            assert not beta[held_out].any()
            bound = choice.C * cell.weights[rows].astype(float) * ~held_out
            assert (beta * y >= 0).all()
            assert (beta * y <= bound * (1 + 1e-6)).all()
            assert abs(beta.sum()) <= 1e-5 * bound.sum() or not spec.fit_intercept
            f = K[np.ix_(rows, rows)] @ beta
            primal = beta @ f / 2 + bound @ np.maximum(0, 1 - y * (f + offset))
            shares.append((primal - (y @ beta - beta @ f / 2)) / (spec.tol * bound.sum()))
    return np.array(shares)


@pytest.mark.parametrize("tol", TOLS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("candidates", "search"), [(GRID, "refine"), (GRID, "full"), (HARD, "refine")], ids=repr
)
def test_every_chosen_fold_model_reaches_tol(candidates, search, n_classes, fit_intercept, tol):
    X, codes = noisy(n_classes)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(X))
    options = {**candidates, "search": search, "fit_intercept": fit_intercept, "tol": tol}
    found, choice = finished(X, codes, weights, **options)
    shares = shares_of_limit(found, choice)
    assert len(shares) == 3 * n_classes * (n_classes - 1) // 2
    assert (shares <= 1).all()
    assert choice.counts.n_at_limit == 0


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize(
    "spec",
    [
        {"kernel": "rbf", "gamma": (3.0,), "C": (500.0,)},
        {"kernel": "rbf", "gamma": (1e-3,), "C": (1e6,)},
        {"kernel": "linear", "C": (1e3,), "fit_intercept": True},
        {"kernel": "poly", "degree": 6, "coef0": 1.0, "gamma": (1.0,), "C": (1.0,)},
    ],
    ids=lambda spec: spec["kernel"],
)
def test_a_fold_model_reaches_tol_or_is_counted(spec, tol):
    X, codes = noisy(2)
    found, choice = finished(X, codes, tol=tol, **spec)
    is_short = shares_of_limit(found, choice) > 1 + 1e-6
    # What the search left short is counted too, and what it did not is not.
    assert is_short.sum() <= choice.counts.n_at_limit
    assert choice.counts.n_at_limit < choice.counts.n_trained or is_short.all()


def test_an_estimator_warns_beyond_float32():
    X, y = noisy(2)
    with pytest.warns(NonConvergenceWarning, match=r"gap reached tol=1e-12; .* raise tol"):
        model = VoronoiSVC(cv=3, tol=1e-12, random_state=0, **HARD, **PAPERS).fit(X, y)
    (n_at_limit,) = model.fit_report_.n_at_limit
    # Those that are kept among them, as the search met the clipped gap's limit or not.
    assert n_at_limit > 3


@pytest.mark.parametrize("tol", few(TOLS))
@pytest.mark.parametrize(
    ("candidates", "search"), [(GRID, "refine"), (GRID, "full"), (WIDE, "refine")], ids=repr
)
def test_scores_are_those_of_a_qp_within_what_tol_allows(candidates, search, tol):
    X, codes = noisy(2, seed=1, m=60)
    spec = SolverSpec(cv=3, tol=tol, search=search, **candidates)
    model = fit_cell(X, codes, np.ones(len(X)), spec, CellReport(0, 0, 0, 0, 0.0), SEED)
    C, gamma, folds = model.report.C, model.report.gamma, assign_folds(codes, 3, SEED)
    # By how much the mean of fold models may miss the SVMs' values, k(x, x) being 1.
    allowed = np.mean([np.sqrt(2 * tol * C * (folds != fold).sum()) for fold in range(3)])
    oracle = naive.CellOracle(X, codes, np.ones(len(X)), folds)
    for points in (X, queries(X)):
        expected = oracle.mean_decisions(gamma, C, points)
        assert np.abs(decide_pairs(model, points) - expected).max() <= allowed
