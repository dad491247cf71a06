"""The SVM of a sample of any size: scikit-learn's SVC, laid out as a local model."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from small import few_steps
from support import as_bytes, checkers

from daskls.kernels.frame import decide_pairs
from daskls.methods.scores import model_scores
from daskls.records import CellReport, SolverSpec
from daskls.solvers.hinge.large import fit_large

QUERIES = np.random.default_rng(7).random((200, 2))
KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": (20.0,)},
    "linear": {"kernel": "linear", "gamma": None},
    "poly": {"kernel": "poly", "gamma": (2.0,), "degree": 2, "coef0": 1.0},
}


def fit(X, y, weights=None, cache_nbytes=1 << 24, loss="hinge", **spec):
    weights = np.ones(len(X)) if weights is None else weights
    spec = SolverSpec(**{"C": (10.0,), "gamma": (20.0,), **spec})
    return fit_large(X, y, weights, spec, CellReport(0, 0, 0, 0, 0.0), cache_nbytes, loss)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_decisions_are_those_of_scikit_learn(kernel, n_classes, weighted):
    X, y = checkers(300, n_classes=n_classes)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(X)) if weighted else None
    options = KERNELS[kernel]
    model, support = fit(X, y, weights, tol=1e-5, **options)
    peers = {**options, "gamma": (options["gamma"] or (1.0,))[0]}
    svc = SVC(C=10.0, tol=1e-5, decision_function_shape="ovo", **peers).fit(X, y, weights)
    expected = svc.decision_function(QUERIES).reshape(len(QUERIES), -1)
    if n_classes > 2:
        # scikit-learn's speak for the first class of a pair.
        expected = -expected
    found = decide_pairs(model, QUERIES)
    # Rows and coefficients of a model are float32.
    np.testing.assert_allclose(found, expected, atol=2e-4 * np.abs(expected).max())
    scores = model_scores(model, QUERIES, n_classes)
    labels = scores.argmax(axis=1) if n_classes > 2 else (scores > 0).astype(int)
    clear = np.abs(expected).min(axis=1) > 1e-3
    assert clear.sum() > 150
    # Equal votes go to the larger confidence.
    svc.set_params(decision_function_shape="ovr", break_ties=n_classes > 2)
    assert (labels == svc.predict(QUERIES))[clear].all()
    # Of a linear kernel in the plane, many sets of support rows give one solution.
    if kernel == "rbf":
        assert abs(len(support) - len(svc.support_)) <= 2
    assert model.report.n_support == len(support) == model.class_ptr[-1]
    assert model.report.n_trained == n_classes * (n_classes - 1) // 2
    assert (model.report.n_rows, model.report.C, model.report.n_at_limit) == (300, 10.0, 0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_the_squared_hinge_is_an_svm_without_bounds_on_a_ridged_kernel(C, n_classes, weighted):
    X, y = checkers(300, n_classes=n_classes)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(X)) if weighted else np.ones(len(X))
    model, _ = fit(X, y, weights, loss="squared_hinge", tol=1e-6, C=(C,))
    K = rbf_kernel(X, gamma=20.0) + np.diag(0.5 / (C * weights))
    svc = SVC(C=1e10, kernel="precomputed", tol=1e-6, decision_function_shape="ovo").fit(K, y)
    expected = svc.decision_function(rbf_kernel(QUERIES, X, gamma=20.0)).reshape(len(QUERIES), -1)
    sign = 1 if n_classes == 2 else -1
    atol = 5e-4 * np.abs(expected).max()
    np.testing.assert_allclose(decide_pairs(model, QUERIES), sign * expected, atol=atol)
    assert model.report.n_at_limit == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_squared_hinge_is_least_in_the_primal(kernel):
    X, y = checkers(200)
    options = KERNELS[kernel]
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(X))
    model, support = fit(X, y, weights, loss="squared_hinge", tol=1e-7, **options)
    signs = np.where(y == 1, 1.0, -1.0)
    f = decide_pairs(model, X)[:, 0]
    inside = np.flatnonzero(signs * f < 1 - 1e-5)
    assert set(inside) <= set(support) <= set(np.flatnonzero(signs * f < 1 + 1e-3))
    # The primal's condition: beta = 2 C w y max(0, 1 - y f).
    beta = np.zeros(len(X))
    order = support[np.argsort(y[support], kind="stable")]
    beta[order] = model.coef[0]
    slack = 2 * 10.0 * weights * signs * np.maximum(1 - signs * f, 0)
    np.testing.assert_allclose(beta, slack, atol=2e-3 * np.abs(slack).max())
    assert abs(beta.sum()) < 1e-3 * np.abs(beta).sum()


def test_the_cache_leaves_no_trace():
    X, y = checkers(4000)
    models = [fit(X, y, cache_nbytes=size)[0] for size in (0, 1 << 24, 1 << 30)]
    for name in ("rows", "coef", "intercepts", "class_ptr"):
        assert len({as_bytes(getattr(model, name)) for model in models}) == 1, name


def test_a_solve_that_is_given_up_is_counted(monkeypatch):
    few_steps(monkeypatch, 7)
    X, y = checkers(300, n_classes=3)
    model, _ = fit(X, y)
    assert model.report.n_at_limit == model.report.n_trained == 3
    assert model.report.n_steps == 21


def test_far_from_0():
    X, y = checkers(300)
    near, moved = (fit(X + by, y, tol=1e-6)[0] for by in (0.0, 1e6))
    found = decide_pairs(moved, QUERIES + 1e6)
    np.testing.assert_allclose(found, decide_pairs(near, QUERIES), atol=1e-3)


@pytest.mark.parametrize("equal", ["classes", "rows"])
def test_what_cannot_be_told_apart_is_a_constant(equal):
    X, y = checkers(30)
    same = np.full((30, 2), 0.1), np.repeat([2, 1], [20, 10])
    X, y = (X, np.full(30, 2)) if equal == "classes" else same
    model, support = fit(X, y)
    assert model.classes.tolist() == [2]
    assert (len(support), model.report.n_support, len(model.rows)) == (0, 0, 0)
