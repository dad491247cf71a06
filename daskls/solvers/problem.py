"""One pair of classes at one width: single solves, to the plain duality gap or a given one."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskls.kernels.hinge import solve_hinge, solve_unit_hinge
from daskls.kernels.offset import solve_with_offset
from daskls.kernels.steps import CLIPPED, UNCLIPPED, fill_gradient
from daskls.records import FloatArray, IntArray, SolverSpec
from daskls.solvers.data import Counts, max_steps

__all__ = ["Problem"]


class Problem:
    """The kernel matrix, labels and weights of one pair, and a count of its solves.

    Parameters
    ----------
    K : float32 array, shape (m, m), C-contiguous. Rows are ordered by fold.
    signs : float32 array, shape (m,). -1 for the pair's first class, +1 for its second.
    weights : float32 array, shape (m,), > 0. Multiply C.
    fold_ptr : int array, shape (n_folds + 1,). Fold f owns rows fold_ptr[f] to fold_ptr[f + 1] - 1.
    spec : SolverSpec
    """

    def __init__(
        self,
        K: FloatArray,
        signs: FloatArray,
        weights: FloatArray,
        fold_ptr: IntArray,
        spec: SolverSpec,
    ) -> None:
        self.K, self.signs, self.weights, self.fold_ptr = K, signs, weights, fold_ptr
        self.spec = spec
        self.diag = np.ascontiguousarray(np.diagonal(K))
        self._gain = np.empty_like(signs)
        self.counts = Counts()

    def bound_of(self, fold: int, cost: float) -> FloatArray:
        """Return the signed bounds without a fold at one C, float32 (m,)."""
        bound = self.signs * self.weights
        bound[self.fold_ptr[fold] : self.fold_ptr[fold + 1]] = 0.0
        return bound * np.float32(cost)

    def ascend(
        self, fold: int, bound: FloatArray, beta: FloatArray, grad: FloatArray, limit: float
    ) -> tuple[int, float, float]:
        """Solve without a fold, in place, to a plain gap of at most ``limit``; count nothing.

        Returns
        -------
        n_steps : int
        gap : float
        offset : float. 0 where none is fitted.
        """
        start, stop = self.fold_ptr[fold], self.fold_ptr[fold + 1]
        return self._run(bound, beta, grad, start, stop, UNCLIPPED, limit)

    def solve_all(self, start: FloatArray, cost: float) -> tuple[FloatArray, float]:
        """Train on all rows at one C, from a start that is clipped to the bounds.

        Returns
        -------
        beta : float32 array, shape (m,)
        offset : float. 0 without offset.
        """
        bound = self.signs * self.weights * np.float32(cost)
        beta = np.clip(start, np.minimum(bound, 0), np.maximum(bound, 0))
        if self.spec.fit_intercept and abs(beta.sum(dtype=float)) > 1e-6 * np.abs(beta).sum():
            # Clipping has broken the equality constraint.
            beta = np.zeros_like(beta)
        grad = np.empty_like(beta)
        fill_gradient(self.K, beta, self.signs, grad)
        cap = CLIPPED if self.spec.clipped_gap else UNCLIPPED
        limit = self.spec.tol * float(np.abs(bound).sum(dtype=float))
        n_steps, gap, offset = self._run(bound, beta, grad, 0, 0, cap, limit)
        self.counts.add(Counts(n_steps, 1, int(gap > limit)))
        return beta, offset

    def _run(
        self,
        bound: FloatArray,
        beta: FloatArray,
        grad: FloatArray,
        start: int,
        stop: int,
        cap: np.float32,
        limit: float,
    ) -> tuple[int, float, float]:
        """Solve in place; return steps, gap and offset, 0 where none is fitted."""
        n_steps, gap, *offset = self._method(
            self.K,
            self.diag,
            self.signs,
            bound,
            beta,
            grad,
            start,
            stop,
            cap,
            limit,
            max_steps(len(beta)),
            self._gain,
        )
        return n_steps, gap, float(offset[0]) if offset else 0.0

    @property
    def _method(self) -> Callable[..., Any]:
        if self.spec.fit_intercept:
            return solve_with_offset
        return solve_unit_hinge if self.spec.kernel == "rbf" else solve_hinge
