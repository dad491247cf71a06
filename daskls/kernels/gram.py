"""Inner products and squared distances of rows: one GEMM for all widths of a kernel.

The GEMM runs in float64 and only its result is cast to float32. In float32 the expanded squared
distance ``|a|^2 + |b|^2 - 2 a.b`` loses about 1e-7 r^2, and the narrowest width of a grid in few
dimensions multiplies that by 1e6.
"""

from collections.abc import Iterator

import numpy as np

from daskls.kernels._jit import jit
from daskls.records import Float32, Float64

__all__ = [
    "DECISION_TILE_ROWS",
    "GRAM_TILE_ROWS",
    "MIRROR",
    "inner_products",
    "product_matrix",
    "product_tiles",
    "squared_distances",
    "squared_matrix",
    "squared_norms",
]

# Rows per GEMM. A product's bits depend on its shape, so every block has this many, zero-padded. A
# multiple of 24, the width of OpenBLAS's AVX-512 kernel: of 256 rows the last four round otherwise.
GRAM_TILE_ROWS = 240
# Rows of a product of decisions: whole tiles of OpenBLAS, few of them padding where a cell has few
# queries.
DECISION_TILE_ROWS = 48
# Columns per GEMM, so that its padded result stays small beside a model of many support rows.
TILE_COLUMNS = 1 << 14
# Side of the squares that are mirrored at once: both of them lie in the first cache.
MIRROR = 16


def inner_products(A: Float64, B: Float64) -> Float64:
    """Return the inner product of every row of A, shape (m, d), and of B, shape (s, d): (m, s).

    Row i of the result has the same bits regardless of the other rows of A and of their number.
    """
    products = np.empty((len(A), len(B)))
    for rows, of_tile in product_tiles(A, B):
        products[rows] = of_tile[: rows.stop - rows.start]
    return products


def squared_distances(A: Float64, B: Float64) -> Float64:
    """Return the squared distances of rows, as `inner_products` does; none is below 0."""
    squared = inner_products(A, B)
    squared *= -2.0
    squared += squared_norms(A)[:, None]
    squared += squared_norms(B)
    return np.maximum(squared, 0.0, out=squared)


def product_tiles(
    A: Float64, B: Float64, tile_rows: int = GRAM_TILE_ROWS
) -> Iterator[tuple[slice, Float64]]:
    """Yield rows of A, and their inner products with all rows of B.

    Parameters
    ----------
    A : float64 array, shape (m, d), C-contiguous
    B : float64 array, shape (s, d), C-contiguous
    tile_rows : int. Rows of each product; a multiple of 24, see `GRAM_TILE_ROWS`.

    Yields
    ------
    rows : slice. At most ``tile_rows`` rows of A.
    products : float64 array, shape (tile_rows, s). Those of the rows come first; it is the
        caller's.
    """
    m, d = A.shape
    padded = np.zeros((tile_rows, d))
    for start in range(0, m, tile_rows):
        stop = min(start + tile_rows, m)
        padded[: stop - start] = A[start:stop]
        padded[stop - start :] = 0.0
        yield slice(start, stop), _products(padded, B)


def _products(padded: Float64, B: Float64) -> Float64:
    """Return the inner products of one tile of rows."""
    if len(B) <= TILE_COLUMNS:
        return padded @ B.T
    products = np.empty((len(padded), len(B)))
    for first in range(0, len(B), TILE_COLUMNS):
        own = slice(first, first + TILE_COLUMNS)
        products[:, own] = padded @ B[own].T
    return products


def squared_norms(A: Float64) -> Float64:
    """Return the squared length of each row, shape (m,), summed in a fixed feature order."""
    return np.einsum("ij,ij->i", A, A)


def product_matrix(A: Float64) -> Float32:
    """Return the inner products of rows with each other as float32, symmetric: shape (m, m)."""
    return _symmetric(A, np.zeros(len(A)), 1.0)


def squared_matrix(A: Float64) -> Float32:
    """Return the squared distances of rows to each other as float32; the diagonal is 0."""
    return _symmetric(A, squared_norms(A), -2.0)


def _symmetric(A: Float64, norms: Float64, factor: float) -> Float32:
    """Return the norms of both rows + ``factor`` x their product, panel by panel of rows.

    Panels keep the float64 intermediate small: peak 4 m^2 bytes + one panel. A panel begins at the
    diagonal; what lies below it is mirrored.
    """
    m = len(A)
    out = np.empty((m, m), dtype=np.float32)
    for start in range(0, m, GRAM_TILE_ROWS):
        stop = min(start + GRAM_TILE_ROWS, m)
        _write_panel(A[start:stop] @ A[start:].T, norms, factor, start, out)
    return out


@jit
def _write_panel(product, norms, factor, start, out):
    """Write a panel's values right of the diagonal, and mirrored below it.

    ``factor`` x the product + both norms; squared distances (a factor below 0) are at least 0.
    """
    h, n = product.shape
    low = 0.0 if factor < 0.0 else -np.inf
    for i in range(h):
        norm = norms[start + i]
        row = out[start + i, start:]
        own = product[i]
        for j in range(n):
            value = norm + norms[start + j] + factor * own[j]
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
