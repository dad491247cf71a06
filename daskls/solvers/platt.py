"""Probabilities from decision values: a sigmoid fitted by maximum likelihood.

Source: Platt 1999; Lin, Lin, Weng: A note on Platt's probabilistic outputs for support vector
machines, 2007 (targets, formula that does not overflow, Newton's method with backtracking).
"""

import numpy as np

from daskls.records import Float64, Floats, Mask

__all__ = ["fit_sigmoid", "sigmoid"]

MAX_ITERATIONS = 100
SMALLEST_STEP = 1e-10
RIDGE = 1e-12
ENOUGH = 1e-5


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
    """Return (a, b) so that 1 / (1 + exp(a f + b)) is the likeliest probability of the positives.

    Parameters
    ----------
    values : float array, shape (m,). Decision values, of rows held out from training.
    positive : bool array, shape (m,)
    weights : float64 array, shape (m,), or None. A row of weight 2 counts as two rows.

    Returns
    -------
    a, b : float

    Examples
    --------
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
        if np.abs(gradient).max() < ENOUGH:
            break
        cross = (values * curvature).sum()
        hessian = np.array([[(values**2 * curvature).sum(), cross], [cross, curvature.sum()]])
        step = np.linalg.solve(hessian + RIDGE * np.eye(2), -gradient)
        size, slope = 1.0, float(gradient @ step)
        while size >= SMALLEST_STEP:
            new_a, new_b = a + size * step[0], b + size * step[1]
            new_loss = _loss(values, targets, weights, new_a, new_b)
            if new_loss < loss + 1e-4 * size * slope:
                break
            size /= 2.0
        else:
            # No step lowers the loss: as near as floats come.
            break
        a, b, loss = float(new_a), float(new_b), new_loss
    return a, b
