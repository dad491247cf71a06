"""Routing rows: down a tree of half-spaces, or to the nearest of some points.

A row's leaf does not depend on the rows beside it.
"""

from collections.abc import Iterator

import numpy as np

from daskls.kernels._jit import exact_jit
from daskls.records import FloatArray, IntArray

__all__ = ["nearest_point", "padded_tiles", "project", "route"]

# Rows centered at once: bounds the float64 copy of a block.
TILE_ROWS = 4096
# The bits of a GEMM depend on its shape: every one here has this many rows, a multiple of 24 as in
# kernels/gram.py.
GEMM_ROWS = 1008


@exact_jit
def _dot(a, b):
    """Return the inner product of two float64 vectors, in an order fixed by their length.

    Four partial sums hide the latency of the additions, whose order may not be changed: this is
    compiled into both of its callers, and must round the same in both.
    """
    n = a.shape[0]
    t0 = 0.0
    t1 = 0.0
    t2 = 0.0
    t3 = 0.0
    whole = n - n % 4
    for j in range(0, whole, 4):
        t0 += a[j] * b[j]
        t1 += a[j + 1] * b[j + 1]
        t2 += a[j + 2] * b[j + 2]
        t3 += a[j + 3] * b[j + 3]
    for j in range(whole, n):
        t0 += a[j] * b[j]
    return (t0 + t1) + (t2 + t3)


@exact_jit
def project(A, direction, out):
    """Write each row's coordinate along ``direction``: float64 (m, d) . (d,) -> (m,).

    Growing a tree and routing by it call the same product, so a row never changes sides.
    """
    for i in range(A.shape[0]):
        out[i] = _dot(A[i], direction)


@exact_jit
def _route_tile(A, directions, thresholds, children, out):
    """Walk each centered row from the root to its leaf; ``children`` < 0 codes leaf ``~child``."""
    for i in range(A.shape[0]):
        node = 0
        while node >= 0:
            side = 0 if _dot(A[i], directions[node]) <= thresholds[node] else 1
            node = children[node, side]
        out[i] = ~node


def route(
    X: FloatArray,
    center: FloatArray,
    directions: FloatArray,
    thresholds: FloatArray,
    children: IntArray,
) -> IntArray:
    """Return the leaf of each row.

    Parameters
    ----------
    X : real array, shape (m, d)
    center : float64 array, shape (d,). Subtracted in float64 first.
    directions : float64 array, shape (n_nodes, d)
    thresholds : float64 array, shape (n_nodes,). At or below: the first child.
    children : int32 array, shape (n_nodes, 2). A node's number, or ``~leaf``.

    Returns
    -------
    leaves : int32 array, shape (m,)

    Notes
    -----
    Cost O(m depth d); extra memory one tile. A row's leaf does not depend on the other rows.
    """
    leaves = np.zeros(len(X), dtype=np.int32)
    if len(thresholds) == 0:
        return leaves
    for start in range(0, len(X), TILE_ROWS):
        tile = np.subtract(X[start : start + TILE_ROWS], center, dtype=np.float64, order="C")
        _route_tile(tile, directions, thresholds, children, leaves[start : start + TILE_ROWS])
    return leaves


def padded_tiles(X: FloatArray, center: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield rows minus ``center`` in float64 tiles of `GEMM_ROWS`, the last one filled with zeros.

    Parameters
    ----------
    X : real array, shape (m, d)
    center : float64 array, shape (d,)

    Yields
    ------
    rows : slice. Which rows of X the tile begins with.
    tile : float64 array, shape (GEMM_ROWS, d). The same array every time.
    """
    tile = np.zeros((GEMM_ROWS, X.shape[1]))
    for start in range(0, len(X), GEMM_ROWS):
        part = X[start : start + GEMM_ROWS]
        np.subtract(part, center, out=tile[: len(part)], dtype=np.float64)
        tile[len(part) :] = 0.0
        yield slice(start, start + len(part)), tile


def nearest_point(X: FloatArray, center: FloatArray, points: FloatArray) -> IntArray:
    """Return the nearest point of each row, the first of equally near ones.

    Parameters
    ----------
    X : real array, shape (m, d)
    center : float64 array, shape (d,). Subtracted in float64 first.
    points : float64 array, shape (k, d). Minus ``center``.

    Returns
    -------
    nearest : int32 array, shape (m,)

    Notes
    -----
    Cost O(m k d); extra memory one tile's distances. Call it with one BLAS thread.
    """
    nearest = np.empty(len(X), np.int32)
    half_norms = np.einsum("ij,ij->i", points, points) / 2
    for rows, tile in padded_tiles(X, center):
        closeness = tile @ points.T
        closeness -= half_norms
        nearest[rows] = closeness[: rows.stop - rows.start].argmax(axis=1)
    return nearest
