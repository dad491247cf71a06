"""Squared derivatives of decision functions along each feature."""

import numpy as np

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
    kernel : KernelSpec. "rbf" or "exponential".
    at : slice. The h rows at which derivatives are taken.

    Returns
    -------
    sums : float64 array, shape (d,)

    Notes
    -----
    ``f(x) = sum_i alpha_i k(x, a_i)``; df/dx_j is ``sum_i alpha_i c k(x, a_i) (a_ij - x_j)`` with
    c = 2 gamma for "rbf" and gamma / |x - a_i| for "exponential", where a row's own term, which has
    no derivative there, counts as 0.
    """
    queries = A[at]
    factors = _slopes(K, kernel)
    total = np.zeros(A.shape[1])
    for own in alpha.T:
        W = factors * own
        gradients = W @ A
        gradients -= W.sum(axis=1)[:, None] * queries
        total += np.einsum("ij,ij->j", gradients, gradients, dtype=np.float64)
    return total


def _slopes(K: Floats, kernel: KernelSpec) -> Floats:
    """Return what a difference of rows is multiplied by in the derivative of a kernel value."""
    gamma = K.dtype.type(kernel.gamma)
    if kernel.name == "rbf":
        return K * (2 * gamma)
    # The distance is in the value itself: -log(k) / gamma.
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = -(gamma**2) * K / np.log(K)
    return np.where(np.isfinite(factors), factors, 0.0).astype(K.dtype)
