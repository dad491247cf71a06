"""One fold's solutions along C, of all pairs of classes in one call: a start and an ascent at each.

Every solve starts from the feasible point of the largest dual value among: the solution at the C
before, as it is (suits narrow kernels) or scaled with C (suits wide ones); the seed, a solution at
another place of the grid, so scaled that it fits; for the first C, every beta at its bound, or
zero. The dual value of a multiple f of beta is ``f sum(y beta) - f^2 / 2 beta' K beta``, so scaled
candidates cost nothing more.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskls.kernels._jit import inline_jit, jit
from daskls.kernels.hinge import ascend
from daskls.kernels.offset import ascend_with_offset
from daskls.kernels.steps import ZERO

__all__ = ["line_solver"]


@inline_jit
def _terms(source, product, signs):
    """Return ``sum(y beta)`` and ``beta' K beta``."""
    linear = 0.0
    square = 0.0
    for j in range(source.shape[0]):
        linear += np.float64(signs[j] * source[j])
        square += np.float64(source[j] * product[j])
    return linear, square


@inline_jit
def _dual(linear, square, factor):
    """Return the dual value of ``factor`` times a point."""
    return factor * linear - 0.5 * factor * factor * square


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
def _solve_line(
    unit,
    with_offset,
    K,
    signs,
    bound_at_1,
    bound_product,
    seed,
    seed_product,
    seed_cost,
    costs,
    start,
    stop,
    cap,
    tol,
    max_steps,
    lo,
    p,
    betas,
    offsets,
    counts,
):
    """Solve one pair at each C in turn; see `_solve_lines`."""
    m = signs.shape[0]
    diag = np.empty(m, np.float32)
    bound = np.empty(m, np.float32)
    grad = np.empty(m, np.float32)
    product = np.empty(m, np.float32)
    gain = np.empty(m, np.float32)
    own = bound_at_1.copy()
    own[start:stop] = ZERO
    total = 0.0
    for j in range(m):
        diag[j] = K[j, j]
        total += np.float64(abs(own[j]))
    bound_linear, bound_square = _terms(own, bound_product, signs)
    seed_linear, seed_square = _terms(seed, seed_product, signs)
    before = own
    for i in range(costs.shape[0]):
        cost = costs[i]
        beta = betas[i, lo : lo + m]
        for j in range(m):
            bound[j] = own[j] * np.float32(cost)
        # Where to start: 0 every beta at a multiple of its bound, 1 the C before, 2 the seed.
        kind = 0
        factor = 0.0
        value = 0.0
        if i > 0:
            for j in range(m):
                # K times the solution before. It is 0 on the held-out rows, whose gradient is left
                # behind.
                product[j] = signs[j] - grad[j]
            before = betas[i - 1, lo : lo + m]
            linear, square = _terms(before, product, signs)
            kind = 1
            factor = 1.0
            value = _dual(linear, square, 1.0)
            ratio = cost / costs[i - 1]
            scaled = _dual(linear, square, ratio)
            if scaled > value:
                factor = ratio
                value = scaled
        elif not with_offset:
            # With an offset the bounds are no feasible start: they do not sum to 0.
            scaled = _dual(bound_linear, bound_square, cost)
            if scaled > 0.0:
                factor = cost
                value = scaled
        if seed_cost > 0.0:
            ratio = cost / seed_cost
            scaled = _dual(seed_linear, seed_square, ratio)
            same = _dual(seed_linear, seed_square, 1.0)
            if scaled > value:
                kind = 2
                factor = ratio
                value = scaled
            if ratio >= 1.0 and same > value:
                kind = 2
                factor = 1.0
                value = same
        if kind == 2:
            _set_start(beta, grad, signs, seed, seed_product, np.float32(factor), bound)
        elif kind == 1:
            _set_start(beta, grad, signs, before, product, np.float32(factor), bound)
        else:
            _set_start(beta, grad, signs, own, bound_product, np.float32(factor), bound)
        limit = tol * total * cost
        if with_offset:
            n_steps, gap, offset = ascend_with_offset(
                unit, K, diag, signs, bound, beta, grad, start, stop, cap, limit, max_steps, gain
            )
            offsets[i, p] = offset
        else:
            n_steps, gap = ascend(
                unit, K, diag, signs, bound, beta, grad, start, stop, cap, limit, max_steps, gain
            )
            offsets[i, p] = ZERO
        counts[0] += n_steps
        counts[1] += 1
        counts[2] += 1 if gap > limit else 0


@inline_jit
def _solve_lines(
    unit,
    with_offset,
    blocks,
    block_ptr,
    ptr,
    first,
    last,
    signs,
    bounds,
    bound_products,
    seeds,
    seed_products,
    seed_cost,
    costs,
    starts,
    stops,
    cap,
    tol,
    max_steps,
    betas,
    offsets,
    counts,
):
    """Solve pair by pair; see `line_solver`."""
    for p in range(first, last):
        lo = ptr[p]
        hi = ptr[p + 1]
        m = hi - lo
        K = blocks[block_ptr[p] : block_ptr[p] + m * m].reshape((m, m))
        _solve_line(
            unit,
            with_offset,
            K,
            signs[lo:hi],
            bounds[lo:hi],
            bound_products[lo:hi],
            seeds[lo:hi],
            seed_products[lo:hi],
            seed_cost,
            costs,
            starts[p],
            stops[p],
            cap,
            tol,
            max_steps[p],
            lo,
            p,
            betas,
            offsets,
            counts,
        )


@jit
def _unit_lines(
    blocks, block_ptr, ptr, first, last, signs, bounds, bound_products, seeds, seed_products,
    seed_cost, costs, starts, stops, cap, tol, max_steps, betas, offsets, counts,
):  # fmt: skip
    _solve_lines(
        True, False,
        blocks, block_ptr, ptr, first, last, signs, bounds, bound_products, seeds, seed_products,
        seed_cost, costs, starts, stops, cap, tol, max_steps, betas, offsets, counts,
    )  # fmt: skip


@jit
def _any_lines(
    blocks, block_ptr, ptr, first, last, signs, bounds, bound_products, seeds, seed_products,
    seed_cost, costs, starts, stops, cap, tol, max_steps, betas, offsets, counts,
):  # fmt: skip
    _solve_lines(
        False, False,
        blocks, block_ptr, ptr, first, last, signs, bounds, bound_products, seeds, seed_products,
        seed_cost, costs, starts, stops, cap, tol, max_steps, betas, offsets, counts,
    )  # fmt: skip


@jit
def _offset_lines(
    blocks, block_ptr, ptr, first, last, signs, bounds, bound_products, seeds, seed_products,
    seed_cost, costs, starts, stops, cap, tol, max_steps, betas, offsets, counts,
):  # fmt: skip
    _solve_lines(
        False, True,
        blocks, block_ptr, ptr, first, last, signs, bounds, bound_products, seeds, seed_products,
        seed_cost, costs, starts, stops, cap, tol, max_steps, betas, offsets, counts,
    )  # fmt: skip


def line_solver(*, unit: bool, with_offset: bool) -> Callable[..., Any]:
    """Return the function that solves one fold's lines; compiled apart, so that none pays for all.

    Parameters
    ----------
    unit : bool. Whether the diagonal of the kernel matrices is 1.
    with_offset : bool. Whether an offset is fitted.

    Notes
    -----
    The function takes, of n values of C and pairs that together have s rows:

    - blocks : float32 array. The pairs' kernel matrices, each C-contiguous and symmetric.
    - block_ptr : int64 array. Where the matrix of each pair begins in ``blocks``.
    - ptr : int64 array. Where the rows of each pair begin in the arrays of s values.
    - first, last : int. It solves pairs first to last - 1.
    - signs, bounds : float32 arrays, shape (s,). Labels -1 or +1; signed bounds at C = 1.
    - bound_products : float32 array, shape (s,). K times the bounds but those held out.
    - seeds, seed_products : float32 arrays, shape (s,). A solution elsewhere, and K times it.
    - seed_cost : float. The seed's C; 0 if there is none.
    - costs : float64 array, shape (n,), increasing
    - starts, stops : int64 arrays. Rows starts[p] to stops[p] - 1 of pair p are held out.
    - cap : float32. See `daskls.kernels.hinge.solve_hinge`.
    - tol : float. A solve ends at a duality gap of ``tol`` times the sum of its bounds.
    - max_steps : int64 array. Of a solve of each pair.
    - betas, offsets : float32 arrays, shape (n, s) and (n, n_pairs). Overwritten.
    - counts : int64 array, shape (3,). Pair steps, solves, and those above ``tol`` are added.
    """
    if with_offset:
        return _offset_lines
    return _unit_lines if unit else _any_lines
