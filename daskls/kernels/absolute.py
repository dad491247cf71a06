"""Sums of absolute differences of features: distances of rows, and their derivatives; compiled.

Support rows come transposed, a row a feature: the innermost loops run over them, each for itself.
Distances are summed in a fixed order, `TOGETHER` features at a time and then these sums: a value's
bits are those of its two rows, wherever they stand and whatever stands beside them.
"""

import numpy as np

from daskls.kernels._jit import exact_jit, inline_jit, jit
from daskls.kernels.gram import MIRROR
from daskls.kernels.steps import ZERO

__all__ = [
    "TOGETHER",
    "add_squared_slopes",
    "fixed_distances",
    "write_distances",
    "write_symmetric",
]

# Features whose differences are added up before they join the sum, which is then loaded and stored
# an eighth as often. Rows are padded to a multiple, by zeros.
TOGETHER = 8
# Columns that all rows of a panel are compared with in turn: they stay in the second cache.
TILE = 512
# Rows that are mirrored while they are in that cache.
PANEL = 64


@inline_jit
def _distance_row(a, offset, BT, lo, hi, row):
    """Write one row's distances to support rows lo to hi - 1, and what is added to each."""
    out = row[lo:hi]
    for j in range(out.shape[0]):
        out[j] = offset
    for k in range(0, BT.shape[0], TOGETHER):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        a4, a5, a6, a7 = a[k + 4], a[k + 5], a[k + 6], a[k + 7]
        b0, b1, b2, b3 = BT[k, lo:hi], BT[k + 1, lo:hi], BT[k + 2, lo:hi], BT[k + 3, lo:hi]
        b4, b5, b6, b7 = BT[k + 4, lo:hi], BT[k + 5, lo:hi], BT[k + 6, lo:hi], BT[k + 7, lo:hi]
        for j in range(out.shape[0]):
            first = (abs(a0 - b0[j]) + abs(a1 - b1[j])) + (abs(a2 - b2[j]) + abs(a3 - b3[j]))
            last = (abs(a4 - b4[j]) + abs(a5 - b5[j])) + (abs(a6 - b6[j]) + abs(a7 - b7[j]))
            out[j] += first + last


@exact_jit
def write_distances(A, offsets, BT, out):
    """Write distances of rows along features.

    Parameters
    ----------
    A : float array, shape (m, n), n a multiple of `TOGETHER`
    offsets : float array, shape (m,). Added to each of a row's distances.
    BT : float array, shape (n, s), C-contiguous
    out : float array, shape (m, s). Overwritten; all four are of one dtype, in which sums are.
    """
    s = BT.shape[1]
    for lo in range(0, s, TILE):
        for i in range(A.shape[0]):
            _distance_row(A[i], offsets[i], BT, lo, min(lo + TILE, s), out[i])


@exact_jit
def write_symmetric(A, AT, out):
    """Write distances of rows to each other: those right of the diagonal, and mirrored below it.

    Parameters
    ----------
    A : float32 array, shape (m, n), n a multiple of `TOGETHER`
    AT : float32 array, shape (n, m). A, transposed.
    out : float32 array, shape (m, m). Overwritten; the diagonal is 0.
    """
    m = A.shape[0]
    for start in range(0, m, PANEL):
        stop = min(start + PANEL, m)
        for lo in range(start, m, TILE):
            hi = min(lo + TILE, m)
            for i in range(start, min(stop, hi)):
                _distance_row(A[i], ZERO, AT, max(lo, i), hi, out[i])
        for j0 in range(start, m, MIRROR):
            for i0 in range(start, stop, MIRROR):
                for j in range(j0, min(j0 + MIRROR, m)):
                    for i in range(i0, min(i0 + MIRROR, stop, j)):
                        out[j, i] = out[i, j]


@exact_jit
def fixed_distances(A, row, fixed):
    """Return the distances of queries to a row along some columns.

    Parameters
    ----------
    A : float64 array, shape (m, d)
    row : float array, shape (d,)
    fixed : int64 array, shape (n,)

    Returns
    -------
    distances : float64 array, shape (m,)
    """
    distances = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        for j in range(fixed.shape[0]):
            distances[i] += abs(A[i, fixed[j]] - row[fixed[j]])
    return distances


@jit
def add_squared_slopes(A, RT, K, coef, sums):
    """Add, for each feature, squares of ``sum_s coef_s k(x, r_s) sign(r_sj - x_j)``.

    Parameters
    ----------
    A : float array, shape (h, d). The rows x.
    RT : float array, shape (d, m). Rows r, a row a feature.
    K : float array, shape (h, m). Kernel values.
    coef : float array, shape (n, m). Of n functions.
    sums : float64 array, shape (d,). Added to, over rows and functions.

    Notes
    -----
    Cost O(h m d n); memory of n + 1 rows of K.
    """
    n, m = coef.shape
    weights, signs = np.empty_like(coef), np.empty(m, coef.dtype)
    for i in range(A.shape[0]):
        for f in range(n):
            for s in range(m):
                weights[f, s] = coef[f, s] * K[i, s]
        for j in range(A.shape[1]):
            x, column = A[i, j], RT[j]
            for s in range(m):
                # 0 of equal values: the mean of the slopes on both sides.
                signs[s] = np.float32(column[s] > x) - np.float32(column[s] < x)
            for f in range(n):
                own, total = weights[f], ZERO
                for s in range(m):
                    total += own[s] * signs[s]
                sums[j] += np.float64(total) * np.float64(total)
