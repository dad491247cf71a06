"""SVMs of the squared hinge loss: ``C w max(0, 1 - y f)^2`` a row, by dual coordinate ascent.

The dual has no upper bound on beta, and ``1 / (2 C w)`` is added to the kernel matrix's diagonal.
Source: Hsieh, Chang, Lin, Keerthi, Sundararajan: A dual coordinate descent method for large-scale
linear SVM, ICML 2008 (L2-SVM), with a kernel matrix in place of features.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from daskls.errors import ParameterError
from daskls.kernels._jit import jit
from daskls.records import Float32, Float64, LocalModel, SolverSpec
from daskls.solvers.base import CellRows, Sizes
from daskls.solvers.cell import CellSolver
from daskls.solvers.data import Counts, max_steps
from daskls.solvers.width import Line, Width

__all__ = ["SquaredHingeSolver"]


@jit
def _ascend(K, signs, ridge, beta, limit, max_steps):
    """Raise the dual from a feasible beta, in place, pass by pass; return passes and gap.

    ``ridge``, shape (m,), is 1 / (2 C w); rows where it is infinite are held out.
    """
    m = len(signs)
    f = np.zeros(m)
    for i in range(m):
        if beta[i] != 0:
            f += beta[i] * K[i]
    n_steps, gap = 0, np.inf
    while n_steps < max_steps:
        for i in range(m):
            if ridge[i] < np.inf:
                best = beta[i] + (signs[i] - f[i] - ridge[i] * beta[i]) / (K[i, i] + ridge[i])
                new = np.float32(best if best * signs[i] > 0 else 0.0)
                if new != beta[i]:
                    f += np.float64(new - beta[i]) * K[i]
                    beta[i] = new
        n_steps += 1
        gap = 0.0
        for i in range(m):
            if ridge[i] < np.inf:
                short = max(0.0, 1.0 - signs[i] * f[i])
                gap += beta[i] * (f[i] - signs[i]) + 0.5 * ridge[i] * beta[i] ** 2
                gap += 0.5 * short * short / ridge[i]
        if gap <= limit:
            break
    return n_steps, gap


def _solve(
    K: Float32, signs: Float32, costs: Float32, start: Float32, tol: float
) -> tuple[Float32, Counts]:
    """Return the betas of one pair; rows of cost 0 are held out."""
    with np.errstate(divide="ignore"):
        ridge = 0.5 / costs.astype(np.float64)
    beta = np.where((start * signs > 0) & (costs > 0), start, np.float32(0))
    limit = tol * float(costs.sum(dtype=np.float64))
    n_steps, gap = _ascend(K, signs, ridge, beta, limit, max_steps(len(signs)))
    return beta, Counts(n_steps, 1, int(gap > limit))


class SquaredHingeWidth(Width):
    """Solves every pair at each C, from the solution at the C before."""

    @classmethod
    def nbytes(cls, sizes: Sizes, n_rows: int) -> int:
        """Return the bytes of the cell's matrix, and of one pair's where there are several."""
        own = super().nbytes(sizes, n_rows)
        return own if sizes.n_classes == 2 else 2 * own

    def solve(self, at: int, costs: Float64, tol: float) -> Line:
        """Train every pair without one fold at each C; count."""
        pairs = self.pairs
        betas = np.zeros((len(costs), len(pairs.rows)), np.float32)
        own = np.abs(pairs.bounds_without(self.folds[at]))
        for p in range(len(pairs)):
            rows, place = pairs.rows[pairs.slice_of(p)], pairs.slice_of(p)
            K = self.K if len(pairs) == 1 else self.K[np.ix_(rows, rows)]
            start = np.zeros(len(rows), np.float32)
            for i, cost in enumerate(costs.tolist()):
                weights = own[place] * np.float32(cost)
                start, counts = _solve(K, pairs.signs[place], weights, start, tol)
                betas[i, place] = start
                self.counts.add(counts)
        return Line(betas, np.zeros((len(costs), len(pairs)), np.float32))


class SquaredHingeSolver(CellSolver):
    """Local SVMs of the squared hinge loss, without offset."""

    loss = "squared_hinge"
    width = SquaredHingeWidth

    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        """Train the model of each cell; see `CellSolver.fit`."""
        if spec.fit_intercept:
            raise ParameterError("loss='squared_hinge' fits no offset; pass fit_intercept=False.")
        return super().fit(cells, spec)

    def solve_all(
        self,
        K: Float32,
        signs: Float32,
        weights: Float32,
        start: Float32,
        cost: float,
        spec: SolverSpec,
    ) -> tuple[Float32, float, Counts]:
        """Train one pair on all of its rows; see `CellSolver.solve_all`."""
        beta, counts = _solve(K, signs, weights * np.float32(cost), start, spec.tol)
        return beta, 0.0, counts
