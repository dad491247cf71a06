"""Folds of a cell's rows, and the values of C and gamma that it tries: the papers'."""

import naive
import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from daskls.kernels.nearest import pair_values, ranked_values
from daskls.records import SolverSpec
from daskls.solvers.grid import assign_folds, count_gammas, grid_ends, resolve_grid
from daskls.solvers.percentiles import MAX_PAIRS, sampled_strides, width_gammas


@pytest.mark.parametrize("shape", [(10, 10), (20, 20), (2, 7), (10, 3)])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_folds"),
    [(2000, 2, 2), (2000, 2, 5), (60, 28, 5), (7, 1, 2), (7, 1, 5), (5000, 631, 5), (60, 2, 3)],
)
def test_own_grids_are_the_papers(n_rows, n_features, n_folds, shape):
    spec = SolverSpec(cv=n_folds, **({} if shape == (10, 10) else {"n_grid": shape}))
    for radius in (1.7, 0.003):
        grid = resolve_grid(spec, radius, n_rows, n_features)
        gammas, costs, _ = naive.grid_values(radius, n_rows, n_features, n_folds, shape)
        np.testing.assert_allclose(grid.gammas, gammas, rtol=1e-10)
        np.testing.assert_allclose(grid.costs, costs, rtol=1e-10)
        assert (len(grid.costs), len(grid.gammas)) == shape == (spec.n_costs, count_gammas(spec))
        ends = grid_ends(spec, np.array([radius]), np.array([n_rows]), n_features)
        for name, own in (("C", grid.costs), ("gamma", grid.gammas)):
            np.testing.assert_allclose(np.ravel(ends[name]), [own[0], own[-1]], rtol=1e-10)


def test_given_values_are_used_unchanged_in_increasing_order():
    spec = SolverSpec(C=(3.0, 0.1, 7.3), gamma=(2.0, 0.3))
    for size in [(1.0, 50, 2), (30.0, 2000, 8)]:
        grid = resolve_grid(spec, *size)
        assert (grid.costs, grid.gammas) == ((0.1, 3.0, 7.3), (0.3, 2.0))


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_other_kernels_have_a_grid_over_C_alone(kernel):
    grid = resolve_grid(SolverSpec(kernel=kernel), 4.0, 90, 2)
    assert grid.gammas == (1.0,)
    assert grid.costs == resolve_grid(SolverSpec(), 4.0, 90, 2).costs
    assert resolve_grid(SolverSpec(kernel=kernel, gamma=(0.5,)), 4.0, 90, 2).gammas == (0.5,)


@pytest.mark.parametrize("n_folds", [2, 3, 5, 10])
def test_folds_and_their_classes_are_balanced_and_drawn_by_the_seed_alone(n_folds):
    codes = np.random.default_rng(0).choice([0, 2, 3, 7], 103, p=[0.5, 0.3, 0.15, 0.05])
    folds, again, other = (assign_folds(codes, n_folds, (1, seed)) for seed in (2, 2, 3))
    np.testing.assert_array_equal(folds, again)
    # Not dealt in row order: rows next to each other are often alike.
    in_order = np.empty(len(codes), int)
    for code in np.unique(codes):
        own = codes == code
        assert np.ptp(np.bincount(folds[own], minlength=n_folds)) <= 1
        in_order[own] = np.arange(own.sum()) % n_folds
    assert (folds != other).any()
    assert (folds != in_order).any()
    sizes = np.bincount(folds, minlength=n_folds)
    assert len(sizes) == n_folds
    assert np.ptp(sizes) <= 1


def test_a_class_with_fewer_rows_than_folds_keeps_its_row_order():
    # Class 0 takes fold 0, class 1 goes on with 1, 2, 3, 4 and class 5 with 0, 1, 2.
    folds = assign_folds(np.array([5, 1, 1, 5, 1, 0, 5, 1]), 5, (9,))
    assert folds.tolist() == [0, 1, 2, 1, 3, 0, 2, 4]


# Widths: percentiles of distances, or of a sample of them


SEED = (7, 3, 3)


def sampled_pairs(m, seed):
    named = np.arange(float(m * m)).reshape(m, m)
    return np.divmod(pair_values(named, np.arange(m), sampled_strides(m, seed), 0.0).astype(int), m)


def rows_of(m, d):
    return np.random.default_rng(3).normal(size=(m, d)) + 3.0


def test_widths_are_percentiles_of_the_distances_or_of_a_sample_of_them():
    X = rows_of(60, 3)
    percentiles = (100.0, 90.0, 50.0, 33.3, 10.0, 1.0, 0.0)
    gammas = width_gammas(squareform(pdist(X)) ** 2, percentiles, SEED)
    expected = np.percentile(pdist(X), percentiles)
    np.testing.assert_allclose(gammas, expected**-2.0, rtol=1e-10)
    assert list(gammas) == sorted(gammas), "widest first"
    # A width of zero becomes the smallest positive distance.
    X = np.repeat(np.array([[0.0], [1.0], [1.25], [9.0]]), [30, 2, 1, 1], axis=0)
    assert np.percentile(pdist(X), 50) == 0
    gammas = width_gammas(squareform(pdist(X)) ** 2, (95.0, 50.0, 1.0), SEED)
    widest = np.percentile(pdist(X), 95) ** -2.0
    np.testing.assert_allclose(gammas, [widest, 0.25**-2.0, 0.25**-2.0])
    X = rows_of(1500, 4)
    assert len(X) ** 2 / 2 > 10 * MAX_PAIRS
    given = squareform(pdist(X)) ** 2, (90.0, 50.0, 10.0)
    gammas, expected = width_gammas(*given, SEED), np.percentile(pdist(X), given[1]) ** -2.0
    np.testing.assert_allclose(gammas, expected, rtol=0.1)
    assert not np.allclose(gammas, expected, rtol=1e-9)
    assert gammas == width_gammas(*given, SEED) != width_gammas(*given, (7, 4, 3))


@pytest.mark.parametrize("m", [2, 3, 447, 448, 449, 1000, 1001, 3000])
def test_sampled_pairs_are_distinct(m):
    first, second = sampled_pairs(m, SEED)
    assert len(first) == len(second) <= MAX_PAIRS
    assert len(first) == m * (m - 1) // 2 or len(first) > 0.75 * MAX_PAIRS
    assert (first != second).all()
    low, high = np.minimum(first, second), np.maximum(first, second)
    assert low.min() >= 0
    assert high.max() < m
    assert len(np.unique(low * m + high)) == len(first)
    # Every row takes part as often as any other.
    assert np.ptp(np.bincount(np.r_[first, second], minlength=m)) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "ties", "zeros", "one", "tiny", "equal"])
def test_ranked_values_are_those_of_a_sort(kind, dtype):
    rng = np.random.default_rng(4)
    values = {
        "uniform": rng.random(5000),
        # Nearly all values in the first bin.
        "skewed": rng.random(5000) ** 40,
        "ties": rng.integers(0, 5, 5000).astype(float),
        "zeros": np.zeros(100),
        "one": np.array([3.0]),
        "tiny": np.r_[0.0, np.full(50, 1e-45)],
        "equal": np.full(77, 0.1),
    }[kind].astype(dtype)
    n = len(values)
    ranks = np.unique(np.r_[0, rng.integers(0, n, 9), n // 2, n - 1])
    np.testing.assert_array_equal(ranked_values(values, ranks), np.sort(values)[ranks])


def test_widths_do_not_depend_on_where_rows_stand():
    X = rows_of(500, 3).astype(np.float32)
    squared = squareform(pdist(X)).astype(np.float32) ** 2
    order = np.random.default_rng(5).permutation(500)
    moved = squared[np.ix_(order, order)]
    gammas = width_gammas(squared, (90.0, 50.0), SEED)
    assert gammas == width_gammas(moved, (90.0, 50.0), SEED, 0.0, np.argsort(order))
    assert gammas != width_gammas(moved, (90.0, 50.0), SEED)
