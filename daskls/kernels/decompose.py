"""Parts of a solver that holds some rows of the kernel matrix: scores, a working set's square.

The gradient ``grad = signs - K beta`` is kept of all rows, the held-out ones included: what it
lacks of the labels there are the decision values.
"""

import numpy as np

from daskls.kernels._jit import jit
from daskls.kernels.line import choose_start
from daskls.kernels.steps import HALF, ONE, TINY, ZERO, row_gap

__all__ = ["gather_square", "row_gaps", "score_rows", "set_start", "subtract_rows"]


@jit
def score_rows(grad, beta, bound, diag, cap, gain):
    """Write what each row gains by its own best step; return the duality gap of all.

    Parameters
    ----------
    grad, beta, bound, diag : float32 arrays, shape (m,). Rows of bound 0 gain nothing.
    cap : float32. See `daskls.kernels.hinge.solve_hinge`.
    gain : float32 array, shape (m,). Overwritten.
    """
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
    """Return the duality gap of some rows."""
    gap = 0.0
    for j in range(grad.shape[0]):
        gap += np.float64(row_gap(grad[j], beta[j], bound[j], cap))
    return gap


@jit
def gather_square(values, slots, own, beta, grad, square, signs):
    """Write the kernel matrix of a working set, and the labels that its own gradient is of.

    Parameters
    ----------
    values : float32 array, shape (n_slots, m). Rows of K.
    slots, own : int64 arrays, shape (q,). Where each row of the set is held, and its number.
    beta, grad : float32 arrays, shape (q,). Of the set.
    square : float32 array, shape (q, q). Overwritten.
    signs : float32 array, shape (q,). Overwritten: grad + square beta.
    """
    q = own.shape[0]
    for a in range(q):
        row = values[slots[a]]
        total = ZERO
        for b in range(q):
            value = row[own[b]]
            square[a, b] = value
            total += value * beta[b]
        signs[a] = grad[a] + total


@jit
def subtract_rows(values, slots, change, grad):
    """Subtract rows of K times their change from the gradient of all rows, four rows at a time."""
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


@jit
def set_start(
    i, costs, own, own_product, seed, seed_product, seed_cost, before, product, signs, bound, beta,
    grad,
):  # fmt: skip
    """Set bound, beta and grad for the i-th C, as the solvers of whole matrices do."""
    choose_start(
        i, costs, True, own, own_product, seed, seed_product, seed_cost, before, product, signs,
        bound, beta, grad,
    )  # fmt: skip
