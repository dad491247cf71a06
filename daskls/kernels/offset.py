"""The hinge-loss SVM with an offset: the equality-constrained dual, solved by pairwise ascent.

The dual of `kernels.hinge` with ``sum(beta) = 0``: a row can only move against another one. For a
given offset b, ``y - K beta - b`` takes the place of the gradient and selects the first row. The
second is the row whose pair, moved exactly and within both bounds, gains most.

Source: Platt 1998; Fan, Chen, Lin, Working set selection using second order information for
training SVMs, JMLR 2005. Differences: the partner's gain is the clipped one, and the stop is the
duality gap.
"""

import numpy as np

from daskls.kernels._jit import inline_jit, jit
from daskls.kernels.steps import (
    CHECK_EVERY,
    GENERAL,
    HALF,
    ONE,
    SINGULAR,
    TINY,
    ZERO,
    add_columns,
    argmax_gain,
    fill_held_out,
    index_bits,
    move,
    step_limits,
    total_gap,
    update_and_score,
)

# A beta this near to its bound, relative to the sizes at hand, is at the bound up to rounding.
AT_BOUND = np.float32(1e-6)


@jit
def solve_with_offset(
    K, diag, signs, bound, beta, grad, start, stop, cap, gap_limit, max_steps, gain
):
    """Maximize the dual in place as `solve_hinge` does, where ``beta`` sums to 0 over the rows.

    Returns the number of steps, the gap at the offset, and the offset: added to ``K beta`` it gives
    the decision value.
    """
    n_steps, gap, offset = ascend_with_offset(
        GENERAL, K, diag, signs, bound, beta, grad, start, stop, cap, gap_limit, max_steps, gain
    )
    fill_held_out(K, beta, signs, grad, start, stop)
    return n_steps, gap, offset


@inline_jit
def ascend_with_offset(
    unit, K, diag, signs, bound, beta, grad, start, stop, cap, gap_limit, max_steps, gain
):
    """Do what `solve_with_offset` does, but leave the gradient of the held-out rows stale."""
    m = beta.shape[0]
    n_index_bits = index_bits(m)
    keys = gain.view(np.int32)
    gain[start:stop] = ZERO
    down, up, inverse, half = step_limits(beta, bound, diag)
    largest = ZERO
    for t in range(m):
        largest = max(largest, abs(beta[t]))
    for t in range(m):
        _sweep(down, up, t, largest)
    offset = _best_offset(grad, bound, start, stop)
    n_steps = 0
    refreshed = False
    i = np.int64(0)
    j = np.int64(0)
    step_i = ZERO
    step_j = ZERO
    while True:
        update_and_score(
            unit, grad, down, up, inverse, half, K, i, j, step_i, step_j, offset, start, stop, gain
        )
        if n_steps % CHECK_EVERY == 0 or n_steps >= max_steps or refreshed:
            gap = total_gap(grad, beta, bound, start, stop, offset, cap)
            if gap <= gap_limit or n_steps >= max_steps:
                break
        i = argmax_gain(keys, n_index_bits)
        j = np.int64(-1)
        if i >= 0:
            # The rows before and after the held-out ones.
            for part in range(2):
                lo = 0 if part == 0 else stop
                hi = start if part == 0 else m
                _score_partners(
                    grad[i],
                    diag[i],
                    down[i],
                    up[i],
                    K[i, lo:hi],
                    grad[lo:hi],
                    down[lo:hi],
                    up[lo:hi],
                    half[lo:hi],
                    gain[lo:hi],
                )
            gain[i] = ZERO
            j = argmax_gain(keys, n_index_bits)
        if j < 0:
            # No pair gains at this offset: choose by a rule that does not depend on it.
            i, j = _most_violating(grad, down, up, start, stop)
        moved = False
        if i >= 0 and j >= 0 and i != j:
            least = max(np.float64(down[i]), -np.float64(up[j]))
            most = min(np.float64(up[i]), -np.float64(down[j]))
            curve = np.float64(diag[i]) + np.float64(diag[j]) - 2.0 * np.float64(K[i, j])
            step = (np.float64(grad[i]) - np.float64(grad[j])) / max(curve, 1e-12)
            step_i = move(beta, bound, down, up, i, min(max(step, least), most))
            step_j = move(beta, bound, down, up, j, -np.float64(step_i))
            largest = max(largest, abs(beta[i]), abs(beta[j]))
            _sweep(down, up, i, largest)
            _sweep(down, up, j, largest)
            moved = step_i != ZERO or step_j != ZERO
        if moved:
            n_steps += 1
            refreshed = False
            if n_steps % CHECK_EVERY == 0:
                offset, weight = _mean_offset(grad, down, up)
                if weight == ZERO:
                    offset = _best_offset(grad, bound, start, stop)
        elif refreshed:
            break
        else:
            # Float32 cannot express the step: compute the gradient anew, and try once more.
            add_columns(K, beta, signs, grad)
            offset = _best_offset(grad, bound, start, stop)
            i = np.int64(0)
            j = np.int64(0)
            step_i = ZERO
            step_j = ZERO
            refreshed = True
    offset = _middle_offset(grad, bound, beta, start, stop, offset)
    return n_steps, np.float64(gap), offset


@inline_jit
def _score_partners(g_i, q_i, down_i, up_i, row_i, grad, down, up, half, gain):
    """Write, for every row j, the gain of moving i up and j down by the same amount."""
    m = grad.shape[0]
    half_i = HALF * q_i
    for j in range(m):
        low = -up[j]
        high = -down[j]
        low = low if low > down_i else down_i
        high = high if high < up_i else up_i
        slope = g_i - grad[j]
        # Half of the pair's curvature.
        both = half_i + half[j]
        floor = SINGULAR * both + TINY
        curve = both - row_i[j]
        curve = curve if curve > floor else floor
        step = HALF * slope / curve
        step = step if step < high else high
        step = step if step > low else low
        score = step * (slope - curve * step)
        gain[j] = score if score > ZERO else ZERO


@inline_jit
def _sweep(down, up, j, largest):
    """Set a row's step limits to 0 where only rounding keeps it from its bound.

    No float32 step would reach the bound, and a pair of such rows would be tried again and again.
    Bounds may lie far beyond ``largest``, the largest absolute value of a beta.
    """
    width = up[j] - down[j]
    crumb = AT_BOUND * (width if width < largest else largest)
    up[j] = up[j] if up[j] > crumb else ZERO
    down[j] = down[j] if down[j] < -crumb else ZERO


@inline_jit
def _mean_offset(grad, down, up):
    """Return (mean, weight) of the gradients of the rows inside their bounds.

    At the optimum each is the offset. A row's weight is its distance to the nearer bound.
    """
    total = ZERO
    weight = ZERO
    for j in range(grad.shape[0]):
        inside = up[j] if up[j] < -down[j] else -down[j]
        total += inside * grad[j]
        weight += inside
    return total / (weight if weight > ZERO else ONE), weight


@inline_jit
def _best_offset(grad, bound, start, stop):
    """Return the offset of the smallest (unclipped) gap, which is convex in it, by bisection."""
    low = np.float32(3e38)
    high = np.float32(-3e38)
    m = grad.shape[0]
    for j in range(m):
        if j < start or j >= stop:
            low = grad[j] if grad[j] < low else low
            high = grad[j] if grad[j] > high else high
    if low > high:
        # No row trains: the held-out fold has all rows of both classes.
        low = ZERO
        high = ZERO
    for _ in range(40):
        middle = HALF * (low + high)
        weight = ZERO
        for j in range(m):
            if j < start or j >= stop:
                b = bound[j]
                weight += b if b * (grad[j] - middle) > ZERO else ZERO
        if weight > ZERO:
            low = middle
        else:
            high = middle
    return HALF * (low + high)


@inline_jit
def _middle_offset(grad, bound, beta, start, stop, otherwise):
    """Return the middle of the optimal offsets if no row is inside its bounds: LIBSVM's choice.

    Returns ``otherwise`` if a row is inside, or if the rows leave the offset unbounded.
    """
    m = grad.shape[0]
    least = np.float32(-3e38)
    most = np.float32(3e38)
    inside = False
    for j in range(m):
        if j < start or j >= stop:
            g = grad[j]
            b = bound[j]
            near = AT_BOUND * (b if b > ZERO else -b)
            can_rise = beta[j] < (b if b > ZERO else ZERO) - near
            can_fall = beta[j] > (b if b < ZERO else ZERO) + near
            inside = inside or (can_rise and can_fall)
            if can_rise and g > least:
                least = g
            if can_fall and g < most:
                most = g
    bounded = least > np.float32(-1e38) and most < np.float32(1e38)
    return HALF * (least + most) if bounded and least <= most and not inside else otherwise


@inline_jit
def _most_violating(grad, down, up, start, stop):
    """Return the most violating pair, LIBSVM's first-order rule; -1 where no row can move so."""
    m = grad.shape[0]
    i = np.int64(-1)
    j = np.int64(-1)
    for t in range(m):
        if t < start or t >= stop:
            if up[t] > ZERO and (i < 0 or grad[t] > grad[i]):
                i = t
            if down[t] < ZERO and (j < 0 or grad[t] < grad[j]):
                j = t
    return i, j
