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


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.03, 0.01, 1e-3])
@pytest.mark.parametrize("delta", [0.5, 0.05, 0.01, 1e-6])
def test_the_rank_is_the_least_of_scipys_binomial_and_no_fewer_rows_are_enough(rate, delta):
    needed = rows_needed(rate, delta)
    for n in (needed, needed + 1, 2 * needed + 1, 10 * needed + 7):
        # The score of rank k fails where k or more of n lie below the quantile that it should pass.
        chance = stats.binom(n, 1 - rate).sf(np.arange(n))
        assert rank_within(n, rate, delta) == 1 + int(np.argmax(chance <= delta))
    assert (1 - rate) ** needed <= delta
    assert needed == 1 or (1 - rate) ** (needed - 1) > delta
    # What the error of too few rows says that they are enough for.
    assert least_delta(needed, rate) == pytest.approx((1 - rate) ** needed)
    assert rows_needed(least_rate(needed, delta) * (1 + 1e-9), delta) <= needed
    assert rows_needed(least_rate(needed, delta) * (1 - 1e-6), delta) > needed


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (7, 6), (29, 29), (60, 58), (60, 60)])
def test_its_probability_is_exact(n, rank):
    rate = Fraction(1, 10)
    exact = sum(comb(n, j) * (1 - rate) ** j * rate ** (n - j) for j in range(rank, n + 1))
    assert excess_probability(rank, n, float(rate)) == pytest.approx(float(exact), rel=1e-12)
