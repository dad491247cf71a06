"""Squared derivatives of decision functions along each feature."""

import numpy as np

from daskls.kernels.registry import find_kernel
from daskls.records import Float64, Floats, KernelSpec

__all__ = ["squared_gradients"]


def squared_gradients(
    A: Floats, alpha: Floats, K: Floats, kernel: KernelSpec, at: slice = slice(None)
) -> Float64:
    """Return sums of squared derivatives along each feature, over rows and functions.

    Parameters
    ----------
    A : float array, shape (m, d)
    alpha : float array, shape (m, r). Coefficients of r functions.
    K : float array, shape (h, m). Kernel values of the rows ``at`` and all rows.
    kernel : KernelSpec. Of distances.
    at : slice. The h rows at which derivatives are taken.

    Returns
    -------
    sums : float64 array, shape (d,)

    Notes
    -----
    ``f(x) = sum_i alpha_i k(x, a_i)``; df/dx_j is ``sum_i alpha_i s_i (a_ij - x_j)`` with
    the slopes s_i of `Kernel.slopes`.
    """
    queries = A[at]
    factors = find_kernel(kernel.name).slopes(K, kernel)
    total = np.zeros(A.shape[1])
    for own in alpha.T:
        W = factors * own
        gradients = W @ A
        gradients -= W.sum(axis=1)[:, None] * queries
        total += np.einsum("ij,ij->j", gradients, gradients, dtype=np.float64)
    return total
