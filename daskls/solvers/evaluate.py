"""Scores of one cell's model, probabilities from decision values, and sums rounded once.

Source of the probabilities: Platt 1999; Lin, Lin, Weng: A note on Platt's probabilistic outputs for
support vector machines, 2007.
"""

import math

import numpy as np

from daskls.kernels.decisions import vote_scores
from daskls.kernels.frame import decide_pairs
from daskls.records import Float64, Floats, LocalModel, Mask, Reals


def cell_scores(model: LocalModel, X: Reals) -> Float64:
    """Return the scores of one cell's model, (m,), or (m, k), one vote score per class present.

    Computed in float32 only where no decision value moves by more than 1e-3. A row's result does
    not depend on the other rows.
    """
    n_classes = len(model.classes)
    if n_classes == 1:
        return np.zeros(len(X))
    decisions = decide_pairs(model, X)
    return decisions[:, 0] if n_classes == 2 else vote_scores(decisions, n_classes)


# Newton's method: its limit, its smallest step, what keeps the Hessian regular, and the largest
# derivative at the end.
MAX_ITERATIONS = 100
MIN_STEP = 1e-10
HESSIAN_RIDGE = 1e-12
GRADIENT_TOL = 1e-5


def sigmoid(values: Floats, a: float, b: float) -> Float64:
    """Return 1 / (1 + exp(a f + b)) without overflow."""
    z = a * np.asarray(values, np.float64) + b
    small = np.exp(-np.abs(z))
    probability: Float64 = np.where(z >= 0, small, 1.0) / (1.0 + small)
    return probability


def _loss(values: Floats, targets: Float64, weights: Float64, a: float, b: float) -> float:
    z = a * values + b
    # log(1 + exp(z)) is at most |z| + log 2: no overflow.
    return float((weights * (targets * z + np.logaddexp(0.0, -z))).sum())


def fit_sigmoid(
    values: Floats, positive: Mask, weights: Float64 | None = None
) -> tuple[float, float]:
    """Return (a, b), a <= 0, for which 1 / (1 + exp(a f + b)) is the likeliest probability.

    The probability of the positives never falls as the decision value rises. The values are of rows
    held out from training; a row of weight 2 counts as two rows.

    >>> a, b = fit_sigmoid(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
    >>> bool(a < 0), round(abs(b), 6)
    (True, 0.0)
    """
    values = np.asarray(values, np.float64)
    weights = np.ones(len(values)) if weights is None else weights
    n_positive = float(weights[positive].sum())
    n_negative = float(weights[~positive].sum())
    targets = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    a, b = 0.0, float(np.log((n_negative + 1.0) / (n_positive + 1.0)))
    loss = _loss(values, targets, weights, a, b)
    for _ in range(MAX_ITERATIONS):
        p = sigmoid(values, a, b)
        error, curvature = weights * (targets - p), weights * (p * (1.0 - p))
        gradient = np.array([(values * error).sum(), error.sum()])
        if np.abs(gradient).max() < GRADIENT_TOL:
            break
        cross = (values * curvature).sum()
        hessian = np.array([[(values**2 * curvature).sum(), cross], [cross, curvature.sum()]])
        step = np.linalg.solve(hessian + HESSIAN_RIDGE * np.eye(2), -gradient)
        size, slope = 1.0, float(gradient @ step)
        while size >= MIN_STEP:
            new_a, new_b = a + size * step[0], b + size * step[1]
            new_loss = _loss(values, targets, weights, new_a, new_b)
            if new_loss < loss + 1e-4 * size * slope:
                break
            size /= 2.0
        else:
            # No step lowers the loss: converged to the precision of floats.
            break
        a, b, loss = float(new_a), float(new_b), new_loss
    if a < 0.0:
        return a, b
    # The loss is convex, so the likeliest sigmoid that does not fall is flat: the mean target.
    rate = float(np.average(targets, weights=weights))
    return 0.0, float(np.log((1.0 - rate) / rate))


def total(values: Float64) -> float:
    """Return the sum of all values, rounded once: it does not depend on their order.

    >>> total(np.array([0.1, 0.2, 0.3])) == total(np.array([0.3, 0.2, 0.1])) == 0.6
    True
    """
    return math.fsum(values[values != 0].tolist())


def totals(values: Float64) -> Float64:
    columns = np.moveaxis(values, 0, -1).reshape(-1, len(values))
    return np.array([total(column) for column in columns]).reshape(values.shape[1:])
