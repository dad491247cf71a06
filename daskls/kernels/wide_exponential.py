"""The exponential function in float64, in a form that compiles to vector instructions.

As in `exponential`, with a polynomial of degree 12: what is left of the series is 2e-16.
"""

import math

import numpy as np

from daskls.kernels._jit import inline_jit
from daskls.kernels.exponential import LOWEST_EXPONENT

__all__ = ["wide_exp_row", "wide_exp_terms"]

_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12 = (
    math.log(2.0) ** i / math.factorial(i) for i in range(13)
)
_BIAS = np.int64(1023)
_MANTISSA_BITS = np.int64(52)


def wide_exp_terms(gamma: float) -> tuple[float, float]:
    """Return what `wide_exp_row` takes for a gamma: the factor of its argument, where it ends.

    >>> [round(term, 4) for term in wide_exp_terms(2.0)]
    [-2.8854, 30.0]
    """
    # Within the range in which the end times the factor is the lowest exponent.
    gamma = min(max(gamma, 1e-290), 1e290)
    return -gamma / math.log(2.0), -LOWEST_EXPONENT / gamma


@inline_jit
def wide_exp_row(x, factor, last, out):
    """Write ``exp(-gamma x)`` of one row, and ``exp(-60)`` where it would be less.

    Parameters
    ----------
    x : float64 array, shape (n,), >= 0
    factor, last : float. See `wide_exp_terms`.
    out : float64 array, shape (n,). Overwritten; may be ``x`` itself.
    """
    for j in range(x.shape[0]):
        value = x[j]
        t = (value if value < last else last) * factor
        # Towards zero, so that t, which is not positive, is rounded to nearest.
        k = np.int32(t - 0.5)
        f = t - np.float64(k)
        p = _C11 + f * _C12
        p = _C10 + f * p
        p = _C9 + f * p
        p = _C8 + f * p
        p = _C7 + f * p
        p = _C6 + f * p
        p = _C5 + f * p
        p = _C4 + f * p
        p = _C3 + f * p
        p = _C2 + f * p
        p = _C1 + f * p
        p = _C0 + f * p
        power = np.int64(np.int64(np.int64(k) + _BIAS) << _MANTISSA_BITS)
        out[j] = p * power.view(np.float64)
