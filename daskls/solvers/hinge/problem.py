"""One pair of classes at one width: single solves, to the plain duality gap or a given one."""

import numpy as np

from daskls.kernels.line import line_solver
from daskls.kernels.registry import find_kernel
from daskls.kernels.steps import CLIPPED, UNCLIPPED, fill_gradient
from daskls.records import Float32, Int64, SolverSpec
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
        K: Float32,
        signs: Float32,
        weights: Float32,
        fold_ptr: Int64,
        spec: SolverSpec,
    ) -> None:
        self.K, self.signs, self.weights, self.fold_ptr = K, signs, weights, fold_ptr
        self.spec = spec
        self._lines = line_solver(
            unit=find_kernel(spec.kernel).unit_diagonal, with_offset=spec.fit_intercept
        )
        self.counts = Counts()

    def bound_of(self, fold: int, cost: float) -> Float32:
        """Return the signed bounds without a fold at one C, float32 (m,)."""
        bound = self.signs * self.weights
        bound[self.fold_ptr[fold] : self.fold_ptr[fold + 1]] = 0.0
        return bound * np.float32(cost)

    def ascend(
        self, fold: int, beta: Float32, product: Float32, cost: float, tol: float
    ) -> tuple[Float32, float, int]:
        """Solve without a fold, to the plain gap; count nothing.

        Parameters
        ----------
        fold : int
        beta, product : float32 arrays, shape (m,). The start, and K times it.
        cost : float
        tol : float

        Returns
        -------
        beta : float32 array, shape (m,)
        offset : float. 0 where none is fitted.
        n_steps : int
        """
        start, stop = self.fold_ptr[fold], self.fold_ptr[fold + 1]
        found, offset, counts = self._run(start, stop, beta, product, cost, UNCLIPPED, tol)
        return found, offset, counts.n_steps

    def solve_all(self, start: Float32, cost: float) -> tuple[Float32, float]:
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
        product = self.signs - grad
        found, offset, counts = self._run(0, 0, beta, product, cost, cap, self.spec.tol)
        self.counts.add(counts)
        return found, offset

    def _run(
        self,
        start: int,
        stop: int,
        beta: Float32,
        product: Float32,
        cost: float,
        cap: np.float32,
        tol: float,
    ) -> tuple[Float32, float, Counts]:
        """Solve from one start; return the solution, its offset and what it took."""
        m = len(beta)
        betas, offsets = np.empty((1, m), np.float32), np.empty((1, 1), np.float32)
        counts = np.zeros(3, np.int64)
        self._lines(
            self.K.reshape(-1),
            np.zeros(1, np.int64),
            np.array([0, m]),
            0,
            1,
            self.signs,
            self.signs * self.weights,
            # The only start is the seed.
            product,
            beta,
            product,
            -1.0,
            np.array([cost], np.float64),
            np.array([start], np.int64),
            np.array([stop], np.int64),
            cap,
            tol,
            np.array([max_steps(m)], np.int64),
            betas,
            offsets,
            counts,
        )
        return betas[0], float(offsets[0, 0]), Counts(*counts.tolist())
