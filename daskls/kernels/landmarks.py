"""Rows seen from landmarks, and the decision values of their cells' weights."""

import math
from collections.abc import Iterator

import numpy as np

from daskls.kernels._jit import exact_jit
from daskls.kernels.route import padded_tiles
from daskls.records import Float64, Reals

__all__ = ["decide_linear", "mean_square", "project_rows", "project_tiles"]

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
