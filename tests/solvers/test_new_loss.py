"""The worked example of a loss, beside an oracle; it keeps the contract, too."""

import naive
import numpy as np
import pytest
from cells import SEED, binary_cell, class_cell, fit, queries
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from sklearn.utils._param_validation import StrOptions

import daskls.solvers
from daskls.kernels.frame import decide_pairs
from daskls.solvers.grid import assign_folds
from daskls.solvers.registry import LOSSES, Loss, losses_of
from examples import load_example

LOSS = "squared_hinge"
C, GAMMA = 1.5, 0.5


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    module = load_example(monkeypatch, LOSS, f"daskls/solvers/{LOSS}.py")
    entry = Loss(f"{module.__name__.removeprefix('daskls.')}:SquaredHingeSolver")
    monkeypatch.setitem(LOSSES, ("classes", LOSS), entry)
    constraints = daskls.VoronoiSVC._parameter_constraints
    # Read from the register as the class is made.
    monkeypatch.setitem(constraints, "loss", [StrOptions(set(losses_of("classes")))])


def decisions_of(X, y, weights, X_query):
    center = X.mean(axis=0)
    K = naive.kernel_matrix(X - center, X - center, "rbf", GAMMA)
    L = cholesky(K * np.outer(y, y) + np.diag(0.5 / (C * weights)), lower=True)
    alpha, _ = nnls(L.T, solve_triangular(L, np.ones(len(y)), lower=True))
    return naive.kernel_matrix(X_query - center, X - center, "rbf", GAMMA) @ (alpha * y)


@pytest.mark.parametrize("cell", [binary_cell(0), class_cell(3)], ids=["two", "three"])
def test_its_models_are_those_of_an_oracle(cell):
    X, codes = cell
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    options = {"C": (C,), "gamma": (GAMMA,), "cv": 3, "tol": 1e-7}
    model = fit(X, codes, weights, loss=LOSS, **options)
    found, classes = decide_pairs(model, queries(X)), np.unique(codes)
    folds = assign_folds(codes, 3, SEED)
    pairs = [(a, b) for i, a in enumerate(classes) for b in classes[i + 1 :]]
    assert found.shape[1] == len(pairs)
    # Kernels are taken around the mean of all rows of the cell, which moves no distance.
    for p, (a, b) in enumerate(pairs):
        expected = []
        for fold in range(3):
            rows = np.flatnonzero(((codes == a) | (codes == b)) & (folds != fold))
            y = np.where(codes[rows] == b, 1.0, -1.0)
            expected.append(decisions_of(X[rows], y, weights[rows], queries(X)))
        np.testing.assert_allclose(found[:, p], np.mean(expected, axis=0), atol=2e-3)
    hinge = decide_pairs(fit(X, codes, weights, **options), queries(X))
    assert np.abs(hinge - found).max() > 0.1
