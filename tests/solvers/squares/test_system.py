"""Least squares against scikit-learn's kernel ridge regression, refits and plain linear algebra."""

import naive
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels

from daskls import ParameterError
from daskls.kernels.kernel import find_kernel
from daskls.records import KernelSpec
from daskls.solvers.squares import system
from daskls.solvers.squares.system import System, may_need_float64, merge_equal_rows, signs_of

RNG = np.random.default_rng(0)
M = 60
A = RNG.normal(size=(M, 3)).astype(np.float32)
Y = signs_of(RNG.integers(3, size=M), 3)
W = RNG.uniform(0.2, 3.0, size=M)
RIDGE = 1e-5
DISTANCES = [KernelSpec("rbf", 0.3), KernelSpec("exponential", 0.5), KernelSpec("laplacian", 0.4)]
KERNELS = [*DISTANCES, KernelSpec("poly", 0.2, 2, 1.0)]


def gram(kernel, rows=A):
    rows = rows.astype(np.float64)
    if kernel.name in ("rbf", "exponential", "laplacian"):
        return values_at(rows, rows, kernel)
    return (kernel.gamma * rows @ rows.T + kernel.coef0) ** kernel.degree


def values_at(points, rows, kernel):
    if kernel.name == "exponential":
        squared = ((points[:, None] - rows) ** 2).sum(axis=2)
        return np.exp(-kernel.gamma * np.sqrt(squared))
    return pairwise_kernels(points, rows, metric=kernel.name, gamma=kernel.gamma)


def exact_held_out(K, targets, ridges, offset=False):
    inverse = np.linalg.inv(K + np.diag(ridges))
    if offset:
        ones = inverse.sum(axis=1)
        inverse -= np.outer(ones, ones) / ones.sum()
    return targets - inverse @ targets / np.diagonal(inverse)[:, None]


@pytest.fixture
def in_float64(monkeypatch):
    """Let float32 lose the digits of any system."""
    monkeypatch.setattr(system, "SAFE_ROUNDINGS", np.inf)


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("kernel", KERNELS)
def test_coefficients_are_those_of_kernel_ridge(kernel):
    ridge = KernelRidge(alpha=RIDGE, kernel="precomputed").fit(gram(kernel), Y, sample_weight=W)
    found = System(A, kernel).solve(Y, RIDGE / W)
    assert found.alpha.dtype == np.float64
    scale = np.abs(ridge.dual_coef_).max()
    np.testing.assert_allclose(found.alpha / scale, ridge.dual_coef_ / scale, atol=1e-8)


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("kernel", DISTANCES)
@pytest.mark.parametrize("offset", [False, True])
def test_held_out_values_are_those_of_as_many_refits(kernel, offset):
    ridges = 1e-4 / W
    found = System(A, kernel).solve(Y, ridges, offset=offset, held_out=True)
    K = gram(kernel)
    for i in range(0, M, 7):
        keep = np.delete(np.arange(M), i)
        own = K[np.ix_(keep, keep)], Y[keep], ridges[keep]
        alpha, b = naive.bordered_ridge(*own, offset)
        np.testing.assert_allclose(found.held_out[i], K[i, keep] @ alpha + b, atol=1e-8)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("ridge", [1e-3, 1e-2, 1.0])
def test_float32_keeps_the_digits_that_matter(offset, ridge):
    # Many near rows: a matrix whose eigenvalues reach from m down to nothing.
    rows = RNG.random((1500, 2)).astype(np.float32)
    targets = signs_of((rows[:, 0] > 0.5).astype(int), 2)
    ridges = np.full(len(rows), ridge)
    own = System(rows, KernelSpec("rbf", 2.0))
    found = own.solve(targets, ridges, offset=offset, held_out=True)
    assert found.held_out.dtype == np.float64
    assert (found.alpha.dtype == np.float32) == (not may_need_float64(ridge, len(rows)))
    exact = exact_held_out(gram(own._spec, rows), targets, ridges, offset)
    assert np.abs(found.held_out - exact).max() < 0.02


@pytest.mark.parametrize("near", [None, 50, 1400])
@pytest.mark.parametrize("kernel", DISTANCES)
def test_a_rough_kernel_needs_no_float64_unless_rows_are_near(kernel, near):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(1500, 6)).astype(np.float32)
    # Narrow, so that of the Gaussian kernel, too, no row is near another.
    spec = KernelSpec(kernel.name, 4 * kernel.gamma)
    if near is not None:
        # Seen among the leading rows, or only at the end.
        rows[near + 1] = rows[near] + np.float32(1e-5)
    targets = signs_of((rows[:, 0] * rows[:, 1] > 0).astype(int), 2)
    ridges = np.full(len(rows), 1e-5)
    found = System(rows, spec).solve(targets, ridges, held_out=True)
    assert found.alpha.dtype == (np.float32 if near is None else np.float64)
    exact = exact_held_out(gram(spec, rows), targets, ridges)
    assert np.abs(found.held_out - exact).max() < 0.02


@pytest.mark.usefixtures("in_float64")
def test_some_rows_are_held_out_as_all_are():
    problem = Y, RIDGE / W
    whole = System(A, KERNELS[0]).solve(*problem, offset=True, held_out=True)
    for rows in [[0, 7, 59], [5, 3], [58, 59], range(20, 60), range(1, 60), [59], []]:
        rows = np.array(rows, np.int64)
        found = System(A, KERNELS[0]).solve(*problem, offset=True, held_out=rows)
        np.testing.assert_allclose(found.inverse, whole.inverse[rows], rtol=1e-9)
        np.testing.assert_allclose(found.held_out, whole.held_out[rows], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("ridge", [1e-3, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("kernel", [KernelSpec("linear", 1.0, 1), KernelSpec("poly", 1.0, 2, 1.0)])
def test_kernels_without_a_unit_diagonal_keep_their_digits(kernel, ridge, spread):
    # A ridge that is large beside the number of rows is nothing beside squares of features.
    rows = (np.random.default_rng(1).normal(size=(400, 5)) * spread).astype(np.float32)
    targets = signs_of((rows[:, 0] * rows[:, 1] > 0).astype(int), 2)
    ridges = np.full(len(rows), ridge)
    found = System(rows, kernel).solve(targets, ridges, held_out=True)
    exact = exact_held_out(gram(kernel, rows), targets, ridges)
    assert np.abs(found.held_out - exact).max() < 0.02


def test_a_ridge_that_float64_would_lose_is_refused():
    # It has a factor, of pivots that rounding made up.
    rows = RNG.normal(size=(400, 8)).astype(np.float32)
    targets = signs_of((rows[:, 0] > 0).astype(int), 2)
    with pytest.raises(ParameterError, match="in a cell of 400 rows this is a ridge of 1e-13"):
        System(rows, KernelSpec("linear")).solve(targets, np.full(400, 1e-13))
    # Rows far from each other need no ridge.
    far = System(rows, KernelSpec("rbf", 10.0))
    assert np.isfinite(far.solve(targets, np.full(400, 2e-16)).alpha).all()
    rows, targets = np.tile(A, (2, 1)), np.tile(Y, (2, 1))
    with pytest.raises(ParameterError, match=r"times a row's weight is .* Lower C or the weights"):
        System(rows, KERNELS[0]).solve(targets, np.full(2 * M, 1e-30))


def test_merging_keeps_the_solution_and_the_order_of_first_rows():
    rows = A[[3, 1, 3, 0, 1, 3]]
    targets = np.array([[1.0], [1.0], [-1.0], [1.0], [1.0], [1.0]])
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    merged = merge_equal_rows(rows, targets, weights)
    np.testing.assert_array_equal(merged.A, A[[3, 1, 0]])
    np.testing.assert_allclose(merged.Y[:, 0], [0.4, 1.0, 1.0])
    np.testing.assert_array_equal(merged.weights, [10.0, 7.0, 4.0])
    # The whole system has the same function: coefficients of copies add up.
    kernel = KERNELS[0]
    whole = np.linalg.solve(gram(kernel, rows) + np.diag(0.1 / weights), targets)
    found = System(merged.A, kernel).solve(merged.Y, 0.1 / merged.weights)
    added = np.zeros((3, 1))
    np.add.at(added, merged.of_row, whole)
    np.testing.assert_allclose(found.alpha, added, atol=1e-5)


@pytest.mark.parametrize("kernel", DISTANCES)
def test_derivatives_by_factors_equal_finite_differences(kernel):
    rows, weights, step = A.astype(np.float64), RNG.normal(size=(M, M)), 1e-6
    weights += weights.T
    expected = np.zeros(3)
    for j in range(3):
        for move in (step, -step):
            scaled = rows * np.exp(move * np.eye(3)[j])
            expected[j] += (weights * values_at(scaled, scaled, kernel)).sum() / (2 * move)
    K, of_kernel = values_at(rows, rows, kernel), find_kernel(kernel.name)
    found = of_kernel.scale_slopes(rows, weights, K, kernel)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    in_float32 = (own.astype(np.float32) for own in (rows, weights, K))
    found = of_kernel.scale_slopes(*in_float32, kernel)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize(
    ("gamma", "ridge", "dtype"),
    [(None, 0.1, np.float32), (None, 1e-3, np.float32), (0.01, 1e-6, np.float64)],
)
def test_derivatives_of_the_leave_one_out_error_equal_finite_differences(
    gamma, ridge, dtype, offset
):
    kernel = DISTANCES[0] if gamma is None else KernelSpec("rbf", gamma)
    rng = np.random.default_rng(0)
    weights = rng.random(M) + 0.5
    ridges, K = ridge / weights, gram(kernel)
    error, slopes = System(A, kernel).error_slopes(Y, ridges, weights, offset=offset)
    assert slopes.dtype == dtype

    def error_of(K):
        return weights @ ((Y - exact_held_out(K, Y, ridges, offset)) ** 2).sum(axis=1)

    assert error == pytest.approx(error_of(K), rel=1e-2)
    # Along themselves, where the error changes most, and in another direction, of slopes that do
    # not cancel: no other values change it.
    other, step = np.abs(rng.normal(size=(M, M))) * slopes, 1e-3 * ridge
    for move in (slopes, other + other.T):
        move = move / np.linalg.norm(move)
        expected = (error_of(K + step * move) - error_of(K - step * move)) / (2 * step)
        assert (slopes * move).sum() == pytest.approx(expected, rel=1e-2)
    np.testing.assert_array_equal(slopes, slopes.T)
