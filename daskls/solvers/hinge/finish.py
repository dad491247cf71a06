"""The chosen fold models, brought to the plain duality gap.

The search ends its solves at the gap of clipped decision values, on which errors depend. It says
little of the values themselves: models that are kept are trained further, from the solutions of the
search, until the plain gap is at most ``tol`` x the sum of the bounds. Then no decision value is
further from the SVM's than ``sqrt(2 tol C m k(x, x))``.

The gap that counts is summed in float64. Solvers compute in float32, so they restart from a
recomputed gradient, as in iterative refinement; and where the rounding of kernel values could
decide, these are computed in float64 too.
"""

import numpy as np

from daskls.kernels.gram import GRAM_TILE_ROWS
from daskls.kernels.products import multiply_rows
from daskls.kernels.registry import find_kernel
from daskls.records import Float32, Float64, Int64, KernelSpec
from daskls.solvers.data import Counts
from daskls.solvers.hinge.problem import Problem

__all__ = ["Finish", "finish_folds"]

# Solvers aim at this share of the limit, so that the rounding of their sums seldom decides.
AIM = 0.9
# A round that leaves more than this share of a gap shows that float32 goes no further.
STUCK = 0.9
MAX_FINISH_ROUNDS = 8
# Relative error of float32 kernel values, generously: the argument's, and the function's.
KERNEL_ERROR = 8 * 2.0**-24


def finish_folds(
    problem: Problem,
    rows: Float32,
    kernel: KernelSpec,
    cost: float,
    folds: list[int],
    betas: Float32,
    offsets: Float64,
) -> tuple[Float32, Float64]:
    """Train one pair's fold models on until their plain gaps are small enough.

    Parameters
    ----------
    problem : Problem. The pair at the chosen width; counts a solve a fold.
    rows : float32 array, shape (m, d). What ``problem.K`` are the kernel values of.
    kernel : KernelSpec
    cost : float. The chosen C.
    folds : list of int. Each was held out of one model.
    betas, offsets : arrays (n_folds, m) and (n_folds,). The models as the search left them.

    Returns
    -------
    betas : float32 array, shape (n_folds, m)
    offsets : float64 array, shape (n_folds,)

    Notes
    -----
    A fold whose gap stays above its limit is counted in ``problem.counts.n_at_limit``.
    """
    finish = Finish(problem, rows, kernel, cost, folds, betas, offsets)
    finish.run()
    return finish.betas, finish.offsets


class Finish:
    """The fold models of one pair, their limits, and their products with the kernel matrix."""

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
        """Solve and measure in turn, as long as that brings the open ones nearer.

        The first gradient need not be exact: it is measured anew after the solve.
        """
        self.first_products()
        n_steps = sum([self._solve(at) for at in range(len(self.folds))])
        gaps = self._measure()
        goes_on = gaps > self.limits
        for _ in range(MAX_FINISH_ROUNDS - 1):
            if not goes_on.any():
                break
            n_steps += sum([self._solve(int(at)) for at in np.flatnonzero(goes_on)])
            before, gaps = gaps, self._measure()
            goes_on &= (gaps > self.limits) & (gaps <= STUCK * before)
        n_at_limit = int((gaps > self.limits).sum())
        self.problem.counts.add(Counts(n_steps, len(self.folds), n_at_limit))

    def first_products(self) -> None:
        """Write the products of the start: those of float32 kernel values do."""
        self.products = np.empty_like(self.betas)
        multiply_rows(self.problem.K, self.betas, self.products)

    def exact_rows(self) -> Float64:
        """Return the rows in float64."""
        return self.rows.astype(float)

    def _solve(self, at: int) -> int:
        """Train one fold's model on from the gradient last measured; return the steps taken."""
        product = self.products[at].astype(np.float32)
        self.betas[at], self.offsets[at], n_steps = self.problem.ascend(
            self.folds[at], self.betas[at], product, self.cost, AIM * self.problem.spec.tol
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
        """Return the plain gaps, and what the rounding of kernel values may add to them."""
        n = len(self.folds)
        products = self._multiply(np.concatenate([self.betas, np.abs(self.betas)]).astype(float))
        self.products, sizes = products[:n], products[n:]
        h = self.problem.signs - self.products - self.offsets[:, None]
        # A row's loss, less what it adds to the dual; held-out rows have neither bound nor beta.
        slopes = np.where(self.bounds * h > 0, self.bounds, 0.0) - self.betas
        error = KERNEL_ERROR * find_kernel(self.kernel.name).rounding(self.kernel)
        return (slopes * h).sum(axis=1), error * (np.abs(slopes) * sizes).sum(axis=1)

    def _multiply(self, vectors: Float64) -> Float64:
        """Return vectors times the kernel matrix in float64, panel by panel of support rows."""
        total = np.zeros_like(vectors)
        support = np.flatnonzero(self.betas.any(axis=0))
        for start in range(0, len(support), GRAM_TILE_ROWS):
            own = support[start : start + GRAM_TILE_ROWS]
            total += vectors[:, own] @ self._panel(own)
        return total

    def _panel(self, own: Int64) -> Float64:
        """Return the kernel values of some rows and all rows, float64."""
        if not self.exact:
            panel: Float64 = self.problem.K[own].astype(float)
            return panel
        A = self.exact_rows()
        kernel = find_kernel(self.kernel.name)
        base = kernel.block(A[own], A)
        return kernel.apply(base, self.kernel, base)
