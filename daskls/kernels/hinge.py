"""Duals solved by steps of two rows: the hinge loss without offset, and epsilon-insensitive losses.

**Hinge loss** (`solve_hinge`). With ``beta_i = y_i alpha_i`` the dual of
``1/2 |f|^2 + sum_i C_i max(0, 1 - y_i f(x_i))`` is to maximize ``sum(y beta) - 1/2 beta' K beta``
with each beta between 0 and its signed bound ``y_i C_i``. Without an offset there is no equality
constraint, so a single row could be moved alone; moving two at a time, the second chosen by the
gain of the pair, takes far fewer steps.

The gradient ``grad = y - K beta``, updated at every step, is the label minus the decision value.
The duality gap is a sum over rows, computed from it. In the clipped gap a row's loss is that of its
decision value clipped to [-1, 1], at most twice its bound. It is the gap that the error of the
clipped decision depends on, and it takes half as many steps on covtype's cells.

Source: Steinwart, Hush, Scovel, Training SVMs without offset, JMLR 2011 (the problem, the 1-D
gain, 2-D working sets, the clipped gap). Differences: the partner is chosen among all rows by the
pair's own gain.

**Support vector regression** (`solve_tube`). The dual of
``|f|^2 / 2 + sum_i C_i max(0, |y_i - f(x_i) - b| - epsilon)`` is to minimize
``beta' K beta / 2 - y' beta + epsilon sum_i |beta_i|`` over ``|beta_i| <= C_i``, and with an offset
b over ``sum_i beta_i = 0``. A row has one variable of either sign, where LIBSVM has two: a step
ends where a beta meets 0, and the next one goes on from there if that still pays. With unequal
bounds below and above and epsilon 0 it is quantile regression (Takeuchi et al., JMLR 2006).
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
    clip,
    fill_held_out,
    index_bits,
    move,
    step_limits,
    total_gap,
    update_and_score,
)


@jit
def solve_hinge(K, diag, signs, bound, beta, grad, start, stop, cap, gap_limit, max_steps, gain):
    """Maximize the dual in place until the gap is at most ``gap_limit``; return steps and gap.

    K (m, m) is symmetric; `bound` is the signed bound ``y_i C_i`` of each beta, between 0 and which
    the start lies; `grad` is ``signs - K beta``. Rows start to stop - 1 are held out: their beta is
    0 and stays 0. `cap` is `CLIPPED`, or `UNCLIPPED` for the gap that bounds the distance to the
    optimum; `gain` is scratch.

    Cost O(n_steps m); the gap is computed every `CHECK_EVERY` steps. A step that float32 cannot
    express, even after the gradient has been recomputed once, ends the solve above the limit.
    """
    n_steps, gap = ascend(
        GENERAL, K, diag, signs, bound, beta, grad, start, stop, cap, gap_limit, max_steps, gain
    )
    fill_held_out(K, beta, signs, grad, start, stop)
    return n_steps, gap


@inline_jit
def ascend(unit, K, diag, signs, bound, beta, grad, start, stop, cap, gap_limit, max_steps, gain):
    """Do what `solve_hinge` does, but leave the gradient of the held-out rows stale."""
    m = beta.shape[0]
    n_index_bits = index_bits(m)
    keys = gain.view(np.int32)
    gain[start:stop] = ZERO
    down, up, inverse, half = step_limits(beta, bound, diag)
    n_steps = 0
    refreshed = False
    i = 0
    j = 0
    step_i = ZERO
    step_j = ZERO
    while True:
        update_and_score(
            unit, grad, down, up, inverse, half, K, i, j, step_i, step_j, ZERO, start, stop, gain
        )
        if n_steps % CHECK_EVERY == 0 or n_steps >= max_steps or refreshed:
            gap = total_gap(grad, beta, bound, start, stop, ZERO, cap)
            if gap <= gap_limit or n_steps >= max_steps:
                break
        i = argmax_gain(keys, n_index_bits)
        moved = False
        if i >= 0:
            # The rows before and after the held-out ones.
            for part in range(2):
                lo = 0 if part == 0 else stop
                hi = start if part == 0 else m
                _score_partners(
                    unit,
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
                # No partner gains anything: take any other row, which then does not move.
                j = i + 1 if i + 1 < m else 0
            d_i, d_j, _ = optimal_pair_step(
                np.float64(grad[i]),
                np.float64(grad[j]),
                np.float64(diag[i]),
                np.float64(diag[j]),
                np.float64(K[i, j]),
                np.float64(down[i]),
                np.float64(up[i]),
                np.float64(down[j]),
                np.float64(up[j]),
            )
            step_i = move(beta, bound, down, up, i, d_i)
            step_j = move(beta, bound, down, up, j, d_j)
            moved = step_i != ZERO or step_j != ZERO
        if moved:
            n_steps += 1
            refreshed = False
        elif refreshed:
            break
        else:
            # Float32 cannot express the step: compute the gradient anew, and try once more.
            add_columns(K, beta, signs, grad)
            i = 0
            j = 0
            step_i = ZERO
            step_j = ZERO
            refreshed = True
    return n_steps, np.float64(gap)


@inline_jit
def _score_partners(unit, g_i, q_i, down_i, up_i, row_i, grad, down, up, half, gain):
    """Write, for every row j, the gain of the clipped Newton step of the pair (i, j)."""
    if unit is None:
        _score_unit_partners(g_i, down_i, up_i, row_i, grad, down, up, gain)
    else:
        _score_any_partners(g_i, q_i, down_i, up_i, row_i, grad, down, up, half, gain)


@inline_jit
def _score_unit_partners(g_i, down_i, up_i, row_i, grad, down, up, gain):
    """Score partners where the diagonal of K is 1, with half the operations."""
    for j in range(grad.shape[0]):
        k = row_i[j]
        g = grad[j]
        det = ONE - k * k
        det = det if det > SINGULAR else SINGULAR
        step = (g - k * g_i) / det
        step = step if step < up[j] else up[j]
        step = step if step > down[j] else down[j]
        rest = g_i - k * step
        step_i = rest if rest < up_i else up_i
        step_i = step_i if step_i > down_i else down_i
        score = step_i * (rest - HALF * step_i) + step * (g - HALF * step)
        gain[j] = score if score > ZERO else ZERO


@inline_jit
def _score_any_partners(g_i, q_i, down_i, up_i, row_i, grad, down, up, half, gain):
    """Score partners with any diagonal of K."""
    m = grad.shape[0]
    q_i = q_i if q_i > TINY else TINY
    inverse_i = ONE / q_i
    half_i = HALF * q_i
    double_i = q_i + q_i
    for j in range(m):
        k = row_i[j]
        g = grad[j]
        h = half[j]
        product = double_i * h
        floor = SINGULAR * product + TINY
        det = product - k * k
        det = det if det > floor else floor
        step = (g * q_i - k * g_i) / det
        step = step if step < up[j] else up[j]
        step = step if step > down[j] else down[j]
        rest = g_i - k * step
        step_i = rest * inverse_i
        step_i = step_i if step_i < up_i else up_i
        step_i = step_i if step_i > down_i else down_i
        score = step_i * (rest - half_i * step_i) + step * (g - h * step)
        gain[j] = score if score > ZERO else ZERO


@inline_jit
def optimal_pair_step(g_i, g_j, q_i, q_j, k, down_i, up_i, down_j, up_j):
    """Return the steps that maximize a pair's gain over its box exactly, and the gain.

    The gain is concave: largest at the free optimum, or else on one of the four edges, each a 1-D
    problem. Equal rows (a singular pair) need the edges only. `down` <= 0 and `up` >= 0 limit the
    steps; q_i, q_j, k are the 2 x 2 block of K.
    """
    det = q_i * q_j - k * k
    if det > 1e-6 * q_i * q_j:
        step_i = (g_i * q_j - k * g_j) / det
        step_j = (g_j * q_i - k * g_i) / det
        if down_i <= step_i <= up_i and down_j <= step_j <= up_j:
            return step_i, step_j, 0.5 * (g_i * step_i + g_j * step_j)
    best_i = 0.0
    best_j = 0.0
    best = 0.0
    for edge in range(4):
        if edge < 2:
            step_i = down_i if edge == 0 else up_i
            step_j = clip((g_j - k * step_i) / max(q_j, 1e-30), down_j, up_j)
        else:
            step_j = down_j if edge == 2 else up_j
            step_i = clip((g_i - k * step_j) / max(q_i, 1e-30), down_i, up_i)
        gain = (
            step_i * (g_i - 0.5 * q_i * step_i)
            + step_j * (g_j - 0.5 * q_j * step_j)
            - k * step_i * step_j
        )
        if gain > best:
            best = gain
            best_i = step_i
            best_j = step_j
    return best_i, best_j, best


# Floor of a curvature, which rounding may leave below 0.
_LEAST_CURVATURE = 1e-12


@jit
def solve_tube(K, y, lower, upper, epsilon, offset, beta, g, most_violation, max_steps):
    """Minimize the dual until no rows violate its optimality conditions by more than a limit.

    `lower` <= 0 and `upper` >= 0 bound each row's beta; both 0 keep a row out. Without `offset`
    rows move alone. `beta` is a feasible start, `g` is ``K beta - y``; both are updated in place.
    Returns the number of steps, the largest violation left, in the units of y, and the smallest
    right and the largest left derivative; the offset is minus their mean. Cost O(n_steps m).
    Source: Fan, Chen, Lin, JMLR 2005; Smola, Schoelkopf 2004.
    """
    m = len(y)
    n_steps = 0
    while True:
        i, j = -1, -1
        low, high = np.inf, -np.inf
        for k in range(m):
            if beta[k] < upper[k]:
                value = _up(g[k], beta[k], epsilon)
                if value < low:
                    low, i = value, k
            if beta[k] > lower[k]:
                value = _down(g[k], beta[k], epsilon)
                if value > high:
                    high, j = value, k
        if offset:
            violation = high - low
        else:
            violation = max(high, -low)
        if violation <= most_violation or n_steps >= max_steps or i < 0 or j < 0:
            return n_steps, violation, low, high
        n_steps += 1
        if not offset:
            k = i if -low >= high else j
            slope = low if -low >= high else high
            curvature = max(K[k, k], _LEAST_CURVATURE)
            goal = beta[k] - slope / curvature
            if slope < 0.0:
                edge = 0.0 if beta[k] < 0.0 else upper[k]
                goal = min(goal, edge)
            else:
                edge = 0.0 if beta[k] > 0.0 else lower[k]
                goal = max(goal, edge)
            step = goal - beta[k]
            beta[k] = goal
            row = K[k]
            for t in range(m):
                g[t] += step * row[t]
            continue
        # Pair row i, the steepest upward, with the row whose step decreases the dual most.
        best = -1.0
        row_i = K[i]
        k_ii = row_i[i]
        for k in range(m):
            if beta[k] > lower[k]:
                gain = _down(g[k], beta[k], epsilon) - low
                if gain > 0.0:
                    curvature = k_ii + K[k, k] - 2.0 * row_i[k]
                    decrease = gain * gain / max(curvature, _LEAST_CURVATURE)
                    if decrease > best:
                        best, j = decrease, k
        slope = _down(g[j], beta[j], epsilon) - low
        curvature = k_ii + K[j, j] - 2.0 * row_i[j]
        step = slope / max(curvature, _LEAST_CURVATURE)
        edge_i = -beta[i] if beta[i] < 0.0 else upper[i] - beta[i]
        edge_j = beta[j] if beta[j] > 0.0 else beta[j] - lower[j]
        # A beta that reaches an edge is set to it exactly: comparisons with 0 and C rely on that.
        if edge_i <= step and edge_i <= edge_j:
            step = edge_i
            beta[i] = 0.0 if beta[i] < 0.0 else upper[i]
            beta[j] -= step
            if edge_j == edge_i:
                beta[j] = 0.0 if beta[j] + step > 0.0 else lower[j]
        elif edge_j <= step:
            step = edge_j
            beta[i] += step
            beta[j] = 0.0 if beta[j] > 0.0 else lower[j]
        else:
            beta[i] += step
            beta[j] -= step
        row_j = K[j]
        for t in range(m):
            g[t] += step * (row_i[t] - row_j[t])


@inline_jit
def _up(g, beta, epsilon):
    """Return the right derivative of the dual in beta."""
    return g + epsilon if beta >= 0.0 else g - epsilon


@inline_jit
def _down(g, beta, epsilon):
    """Return the left derivative of the dual in beta."""
    return g + epsilon if beta > 0.0 else g - epsilon
