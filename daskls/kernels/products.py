"""Kernel matrices together with the products that the starts of solves need: one pass over memory.

Four rows of K are multiplied with each source while they are in the cache: a value of the source
is then loaded once for four products.
"""

from daskls.kernels._jit import inline_jit, jit
from daskls.kernels.exponential import exp_row
from daskls.kernels.steps import ZERO

__all__ = ["gather_pairs", "multiply_rows", "write_rbf"]

# Rows that are multiplied together.
ROWS_AT_ONCE = 4


@inline_jit
def _multiply(K, i, sources, lo, products):
    """Write the products of rows i to i + 3 of a pair's K, whose values begin at ``lo``."""
    h, m = K.shape
    # Past the last row it is taken again: it gives what it gave.
    i1 = i + 1 if i + 1 < h else h - 1
    i2 = i + 2 if i + 2 < h else h - 1
    i3 = i + 3 if i + 3 < h else h - 1
    row_0 = K[i]
    row_1 = K[i1]
    row_2 = K[i2]
    row_3 = K[i3]
    for f in range(sources.shape[0]):
        source = sources[f, lo : lo + m]
        total_0 = ZERO
        total_1 = ZERO
        total_2 = ZERO
        total_3 = ZERO
        for j in range(m):
            value = source[j]
            total_0 += row_0[j] * value
            total_1 += row_1[j] * value
            total_2 += row_2[j] * value
            total_3 += row_3[j] * value
        products[f, lo + i] = total_0
        products[f, lo + i1] = total_1
        products[f, lo + i2] = total_2
        products[f, lo + i3] = total_3


@jit
def write_rbf(base, factor, last, sources, K, products):
    """Write K of a Gaussian kernel, and K times each source.

    Parameters
    ----------
    base : float32 array, shape (m, m). Squared distances.
    factor, last : float32. See `daskls.kernels.exponential.exp_terms`.
    sources : float32 array, shape (n, m); n may be 0
    K : float32 array, shape (m, m). Overwritten.
    products : float32 array, shape (n, m). Overwritten.
    """
    m = K.shape[0]
    for i in range(0, m, ROWS_AT_ONCE):
        for row in range(i, min(i + ROWS_AT_ONCE, m)):
            exp_row(base[row], factor, last, K[row])
        _multiply(K, i, sources, 0, products)


@jit
def multiply_rows(K, sources, products):
    """Write the products of rows of K, shape (h, m), with sources, shape (n, m): shape (n, h)."""
    for i in range(0, K.shape[0], ROWS_AT_ONCE):
        _multiply(K, i, sources, 0, products)


@jit
def gather_pairs(K, rows, ptr, first, last, sources, blocks, block_ptr, products):
    """Write the kernel matrices of pairs first to last - 1, and their products.

    Parameters
    ----------
    K : float32 array, shape (m, m)
    rows : int64 array, shape (s,). The rows of each pair, one pair after the other.
    ptr : int64 array. Where each pair begins among them.
    first, last : int
    sources : float32 array, shape (n, s)
    blocks : float32 array. Overwritten.
    block_ptr : int64 array. Where each pair's matrix begins in ``blocks``.
    products : float32 array, shape (n, s). Overwritten.
    """
    for p in range(first, last):
        lo = ptr[p]
        m = ptr[p + 1] - lo
        own = rows[lo : lo + m]
        begin = block_ptr[p]
        block = blocks[begin : begin + m * m].reshape((m, m))
        for i in range(0, m, ROWS_AT_ONCE):
            for t in range(i, min(i + ROWS_AT_ONCE, m)):
                source = K[own[t]]
                row = block[t]
                for j in range(m):
                    row[j] = source[own[j]]
            _multiply(block, i, sources, lo, products)
