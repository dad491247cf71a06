"""One pair of classes at one width: the solutions of several folds along C."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.kernels.hinge import solve_hinge
from daskls.kernels.offset import solve_with_offset
from daskls.kernels.steps import CLIPPED, UNCLIPPED, dual_value, fill_gradient
from daskls.records import FloatArray, IntArray, SolverSpec

__all__ = ["Counts", "Solution", "Solutions", "WidthPath", "max_steps", "solve_once"]


@dataclass(frozen=True, eq=False)
class Solution:
    """What training on all folds but one gave: ``beta`` float32 (m,), 0 on the fold; the offset."""

    beta: FloatArray
    offset: float


# Of one pair and one width, by (fold, position of C in the grid).
Solutions = dict[tuple[int, int], Solution]


@dataclass
class Counts:
    """Pair steps, solves, and solves that ended above the gap's limit."""

    n_steps: int = 0
    n_trained: int = 0
    n_at_limit: int = 0

    def add(self, other: "Counts") -> None:
        """Add what another search counted."""
        self.n_steps += other.n_steps
        self.n_trained += other.n_trained
        self.n_at_limit += other.n_at_limit


def max_steps(n_rows: int) -> int:
    """Return the step limit of one solve: a guard against endless loops, not a setting."""
    return 100_000 + 1000 * n_rows


class WidthPath:
    """Solves one pair at one width, C by C in increasing order, on several folds.

    Every solve starts from the feasible point of the largest dual value among: the fold's solution
    at the C before, as it is (suits narrow kernels) or scaled with C (suits wide ones); the fold's
    solution at the same C and the width before; for the first C without offset, every beta at its
    bound.

    Parameters
    ----------
    K : float32 array, shape (m, m). Rows are ordered by fold.
    signs : float32 array, shape (m,). -1 for the pair's first class, +1 for its second.
    weights : float32 array, shape (m,), > 0. Multiply C.
    fold_ptr : int array, shape (n_folds + 1,). Fold f owns rows fold_ptr[f] to fold_ptr[f + 1] - 1.
    spec : SolverSpec
    before : dict of Solution. Of the width before; empty at the first.
    """

    def __init__(
        self,
        K: FloatArray,
        signs: FloatArray,
        weights: FloatArray,
        fold_ptr: IntArray,
        spec: SolverSpec,
        before: Solutions,
    ) -> None:
        self.K, self.signs, self.weights, self.fold_ptr = K, signs, weights, fold_ptr
        self.spec = spec
        self.diag = np.ascontiguousarray(np.diagonal(K))
        self.gain = np.empty_like(signs)
        self.before = before
        self._products, self._bound_products = self._multiply()
        self._last: dict[int, tuple[float, FloatArray, FloatArray]] = {}
        self.solutions: Solutions = {}
        self.counts = Counts()

    def step(self, i: int, cost: float, folds: tuple[int, ...]) -> FloatArray:
        """Train without each of the folds at one C; return the decision values on those folds.

        Parameters
        ----------
        i : int. Position of the C in the grid.
        cost : float. The C; larger than at the last step.
        folds : tuple of int

        Returns
        -------
        decisions : float32 array, shape (m,). Rows of other folds hold NaN.
        """
        decisions = np.full_like(self.signs, np.nan)
        for fold in folds:
            start, stop = self.fold_ptr[fold], self.fold_ptr[fold + 1]
            bound = self.signs * self.weights * np.float32(cost)
            bound[start:stop] = 0.0
            beta, grad = self._start(fold, i, cost, bound)
            offset = solve(self, bound, beta, grad, start, stop)
            self._last[fold] = cost, beta, grad
            self.solutions[fold, i] = Solution(beta, offset)
            held_out = slice(start, stop)
            decisions[held_out] = self.signs[held_out] - grad[held_out] + np.float32(offset)
        return decisions

    def _start(
        self, fold: int, i: int, cost: float, bound: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the best start and its gradient, as new arrays."""
        starts = []
        if fold in self._last:
            last_cost, beta, grad = self._last[fold]
            factor = np.float32(cost / last_cost)
            starts.append((beta, grad))
            starts.append((beta * factor, self.signs - (self.signs - grad) * factor))
        else:
            starts.append((np.zeros_like(bound), self.signs.copy()))
            if not self.spec.fit_intercept:
                starts.append((bound, self.signs - self._bound_products[fold] * np.float32(cost)))
        if (fold, i) in self._products:
            beta = self.before[fold, i].beta
            starts.append((beta, self.signs - self._products[fold, i]))
        values = [dual_value(beta, grad, self.signs) for beta, grad in starts]
        beta, grad = starts[int(np.argmax(values))]
        # Rounding must not carry a bounded beta past its bound.
        low, high = np.minimum(bound, 0), np.maximum(bound, 0)
        return np.clip(beta, low, high), grad.copy()

    def _multiply(self) -> tuple[dict[tuple[int, int], FloatArray], FloatArray]:
        """Return K times each solution of the width before, and times each fold's bounds at C = 1.

        One GEMM for both: K is read once.
        """
        n_folds = len(self.fold_ptr) - 1
        bounds = np.tile(self.signs * self.weights, (n_folds, 1))
        for fold in range(n_folds):
            bounds[fold, self.fold_ptr[fold] : self.fold_ptr[fold + 1]] = 0.0
        stack = [*bounds, *(solution.beta for solution in self.before.values())]
        products = np.stack(stack) @ self.K
        return dict(zip(self.before, products[n_folds:], strict=True)), products[:n_folds]


def solve(
    path: WidthPath, bound: FloatArray, beta: FloatArray, grad: FloatArray, start: int, stop: int
) -> float:
    """Solve in place; count; return the offset, 0 where none is fitted."""
    limit = path.spec.tol * float(np.abs(bound).sum(dtype=np.float64))
    cap = CLIPPED if path.spec.clipped_gap else UNCLIPPED
    method: Callable[..., Any] = solve_with_offset if path.spec.fit_intercept else solve_hinge
    n_steps, gap, *offset = method(
        path.K,
        path.diag,
        path.signs,
        bound,
        beta,
        grad,
        start,
        stop,
        cap,
        limit,
        max_steps(len(beta)),
        path.gain,
    )
    path.counts.n_steps += n_steps
    path.counts.n_trained += 1
    path.counts.n_at_limit += gap > limit
    return float(offset[0]) if offset else 0.0


def solve_once(path: WidthPath, start: FloatArray, cost: float) -> Solution:
    """Train on all rows at one C, from a start that is clipped to the bounds."""
    bound = path.signs * path.weights * np.float32(cost)
    beta = np.clip(start, np.minimum(bound, 0), np.maximum(bound, 0))
    if path.spec.fit_intercept and abs(beta.sum(dtype=np.float64)) > 1e-6 * np.abs(beta).sum():
        # Clipping has broken the equality constraint.
        beta = np.zeros_like(beta)
    grad = np.empty_like(beta)
    fill_gradient(path.K, beta, path.signs, grad)
    return Solution(beta, solve(path, bound, beta, grad, 0, 0))
