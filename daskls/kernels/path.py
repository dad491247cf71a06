"""One fold's solutions along C, of all pairs of classes in one call; parts of a working-set solver.

Each solve starts from the feasible point of the largest dual value among: the solution at the
previous C, unchanged (suits narrow kernels) or scaled with C (suits wide ones); the seed, a
solution at another point of the grid, scaled to be feasible; for the first C, every beta at its
bound, or zero. The dual value of f times beta is ``f sum(y beta) - f^2 / 2 beta' K beta``.

The two line solvers differ in the solver that they inline: one function with a switch took 34 s and
1.2 GB to compile, where each of these takes 6 s.

The working-set solver holds only some rows of the kernel matrix. It keeps the gradient ``grad =
signs - K beta`` of all rows, the held-out ones included, whose decision values are ``signs -
grad``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from daskls.kernels._jit import inline_jit, jit
from daskls.kernels.hinge import ascend
from daskls.kernels.offset import ascend_with_offset
from daskls.kernels.steps import GENERAL, HALF, ONE, TINY, UNIT, ZERO, row_gap


def path_solver(*, unit: bool, with_offset: bool) -> Callable[..., Any]:
    """Return the function that solves one fold along C.

    Parameters
    ----------
    unit : bool. Whether the diagonal of the kernel matrices is 1.
    with_offset : bool. Whether an offset is fitted.

    Notes
    -----
    The function takes, for n values of C and pairs of classes that together have s rows:

    - blocks : float32 array. The pairs' kernel matrices, each C-contiguous and symmetric.
    - block_ptr : int64 array. Where the matrix of each pair begins in ``blocks``.
    - ptr : int64 array. Where the rows of each pair begin in arrays of s values, and the end.
    - first, last : int. It solves pairs ``first`` to ``last - 1``.
    - signs, bounds : float32 arrays, shape (s,). Labels -1 or +1; signed bounds at C = 1.
    - bound_products : float32 array, shape (s,). K times the bounds, those held out set to 0.
    - seeds, seed_products : float32 arrays, shape (s,). A solution at another point of the grid,
      and K times it.
    - seed_cost : float. The seed's C; 0 if there is none; below 0 the seed is the only start.
    - costs : float64 array, shape (n,). Values of C, increasing.
    - starts, stops : int64 arrays. Rows starts[p] to stops[p] - 1 of pair p are held out.
    - cap : float32. See `kernels.hinge.solve_hinge`.
    - tol : float. A solve ends at a duality gap of ``tol`` times the sum of its bounds.
    - max_steps : int64 array. Limit of pair steps of a solve of each pair.
    - betas, offsets : float32 arrays, shape (n, s) and (n, n_pairs). Overwritten.
    - counts : int64 array, shape (3,). Increased by pair steps, solves, and solves that ended above
      ``tol``.
    """
    solve = _solve_path_with_offset if with_offset else _solve_path
    return partial(solve, UNIT if unit else GENERAL)


@jit
def _solve_path(
    unit, blocks, block_ptr, ptr, first, last, signs, bounds, bound_products, seeds, seed_products,
    seed_cost, costs, starts, stops, cap, tol, max_steps, betas, offsets, counts,
):  # fmt: skip
    for p in range(first, last):
        lo = ptr[p]
        hi = ptr[p + 1]
        y = signs[lo:hi]
        K, diag = _matrix_of(blocks, block_ptr[p], hi - lo)
        base, total = _training_bounds(bounds[lo:hi], starts[p], stops[p])
        bound, grad, scratch = np.empty_like(base), np.empty_like(base), np.empty_like(base)
        beta = base
        for i in range(costs.shape[0]):
            before = beta
            beta = betas[i, lo:hi]
            choose_start(
                i, costs, True, base, bound_products[lo:hi], seeds[lo:hi], seed_products[lo:hi],
                seed_cost, before, scratch, y, bound, beta, grad,
            )  # fmt: skip
            limit = tol * total * costs[i]
            n_steps, gap = ascend(
                unit, K, diag, y, bound, beta, grad, starts[p], stops[p], cap, limit, max_steps[p],
                scratch,
            )  # fmt: skip
            offsets[i, p] = ZERO
            counts[0] += n_steps
            counts[1] += 1
            counts[2] += 1 if gap > limit else 0


@jit
def _solve_path_with_offset(
    unit, blocks, block_ptr, ptr, first, last, signs, bounds, bound_products, seeds, seed_products,
    seed_cost, costs, starts, stops, cap, tol, max_steps, betas, offsets, counts,
):  # fmt: skip
    for p in range(first, last):
        lo = ptr[p]
        hi = ptr[p + 1]
        y = signs[lo:hi]
        K, diag = _matrix_of(blocks, block_ptr[p], hi - lo)
        base, total = _training_bounds(bounds[lo:hi], starts[p], stops[p])
        bound, grad, scratch = np.empty_like(base), np.empty_like(base), np.empty_like(base)
        beta = base
        for i in range(costs.shape[0]):
            before = beta
            beta = betas[i, lo:hi]
            choose_start(
                i, costs, False, base, bound_products[lo:hi], seeds[lo:hi], seed_products[lo:hi],
                seed_cost, before, scratch, y, bound, beta, grad,
            )  # fmt: skip
            limit = tol * total * costs[i]
            n_steps, gap, offset = ascend_with_offset(
                unit, K, diag, y, bound, beta, grad, starts[p], stops[p], cap, limit, max_steps[p],
                scratch,
            )  # fmt: skip
            offsets[i, p] = offset
            counts[0] += n_steps
            counts[1] += 1
            counts[2] += 1 if gap > limit else 0


@inline_jit
def choose_start(
    i, costs, at_bound, base, base_product, seed, seed_product, seed_cost, before, product, signs,
    bound, beta, grad,
):  # fmt: skip
    """Set bound, beta and grad for the i-th C: to the start of the largest dual value.

    ``base`` are the bounds at C = 1, ``base_product`` is K times these. ``before`` is the solution
    at the previous C, ``grad`` its gradient; ``product`` is scratch.
    """
    m = beta.shape[0]
    cost = costs[i]
    source = base
    source_product = base_product
    factor = 0.0
    value = 0.0
    if i > 0:
        for j in range(m):
            # K times the previous solution. That is 0 on the held-out rows, so their stale gradient
            # does not count.
            product[j] = signs[j] - grad[j]
        source = before
        source_product = product
        linear, square = _terms(before, product, signs)
        ratio = cost / costs[i - 1]
        factor = 1.0
        value = linear - 0.5 * square
        scaled = ratio * linear - 0.5 * ratio * ratio * square
        if scaled > value:
            factor = ratio
            value = scaled
    elif at_bound:
        linear, square = _terms(base, base_product, signs)
        scaled = cost * linear - 0.5 * cost * cost * square
        if scaled > 0.0:
            factor = cost
            value = scaled
    if seed_cost < 0.0:
        source = seed
        source_product = seed_product
        factor = 1.0
    elif seed_cost > 0.0:
        linear, square = _terms(seed, seed_product, signs)
        ratio = cost / seed_cost
        # At a smaller C the seed is infeasible unless it is scaled.
        use = ratio
        scaled = ratio * linear - 0.5 * ratio * ratio * square
        if ratio > 1.0 and linear - 0.5 * square > scaled:
            use = 1.0
            scaled = linear - 0.5 * square
        if scaled > value:
            source = seed
            source_product = seed_product
            factor = use
    step = np.float32(factor)
    for j in range(m):
        b = base[j] * np.float32(cost)
        low = b if b < ZERO else ZERO
        high = b if b > ZERO else ZERO
        # Rounding must not carry a beta past its bound.
        moved = step * source[j]
        moved = moved if moved < high else high
        bound[j] = b
        beta[j] = moved if moved > low else low
        grad[j] = signs[j] - step * source_product[j]


@inline_jit
def _terms(source, product, signs):
    """Return ``sum(y beta)`` and ``beta' K beta``, given beta and K beta."""
    linear = 0.0
    square = 0.0
    for j in range(source.shape[0]):
        linear += np.float64(signs[j] * source[j])
        square += np.float64(source[j] * product[j])
    return linear, square


@inline_jit
def _matrix_of(blocks, first, m):
    """Return the kernel matrix of m rows that begins at ``first``, and its diagonal."""
    K = blocks[first : first + m * m].reshape((m, m))
    diag = np.empty(m, np.float32)
    for j in range(m):
        diag[j] = K[j, j]
    return K, diag


@inline_jit
def _training_bounds(bounds, start, stop):
    """Return the bounds, set to 0 on the held-out rows, and the sum of their absolute values."""
    base = bounds.copy()
    base[start:stop] = ZERO
    total = 0.0
    for j in range(base.shape[0]):
        total += np.float64(abs(base[j]))
    return base, total


@jit
def set_start(
    i, costs, base, base_product, seed, seed_product, seed_cost, before, product, signs, bound,
    beta, grad,
):  # fmt: skip
    """Set bound, beta and grad for the i-th C, as the line solver without offset does."""
    choose_start(
        i, costs, True, base, base_product, seed, seed_product, seed_cost, before, product, signs,
        bound, beta, grad,
    )  # fmt: skip


@jit
def score_rows(grad, beta, bound, diag, cap, gain):
    """Write the gain of each row's own best step; return the duality gap of all rows."""
    gap = 0.0
    for j in range(grad.shape[0]):
        b = bound[j]
        low = (b if b < ZERO else ZERO) - beta[j]
        high = (b if b > ZERO else ZERO) - beta[j]
        q = diag[j] if diag[j] > TINY else TINY
        step = grad[j] * (ONE / q)
        step = step if step < high else high
        step = step if step > low else low
        score = step * (grad[j] - HALF * q * step)
        gain[j] = score if score > ZERO else ZERO
        gap += np.float64(row_gap(grad[j], beta[j], b, cap))
    return gap


@jit
def row_gaps(grad, beta, bound, cap):
    gap = 0.0
    for j in range(grad.shape[0]):
        gap += np.float64(row_gap(grad[j], beta[j], bound[j], cap))
    return gap


@jit
def gather_square(values, slots, working, beta, grad, square, signs):
    """Gather rows of K and labels of a working set as a problem of its own.

    `signs` become the labels that have this gradient: ``grad + square beta``.
    """
    q = working.shape[0]
    for a in range(q):
        row = values[slots[a]]
        total = ZERO
        for b in range(q):
            value = row[working[b]]
            square[a, b] = value
            total += value * beta[b]
        signs[a] = grad[a] + total


@jit
def subtract_rows(values, slots, change, grad):
    """Subtract rows of K times their change of beta from the gradient, four rows at a time."""
    n, m = slots.shape[0], grad.shape[0]
    for first in range(0, n - n % 4, 4):
        row_0 = values[slots[first]]
        row_1 = values[slots[first + 1]]
        row_2 = values[slots[first + 2]]
        row_3 = values[slots[first + 3]]
        c_0 = change[first]
        c_1 = change[first + 1]
        c_2 = change[first + 2]
        c_3 = change[first + 3]
        for j in range(m):
            grad[j] -= row_0[j] * c_0 + row_1[j] * c_1 + row_2[j] * c_2 + row_3[j] * c_3
    for at in range(n - n % 4, n):
        row = values[slots[at]]
        c = change[at]
        for j in range(m):
            grad[j] -= row[j] * c
