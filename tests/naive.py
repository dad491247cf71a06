"""Slow, obvious oracles in float64 and plain Python: what the fast code must agree with.

Nothing here imports daskls' kernels, solvers or partitions.
"""

import itertools
import math

import numpy as np
from scipy.optimize import minimize


def kernel_value(a, b, name, gamma=1.0, degree=3, coef0=0.0):
    """Return one kernel value, term by term."""
    if name == "rbf":
        return math.exp(-gamma * math.fsum((x - z) ** 2 for x, z in zip(a, b, strict=True)))
    if name == "laplacian":
        return math.exp(-gamma * math.fsum(abs(x - z) for x, z in zip(a, b, strict=True)))
    product = math.fsum(x * z for x, z in zip(a, b, strict=True))
    return product if name == "linear" else (gamma * product + coef0) ** degree


def kernel_matrix(A, B, name, gamma=1.0, degree=3, coef0=0.0):
    """Return all kernel values of rows of A and rows of B, one at a time."""
    A, B = np.asarray(A, float).tolist(), np.asarray(B, float).tolist()
    return np.array([[kernel_value(a, b, name, gamma, degree, coef0) for b in B] for a in A])


def dual_objective(Q, alpha):
    """Return sum(alpha) - 1/2 alpha' Q alpha."""
    Q, alpha = np.asarray(Q, float), np.asarray(alpha, float)
    return float(alpha.sum() - 0.5 * alpha @ Q @ alpha)


def primal_objective(Q, alpha, upper):
    """Return 1/2 |f|^2 + sum_i upper_i max(0, 1 - y_i f(x_i)), f = sum_i alpha_i y_i k(x_i, .)."""
    Q, alpha = np.asarray(Q, float), np.asarray(alpha, float)
    margins = Q @ alpha
    losses = np.asarray(upper, float) * np.maximum(0.0, 1.0 - margins)
    return float(0.5 * alpha @ margins + losses.sum())


def gap_of(Q, alpha, upper):
    """Return primal minus dual objective."""
    return primal_objective(Q, alpha, upper) - dual_objective(Q, alpha)


def solve_dual(Q, upper, relative_gap=1e-6):
    """Maximize the dual over the box with L-BFGS-B, restarted until its own gap certifies it."""
    Q, upper = np.asarray(Q, float), np.asarray(upper, float)
    free = np.flatnonzero(upper > 0)
    alpha = np.zeros(len(upper))
    if len(free) == 0:
        return alpha
    q, box = Q[np.ix_(free, free)], upper[free]

    def loss(a):
        Qa = q @ a
        return 0.5 * a @ Qa - a.sum(), Qa - 1.0

    a = np.minimum(box, 1.0)
    for _ in range(50):
        options = {"maxiter": 5000, "maxfun": 10_000, "maxcor": 40, "ftol": 0.0, "gtol": 1e-12}
        a = minimize(
            loss, a, jac=True, method="L-BFGS-B", bounds=[(0.0, u) for u in box], options=options
        ).x
        a = np.clip(a, 0.0, box)
        # Exact steps of one value each: they go on where a line search ends in rounding.
        for i in np.tile(np.arange(len(a)), 20):
            a[i] = np.clip(a[i] + (1.0 - q[i] @ a) / max(q[i, i], 1e-12), 0.0, box[i])
        if gap_of(q, a, box) <= relative_gap * max(dual_objective(q, a), 1e-12):
            break
    alpha[free] = a
    gap = gap_of(Q, alpha, upper)
    # An oracle that did not converge must not pass for one.
    assert gap <= max(10 * relative_gap, 1e-5) * dual_objective(Q, alpha), gap
    return alpha


def walk(row, center, directions, thresholds, children):
    """Return the leaf of one row, node by node."""
    centered = [float(x) - float(c) for x, c in zip(row, center, strict=True)]
    node = 0
    while node >= 0:
        position = math.fsum(x * float(w) for x, w in zip(centered, directions[node], strict=True))
        node = int(children[node][0 if position <= thresholds[node] else 1])
    return ~node


def one_vs_one_winner(decisions, n_classes):
    """Return the winner of one row's pairwise decisions; positive speaks for the second class."""
    votes = [0] * n_classes
    confidence = [0.0] * n_classes
    for value, (a, b) in zip(decisions, itertools.combinations(range(n_classes), 2), strict=True):
        votes[b if value > 0 else a] += 1
        confidence[b] += value
        confidence[a] -= value
    return min(range(n_classes), key=lambda c: (-votes[c], -confidence[c], c))


def pair_decisions(K, coef, class_ptr):
    """Return the decisions of all pairs from coefficients laid out as scikit-learn's."""
    n_classes = len(class_ptr) - 1
    columns = []
    for a, b in itertools.combinations(range(n_classes), 2):
        rows_a = range(class_ptr[a], class_ptr[a + 1])
        rows_b = range(class_ptr[b], class_ptr[b + 1])
        columns.append(
            [
                math.fsum(float(coef[b - 1][j]) * row[j] for j in rows_a)
                + math.fsum(float(coef[a][j]) * row[j] for j in rows_b)
                for row in K
            ]
        )
    return np.array(columns).T


def bordered_ridge(K, Y, ridges, offset=True):
    """Return (coefficients, offset) of kernel ridge, in float64; an offset is not penalized."""
    n = len(K)
    bordered = np.ones((n + 1, n + 1))
    bordered[:n, :n] = K + np.diag(ridges)
    bordered[n, n] = 0.0 if offset else 1e30
    solved = np.linalg.solve(bordered, np.concatenate([Y, np.zeros_like(Y[:1])]))
    return solved[:n], solved[n]


def grid_values(radius, n_rows, n_features, n_folds, shape=(10, 10)):
    """Return (gammas, costs, m) of the 2017 paper's grid, value by value.

    lambda runs geometrically from 0.01 to 0.001 / m in 10 steps and C = 1 / (2 lambda m); the
    width runs geometrically from 5 r to 0.2 r m^(-1/d) and gamma = 1 / width^2. ``shape`` counts
    the steps of each.
    """
    m = n_rows - n_rows // n_folds
    lambdas = [0.01 * ((0.001 / m) / 0.01) ** (i / (shape[0] - 1)) for i in range(shape[0])]
    narrowest = 0.2 * radius * m ** (-1 / n_features)
    steps = [i / (shape[1] - 1) for i in range(shape[1])]
    widths = [5 * radius * (narrowest / (5 * radius)) ** step for step in steps]
    return [1 / w**2 for w in widths], [1 / (2 * lam * m) for lam in lambdas], m


class CellOracle:
    """One cell's models by L-BFGS-B: every pair of classes, every fold, every combination."""

    def __init__(self, X, codes, weights, folds, name="rbf", degree=3, coef0=0.0):
        # Powers of inner products are of rows as they are.
        self.center = np.asarray(X, float).mean(axis=0) * (name != "poly")
        self.A = np.asarray(X, float) - self.center
        self.codes, self.weights, self.folds = codes, np.asarray(weights, float), folds
        self.classes = np.unique(codes)
        self.kernel = {"name": name, "degree": degree, "coef0": coef0}

    def decisions(self, gamma, C, left_out, queries):
        """Return the decisions (n_queries, n_pairs) of the model without the fold ``left_out``."""
        K = kernel_matrix(self.A, self.A, gamma=gamma, **self.kernel)
        K_queries = kernel_matrix(
            np.asarray(queries, float) - self.center, self.A, gamma=gamma, **self.kernel
        )
        columns = []
        for a, b in itertools.combinations(self.classes, 2):
            of_pair = (self.codes == a) | (self.codes == b)
            rows = np.flatnonzero(of_pair & (self.folds != left_out))
            y = np.where(self.codes[rows] == b, 1.0, -1.0)
            Q = K[np.ix_(rows, rows)] * np.outer(y, y)
            alpha = solve_dual(Q, C * self.weights[rows], relative_gap=1e-8)
            columns.append(K_queries[:, rows] @ (alpha * y))
        return np.stack(columns, axis=1)

    def mean_decisions(self, gamma, C, queries):
        """Return the decisions averaged over the fold models."""
        return np.mean(
            [self.decisions(gamma, C, fold, queries) for fold in range(self.folds.max() + 1)],
            axis=0,
        )

    def validation_error(self, gamma, C):
        """Return (share of the weight held out decided wrongly, smallest |decision| behind it)."""
        errors, closest = [], np.inf
        for fold in np.unique(self.folds):
            held = np.flatnonzero(self.folds == fold)
            decisions = self.decisions(gamma, C, fold, self.A[held] + self.center)
            closest = min(closest, np.abs(decisions).min())
            winners = [one_vs_one_winner(row, len(self.classes)) for row in decisions]
            wrong = self.classes[winners] != self.codes[held]
            errors += self.weights[held][wrong].tolist()
        return math.fsum(errors) / math.fsum(self.weights.tolist()), closest
