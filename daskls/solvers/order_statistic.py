"""The order statistic by which a threshold bounds a rate, for rows that are yet to come.

Source: Tong, Feng, Li 2018, Neyman-Pearson classification algorithms and NP receiver operating
characteristics, proposition 1. Of n scores that a model gave to negatives which it has not seen,
the k-th smallest is exceeded by more than a share alpha of all negatives with probability
P(B >= k) at most, B binomial of n and 1 - alpha; exactly that where no two scores are equal.
"""

import math

from scipy.special import bdtrc

__all__ = ["excess_probability", "least_delta", "least_rate", "rank_within", "rows_needed"]


def excess_probability(rank: int, n_rows: int, rate: float) -> float:
    """Return with which probability the score of a rank is exceeded by more than a rate.

    Parameters
    ----------
    rank : int in [1, n_rows]. 1 is the smallest score.
    n_rows : int. Scores.
    rate : float in (0, 1)

    Examples
    --------
    >>> round(excess_probability(299, 299, 0.01), 4)
    0.0495
    """
    return float(bdtrc(rank - 1, n_rows, 1.0 - rate))


def rows_needed(rate: float, delta: float) -> int:
    """Return the fewest scores of which the largest keeps to a rate but for probability delta.

    Examples
    --------
    >>> rows_needed(0.01, 0.05), rows_needed(0.1, 0.05)
    (299, 29)
    """
    n = max(math.ceil(math.log(delta) / math.log1p(-rate)), 1)
    # The quotient of two rounded logarithms may end on the wrong side of a whole number.
    while n > 1 and (1.0 - rate) ** (n - 1) <= delta:
        n -= 1
    while (1.0 - rate) ** n > delta:
        n += 1
    return n


def rank_within(n_rows: int, rate: float, delta: float) -> int:
    """Return the rank of the smallest score that keeps to a rate but for probability delta.

    Parameters
    ----------
    n_rows : int, >= `rows_needed`. Scores.
    rate : float in (0, 1). The share that may exceed the score.
    delta : float in (0, 1). The probability that more do.

    Examples
    --------
    >>> rank_within(299, 0.01, 0.05), rank_within(1000, 0.01, 0.05), rank_within(59, 0.1, 0.05)
    (299, 996, 58)
    """
    # The largest always does, of rows enough; the probability falls as the rank rises.
    low, high = 1, n_rows
    while low < high:
        middle = (low + high) // 2
        if excess_probability(middle, n_rows, rate) <= delta:
            high = middle
        else:
            low = middle + 1
    return high


def least_rate(n_rows: int, delta: float) -> float:
    """Return the smallest rate that so many scores can keep to.

    Examples
    --------
    >>> round(least_rate(299, 0.05), 4)
    0.01
    """
    return float(-math.expm1(math.log(delta) / n_rows))


def least_delta(n_rows: int, rate: float) -> float:
    """Return the smallest probability of more than a rate that so many scores leave.

    Examples
    --------
    >>> round(least_delta(200, 0.01), 3)
    0.134
    """
    return float((1.0 - rate) ** n_rows)
