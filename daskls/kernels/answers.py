"""Decision values of kernels of distances, compiled: distance, value and sums, a query at a time.

Nothing of the size of queries times support rows is written. Each query goes through the same
instructions regardless of its position in the batch: its bits depend on itself and the model.
"""

import numpy as np

from daskls.kernels._jit import inline_jit, jit
from daskls.kernels.exponential import exp_row
from daskls.kernels.votes import pair_row
from daskls.kernels.wide_exponential import wide_exp_row

__all__ = [
    "UNROLLED",
    "decide_directly",
    "decide_distances",
    "decide_products",
    "decide_products_narrowly",
    "decide_roots",
    "decide_roots_directly",
    "decide_roots_narrowly",
    "decide_wide_distances",
    "gather_columns",
    "varying_columns",
]

# Features that `decide_directly` takes together: their number is padded to a multiple.
UNROLLED = 4


@jit
def varying_columns(rows):
    """Return which columns of support rows, shape (s, d), hold more than one value."""
    s, d = rows.shape
    varies = np.zeros(d, np.bool_)
    for i in range(1, s):
        for j in range(d):
            varies[j] |= rows[i, j] != rows[0, j]
    return varies


@jit
def gather_columns(A, row, columns, fixed, out, offsets):
    """Write the columns of queries that tell support rows apart, and what the others add.

    Parameters
    ----------
    A : float64 array, shape (m, d). Queries, centered.
    row : float array, shape (d,). Any support row, in A's dtype.
    columns : int64 array, shape (n,). The columns to gather.
    fixed : int64 array, shape (d - n,). The others, in which all support rows are equal.
    out : float64 array, shape (m, n or more). Overwritten in its first n columns.
    offsets : float64 array, shape (m,). Overwritten: the squared distance along ``fixed``.
    """
    for i in range(A.shape[0]):
        for j in range(columns.shape[0]):
            out[i, j] = A[i, columns[j]]
        total = 0.0
        for j in range(fixed.shape[0]):
            difference = A[i, fixed[j]] - row[fixed[j]]
            total += difference * difference
        offsets[i] = total


@inline_jit
def _distance_row(a, offset, BT, out):
    """Write one query's squared distances to all support rows, from differences."""
    s = BT.shape[1]
    for j in range(s):
        out[j] = offset
    # Four features at once: the sums are then loaded and stored a quarter as often.
    for k in range(0, BT.shape[0], UNROLLED):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        b0, b1, b2, b3 = BT[k], BT[k + 1], BT[k + 2], BT[k + 3]
        for j in range(s):
            d0 = a0 - b0[j]
            d1 = a1 - b1[j]
            d2 = a2 - b2[j]
            d3 = a3 - b3[j]
            out[j] += d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3


@inline_jit
def _root_row(x):
    """Replace one row by its square roots."""
    for j in range(x.shape[0]):
        x[j] = np.sqrt(x[j])


@jit
def decide_directly(A, offsets, BT, factor, last, coef, class_ptr, out):
    """Write decision values of all pairs of classes, from differences of features; in float32.

    Parameters
    ----------
    A : float32 array, shape (m, n), n a multiple of `UNROLLED`
    offsets : float32 array, shape (m,). Added to each of a query's squared distances.
    BT : float32 array, shape (n, s). Support rows, a row a feature.
    factor, last : float32. See `exp_terms`.
    coef : float32 array, shape (k - 1, s)
    class_ptr : int64 array, shape (k + 1,)
    out : float64 array, shape (m, k (k - 1) / 2). Overwritten; summed in float64.
    """
    row = np.empty(BT.shape[1], np.float32)
    for i in range(A.shape[0]):
        _distance_row(A[i], offsets[i], BT, row)
        exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@inline_jit
def _squared_row(products, norm_a, norms_b, out):
    """Write one query's squared distances, in the dtype of ``out``; no less than 0."""
    for j in range(products.shape[0]):
        squared = norm_a + norms_b[j] - 2.0 * products[j]
        out[j] = squared if squared > 0.0 else 0.0


@jit
def decide_products(products, norms_a, norms_b, factor, last, coef, class_ptr, out):
    """Write decision values of all pairs of classes, from inner products; all in float64.

    Parameters
    ----------
    products : float64 array, shape (m or more, s), C-contiguous. Of queries and support rows;
        overwritten.
    norms_a : float64 array, shape (m,). Squared lengths of queries, offsets included.
    norms_b : float64 array, shape (s,). Of support rows.
    factor, last : float. See `wide_exp_terms`.
    coef, class_ptr, out : as for `decide_directly`
    """
    for i in range(norms_a.shape[0]):
        row = products[i]
        _squared_row(row, norms_a[i], norms_b, row)
        wide_exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_products_narrowly(products, norms_a, norms_b, factor, last, coef, class_ptr, out):
    """Do as `decide_products`, with the exponential in float32; ``factor, last``: `exp_terms`."""
    row = np.empty(products.shape[1], np.float32)
    for i in range(norms_a.shape[0]):
        _squared_row(products[i], norms_a[i], norms_b, row)
        exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_roots_directly(A, offsets, BT, factor, last, coef, class_ptr, out):
    """Do as `decide_directly`, the kernel being a function of the distance, not of its square."""
    row = np.empty(BT.shape[1], np.float32)
    for i in range(A.shape[0]):
        _distance_row(A[i], offsets[i], BT, row)
        _root_row(row)
        exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_roots(products, norms_a, norms_b, factor, last, coef, class_ptr, out):
    """Do as `decide_products`, the kernel being a function of the distance, not of its square."""
    for i in range(norms_a.shape[0]):
        row = products[i]
        _squared_row(row, norms_a[i], norms_b, row)
        _root_row(row)
        wide_exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_roots_narrowly(products, norms_a, norms_b, factor, last, coef, class_ptr, out):
    """Do as `decide_roots`, from the square on in float32; ``factor, last``: `exp_terms`."""
    row = np.empty(products.shape[1], np.float32)
    for i in range(norms_a.shape[0]):
        _squared_row(products[i], norms_a[i], norms_b, row)
        _root_row(row)
        exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_distances(distances, factor, last, coef, class_ptr, out):
    """Write decision values of all pairs of classes, from distances; in float32.

    Parameters
    ----------
    distances : float32 array, shape (m, s). Of queries and support rows; overwritten.
    factor, last, coef, class_ptr, out : as for `decide_directly`
    """
    for i in range(distances.shape[0]):
        exp_row(distances[i], factor, last, distances[i])
        pair_row(distances[i], coef, class_ptr, out[i])


@jit
def decide_wide_distances(distances, factor, last, coef, class_ptr, out):
    """Do as `decide_distances` in float64; ``factor, last``: `wide_exp_terms`."""
    for i in range(distances.shape[0]):
        wide_exp_row(distances[i], factor, last, distances[i])
        pair_row(distances[i], coef, class_ptr, out[i])
