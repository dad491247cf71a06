"""The widths of a neighborhood: percentiles of its distances, or of a sample of them."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from daskls.kernels.nearest import pair_values, ranked_values
from daskls.solvers import percentiles
from daskls.solvers.percentiles import sampled_strides, width_gammas

SEED = (7, 3, 3)


def sampled_pairs(m, seed):
    named = np.arange(float(m * m)).reshape(m, m)
    return np.divmod(pair_values(named, np.arange(m), sampled_strides(m, seed), 0.0).astype(int), m)


def rows_of(m, d):
    return np.random.default_rng(3).normal(size=(m, d)) + 3.0


def test_widths_are_percentiles_of_the_distances():
    X = rows_of(60, 3)
    percentiles = (100.0, 90.0, 50.0, 33.3, 10.0, 1.0, 0.0)
    gammas = width_gammas(squareform(pdist(X)) ** 2, percentiles, SEED)
    expected = np.percentile(pdist(X), percentiles)
    np.testing.assert_allclose(gammas, expected**-2.0, rtol=1e-10)
    assert list(gammas) == sorted(gammas), "widest first"


def test_a_width_of_zero_becomes_the_smallest_positive_distance():
    X = np.repeat(np.array([[0.0], [1.0], [1.25], [9.0]]), [30, 2, 1, 1], axis=0)
    squared = squareform(pdist(X)) ** 2
    assert np.percentile(pdist(X), 50) == 0
    gammas = width_gammas(squared, (95.0, 50.0, 1.0), SEED)
    assert gammas[0] == pytest.approx(np.percentile(pdist(X), 95) ** -2.0)
    np.testing.assert_allclose(gammas[1:], 0.25**-2.0)


def test_widths_of_a_sample_of_the_pairs():
    X = rows_of(1500, 4)
    assert len(X) ** 2 / 2 > 10 * percentiles.MAX_PAIRS
    given = squareform(pdist(X)) ** 2, (90.0, 50.0, 10.0)
    gammas, expected = width_gammas(*given, SEED), np.percentile(pdist(X), given[1]) ** -2.0
    np.testing.assert_allclose(gammas, expected, rtol=0.1)
    assert not np.allclose(gammas, expected, rtol=1e-9)
    assert gammas == width_gammas(*given, SEED) != width_gammas(*given, (7, 4, 3))


@pytest.mark.parametrize("m", [2, 3, 447, 448, 449, 1000, 1001, 3000])
def test_sampled_pairs_are_distinct(m):
    first, second = sampled_pairs(m, SEED)
    assert len(first) == len(second) <= percentiles.MAX_PAIRS
    assert len(first) == m * (m - 1) // 2 or len(first) > 0.75 * percentiles.MAX_PAIRS
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
