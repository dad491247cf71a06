"""The rank of a threshold: by scipy's binomial distribution, in fractions, and by simulation."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from daskls.solvers.order_statistic import (
    excess_probability,
    least_delta,
    least_rate,
    rank_within,
    rows_needed,
)

RATES = (0.5, 0.1, 0.03, 0.01, 1e-3)
DELTAS = (0.5, 0.05, 0.01, 1e-6)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_rank_is_the_least_of_scipys_binomial(rate, delta):
    needed = rows_needed(rate, delta)
    for n in (needed, needed + 1, 2 * needed + 1, 10 * needed + 7):
        # The score of rank k fails where k or more of n lie below the quantile that it should pass.
        chance = stats.binom(n, 1 - rate).sf(np.arange(n))
        assert rank_within(n, rate, delta) == 1 + int(np.argmax(chance <= delta))


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (7, 6), (29, 29), (60, 58), (60, 60)])
def test_its_probability_is_exact(n, rank):
    rate = Fraction(1, 10)
    exact = sum(comb(n, j) * (1 - rate) ** j * rate ** (n - j) for j in range(rank, n + 1))
    assert excess_probability(rank, n, float(rate)) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("delta", DELTAS)
def test_no_fewer_rows_are_enough(rate, delta):
    n = rows_needed(rate, delta)
    assert (1 - rate) ** n <= delta
    assert n == 1 or (1 - rate) ** (n - 1) > delta
    # What the error of too few rows says that they are enough for.
    assert least_delta(n, rate) == pytest.approx((1 - rate) ** n)
    assert rows_needed(least_rate(n, delta) * (1 + 1e-9), delta) <= n
    assert rows_needed(least_rate(n, delta) * (1 - 1e-6), delta) > n


def test_299_rows_are_needed_for_a_hundredth():
    assert rows_needed(0.01, 0.05) == 299


@pytest.mark.parametrize(("n", "rate"), [(400, 0.01), (100, 0.1), (333, 0.03)])
def test_thresholds_of_many_draws_fail_as_often_as_it_says(n, rate):
    rank = rank_within(n, rate, 0.05)
    rng, n_draws = np.random.default_rng(0), 20_000
    # Of uniform scores the rate of a threshold is known: what lies above it.
    thresholds = np.sort(rng.random((n_draws, n)), axis=1)[:, rank - 1]
    failed = float(((1 - thresholds) > rate).mean())
    expected = excess_probability(rank, n, rate)
    assert expected <= 0.05
    assert abs(failed - expected) < 4 * np.sqrt(expected / n_draws)
    # The next smaller one would fail too often.
    assert excess_probability(rank - 1, n, rate) > 0.05
