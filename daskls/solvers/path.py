"""One pair of classes: the solutions of all folds along C, each started from the one before."""

from dataclasses import dataclass

import numpy as np

from daskls.kernels.hinge import duality_gap, fill_gradient, solve_hinge
from daskls.records import FloatArray, IntArray

__all__ = ["Path", "max_steps", "solve_once", "solve_path"]


@dataclass
class Path:
    """The solutions of one pair for every fold and C.

    Attributes
    ----------
    alphas : float32 array, shape (n_folds, n_costs, m)
    margins : float32 array, shape (n_costs, m). ``y_i f(x_i)``, f trained without row i's fold.
    n_steps : int. Pair steps of all solves.
    n_at_limit : int. Solves that ended above the gap's limit.
    """

    alphas: FloatArray
    margins: FloatArray
    n_steps: int = 0
    n_at_limit: int = 0


def max_steps(n_rows: int) -> int:
    """Return the step limit of one solve: a guard against endless loops, not a setting."""
    return 100_000 + 1000 * n_rows


def solve_path(
    Q: FloatArray,
    weights: FloatArray,
    folds: IntArray,
    costs: tuple[float, ...],
    n_folds: int,
    tol: float,
) -> Path:
    """Train on all folds but one, for each fold and each C in increasing order.

    Parameters
    ----------
    Q : float32 array, shape (m, m): y_i y_j k(x_i, x_j)
    weights : float32 array, shape (m,), > 0. Multiply C.
    folds : int array, shape (m,)
    costs : tuple of float, increasing
    n_folds : int
    tol : float. The gap's limit is ``tol`` x the sum of the upper bounds.

    Returns
    -------
    path : Path
    """
    m = len(weights)
    path = Path(
        np.empty((n_folds, len(costs), m), np.float32), np.empty((len(costs), m), np.float32)
    )
    diag = np.ascontiguousarray(np.diagonal(Q))
    # Q times the weights of each fold: what a start with every alpha at its bound needs.
    sums = Q @ np.where(folds[:, None] == np.arange(n_folds), weights[:, None], np.float32(0))
    total = sums.sum(axis=1)
    for fold in range(n_folds):
        held_out = folds == fold
        box = np.where(held_out, np.float32(0), weights)
        at_bound = total - sums[:, fold]
        alpha = np.zeros(m, np.float32)
        grad = np.ones(m, np.float32)
        for i, cost in enumerate(costs):
            upper = box * np.float32(cost)
            start = (box, at_bound, cost) if i == 0 else (alpha, 1 - grad, cost / costs[i - 1])
            alpha, grad = _better_start(alpha, grad, upper, *start)
            _solve(Q, diag, upper, alpha, grad, tol, path)
            path.alphas[fold, i] = alpha
            path.margins[i, held_out] = 1 - grad[held_out]
    return path


def solve_once(
    Q: FloatArray, weights: FloatArray, start: FloatArray, cost: float, tol: float, path: Path
) -> FloatArray:
    """Return alpha for all rows at one C, started from ``start``; counts go to ``path``."""
    upper = weights * np.float32(cost)
    alpha = np.minimum(start, upper)
    grad = np.empty_like(alpha)
    fill_gradient(Q, alpha, grad)
    _solve(Q, np.ascontiguousarray(np.diagonal(Q)), upper, alpha, grad, tol, path)
    return alpha


def _better_start(
    alpha: FloatArray,
    grad: FloatArray,
    upper: FloatArray,
    other: FloatArray,
    Q_other: FloatArray,
    scale: float,
) -> tuple[FloatArray, FloatArray]:
    """Return (alpha, grad), or those of ``scale`` x ``other``, whichever has the smaller gap.

    Scaling everything with C suits wide kernels, keeping everything suits narrow ones.
    """
    factor = np.float32(scale)
    # Rounding must not carry a bounded alpha past its bound.
    scaled = np.minimum(other * factor, upper)
    scaled_grad = 1 - Q_other * factor
    if duality_gap(scaled_grad, scaled, upper) < duality_gap(grad, alpha, upper):
        return scaled, scaled_grad
    return alpha, grad


def _solve(
    Q: FloatArray,
    diag: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    grad: FloatArray,
    tol: float,
    path: Path,
) -> None:
    """Solve in place and add to the path's counts."""
    limit = tol * float(upper.sum(dtype=np.float64))
    n_steps, gap = solve_hinge(
        Q, diag, upper, alpha, grad, limit, max_steps(len(alpha)), np.empty_like(alpha)
    )
    path.n_steps += n_steps
    path.n_at_limit += gap > limit
