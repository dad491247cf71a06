"""One cell of a linear SVM whose bias is given: Newton's method on the smoothed hinge loss.

With the bias b of the whole model fixed, a cell's weights theta minimize

    |theta|^2 / 2 + sum_i c_i max(0, z_i),  z_i = 1 - y_i b - y_i m_i . theta.

The hinge is smoothed to a parabola on 0 < z < delta. Newton's method with an exact line search
minimizes that in finitely many steps; then delta shrinks, until the duality gap is small enough.
With alpha_i = c_i min(max(z_i / delta, 0), 1) and g = theta - sum_i alpha_i y_i m_i the gap is

    |g|^2 / 2 + sum over the parabola of c_i z_i (1 - z_i / delta):

steps reduce the first part, a smaller delta the second. A step costs one product with all rows, and
the Cholesky factor of a matrix whose side is the number of rows on the parabola, or that of
features if it is smaller.

Source: Chapelle, Training a support vector machine in the primal, 2007, for the smoothing.
"""

import numpy as np

from daskls.kernels._jit import inline_jit, jit

# Statistics of each problem; `solve_cell` lists them.
N_STATS = 7
# Newton steps of a problem.
MAX_JOINT_STEPS = 500
# Iterations of a line search.
MAX_HALVINGS = 60
# A slope along the line counts as 0 below this share of its value at the start.
FLAT = 1e-3


@jit
def solve_cell(M, G, labels, weights, folds, problems, theta, deltas, tol, stats):
    """Solve the problems of one cell, each for its given bias.

    M (m, l) are projected rows; G their inner products, or (0, 0), to work without. `problems` (p,
    4) are the class that counts as +1, C, the fold left out (-1: none), the bias. `theta` (p, l)
    and the smoothing `deltas` (p,) are the starts, overwritten; so are `stats` (p, `N_STATS`) with
    the primal and the dual objective, the slope and the curvature of the minimum in the bias, the
    sum of C x weight, the number of steps, and that of rows with alpha > 0.
    """
    m, n = M.shape
    y = np.empty(m)
    c = np.empty(m)
    z = np.empty(m)
    e = np.empty(m)
    alpha = np.empty(m)
    active = np.empty(m, np.int64)
    size = m if m < n else n
    S = np.empty((size, size))
    x = np.empty(size)
    g = np.empty(n)
    d = np.empty(n)
    for p in range(problems.shape[0]):
        theta_p = theta[p]
        delta = deltas[p]
        goal = 0.0
        for i in range(m):
            y[i] = 1.0 if labels[i] == problems[p, 0] else -1.0
            # A row of the fold left out costs nothing.
            c[i] = 0.0 if folds[i] == problems[p, 2] else problems[p, 1] * weights[i]
            goal += tol * c[i]
        _margins(M, theta_p, problems[p, 3], y, z)
        steps = 0
        while True:
            n_active, stepping, smoothing = _gap(M, theta_p, y, c, z, delta, alpha, g, active)
            if stepping + smoothing <= goal or steps == MAX_JOINT_STEPS:
                break
            # Where most of the gap comes from the smoothing, steps cannot close it.
            if stepping <= 0.5 * smoothing:
                shrink = 0.5 * goal / smoothing
                delta *= 0.05 if shrink < 0.05 else (0.5 if shrink > 0.5 else shrink)
            else:
                _step(M, G, theta_p, y, c, z, e, delta, g, d, active, n_active, S, x)
                steps += 1
        deltas[p] = delta
        _describe(theta_p, y, c, z, alpha, stepping + smoothing, stats[p])
        stats[p, 3] = _curvature(M, G, c, delta, g, d, active, n_active, S, x)
        stats[p, 5] = steps


@inline_jit
def _margins(M, theta, bias, y, z):
    """Write z = 1 - y (m . theta + b) of every row."""
    for i in range(M.shape[0]):
        total = 0.0
        for j in range(M.shape[1]):
            total += M[i, j] * theta[j]
        z[i] = 1.0 - y[i] * (total + bias)


@inline_jit
def _gap(M, theta, y, c, z, delta, alpha, g, active):
    """Write alpha, g and the rows on the parabola; return their number and the gap's two parts."""
    n_active = 0
    smoothing = 0.0
    for j in range(M.shape[1]):
        g[j] = theta[j]
    for i in range(M.shape[0]):
        a = 0.0
        if z[i] > 0.0 and c[i] > 0.0:
            a = c[i]
            if z[i] < delta:
                a = c[i] * z[i] / delta
                smoothing += (c[i] - a) * z[i]
                active[n_active] = i
                n_active += 1
            for j in range(M.shape[1]):
                g[j] -= a * y[i] * M[i, j]
        alpha[i] = a
    stepping = 0.0
    for j in range(M.shape[1]):
        stepping += 0.5 * g[j] * g[j]
    return n_active, stepping, smoothing


@inline_jit
def _step(M, G, theta, y, c, z, e, delta, g, d, active, n_active, S, x):
    by_rows = n_active < M.shape[1]
    _factor_hessian(M, G, active, n_active, by_rows, c, delta, S)
    _apply_inverse(M, active, n_active, by_rows, S, g, x, d)
    linear = 0.0
    quadratic = 0.0
    for j in range(M.shape[1]):
        d[j] = -d[j]
        linear += theta[j] * d[j]
        quadratic += d[j] * d[j]
    for i in range(M.shape[0]):
        total = 0.0
        for j in range(M.shape[1]):
            total += M[i, j] * d[j]
        e[i] = y[i] * total
    t = _step_length(z, e, c, delta, linear, quadratic)
    for j in range(M.shape[1]):
        theta[j] += t * d[j]
    for i in range(M.shape[0]):
        z[i] -= t * e[i]


@inline_jit
def _step_length(z, e, c, delta, linear, quadratic):
    """Return the step that minimizes the objective along a line: Newton's method in a bracket."""
    start, _ = _slopes(z, e, c, delta, 0.0, linear, quadratic)
    low = 0.0
    high = 0.0
    t = 1.0
    for _ in range(MAX_HALVINGS):
        slope, bend = _slopes(z, e, c, delta, t, linear, quadratic)
        if abs(slope) <= -FLAT * start:
            break
        if slope < 0.0:
            low = t
        else:
            high = t
        t = t - slope / bend
        if high > 0.0:
            if not low < t < high:
                t = 0.5 * (low + high)
        elif t < 2.0 * low:
            t = 2.0 * low
    return t


@inline_jit
def _slopes(z, e, c, delta, t, linear, quadratic):
    """Return the first and the second derivative of the objective along the line, at step t."""
    slope = linear + t * quadratic
    bend = quadratic
    for i in range(z.shape[0]):
        at = z[i] - t * e[i]
        if at > 0.0:
            if at < delta:
                slope -= c[i] * e[i] * at / delta
                bend += c[i] * e[i] * e[i] / delta
            else:
                slope -= c[i] * e[i]
    return slope, bend


@inline_jit
def _curvature(M, G, c, delta, g, d, active, n_active, S, x):
    """Return the curvature of the minimum in the bias, by the implicit function theorem."""
    curvature = 0.0
    for j in range(M.shape[1]):
        g[j] = 0.0
    for p in range(n_active):
        i = active[p]
        curvature += c[i] / delta
        for j in range(M.shape[1]):
            g[j] += c[i] / delta * M[i, j]
    by_rows = n_active < M.shape[1]
    _factor_hessian(M, G, active, n_active, by_rows, c, delta, S)
    _apply_inverse(M, active, n_active, by_rows, S, g, x, d)
    for j in range(M.shape[1]):
        curvature -= g[j] * d[j]
    return curvature if curvature > 0.0 else 0.0


@inline_jit
def _describe(theta, y, c, z, alpha, gap, out):
    """Write all of a problem's statistics but its curvature and its steps."""
    primal = 0.0
    slope = 0.0
    cost = 0.0
    n_support = 0
    for j in range(theta.shape[0]):
        primal += 0.5 * theta[j] * theta[j]
    for i in range(y.shape[0]):
        cost += c[i]
        slope -= alpha[i] * y[i]
        if z[i] > 0.0:
            primal += c[i] * z[i]
        if alpha[i] > 0.0:
            n_support += 1
    out[0] = primal
    out[1] = primal - gap
    out[2] = slope
    out[4] = cost
    out[6] = n_support


@inline_jit
def _factor_hessian(M, G, active, n_active, by_rows, c, delta, S):
    """Factor the Hessian or, if ``by_rows``, the matrix of rows that Woodbury's identity takes."""
    if by_rows:
        _fill_inner(M, G, active, n_active, c, delta, S)
        _factor(S, n_active)
    else:
        _fill_outer(M, active, n_active, c, delta, S)
        _factor(S, M.shape[1])


@inline_jit
def _fill_inner(M, G, active, n_active, c, delta, S):
    """Write diag(delta / c) + M M' of the rows on the parabola, with M M' from G if it is given."""
    for p in range(n_active):
        i = active[p]
        for q in range(p + 1):
            k = active[q]
            if G.shape[0] > 0:
                S[p, q] = G[i, k]
            else:
                total = 0.0
                for j in range(M.shape[1]):
                    total += M[i, j] * M[k, j]
                S[p, q] = total
        S[p, p] += delta / c[i]


@inline_jit
def _fill_outer(M, active, n_active, c, delta, S):
    """Write the Hessian, I + M' diag(c / delta) M of the rows on the parabola."""
    n = M.shape[1]
    for j in range(n):
        for k in range(j + 1):
            S[j, k] = 0.0
        S[j, j] = 1.0
    for p in range(n_active):
        i = active[p]
        scale = c[i] / delta
        for j in range(n):
            factor = scale * M[i, j]
            for k in range(j + 1):
                S[j, k] += factor * M[i, k]


@inline_jit
def _factor(S, n):
    """Replace the lower half of a positive definite matrix by its Cholesky factor."""
    for i in range(n):
        for j in range(i):
            total = S[i, j]
            for k in range(j):
                total -= S[i, k] * S[j, k]
            S[i, j] = total / S[j, j]
        total = S[i, i]
        least = 1e-14 * total
        for k in range(i):
            total -= S[i, k] * S[i, k]
        S[i, i] = np.sqrt(total if total > least else least)


@inline_jit
def _apply_inverse(M, active, n_active, by_rows, S, g, x, out):
    """Write the inverse Hessian times g; ``x`` is scratch, of as many values as S has rows."""
    n = M.shape[1]
    if by_rows:
        for p in range(n_active):
            total = 0.0
            for j in range(n):
                total += M[active[p], j] * g[j]
            x[p] = total
        _solve(S, n_active, x)
        for j in range(n):
            out[j] = g[j]
        for p in range(n_active):
            for j in range(n):
                out[j] -= x[p] * M[active[p], j]
    else:
        for j in range(n):
            out[j] = g[j]
        _solve(S, n, out)


@inline_jit
def _solve(S, n, x):
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= S[i, k] * x[k]
        x[i] = total / S[i, i]
    for back in range(n):
        i = n - 1 - back
        x[i] = x[i] / S[i, i]
        for k in range(i):
            x[k] -= S[i, k] * x[i]
