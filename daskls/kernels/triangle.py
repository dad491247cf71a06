"""Sums over a triangle of a matrix, whose other half holds what was there before."""

import numpy as np

from daskls.kernels._jit import jit

__all__ = ["squared_columns"]


@jit
def squared_columns(transposed):
    """Return the sums of squares of the columns of a lower triangle, float64 (m,).

    Parameters
    ----------
    transposed : float array, shape (m, m), C-contiguous. Row i holds column i, from i on.

    Notes
    -----
    Of the inverse of Cholesky's factor they are the diagonal of the inverse of the matrix.
    """
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
