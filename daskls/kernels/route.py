"""Routing rows: down a tree of half-spaces, or to the nearest of some points.

A row's leaf or point does not depend on the rows beside it.
"""

from collections.abc import Iterator

import numpy as np

from daskls.kernels._jit import exact_jit
from daskls.records import Float64, Int32, Reals

# Rows centered at once: bounds the float64 copy of a block.
CENTERED_ROWS = 4096
# Rows per GEMM, whose bits depend on its shape; a multiple of 24, as in kernels/gram.py.
GEMM_ROWS = 1008
# Dtypes that compiled functions read in place. Rows of others are converted tile by tile, so that
# few types are compiled for.
PLAIN_DTYPES = (np.dtype("<f4"), np.dtype("<f8"))


def route(
    X: Reals,
    center: Float64,
    directions: Float64,
    thresholds: Float64,
    children: Int32,
    axes: Int32,
) -> Int32:
    """Return the leaf of each row.

    The center is subtracted in float64 first. Children, (n_nodes, 2), are a node's number, or
    ``~leaf``. `axes` has the feature j of a node whose direction is 1.0 at j and 0 elsewhere; any
    negative number for other nodes. Cost O(m depth) where nodes cut across features, O(m depth d)
    where they do not.
    """
    leaves = np.zeros(len(X), dtype=np.int32)
    if len(thresholds) == 0:
        return leaves
    if is_plain(X) and (axes >= 0).all():
        _route_axes(X, center, axes, thresholds, children, leaves)
        return leaves
    for start in range(0, len(X), CENTERED_ROWS):
        tile = np.subtract(X[start : start + CENTERED_ROWS], center, dtype=np.float64, order="C")
        tile_leaves = leaves[start : start + CENTERED_ROWS]
        _route_tile(tile, axes, directions, thresholds, children, tile_leaves)
    return leaves


@exact_jit
def _route_axes(X, center, axes, thresholds, children, out):
    for i in range(X.shape[0]):
        node = 0
        while node >= 0:
            j = axes[node]
            side = 0 if np.float64(X[i, j]) - center[j] <= thresholds[node] else 1
            node = children[node, side]
        out[i] = ~node


@exact_jit
def _route_tile(A, axes, directions, thresholds, children, out):
    """Walk each centered row from the root to its leaf; ``children`` < 0 codes leaf ``~child``."""
    for i in range(A.shape[0]):
        node = 0
        while node >= 0:
            # The product with a feature's direction is exactly the feature's value: the other terms
            # are zeros.
            j = axes[node]
            value = A[i, j] if j >= 0 else _dot(A[i], directions[node])
            node = children[node, 0 if value <= thresholds[node] else 1]
        out[i] = ~node


def is_plain(X: Reals) -> bool:
    """Whether compiled functions can read rows in place."""
    return X.dtype in PLAIN_DTYPES and X.flags.c_contiguous


@exact_jit
def project(X, rows, center, direction, out):
    """Write the coordinates of some rows, minus ``center``, along ``direction``: (k,) -> (k,).

    Growing a tree and routing by it use the same product, so a row never changes sides.
    """
    row = np.empty(X.shape[1])
    for i in range(rows.shape[0]):
        for j in range(row.shape[0]):
            row[j] = np.float64(X[rows[i], j]) - center[j]
        out[i] = _dot(row, direction)


@exact_jit
def take_centered(X, rows, center, out):
    """Write some rows minus ``center`` in float64: X float32 or float64 (m, d) -> (k, d)."""
    for i in range(rows.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = np.float64(X[rows[i], j]) - center[j]


@exact_jit
def center_rows(A, mean, spread):
    """Subtract ``mean`` from each row in place; raise ``spread`` of the features that vary."""
    first = A[0].copy()
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            spread[j] += abs(A[i, j] - first[j])
            A[i, j] -= mean[j]


@exact_jit
def _dot(a, b):
    """Return the inner product of two float64 vectors, in an order fixed by their length.

    Four partial sums hide the latency of additions. The compiler may not reorder them.
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


def nearest_point(X: Reals, center: Float64, points: Float64) -> Int32:
    """Return the index of the point nearest to each row, minus a center; ties go to the first.

    Cost O(m k d). Call it with one BLAS thread.
    """
    nearest = np.empty(len(X), np.int32)
    half_norms = np.einsum("ij,ij->i", points, points) / 2
    for rows, tile in padded_tiles(X, center):
        closeness = tile @ points.T
        closeness -= half_norms
        nearest[rows] = closeness[: rows.stop - rows.start].argmax(axis=1)
    return nearest


def padded_tiles(X: Reals, center: Float64) -> Iterator[tuple[slice, Float64]]:
    """Yield rows minus ``center`` in tiles of `GEMM_ROWS`, padded with zeros; one array."""
    tile = np.zeros((GEMM_ROWS, X.shape[1]))
    for start in range(0, len(X), GEMM_ROWS):
        part = X[start : start + GEMM_ROWS]
        np.subtract(part, center, out=tile[: len(part)], dtype=np.float64)
        tile[len(part) :] = 0.0
        yield slice(start, start + len(part)), tile
