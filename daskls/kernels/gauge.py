"""Center and scale of a sample, which make a method independent of the features' common unit."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskls.records import Float64, Reals

__all__ = ["Gauge", "find_gauge"]

# Rows in float64 at once.
GAUGE_ROWS = 8192
# Rows in units of the scale are rounded to multiples of this: what they are clustered by is then
# the same to the last bit in any unit, and rows that are equally near to two centers stay so.
GAUGE_STEP = 2.0**-20


@dataclass(frozen=True, eq=False)
class Gauge:
    """The center of rows, and their distance from it.

    Attributes
    ----------
    center : float64 array, shape (d,). The mean.
    scale : float, > 0. The root of the mean squared distance to it; 1 where all rows are equal.
    """

    center: Float64
    scale: float

    def rows(self, X: Reals) -> Float64:
        """Return rows without their unit, float64 (m, d), rounded to multiples of `GAUGE_STEP`."""
        unit = np.subtract(X, self.center, dtype=np.float64)
        unit /= self.scale
        unit /= GAUGE_STEP
        np.rint(unit, out=unit)
        unit *= GAUGE_STEP
        return unit


def find_gauge(X: Reals) -> Gauge:
    """Return the gauge of rows.

    Parameters
    ----------
    X : real array, shape (m, d)

    Notes
    -----
    Rows times a power of two have exactly the center and the scale times it.
    """
    first = X.mean(axis=0, dtype=np.float64)
    # A sum of many rows far from 0 has rounded; what is left of them around it is small.
    left = sum((tile.sum(axis=0) for tile in _around(X, first)), np.zeros(X.shape[1]))
    center = first + left / len(X)
    total = sum(float((tile * tile).sum()) for tile in _around(X, center))
    return Gauge(center, float(np.sqrt(total / len(X))) or 1.0)


def _around(X: Reals, center: Float64) -> Iterator[Float64]:
    """Yield rows minus a center in float64, batch by batch."""
    for start in range(0, len(X), GAUGE_ROWS):
        yield np.subtract(X[start : start + GAUGE_ROWS], center, dtype=np.float64)
