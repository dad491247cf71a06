"""Rows seen from landmarks, and the decision values of their cells' weights.

Center and scale of a sample, which make a method independent of the features' common unit.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskls.kernels._jit import exact_jit
from daskls.kernels.route import padded_tiles
from daskls.records import Float64, Reals

# Where exp has rounded to nothing long since.
LEAST_EXPONENT = -700.0


def project_tiles(
    X: Reals, center: Float64, landmarks: Float64, gamma: float | None
) -> Iterator[tuple[slice, Float64]]:
    """Yield rows as the landmarks see them, tile by tile.

    Parameters
    ----------
    X : real array, shape (m, d)
    center : float64 array, shape (d,). Subtracted in float64 first.
    landmarks : float64 array, shape (l, d). Minus ``center``.
    gamma : float for ``exp(-gamma |x - center - z|^2)``; None for ``(x - center) . z``

    Yields
    ------
    rows : slice. Which rows of X these are.
    projected : float64 array, shape (r, l)

    Notes
    -----
    A row's projection does not depend on the rows beside it. Call it with one BLAS thread.
    """
    norms = np.einsum("ij,ij->i", landmarks, landmarks)
    for rows, tile in padded_tiles(X, center):
        seen = tile @ landmarks.T
        if gamma is not None:
            seen *= -2.0
            seen += norms
            seen += np.einsum("ij,ij->i", tile, tile)[:, None]
            np.maximum(seen, 0.0, out=seen)
            seen *= -gamma
            np.maximum(seen, LEAST_EXPONENT, out=seen)
            np.exp(seen, out=seen)
        yield rows, seen[: rows.stop - rows.start]


def project_rows(X: Reals, center: Float64, landmarks: Float64, gamma: float | None) -> Float64:
    """Return all rows as the landmarks see them: float64 (m, l); as `project_tiles`."""
    projected = np.empty((len(X), len(landmarks)))
    for rows, seen in project_tiles(X, center, landmarks, gamma):
        projected[rows] = seen
    return projected


def mean_square(X: Reals, center: Float64, landmarks: Float64, gamma: float | None) -> float:
    """Return the mean squared norm of rows as the landmarks see them; as `project_tiles`."""
    tiles = project_tiles(X, center, landmarks, gamma)
    return math.fsum(float((seen * seen).sum()) for _, seen in tiles) / len(X)


@exact_jit
def decide_linear(M, cells, theta, intercept, out):
    """Write theta[cell] . m + intercept of each row, in an order fixed by the length.

    Parameters
    ----------
    M : float64 array, shape (m, l)
    cells : int array, shape (m,)
    theta : float64 array, shape (k, l)
    intercept : float
    out : float64 array, shape (m,)
    """
    whole = M.shape[1] - M.shape[1] % 4
    for i in range(M.shape[0]):
        own = theta[cells[i]]
        t0 = 0.0
        t1 = 0.0
        t2 = 0.0
        t3 = 0.0
        for j in range(0, whole, 4):
            t0 += M[i, j] * own[j]
            t1 += M[i, j + 1] * own[j + 1]
            t2 += M[i, j + 2] * own[j + 2]
            t3 += M[i, j + 3] * own[j + 3]
        for j in range(whole, M.shape[1]):
            t0 += M[i, j] * own[j]
        out[i] = (t0 + t1) + (t2 + t3) + intercept


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
