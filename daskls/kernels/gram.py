"""Kernel matrices: one GEMM for what the kernel is a function of, then one pass a width.

The GEMM runs in float64 and only its result is cast to float32. In float32 the expanded squared
distance ``|a|^2 + |b|^2 - 2 a.b`` loses about 1e-7 r^2, and the narrowest width of a grid in few
dimensions multiplies that by 1e6.
"""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from daskls.errors import DataError
from daskls.kernels._jit import jit
from daskls.kernels.exponential import LOWEST_EXPONENT
from daskls.records import DISTANCE_KERNELS, Float32, Float64, KernelSpec

__all__ = [
    "GRAM_TILE_ROWS",
    "apply_kernel",
    "base_block",
    "base_matrix",
    "product_tiles",
    "squared_norms",
]

# Rows per GEMM. A product's bits depend on its shape, so every block has this many, zero-padded. A
# multiple of 24, the width of OpenBLAS's AVX-512 kernel: of 256 rows the last four round otherwise.
GRAM_TILE_ROWS = 240
# Columns per GEMM, so that its padded result stays small beside a model of many support rows.
TILE_COLUMNS = 1 << 14
# Side of the squares that are mirrored at once: both of them lie in the first cache.
MIRROR = 16

Out = TypeVar("Out", Float32, Float64)


def base_block(A: Float64, B: Float64, name: str) -> Float64:
    """Return what the kernel is a function of, for every pair of a row of A and a row of B.

    Parameters
    ----------
    A : float64 array, shape (m, d), C-contiguous
    B : float64 array, shape (s, d), C-contiguous
    name : str. Of the kernel: "rbf" is a function of squared distances, "exponential" of distances,
        the others of inner products.

    Returns
    -------
    base : float64 array, shape (m, s)

    Notes
    -----
    Row i of the result has the same bits regardless of the other rows of A and of their number.
    """
    base = np.empty((len(A), len(B)))
    for rows, products in product_tiles(A, B):
        base[rows] = products[: rows.stop - rows.start]
    if name in DISTANCE_KERNELS:
        base *= -2.0
        base += squared_norms(A)[:, None]
        base += squared_norms(B)
        np.maximum(base, 0.0, out=base)
    return np.sqrt(base, out=base) if name == "exponential" else base


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


def base_matrix(A: Float64, name: str) -> Float32:
    """Return `base_block` of A with itself as float32: symmetric; of distances the diagonal is 0.

    Parameters
    ----------
    A : float64 array, shape (m, d), C-contiguous
    name : as for `base_block`

    Notes
    -----
    Panels of rows keep the float64 intermediate small: peak 4 m^2 bytes + one panel. A panel begins
    at the diagonal; what lies below it is mirrored.
    """
    m = A.shape[0]
    norms = squared_norms(A)
    factor = -2.0 if name in DISTANCE_KERNELS else 1.0
    if factor > 0.0:
        norms[:] = 0.0
    base = np.empty((m, m), dtype=np.float32)
    for start in range(0, m, GRAM_TILE_ROWS):
        stop = min(start + GRAM_TILE_ROWS, m)
        _write_panel(A[start:stop] @ A[start:].T, norms, factor, start, base)
    return np.sqrt(base, out=base) if name == "exponential" else base


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


def apply_kernel(base: Out, kernel: KernelSpec, out: Out) -> Out:
    """Write the kernel's values into ``out`` (shape and kind of ``base``) and return it."""
    if kernel.name in DISTANCE_KERNELS:
        np.multiply(base, base.dtype.type(-kernel.gamma), out=out)
        np.maximum(out, base.dtype.type(LOWEST_EXPONENT), out=out)
        return np.exp(out, out=out)
    if kernel.name == "linear":
        np.copyto(out, base)
        return out
    np.multiply(base, base.dtype.type(kernel.gamma), out=out)
    out += base.dtype.type(kernel.coef0)
    with np.errstate(over="ignore"):
        np.power(out, base.dtype.type(kernel.degree), out=out)
    if not np.isfinite(out).all():
        raise DataError(
            f"A polynomial kernel of degree {kernel.degree} with gamma={kernel.gamma:g} overflows "
            f"{out.dtype} on these rows. Scale the features, for example with scikit-learn's "
            "StandardScaler, or lower gamma or degree."
        )
    return out
