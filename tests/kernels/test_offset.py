"""The solver with an offset against scikit-learn's SVC on the same kernel matrix."""

import naive
import numpy as np
import pytest
from cells import class_cell
from sklearn.svm import SVC

from daskls.kernels.offset import solve_with_offset
from daskls.kernels.steps import CLIPPED, UNCLIPPED, fill_gradient


def noisy_problem(seed, m=60, d=3, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=m) > shift, 1.0, -1.0)


def kernel(X, name="rbf", **parameters):
    return np.ascontiguousarray(naive.kernel_matrix(X, X, name, **parameters), np.float32)


def solve(K, y, bound, gap_limit, held=(0, 0), max_steps=200_000, cap=UNCLIPPED, start=None):
    signs, bound = y.astype(np.float32), np.asarray(bound, np.float32)
    beta = np.zeros_like(bound) if start is None else start.astype(np.float32)
    grad = np.empty_like(beta)
    fill_gradient(K, beta, signs, grad)
    diag = np.diagonal(K).copy()
    scratch = np.full_like(beta, np.nan)
    n_steps, gap, offset = solve_with_offset(
        K, diag, signs, bound, beta, grad, *held, cap, gap_limit, max_steps, scratch
    )
    return beta, grad, n_steps, gap, offset


def dual(K, y, beta):
    beta = beta.astype(float)
    return float((y * beta).sum() - 0.5 * beta @ K.astype(float) @ beta)


def primal(K, y, beta, offset, bound):
    f = K.astype(float) @ beta
    losses = np.abs(bound) * np.maximum(0, 1 - y * (f + offset))
    return float(0.5 * beta.astype(float) @ f + losses.sum())


def check_against_svc(K, y, C, weights=None):
    """Objective, constraint, gap and decision values against SVC, solved to 1e-8."""
    weights = np.ones(len(y)) if weights is None else weights
    peer = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K.astype(float), y, weights)
    expected = np.zeros(len(y))
    expected[peer.support_] = peer.dual_coef_[0]
    bound = (y * C * weights).astype(np.float32)
    optimum = dual(K, y, expected)
    beta, _, _, gap, offset = solve(K, y, bound, 1e-5 * optimum)
    assert ((np.minimum(bound, 0) <= beta) & (beta <= np.maximum(bound, 0))).all()
    # Every step moves two rows by the same amount but for one rounding.
    assert abs(beta.sum(dtype=float)) <= 1e-5 * max(np.abs(beta).sum(), 1.0)
    assert gap <= max(1e-5 * optimum, 2.0**-23 * np.abs(bound).sum())
    assert dual(K, y, beta) == pytest.approx(optimum, rel=1e-4)
    assert gap == pytest.approx(
        primal(K, y, beta, offset, bound) - dual(K, y, beta), abs=3e-4 * optimum
    )
    return beta, offset, peer


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("gamma", [1e-3, 0.5, 50.0], ids=["wide", "middle", "narrow"])
def test_objective_equals_svcs(gamma, C):
    X, y = noisy_problem(1)
    check_against_svc(kernel(X, gamma=gamma), y, C)


def test_decision_values_equal_svcs():
    X, y = noisy_problem(3, m=120, shift=1.2)
    K = kernel(X, gamma=0.5)
    beta, offset, peer = check_against_svc(K, y, 5.0)
    assert offset == pytest.approx(peer.intercept_[0], abs=5e-3)
    assert abs(offset) > 0.05
    np.testing.assert_allclose(K @ beta + offset, peer.decision_function(K), atol=1e-2)


@pytest.mark.parametrize(("start", "stop"), [(0, 15), (15, 40), (45, 60)])
def test_a_held_out_range_is_as_if_it_were_not_there(start, stop):
    X, y = noisy_problem(6)
    K = kernel(X, gamma=0.5)
    kept = np.r_[0:start, stop : len(y)]
    bound = 5 * y
    bound[start:stop] = 0
    beta, grad, _, _, offset = solve(K, y, bound, 1e-4, (start, stop))
    rest, _, _, _, rest_offset = solve(
        np.ascontiguousarray(K[np.ix_(kept, kept)]), y[kept], bound[kept], 1e-4
    )
    assert (beta[start:stop] == 0).all()
    np.testing.assert_allclose(grad, y - K @ beta, atol=2e-5)
    np.testing.assert_allclose(K @ beta + offset, K[:, kept] @ rest + rest_offset, atol=1e-2)


def test_clipping_the_loss_ends_earlier():
    # Labels drawn without regard to X: many margins below -1.
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 2))
    y = np.where(rng.random(150) < 0.5, 1.0, -1.0)
    K = kernel(X, gamma=2.0)
    full = solve(K, y, 1000 * y, 1e-3 * 1000 * 150)
    clipped = solve(K, y, 1000 * y, 1e-3 * 1000 * 150, cap=CLIPPED)
    assert full[3] <= 150
    assert clipped[3] <= 150
    assert clipped[2] < full[2]


def test_one_class_leaves_everything_at_zero():
    X, _ = noisy_problem(8)
    y = np.ones(len(X))
    beta, _, n_steps, gap, offset = solve(kernel(X, gamma=0.5), y, 5 * y, 1e-6)
    # Nothing can move; the offset alone answers.
    assert n_steps == 0
    np.testing.assert_array_equal(beta, 0)
    assert offset >= 1 - 1e-5
    assert gap <= 1e-3


@pytest.mark.parametrize("C", [1e6, 1e8])
def test_bounds_far_beyond_all_betas_are_as_if_there_were_none(C):
    """Of separable rows no beta nears such a bound: a share of it is more than rounding."""
    for seed in range(4):
        X, codes = class_cell(2, seed, m=90)
        y = codes - 2.0
        K = kernel(X, gamma=3.0)
        peer = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K.astype(float), y)
        assert np.abs(peer.dual_coef_).max() < C / 100
        beta, *_, offset = solve(K, y, C * y, 1e-5 * C * len(y))
        np.testing.assert_allclose(K @ beta + offset, peer.decision_function(K), atol=0.01)
