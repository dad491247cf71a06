"""Where the solve at the next C starts: the best of what is known.

A start is a feasible point and its gradient; of the candidates the one of the largest dual value
is taken. The dual value of a multiple f of beta is ``f sum(y beta) - f^2 / 2 beta' K beta``, so
scaled candidates cost nothing more.
"""

import numpy as np

from daskls.kernels._jit import inline_jit, jit
from daskls.kernels.steps import ONE, ZERO

__all__ = ["set_start"]


@inline_jit
def _set_start(beta, grad, signs, source, product, factor, bound):
    """Set beta to ``factor`` x a source, and grad to ``signs`` - ``factor`` x K's product with it.

    Rounding must not carry a bounded beta past its bound.
    """
    for j in range(beta.shape[0]):
        b = bound[j]
        low = b if b < ZERO else ZERO
        high = b if b > ZERO else ZERO
        value = factor * source[j]
        value = value if value < high else high
        beta[j] = value if value > low else low
        grad[j] = signs[j] - factor * product[j]


@inline_jit
def _terms(source, product, signs):
    """Return ``sum(y beta)`` and ``beta' K beta``."""
    linear = 0.0
    square = 0.0
    for j in range(source.shape[0]):
        linear += np.float64(signs[j] * source[j])
        square += np.float64(source[j] * product[j])
    return linear, square


@jit
def set_start(
    bound,
    unit,
    bound_product,
    last,
    factor,
    before,
    product,
    has_before,
    at_bound,
    signs,
    beta,
    grad,
):
    """Set beta and grad to the best start of the next C.

    Parameters
    ----------
    bound : float32 array, shape (m,). The signed bounds at this C.
    unit, bound_product : float32 arrays, shape (m,). The signed bounds at C = 1, K times those.
    last : float32 array, shape (m,). The solution at the C before; ``grad`` is its gradient.
    factor : float. This C over the C before; 0 at the first, where the start is zero or every beta
        at its bound: this C itself if ``at_bound``.
    before, product : float32 arrays, shape (m,). The solution of the width before at this C, and K
        times it; they count if ``has_before``.
    at_bound : float. This C, or 0 where the bounds are no feasible start.
    signs : float32 array, shape (m,)
    beta, grad : float32 arrays, shape (m,). Overwritten.
    """
    m = signs.shape[0]
    for j in range(m):
        # K times the solution at the C before, in the place of its gradient.
        grad[j] = signs[j] - grad[j]
    if factor > 0.0:
        linear, square = _terms(last, grad, signs)
        value = linear - 0.5 * square
        scaled = factor * linear - 0.5 * factor * factor * square
        use = factor if scaled > value else 1.0
        value = scaled if scaled > value else value
        _set_start(beta, grad, signs, last, grad, np.float32(use), bound)
    else:
        linear, square = _terms(unit, bound_product, signs)
        value = at_bound * linear - 0.5 * at_bound * at_bound * square
        use = at_bound if value > 0.0 else 0.0
        value = value if value > 0.0 else 0.0
        _set_start(beta, grad, signs, unit, bound_product, np.float32(use), bound)
    if has_before:
        linear, square = _terms(before, product, signs)
        if linear - 0.5 * square > value:
            _set_start(beta, grad, signs, before, product, ONE, bound)
