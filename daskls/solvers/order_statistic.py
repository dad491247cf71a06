"""Order statistics of held-out scores: thresholds that bound a rate, and intervals that cover.

Thresholds: Tong, Feng, Li 2018, Neyman-Pearson classification algorithms, proposition 1: the k-th
smallest of n negatives' scores is exceeded by more than a share alpha of all with a probability of
at most P(B >= k), B binomial of n and 1 - alpha.

Intervals: Vovk, Gammerman, Shafer 2005; Lei et al. 2018, theorem 2.2: one more row's score is at
most the k-th smallest of m with probability k / (m + 1), more if scores are equal.
"""

import math
from fractions import Fraction

from scipy.special import bdtrc


def excess_probability(rank: int, n_rows: int, rate: float) -> float:
    """Return the probability that more than a share ``rate`` exceeds the score of a rank.

    >>> round(excess_probability(299, 299, 0.01), 4)
    0.0495
    """
    return float(bdtrc(rank - 1, n_rows, 1.0 - rate))


def rows_needed(rate: float, delta: float) -> int:
    """Return the fewest scores whose largest keeps the rate with probability 1 - delta.

    >>> rows_needed(0.01, 0.05), rows_needed(0.1, 0.05)
    (299, 29)
    """
    n = max(math.ceil(math.log(delta) / math.log1p(-rate)), 1)
    # The quotient of two rounded logarithms may fall on the wrong side of an integer.
    while n > 1 and (1.0 - rate) ** (n - 1) <= delta:
        n -= 1
    while (1.0 - rate) ** n > delta:
        n += 1
    return n


def rank_within(n_rows: int, rate: float, delta: float) -> int:
    """Return the rank of the smallest score that keeps the rate with probability 1 - delta.

    `rate` is the share that may exceed the score; `n_rows` at least `rows_needed`.

    >>> rank_within(299, 0.01, 0.05), rank_within(1000, 0.01, 0.05), rank_within(59, 0.1, 0.05)
    (299, 996, 58)
    """
    # With enough rows the largest always does; the probability falls as the rank rises.
    low, high = 1, n_rows
    while low < high:
        middle = (low + high) // 2
        if excess_probability(middle, n_rows, rate) <= delta:
            high = middle
        else:
            low = middle + 1
    return high


def least_rate(n_rows: int, delta: float) -> float:
    """Return the smallest rate that ``n_rows`` scores can keep with probability 1 - delta.

    >>> round(least_rate(299, 0.05), 4)
    0.01
    """
    return float(-math.expm1(math.log(delta) / n_rows))


def least_delta(n_rows: int, rate: float) -> float:
    """Return the smallest probability of exceeding a rate that ``n_rows`` scores allow.

    >>> round(least_delta(200, 0.01), 3)
    0.134
    """
    return float((1.0 - rate) ** n_rows)


def covering_rank(n_rows: int, coverage: float) -> int:
    """Return the rank of the score that a new row exceeds with probability 1 - coverage at most.

    `n_rows`, of scores, is at least `rows_to_cover`.

    >>> covering_rank(9, 0.9), covering_rank(99, 0.55), covering_rank(1000, 0.9)
    (9, 55, 901)
    """
    return math.ceil((n_rows + 1) * _as_written(coverage))


def rows_to_cover(coverage: float) -> int:
    """Return the fewest scores whose largest covers one more row with probability ``coverage``.

    >>> rows_to_cover(0.9), rows_to_cover(0.99), rows_to_cover(0.95)
    (9, 99, 19)
    """
    share = _as_written(coverage)
    return math.ceil(share / (1 - share))


def most_coverage(n_rows: int) -> float:
    """Return the largest coverage that ``n_rows`` scores reach.

    >>> most_coverage(9)
    0.9
    """
    return n_rows / (n_rows + 1)


def _as_written(share: float) -> Fraction:
    """Return a float as the fraction that its decimal digits say, so that 0.55 x 100 is 55."""
    return Fraction(repr(float(share)))
