"""A test whether one combination of C and gamma is significantly worse than another.

Both are evaluated on the same held-out rows, so they are compared row by row: with d the weighted
difference of their errors on a row, ``sum(d)`` has about the variance ``sum(d^2)`` if they are
equally good (McNemar's test).

Source: Maron, Moore, Hoeffding races, NIPS 1993 (the idea); McNemar 1947 (the test).
"""

import numpy as np

from daskls.records import Float64

__all__ = ["DOUBT", "is_beaten"]

# Two standard deviations: one wrong verdict in 44 between equals, on which little is lost.
DOUBT = 2.0


def is_beaten(wrong: Float64, best: Float64, doubt: float = DOUBT) -> bool:
    """Return whether errors stand above the best one's by more than ``doubt`` deviations.

    Parameters
    ----------
    wrong, best : float arrays, shape (m,). A row's weight where it is decided wrongly, else 0.

    Examples
    --------
    >>> is_beaten(np.array([1.0] * 5), np.zeros(5)), is_beaten(np.array([1.0] * 4), np.zeros(4))
    (True, False)
    """
    excess = wrong - best
    return float(excess.sum()) > doubt * float(np.sqrt((excess**2).sum()))
