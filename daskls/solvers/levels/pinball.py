"""Quantiles: the tube without width, its box more to one side, once a level and a cell."""

from dataclasses import dataclass

import numpy as np

from daskls.records import Float64, Int64, KernelSpec, SolverSpec
from daskls.solvers.base import CellRows
from daskls.solvers.folds import assign_folds
from daskls.solvers.levels.measure import Pinball
from daskls.solvers.levels.solver import LevelsSolver, SolvedLevel
from daskls.solvers.rows import LocalRows
from daskls.solvers.tube import TubeProblem, cost_candidates, kernel_matrix

__all__ = ["PinballSolver"]


# In the search for C, of the least loss so far: a violation so small moves no loss by as much. And
# the most of it, in units of tol.
SEARCHED_SHARE, MOST_LOOSE = 0.1, 10.0


class PinballSolver(LevelsSolver):
    """Kernel quantile regression, C of each level by folds on its own loss.

    Source: Takeuchi, Le, Sears, Smola, Nonparametric quantile estimation, JMLR 2006; Steinwart,
    Christmann 2011. In the units of y the objective is
    ``|f|^2 / 2 + C sum_i w_i L(y_i - f(x_i) - b)``, with ``L(r) = max(q r, (q - 1) r)``.
    Differences: where C is chosen by folds, b is moved by the level's quantile of what the held-out
    rows miss. Functions run through as many training rows as they are flexible for, so that others
    lie outside more often than a level says.
    """

    def problem(
        self, cell: CellRows, own: LocalRows, kernel: KernelSpec, spec: SolverSpec
    ) -> "_Quantiles":
        """As of `LevelsSolver`."""
        K = kernel_matrix(own.rows, kernel)
        y = np.ascontiguousarray(cell.targets[:, 0], np.float64)
        folds = assign_folds(np.zeros(len(y), np.int64), spec.cv, cell.seed)
        return _Quantiles(K, y, own.weights, spec, cost_candidates(own, spec), folds)

    def cost_unit(self, spec: SolverSpec) -> float:
        """As of `LevelsSolver`: the loss is in the units of y."""
        return spec.unit


@dataclass(frozen=True, eq=False)
class _Quantiles:
    """One cell's kernel matrix, rows, candidates of C and folds."""

    K: Float64
    y: Float64
    weights: Float64
    spec: SolverSpec
    costs: tuple[float, ...]
    folds: Int64

    @property
    def diagonal(self) -> Float64:
        """The kernel matrix's diagonal."""
        return np.diagonal(self.K)

    def solve(self, level: float) -> SolvedLevel:
        """As of `LevelProblem`."""
        own = _LevelProblem(self.K, self.y, self.weights, level, self.spec)
        chosen = own.choose(self.costs, self.folds)
        beta, offset = own.finish(chosen)
        ends = (self.costs[0], self.costs[-1])
        return SolvedLevel(
            beta,
            offset,
            chosen.cost,
            chosen.loss,
            len(self.costs) > 1 and chosen.cost in ends,
            own.n_steps,
            own.n_trained,
            own.n_at_limit,
            chosen.n_tried,
        )


class _LevelProblem(TubeProblem):
    """Of one level: betas from C (q - 1) to C q, and no width."""

    def __init__(
        self, K: Float64, y: Float64, weights: Float64, level: float, spec: SolverSpec
    ) -> None:
        super().__init__(K, y, weights, 0.0, spec)
        self._level, self._is_shifted = level, spec.fit_intercept

    def search_tol(self, least: float) -> float:
        """As of `TubeProblem`: losses tell costs apart long before their models are exact."""
        tol = self._spec.tol
        return float(np.clip(SEARCHED_SHARE * least, tol, MOST_LOOSE * tol))

    def shift(self, missed: Float64) -> float:
        """As of `TubeProblem`: so that the level's share of the held-out rows is below."""
        return Pinball().constant(missed, self._weights, self._level) if self._is_shifted else 0.0

    def bounds(self, costs: Float64) -> tuple[Float64, Float64]:
        """As of `TubeProblem`."""
        return (self._level - 1.0) * costs, self._level * costs

    def losses(self, missed: Float64) -> Float64:
        """As of `TubeProblem`."""
        return Pinball().losses(missed, self._level)
