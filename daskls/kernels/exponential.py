"""The exponential function in a form that vectorizes, and kernel matrices made with it.

``exp(-gamma x)`` is ``2^t`` with ``t = -gamma log2(e) x``. The integer nearest to t goes into the
float's exponent, and a polynomial gives ``2^f`` for the rest f in [-1/2, 1/2]: of degree 6 in
float32, with an error of at most 1.2e-7, and of degree 12 in float64, with 2e-16. numpy's float32
exp takes three times as long.

The solvers' starts need products of a kernel matrix with some vectors, computed in the same pass:
four rows of the matrix are multiplied with each vector while they are in the cache.
"""

import math

import numpy as np

from daskls.kernels._jit import inline_jit, jit
from daskls.kernels.steps import ZERO

# exp(-60) is 9e-27: far below float32's resolution of a sum of kernel values, and not subnormal.
LOWEST_EXPONENT = -60.0
# In a matrix that is solved: exp(-36) is 2e-16, still far below the resolution beside a diagonal of
# 1, and products of such values, of which a factorization consists, are not subnormal either. With
# exp(-60) processors factorize matrices of narrow kernels up to twelve times as slowly. In answers
# it would count: far from all rows the nearest ones decide while their values differ.
LOWEST_SOLVED = -36.0

_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (
    np.float32(math.log(2.0) ** i / math.factorial(i)) for i in range(7)
)
_HALF = np.float32(0.5)
_BIAS = np.int32(127)
_MANTISSA_BITS = np.int32(23)


def exp_terms(gamma: float, lowest: float = LOWEST_EXPONENT) -> tuple[np.float32, np.float32]:
    """Return ``factor`` and ``last`` of `exp_row` for a gamma: the factor and the limit of x.

    >>> [round(float(term), 4) for term in exp_terms(2.0)]
    [-2.8854, 30.0]
    """
    # Within these limits ``last * factor`` is the lowest exponent and does not overflow.
    gamma = min(max(gamma, 1e-36), 1e36)
    return np.float32(-gamma / math.log(2.0)), np.float32(-lowest / gamma)


@inline_jit
def exp_row(x, factor, last, out):
    """Write ``exp(-gamma x)`` of one row x >= 0, and ``exp(lowest)`` where it would be less."""
    for j in range(x.shape[0]):
        value = x[j]
        t = (value if value < last else last) * factor
        # The cast truncates towards zero: as t <= 0, this rounds t to the nearest integer.
        k = np.int32(t - _HALF)
        f = t - np.float32(k)
        p = _C5 + f * _C6
        p = _C4 + f * p
        p = _C3 + f * p
        p = _C2 + f * p
        p = _C1 + f * p
        p = _C0 + f * p
        power = np.int32(np.int32(k + _BIAS) << _MANTISSA_BITS)
        out[j] = p * power.view(np.float32)


_W0, _W1, _W2, _W3, _W4, _W5, _W6, _W7, _W8, _W9, _W10, _W11, _W12 = (
    math.log(2.0) ** i / math.factorial(i) for i in range(13)
)
_WIDE_BIAS = np.int64(1023)
_WIDE_MANTISSA_BITS = np.int64(52)


def wide_exp_terms(gamma: float) -> tuple[float, float]:
    """Return ``factor`` and ``last`` of `wide_exp_row` for a gamma: the factor and the limit of x.

    >>> [round(term, 4) for term in wide_exp_terms(2.0)]
    [-2.8854, 30.0]
    """
    # Within these limits ``last * factor`` is the lowest exponent and does not overflow.
    gamma = min(max(gamma, 1e-290), 1e290)
    return -gamma / math.log(2.0), -LOWEST_EXPONENT / gamma


@inline_jit
def wide_exp_row(x, factor, last, out):
    """Write ``exp(-gamma x)`` of one row x >= 0, and ``exp(-60)`` where it would be less."""
    for j in range(x.shape[0]):
        value = x[j]
        t = (value if value < last else last) * factor
        # The cast truncates towards zero: as t <= 0, this rounds t to the nearest integer.
        k = np.int32(t - 0.5)
        f = t - np.float64(k)
        p = _W11 + f * _W12
        p = _W10 + f * p
        p = _W9 + f * p
        p = _W8 + f * p
        p = _W7 + f * p
        p = _W6 + f * p
        p = _W5 + f * p
        p = _W4 + f * p
        p = _W3 + f * p
        p = _W2 + f * p
        p = _W1 + f * p
        p = _W0 + f * p
        power = np.int64(np.int64(np.int64(k) + _WIDE_BIAS) << _WIDE_MANTISSA_BITS)
        out[j] = p * power.view(np.float64)


# Rows of a matrix that are multiplied together.
ROWS_AT_ONCE = 4


@inline_jit
def _multiply(K, i, sources, lo, products):
    """Write the products of rows i to i + 3 of K with each source's values from ``lo`` on."""
    h, m = K.shape
    # Indices past the end repeat the last row, whose products are written again unchanged.
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
def write_exponential(base, factor, last, sources, K, products):
    """Write ``exp(-gamma base)``, and its product with each of the sources (n, m)."""
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
    """Write the kernel matrices of pairs of classes, and their products with each source.

    The rows (s,) of pair p begin at ptr[p], its matrix in ``blocks`` at block_ptr[p].
    """
    for p in range(first, last):
        lo = ptr[p]
        m = ptr[p + 1] - lo
        pair_rows = rows[lo : lo + m]
        begin = block_ptr[p]
        block = blocks[begin : begin + m * m].reshape((m, m))
        for i in range(0, m, ROWS_AT_ONCE):
            for t in range(i, min(i + ROWS_AT_ONCE, m)):
                source = K[pair_rows[t]]
                row = block[t]
                for j in range(m):
                    row[j] = source[pair_rows[j]]
            _multiply(block, i, sources, lo, products)
