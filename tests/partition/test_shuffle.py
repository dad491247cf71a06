"""The permutation of row numbers: exact, random, and the same whichever rows are asked for."""

import numpy as np
import pytest
from scipy.stats import chisquare

from daskls.partition.shuffle import shuffle_numbers


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 17, 1000, 4096, 70_001])
@pytest.mark.parametrize("seed", [0, 1, 2**31])
def test_every_place_is_taken_once(n, seed):
    positions = shuffle_numbers(np.arange(n), n, seed)
    assert positions.dtype == np.int64
    assert (np.sort(positions) == np.arange(n)).all()


def test_a_place_depends_on_its_number_alone():
    n = 12_345
    whole = shuffle_numbers(np.arange(n), n, 3)
    some = np.array([12_000, 7, 7, 0, 12_344])
    assert (shuffle_numbers(some, n, 3) == whole[some]).all()


def test_seeds_and_sizes_give_other_orders():
    first = shuffle_numbers(np.arange(1000), 1000, 0)
    for other in (
        shuffle_numbers(np.arange(1000), 1000, 1),
        shuffle_numbers(np.arange(1000), 1001, 0),
    ):
        # Two random permutations agree in one position on average.
        assert (first == other).sum() < 10


@pytest.mark.parametrize("seed", range(5))
def test_neighbors_are_scattered_evenly(seed):
    # Runs of 100 rows over 10 chunks: each chunk takes its share of the beginning of the data.
    n = 100_000
    chunks = shuffle_numbers(np.arange(2000), n, seed) * 10 // n
    assert chisquare(np.bincount(chunks, minlength=10)).pvalue > 1e-4
    steps = np.diff(shuffle_numbers(np.arange(2001), n, seed)) % n
    assert chisquare(np.bincount(steps * 10 // n, minlength=10)).pvalue > 1e-4


def test_very_many_rows():
    n = 3 * 10**11
    numbers = np.array([0, 1, n // 2, n - 1])
    positions = shuffle_numbers(numbers, n, 0)
    assert ((positions >= 0) & (positions < n)).all()
    assert len(set(positions.tolist())) == 4
