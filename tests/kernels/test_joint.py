"""One cell at a given bias: the dual bound, an independent minimizer, slope and curvature."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from daskls.kernels.joint import N_STATS, solve_cell


def cell(m, n_landmarks, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(m, n_landmarks)) * scale
    labels = (M[:, 0] + rng.normal(size=m) * 0.5 * scale > 0).astype(np.int32)
    return M, labels, rng.uniform(0.5, 2.0, m), rng.integers(0, 3, m)


def solve(rows, problems, tol=1e-9, gram=False):
    M, labels, weights, folds = rows
    problems = np.array(problems, float)
    theta, deltas = np.zeros((len(problems), M.shape[1])), np.ones(len(problems))
    stats = np.full((len(problems), N_STATS), np.nan)
    G = M @ M.T if gram else np.empty((0, 0))
    solve_cell(M, G, labels, weights, folds, problems, theta, deltas, tol, stats)
    return theta, stats


def objective(theta, rows, C, fold, bias):
    M, labels, weights, folds = rows
    y = np.where(labels == 1, 1.0, -1.0)
    c = C * weights * (folds != fold)
    return theta @ theta / 2 + c @ np.maximum(0, 1 - y * (M @ theta + bias))


def least(rows, C, fold, bias):
    """Return the minimum by a general solver on the quadratic program's primal."""
    M, labels, weights, folds = rows
    y = np.where(labels == 1, 1.0, -1.0)
    c = C * weights * (folds != fold)
    m, n = M.shape
    lines = np.hstack([y[:, None] * M, np.eye(m)])
    found = minimize(
        lambda x: x[:n] @ x[:n] / 2 + c @ x[n:],
        np.r_[np.zeros(n), np.maximum(0, 1 - y * bias)],
        jac=lambda x: np.r_[x[:n], c],
        bounds=[(None, None)] * n + [(0, None)] * m,
        constraints=LinearConstraint(lines, 1 - y * bias),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.fun


@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize(("m", "n_landmarks"), [(40, 3), (12, 30), (25, 25), (1, 4)])
def test_the_minimum_is_that_of_a_quadratic_program(m, n_landmarks, gram):
    rows = cell(m, n_landmarks)
    problems = [(1, C, fold, b) for C in (0.01, 1.0, 100.0) for fold, b in ((-1, 0.3), (1, -0.7))]
    theta, stats = solve(rows, problems, gram=gram)
    for own, found, (_, C, fold, bias) in zip(theta, stats, problems, strict=True):
        expected = least(rows, C, fold, bias)
        assert found[0] == pytest.approx(objective(own, rows, C, fold, bias), rel=1e-9, abs=1e-12)
        # The other one ends above the minimum, by 4e-5 on some processors; never below.
        assert found[0] <= expected * (1 + 1e-5) + 1e-6
        assert found[0] == pytest.approx(expected, rel=1e-4, abs=1e-6)
        # The dual value is a lower bound, and near.
        assert found[1] <= expected * (1 + 1e-5) + 1e-6
        assert found[0] - found[1] <= 1e-9 * found[4] + 1e-12
        assert found[4] == pytest.approx(C * rows[2][rows[3] != fold].sum())


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_any_scale_reaches_the_gap(C, scale):
    rows = cell(200, 8, scale=scale)
    _, stats = solve(rows, [(1, C, -1, 0.1)], tol=1e-6)
    assert 0 <= stats[0, 0] - stats[0, 1] <= 1e-6 * stats[0, 4]
    assert stats[0, 5] < 200


def test_slope_and_curvature_are_those_of_the_least_value():
    rows = cell(300, 4)
    h = 1e-4
    for bias in (-0.8, 0.0, 0.5):
        _, stats = solve(rows, [(1, 1.0, -1, b) for b in (bias - h, bias, bias + h)], tol=1e-12)
        below, at, above = stats
        assert at[2] == pytest.approx((above[0] - below[0]) / (2 * h), rel=1e-2, abs=1e-2)
        # The slope grows, by as much as the curvature says up to the next kink.
        assert at[3] > 0
        assert below[2] <= at[2] + 1e-6
        assert at[2] <= above[2] + 1e-6


def test_equal_rows_of_both_classes_and_one_class():
    M = np.ones((10, 3))
    labels = np.arange(10, dtype=np.int32) % 2
    rows = M, labels, np.ones(10), np.zeros(10, np.int64)
    theta, stats = solve(rows, [(1, 100.0, -1, 0.0), (7, 1.0, -1, -1.0), (7, 1.0, -1, 0.0)])
    # Half of the rows are wrong whatever theta is; without any positive row, -1 is right.
    assert np.abs(theta[0]).max() < 1e-4
    assert stats[0, 0] == pytest.approx(1000.0, rel=1e-6)
    assert (theta[1] == 0).all()
    assert stats[1, :3].tolist() == [0.0, 0.0, 0.0]
    assert stats[2, 2] > 0
