"""Parts that the pairwise solvers share: gradients, gains, duality gaps and steps."""

import numpy as np

from daskls.kernels._jit import inline_jit, jit

ZERO = np.float32(0.0)
HALF = np.float32(0.5)
ONE = np.float32(1.0)
# The largest hinge loss of a decision value that is clipped to [-1, 1] before it is used, and of
# one that is not.
CLIPPED = np.float32(2.0)
UNCLIPPED = np.float32(1e30)
# Below this share of diag_i * diag_j a pair counts as singular (equal rows have exactly 0): the
# interior optimum of its 2 x 2 problem is rounding noise, and the optimum lies on an edge.
SINGULAR = np.float32(1e-6)
# Floor of divisors.
TINY = np.float32(1e-30)
# Whether the diagonal of K is 1. The two differ in type, so that functions are compiled for each
# and a branch on them is decided at compile time; at run time it would gain nothing.
UNIT, GENERAL = None, True
# Steps between two computations of the duality gap, each of which costs half a pass.
CHECK_EVERY = 8


@jit
def fill_gradient(K, beta, signs, grad):
    """Set ``grad`` to ``signs - K beta``, reading only the rows of K where ``beta`` is not 0."""
    add_columns(K, beta, signs, grad)


@inline_jit
def add_columns(K, beta, signs, grad):
    """Set ``grad`` to ``signs - K beta``; see `fill_gradient`."""
    m = beta.shape[0]
    for j in range(m):
        grad[j] = signs[j]
    for i in range(m):
        b = beta[i]
        if b != ZERO:
            row = K[i]
            for j in range(m):
                grad[j] -= row[j] * b


@inline_jit
def fill_held_out(K, beta, signs, grad, start, stop):
    """Set ``grad`` to ``signs - K beta`` on rows start to stop - 1 alone."""
    for j in range(start, stop):
        grad[j] = signs[j]
    held = grad[start:stop]
    for i in range(beta.shape[0]):
        b = beta[i]
        if b != ZERO:
            row = K[i, start:stop]
            for j in range(held.shape[0]):
                held[j] -= row[j] * b


@inline_jit
def row_gap(h, beta, bound, cap):
    """Return one row's share of the duality gap.

    ``h`` is the row's gradient minus the offset: label minus decision value. The row's loss is
    ``|bound|`` for each unit by which its margin falls short of 1, up to ``cap`` units.
    """
    room = bound * h
    room = room if room > ZERO else ZERO
    most = cap * (bound if bound > ZERO else -bound)
    room = room if room < most else most
    return room - beta * h


@inline_jit
def total_gap(grad, beta, bound, start, stop, offset, cap):
    """Return the duality gap over the rows that are not held out."""
    gap = ZERO
    for part in range(2):
        lo = 0 if part == 0 else stop
        hi = start if part == 0 else grad.shape[0]
        own_grad = grad[lo:hi]
        own_beta = beta[lo:hi]
        own_bound = bound[lo:hi]
        for j in range(own_grad.shape[0]):
            gap += row_gap(own_grad[j] - offset, own_beta[j], own_bound[j], cap)
    return gap


@inline_jit
def update_and_score(
    unit, grad, down, up, inverse, half, K, i, j, step_i, step_j, offset, start, stop, gain
):
    """Apply a pair's step to the gradient; score every row's own best step at a given offset."""
    for part in range(2):
        lo = 0 if part == 0 else stop
        hi = start if part == 0 else grad.shape[0]
        own_grad = grad[lo:hi]
        own_down = down[lo:hi]
        own_up = up[lo:hi]
        own_inverse = inverse[lo:hi]
        own_half = half[lo:hi]
        own_gain = gain[lo:hi]
        row_i = K[i, lo:hi]
        row_j = K[j, lo:hi]
        for t in range(own_grad.shape[0]):
            g = own_grad[t] - row_i[t] * step_i - row_j[t] * step_j
            own_grad[t] = g
            h = g - offset
            step = h if unit is None else h * own_inverse[t]
            step = step if step < own_up[t] else own_up[t]
            step = step if step > own_down[t] else own_down[t]
            score = step * (h - (HALF if unit is None else own_half[t]) * step)
            own_gain[t] = score if score > ZERO else ZERO


@inline_jit
def step_limits(beta, bound, diag):
    """Return the limits <= 0 and >= 0 of each beta's step, the diagonal's inverse and its half."""
    m = beta.shape[0]
    down = np.empty(m, np.float32)
    up = np.empty(m, np.float32)
    inverse = np.empty(m, np.float32)
    half = np.empty(m, np.float32)
    for j in range(m):
        b = bound[j]
        down[j] = (b if b < ZERO else ZERO) - beta[j]
        up[j] = (b if b > ZERO else ZERO) - beta[j]
        q = diag[j]
        inverse[j] = ONE / (q if q > TINY else TINY)
        half[j] = HALF * q
    return down, up, inverse, half


@inline_jit
def index_bits(m):
    """Return the number of bits that hold every index below ``m``."""
    n_index_bits = 1
    while (1 << n_index_bits) < m:
        n_index_bits += 1
    return n_index_bits


@inline_jit
def argmax_gain(keys, n_index_bits):
    """Return the index of the (nearly) largest gain, or -1 if no gain is positive.

    ``keys`` is the int32 view of the gains. Non-negative floats sort like their bits, so the
    maximum runs on integers, which vectorizes. The index replaces the lowest bits of the gain: at
    2000 rows the choice is within 0.03 % of the largest, and equal gains go to the larger index.
    """
    m = keys.shape[0]
    low = np.int32((1 << n_index_bits) - 1)
    high = np.int32(~low)
    best = np.int32(0)
    for j in range(m):
        # Cast back each time: numba widens integer results to 64 bits, which halves the lanes.
        key = np.int32(np.int32(keys[j] & high) | np.int32(j))
        best = key if key > best else best
    return np.int64(-1) if (best & high) == 0 else np.int64(best & low)


@inline_jit
def clip(value, low, high):
    value = value if value < high else high
    return value if value > low else low


@inline_jit
def move(beta, bound, down, up, i, step):
    """Move one beta, clipped to its bounds; return the step that was taken in float32."""
    old = beta[i]
    b = bound[i]
    low = b if b < ZERO else ZERO
    high = b if b > ZERO else ZERO
    new = clip(np.float32(np.float64(old) + step), low, high)
    beta[i] = new
    down[i] = low - new
    up[i] = high - new
    return new - old
