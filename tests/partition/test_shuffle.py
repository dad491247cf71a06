"""The permutation of row numbers, and which rows are drawn for what by it."""

import numpy as np
import pytest
from scipy.stats import chisquare

from daskls.partition.shuffle import ball_keys, plan_draws, sampling_sizes, shuffle_numbers


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 17, 1000, 4096, 70_001])
@pytest.mark.parametrize("seed", [0, 1, 2**31])
def test_every_place_is_taken_once(n, seed):
    positions = shuffle_numbers(np.arange(n), n, seed)
    assert positions.dtype == np.int64
    assert (np.sort(positions) == np.arange(n)).all()


def test_seeds_and_sizes_give_other_orders():
    first = shuffle_numbers(np.arange(1000), 1000, 0)
    for n, seed in ((1000, 1), (1001, 0)):
        # Two random permutations agree in one position on average.
        assert (first == shuffle_numbers(np.arange(1000), n, seed)).sum() < 10


@pytest.mark.parametrize("seed", range(5))
def test_neighbors_are_scattered_evenly(seed):
    # Runs of 100 rows over 10 chunks: each chunk takes its share of the beginning of the data.
    n = 100_000
    chunks = shuffle_numbers(np.arange(2000), n, seed) * 10 // n
    assert chisquare(np.bincount(chunks, minlength=10)).pvalue > 1e-4
    steps = np.diff(shuffle_numbers(np.arange(2001), n, seed)) % n
    assert chisquare(np.bincount(steps * 10 // n, minlength=10)).pvalue > 1e-4


def test_sizes():
    for n, fraction, n_subsamples, size, n_validation in [
        (49_990, 0.02, 20, 49, 4999),
        (1000, 0.29, 1, 290, 100),
        (1_000_000, 0.02, 20, 1000, 10_000),
        # What validates is left to it.
        (100, 1.0, 3, 30, 10),
        (5, 0.5, 1, 2, 1),
        (5, 0.1, 2, 0, 1),
    ]:
        draws = plan_draws(n, fraction, n_subsamples, 0)
        assert (draws.subsample_rows, draws.n_validation) == (size, n_validation)
        assert draws.n_sampled == size * n_subsamples
        assert draws.n_reserved + draws.n_others == n
        assert draws.n_others >= 0


def test_sizes_that_are_not_given():
    for n, n_classes, given, expected in [
        (10_000_000, 2, (None, None), (0.02, 20)),
        # 200 rows a class, in subsamples of 20 a class at least.
        (3089, 2, (None, None), (400 / 3089, 10)),
        (16_000, 26, (None, None), (5200 / 16_000, 10)),
        # Half of the rows at the most; one subsample at the least.
        (60, 3, (None, None), (0.5, 1)),
        (1000, 2, (0.9, None), (0.9, 20)),
        # What validates is left to it: 76 rows are drawn.
        (84, 2, (1.0, None), (1.0, 1)),
        # The product falls just short of 400.
        (1078, 2, (None, None), (400 / 1078, 10)),
        (1000, 2, (0.1, None), (0.1, 2)),
        (3089, 2, (None, 7), (400 / 3089, 7)),
        (3089, 2, (0.001, 7), (0.001, 7)),
    ]:
        assert sampling_sizes(*given, n, n_classes) == expected


def test_each_row_has_its_place_whatever_is_asked_beside():
    draws = plan_draws(997, 0.1, 3, 7)
    X = np.arange(997.0)[:, None]
    whole = draws.shuffled(np.arange(997), X)
    assert sorted(whole.tolist()) == list(range(997))
    some = np.array([5, 900, 33])
    assert draws.shuffled(some, X[some]).tolist() == whole[some].tolist()


@pytest.mark.parametrize("copies", [2, 3, 20])
def test_of_equal_rows_all_validate_or_none(copies):
    n = 200 * copies
    draws, numbers = plan_draws(n, 0.3, 3, 7), np.arange(n)
    content = np.random.default_rng(0).permutation(np.repeat(np.arange(200), copies))
    order = draws.shuffled(numbers, content[:, None].astype("f4"))
    validates = (order >= draws.n_sampled) & (order < draws.n_reserved)
    assert not np.isin(content[validates], content[~validates]).any()
    assert n * 0.04 < validates.sum() < n * 0.17
    plain = draws.shuffled(numbers, numbers[:, None])
    same = ~validates & ((plain < draws.n_sampled) | (plain >= draws.n_reserved))
    np.testing.assert_array_equal(order[same], plain[same])


def test_a_row_has_another_key_in_every_ball():
    numbers = np.arange(2000)
    first, second = (ball_keys(numbers, np.full(2000, ball), 0) for ball in (3, 4))
    assert len(set(first.tolist())) == len(set(second.tolist())) == 2000
    # Of those that one ball would take first, the other takes as many as chance has it.
    common = len(set(np.argsort(first)[:500]) & set(np.argsort(second)[:500]))
    assert 85 < common < 165
    mixed = ball_keys(numbers[:2], np.array([4, 3]), 0)
    assert mixed.tolist() == [second[0], first[1]]
    assert ball_keys(numbers, np.full(2000, 3), 1).tolist() != first.tolist()
