"""Support vector regression of one cell: steps of two rows down the dual, compiled.

The dual of ``|f|^2 / 2 + sum_i C_i max(0, |y_i - f(x_i) - b| - epsilon)`` is to minimize
``beta' K beta / 2 - y' beta + epsilon sum_i |beta_i|`` over ``|beta_i| <= C_i``, with an offset b
over ``sum_i beta_i = 0``. A row below 0 and a row above are one row here, where LIBSVM has two:
a step ends where a beta meets 0, and goes on from there if it still pays. With bounds of other
sizes below and above and epsilon 0 it is quantile regression (Takeuchi et al., JMLR 2006).
"""

import numpy as np

from daskls.kernels._jit import inline_jit, jit

__all__ = ["solve_tube"]

# Of a curvature that rounding left without a sign.
_LEAST_CURVATURE = 1e-12


@inline_jit
def _up(g, beta, epsilon):
    """Return the derivative along a growing beta."""
    return g + epsilon if beta >= 0.0 else g - epsilon


@inline_jit
def _down(g, beta, epsilon):
    """Return the derivative along a growing beta, seen from the left."""
    return g + epsilon if beta > 0.0 else g - epsilon


@jit
def solve_tube(K, y, lower, upper, epsilon, offset, beta, g, most_violation, max_steps):
    """Step until no two rows violate the optimality conditions by more than a bound.

    Parameters
    ----------
    K : float64 array, shape (m, m), symmetric
    y : float64 array, shape (m,)
    lower, upper : float64 arrays, shape (m,), <= 0 and >= 0. Bounds of each row's beta, of support
        vector regression -C and C; both 0 keep a row out.
    epsilon : float, >= 0
    offset : bool. Whether the betas sum to 0; else rows step alone.
    beta : float64 array, shape (m,). Updated in place: a feasible start.
    g : float64 array, shape (m,). Updated in place: ``K beta - y``.
    most_violation : float, > 0. In the units of y.
    max_steps : int

    Returns
    -------
    n_steps : int
    violation : float. What is left of it.
    low, high : float. The least derivative upward and the largest downward; the offset is minus
        their mean.

    Notes
    -----
    Cost O(n_steps m). Source: Fan, Chen, Lin, Working set selection using second order
    information, JMLR 2005; Smola, Schoelkopf 2004. Differences: one variable a row.
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
        # The partner of the row that wants most to grow: by the decrease that a step brings.
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
        # At an edge a beta is the edge itself: 0 and C are told apart from what is near them.
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
