"""One pair of classes at one width: single solves, and fold models refined to the plain gap.

The search ends its solves at the duality gap of clipped decision values, on which errors depend.
That says little of the values themselves, so models that are kept are trained further, from the
solutions of the search, until the plain gap is at most ``tol`` x the sum of the bounds. Then no
decision value is further from the SVM's than ``sqrt(2 tol C m k(x, x))``.

The gap that counts is summed in float64. Solvers compute in float32, so they restart from a
recomputed gradient, as in iterative refinement. Where the rounding of kernel values could decide,
these are computed in float64 too.
"""

import numpy as np

from daskls.kernels.exponential import multiply_rows
from daskls.kernels.gram import GRAM_TILE_ROWS
from daskls.kernels.kernel import find_kernel
from daskls.kernels.path import path_solver
from daskls.kernels.steps import UNCLIPPED, fill_gradient
from daskls.records import Float32, Float64, Int64, KernelSpec, SolverSpec
from daskls.solvers.rows import SolverCounts, max_steps


class Problem:
    """One pair of classes at one width, and the counts of its solves.

    Rows of K (m, m), C-contiguous, are ordered by fold: fold f owns rows fold_ptr[f] to fold_ptr[f
    + 1] - 1. Signs are -1 for the pair's first class; weights multiply C.
    """

    def __init__(
        self, K: Float32, signs: Float32, weights: Float32, fold_ptr: Int64, spec: SolverSpec
    ) -> None:
        self.K, self.signs, self.weights, self.fold_ptr = K, signs, weights, fold_ptr
        self.spec = spec
        self._solve_path = path_solver(
            unit=find_kernel(spec.kernel).unit_diagonal, with_offset=spec.fit_intercept
        )
        self.counts = SolverCounts()

    def bound_of(self, fold: int, cost: float) -> Float32:
        bound = self.signs * self.weights
        bound[self.fold_ptr[fold] : self.fold_ptr[fold + 1]] = 0.0
        return bound * np.float32(cost)

    def ascend(
        self, fold: int, beta: Float32, product: Float32, cost: float, tol: float
    ) -> tuple[Float32, float, int]:
        """Return beta, offset and steps of a solve to the plain gap; count nothing."""
        start, stop = self.fold_ptr[fold], self.fold_ptr[fold + 1]
        solution, offset, counts = self._run(start, stop, beta, product, cost, tol)
        return solution, offset, counts.n_steps

    def solve_all(self, start: Float32, cost: float) -> tuple[Float32, float]:
        """Train on all rows at one C, to the plain gap, from a start clipped to the bounds."""
        bound = self.signs * self.weights * np.float32(cost)
        beta = np.clip(start, np.minimum(bound, 0), np.maximum(bound, 0))
        if self.spec.fit_intercept and abs(beta.sum(dtype=float)) > 1e-6 * np.abs(beta).sum():
            # Clipping has violated the equality constraint.
            beta = np.zeros_like(beta)
        grad = np.empty_like(beta)
        fill_gradient(self.K, beta, self.signs, grad)
        product = self.signs - grad
        solution, offset, counts = self._run(0, 0, beta, product, cost, self.spec.tol)
        self.counts.add(counts)
        return solution, offset

    def _run(
        self, start: int, stop: int, beta: Float32, product: Float32, cost: float, tol: float
    ) -> tuple[Float32, float, SolverCounts]:
        m = len(beta)
        betas, offsets = np.empty((1, m), np.float32), np.empty((1, 1), np.float32)
        counts = np.zeros(3, np.int64)
        self._solve_path(
            self.K.reshape(-1),
            np.zeros(1, np.int64),
            np.array([0, m]),
            0,
            1,
            self.signs,
            self.signs * self.weights,
            # A seed of negative C is the only start: products of the bounds are not needed.
            product,
            beta,
            product,
            -1.0,
            np.array([cost], np.float64),
            np.array([start], np.int64),
            np.array([stop], np.int64),
            UNCLIPPED,
            tol,
            np.array([max_steps(m)], np.int64),
            betas,
            offsets,
            counts,
        )
        return betas[0], float(offsets[0, 0]), SolverCounts(*counts.tolist())


# Solvers stop at this share of the limit, so that the rounding of their sums seldom decides.
STOP_SHARE = 0.9
# If a round leaves more than this share of a gap, float32 goes no further.
STALLED_SHARE = 0.9
MAX_FINISH_ROUNDS = 8
# A generous relative error of float32 kernel values: from the argument and the function.
KERNEL_ERROR = 8 * 2.0**-24


class Refinement:
    """The fold models of one pair, which `run` trains on until their plain gaps are small enough.

    Each of the folds was held out of one model, of betas (n_folds, m) and offsets (n_folds,).
    """

    def __init__(
        self,
        problem: Problem,
        rows: Float32,
        kernel: KernelSpec,
        cost: float,
        folds: list[int],
        betas: Float32,
        offsets: Float64,
    ) -> None:
        self.problem, self.rows, self.kernel = problem, rows, kernel
        self.folds, self.cost = folds, cost
        self.betas, self.offsets = betas.copy(), offsets.astype(np.float64)
        self.bounds = np.stack([problem.bound_of(fold, cost) for fold in self.folds])
        self.limits = problem.spec.tol * np.abs(self.bounds).sum(axis=1, dtype=float)
        # Whether kernel values are computed in float64, not taken from ``problem.K``.
        self.exact = False
        self.products: Float32 | Float64 = np.empty(0)

    def run(self) -> None:
        """Solve and measure in turn, as long as that brings the open ones nearer."""
        self.first_products()
        n_steps = sum([self._solve(at) for at in range(len(self.folds))])
        gaps = self._measure()
        is_open = gaps > self.limits
        for _ in range(MAX_FINISH_ROUNDS - 1):
            if not is_open.any():
                break
            n_steps += sum([self._solve(int(at)) for at in np.flatnonzero(is_open)])
            before, gaps = gaps, self._measure()
            is_open &= (gaps > self.limits) & (gaps <= STALLED_SHARE * before)
        n_at_limit = int((gaps > self.limits).sum())
        self.problem.counts.add(SolverCounts(n_steps, len(self.folds), n_at_limit))

    def first_products(self) -> None:
        """Compute K times the initial betas; kernel values in float32 will do."""
        self.products = np.empty_like(self.betas)
        multiply_rows(self.problem.K, self.betas, self.products)

    def exact_rows(self) -> Float64:
        return self.rows.astype(float)

    def _solve(self, at: int) -> int:
        product = self.products[at].astype(np.float32)
        self.betas[at], self.offsets[at], n_steps = self.problem.ascend(
            self.folds[at], self.betas[at], product, self.cost, STOP_SHARE * self.problem.spec.tol
        )
        return n_steps

    def _measure(self) -> Float64:
        """Return the plain gaps; from exact kernel values where rounded ones leave a doubt."""
        gaps, doubts = self._gaps()
        if not self.exact and ((gaps <= self.limits) & (gaps + doubts > self.limits)).any():
            self.exact = True
            gaps, _ = self._gaps()
        return gaps

    def _gaps(self) -> tuple[Float64, Float64]:
        """Return the plain gaps, and how much the rounding of kernel values may add to them."""
        n = len(self.folds)
        products = self._multiply(np.concatenate([self.betas, np.abs(self.betas)]).astype(float))
        self.products, sizes = products[:n], products[n:]
        h = self.problem.signs - self.products - self.offsets[:, None]
        # Each row's term of the gap; held-out rows have neither bound nor beta.
        slopes = np.where(self.bounds * h > 0, self.bounds, 0.0) - self.betas
        error = KERNEL_ERROR * find_kernel(self.kernel.name).rounding(self.kernel)
        return (slopes * h).sum(axis=1), error * (np.abs(slopes) * sizes).sum(axis=1)

    def _multiply(self, vectors: Float64) -> Float64:
        """Return vectors times the kernel matrix in float64, in panels of support rows."""
        total = np.zeros_like(vectors)
        support = np.flatnonzero(self.betas.any(axis=0))
        for start in range(0, len(support), GRAM_TILE_ROWS):
            rows = support[start : start + GRAM_TILE_ROWS]
            total += vectors[:, rows] @ self._panel(rows)
        return total

    def _panel(self, rows: Int64) -> Float64:
        if not self.exact:
            panel: Float64 = self.problem.K[rows].astype(float)
            return panel
        A = self.exact_rows()
        kernel = find_kernel(self.kernel.name)
        base = kernel.block(A[rows], A)
        return kernel.apply(base, self.kernel, base)
