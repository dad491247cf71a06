"""Inner products, squared distances and L1 distances of rows, and sums over such matrices.

Inner products come from a GEMM in float64, one for all widths of a kernel; only its result is cast
to float32. In float32 the expanded squared distance ``|a|^2 + |b|^2 - 2 a.b`` loses about 1e-7 r^2
of rows of length r, and the narrowest width of a grid in few dimensions multiplies that by 1e6.

L1 distances, sums of absolute differences of features, take support rows transposed: the innermost
loops run over support rows, which do not depend on each other. Features are summed in a fixed
order, within groups of `TOGETHER` and then over groups: the bits of a value are those of its two
rows, wherever they stand and whatever stands beside them.
"""

from collections.abc import Iterator

import numpy as np

from daskls.kernels._jit import exact_jit, inline_jit, jit
from daskls.kernels.steps import ZERO
from daskls.records import Float32, Float64

# Rows per GEMM. A product's bits depend on its shape, so every block has this many, zero-padded. A
# multiple of 24, the width of OpenBLAS's AVX-512 kernel: of 256 rows the last four would round
# differently.
GRAM_TILE_ROWS = 240
# Rows per GEMM of decisions: whole tiles of OpenBLAS, with little padding where a cell has few
# queries.
DECISION_TILE_ROWS = 48
# Columns per GEMM, so that its padded result stays small beside a model of many support rows.
TILE_COLUMNS = 1 << 14
# Side of the squares that are mirrored at once: a square and its image fit in the first-level
# cache.
MIRROR = 16
# Features whose L1 differences are added up before they join the sum, which is then loaded and
# stored an eighth as often. Rows are zero-padded to a multiple.
TOGETHER = 8
# Of squares, whose features are few.
SQUARED_TOGETHER = 4
# Support rows that all rows of a panel are compared with in turn: they stay in the second-level
# cache.
L1_COLUMNS = 512
# Rows of a panel, mirrored while they are in that cache.
L1_PANEL_ROWS = 64


def inner_products(A: Float64, B: Float64) -> Float64:
    """Return the inner products (m, s) of rows, each with the bits of its two rows."""
    products = np.empty((len(A), len(B)))
    for rows, of_tile in product_tiles(A, B):
        products[rows] = of_tile[: rows.stop - rows.start]
    return products


def squared_distances(A: Float64, B: Float64) -> Float64:
    """Return squared distances (m, s), clipped at 0, with the bits of `inner_products`."""
    squared = inner_products(A, B)
    squared *= -2.0
    squared += squared_norms(A)[:, None]
    squared += squared_norms(B)
    return np.maximum(squared, 0.0, out=squared)


def product_tiles(
    A: Float64, B: Float64, tile_rows: int = GRAM_TILE_ROWS
) -> Iterator[tuple[slice, Float64]]:
    """Yield tiles of rows of A, and their inner products with all rows of B, a new array each time.

    `tile_rows` is a multiple of 24, see `GRAM_TILE_ROWS`; padding follows the tile's rows.
    """
    m, d = A.shape
    padded = np.zeros((tile_rows, d))
    for start in range(0, m, tile_rows):
        stop = min(start + tile_rows, m)
        padded[: stop - start] = A[start:stop]
        padded[stop - start :] = 0.0
        yield slice(start, stop), _products(padded, B)


def _products(padded: Float64, B: Float64) -> Float64:
    if len(B) <= TILE_COLUMNS:
        return padded @ B.T
    products = np.empty((len(padded), len(B)))
    for first in range(0, len(B), TILE_COLUMNS):
        columns = slice(first, first + TILE_COLUMNS)
        products[:, columns] = padded @ B[columns].T
    return products


def squared_norms(A: Float64) -> Float64:
    """Return the squared length of each row, shape (m,), summed in a fixed order of features."""
    return np.einsum("ij,ij->i", A, A)


def product_matrix(A: Float64) -> Float32:
    """Return the inner products of rows with each other as float32, symmetric: shape (m, m)."""
    return _symmetric(A, np.zeros(len(A)), 1.0)


def squared_matrix(A: Float64) -> Float32:
    """Return the squared distances of rows to each other as float32; the diagonal is 0."""
    return _symmetric(A, squared_norms(A), -2.0)


def _symmetric(A: Float64, norms: Float64, factor: float) -> Float32:
    """Return ``norms[i] + norms[j] + factor * a_i . a_j`` of all pairs of rows, float32 (m, m).

    Panels of rows keep the float64 intermediate small: peak 4 m^2 bytes + one panel.
    """
    m = len(A)
    out = np.empty((m, m), dtype=np.float32)
    for start in range(0, m, GRAM_TILE_ROWS):
        stop = min(start + GRAM_TILE_ROWS, m)
        _write_panel(A[start:stop] @ A[start:].T, norms, factor, start, out)
    return out


@jit
def _write_panel(product, norms, factor, start, out):
    """Write a panel's values right of the diagonal, and mirror them below it."""
    h, n = product.shape
    low = 0.0 if factor < 0.0 else -np.inf
    for i in range(h):
        norm = norms[start + i]
        row = out[start + i, start:]
        inner = product[i]
        for j in range(n):
            value = norm + norms[start + j] + factor * inner[j]
            row[j] = np.float32(value if value > low else low)
        if factor < 0.0:
            row[i] = np.float32(0.0)
    for i in range(h):
        for j in range(i):
            out[start + i, start + j] = out[start + j, start + i]
    for j0 in range(h, n, MIRROR):
        for i0 in range(0, h, MIRROR):
            for j in range(j0, min(j0 + MIRROR, n)):
                for i in range(i0, min(i0 + MIRROR, h)):
                    out[start + j, start + i] = out[start + i, start + j]


@exact_jit
def write_distances(A, BT, out):
    """Write L1 distances (m, s) of rows A (m, n) to support rows, transposed (n, s)."""
    s = BT.shape[1]
    for lo in range(0, s, L1_COLUMNS):
        for i in range(A.shape[0]):
            _distance_row(A[i], BT, lo, min(lo + L1_COLUMNS, s), out[i])


@jit
def write_squares(A, BT, out):
    """Like `write_distances`, of squared Euclidean distances and few features."""
    for i in range(A.shape[0]):
        a, row = A[i], out[i]
        row[:] = ZERO
        for k in range(0, BT.shape[0], SQUARED_TOGETHER):
            a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
            b0, b1, b2, b3 = BT[k], BT[k + 1], BT[k + 2], BT[k + 3]
            for j in range(row.shape[0]):
                d0, d1, d2, d3 = a0 - b0[j], a1 - b1[j], a2 - b2[j], a3 - b3[j]
                row[j] += d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3


@exact_jit
def write_symmetric(A, AT, out):
    """Write L1 distances of rows to each other: right of the diagonal, and mirrored below it."""
    m = A.shape[0]
    for start in range(0, m, L1_PANEL_ROWS):
        stop = min(start + L1_PANEL_ROWS, m)
        for lo in range(start, m, L1_COLUMNS):
            hi = min(lo + L1_COLUMNS, m)
            for i in range(start, min(stop, hi)):
                _distance_row(A[i], AT, max(lo, i), hi, out[i])
        for j0 in range(start, m, MIRROR):
            for i0 in range(start, stop, MIRROR):
                for j in range(j0, min(j0 + MIRROR, m)):
                    for i in range(i0, min(i0 + MIRROR, stop, j)):
                        out[j, i] = out[i, j]


@inline_jit
def _distance_row(a, BT, lo, hi, row):
    """Write one row's L1 distance to each of the support rows lo to hi - 1."""
    out = row[lo:hi]
    for j in range(out.shape[0]):
        out[j] = ZERO
    for k in range(0, BT.shape[0], TOGETHER):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        a4, a5, a6, a7 = a[k + 4], a[k + 5], a[k + 6], a[k + 7]
        b0, b1, b2, b3 = BT[k, lo:hi], BT[k + 1, lo:hi], BT[k + 2, lo:hi], BT[k + 3, lo:hi]
        b4, b5, b6, b7 = BT[k + 4, lo:hi], BT[k + 5, lo:hi], BT[k + 6, lo:hi], BT[k + 7, lo:hi]
        for j in range(out.shape[0]):
            first = (abs(a0 - b0[j]) + abs(a1 - b1[j])) + (abs(a2 - b2[j]) + abs(a3 - b3[j]))
            last = (abs(a4 - b4[j]) + abs(a5 - b5[j])) + (abs(a6 - b6[j]) + abs(a7 - b7[j]))
            out[j] += first + last


@jit
def mirror(out):
    """Copy what is right of the diagonal of a square C-contiguous array to the left of it."""
    m = out.shape[0]
    for j0 in range(0, m, MIRROR):
        for i0 in range(0, j0 + 1, MIRROR):
            for j in range(j0, min(j0 + MIRROR, m)):
                for i in range(i0, min(i0 + MIRROR, j)):
                    out[j, i] = out[i, j]


@jit
def add_weighted_differences(AT, weights, sums):
    """Add the sum over pairs of ``weights_il |a_ij - a_lj|`` to each feature j of AT (d, m)."""
    m = AT.shape[1]
    for i in range(m):
        w = weights[i, :i]
        for j in range(AT.shape[0]):
            x, column, total = AT[j, i], AT[j, :i], ZERO
            for s in range(i):
                total += w[s] * abs(column[s] - x)
            sums[j] += 2 * np.float64(total)


@jit
def squared_columns(transposed):
    """Return the sums of squares of the columns of a lower triangular matrix, transposed."""
    m = transposed.shape[0]
    sums = np.empty(m)
    for i in range(m):
        total = 0.0
        row = transposed[i]
        for j in range(i, m):
            value = np.float64(row[j])
            total += value * value
        sums[i] = total
    return sums
