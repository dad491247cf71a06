"""The spread of features, by which unscaled rows are divided to remove their units."""

import numpy as np

from daskls.records import Float64, Reals

__all__ = ["spreads", "widest_and_narrowest"]

LOW, HIGH = 0.05, 0.95
# Of a normal distribution that range is so many standard deviations: features that fall back to
# theirs are then no wider than the others.
DEVIATIONS = 3.29


# Of the largest spread to the smallest: beyond, the features of small ones have no part in
# distances. Standard deviations, which cost less, are looked at first.
MAX_RATIO, SUSPECT_RATIO = 1e3, 1e2
# Of its standard deviation: a feature of a smaller range is rarely anything but one value.
RARE_RANGE = 0.1


def widest_and_narrowest(X: Reals, *, with_rare: bool = True) -> tuple[int, int, float] | None:
    """Return the features of the largest and the smallest spread, and their ratio beyond 1000.

    None where spreads differ by less. Constants count as neither.

    Parameters
    ----------
    X : real array, shape (m, d)
    with_rare : bool. Whether features count that have one value in some nine rows of ten. Rare
        indicators and pixels at the margin have a small spread, and no unit that is the reason.

    Examples
    --------
    >>> widest_and_narrowest(np.c_[np.arange(9.0), 1e-4 * np.arange(9.0), np.ones(9)])
    (0, 1, 10000.0)
    """
    deviations = X.std(axis=0, dtype=np.float64)
    varying = np.flatnonzero((X[:1] != X).any(axis=0))
    own = deviations[varying]
    if not len(own) or own.max() <= SUSPECT_RATIO * own.min():
        return None
    if not with_rare:
        ranges = np.array([np.ptp(np.quantile(X[:, j], (LOW, HIGH))) for j in varying])
        varying = varying[ranges > RARE_RANGE * own]
    found = spreads(X)[varying]
    if not len(found):
        return None
    ratio = float(found.max() / found.min())
    if ratio <= MAX_RATIO:
        return None
    return int(varying[found.argmax()]), int(varying[found.argmin()]), round(ratio, 6)


def spreads(X: Reals) -> Float64:
    """Return the spread of each feature, float64 (d,), > 0.

    Its range from the 5th to the 95th percentile; where that is 0, as for rare indicators, 3.29
    standard deviations; of a constant, 1.

    >>> spreads(np.c_[np.arange(101.0), np.full(101, 7.0)])
    array([90.,  1.])
    """
    found = np.empty(X.shape[1])
    # Feature by feature: sorting copies, and a sample may be most of the client's memory.
    for j in range(X.shape[1]):
        own = X[:, j].astype(np.float64)
        low, high = np.quantile(own, (LOW, HIGH))
        found[j] = high - low if high > low else DEVIATIONS * own.std()
    # A constant's deviation is the rounding of its mean.
    constant = np.array([(X[:, j] == X[0, j]).all() for j in range(X.shape[1])])
    return np.where(constant | (found == 0), 1.0, found)
