"""The solvers of quantiles and of expectiles, one function per level and cell.

Expectiles are least squares whose weights depend on the side of each row, solved again until no row
changes sides. A row's leave-one-out value comes from the system's inverse: exact for these sides,
though leaving a row out would move some others across (docs/quantiles.md).
"""

from dataclasses import dataclass, replace

import numpy as np

from daskls.records import F8, Float64, Int64, KernelSpec, Mask, SolverSpec
from daskls.solvers.base import CellRows, Sizes
from daskls.solvers.grid import assign_folds
from daskls.solvers.level_losses import Expectile, Pinball
from daskls.solvers.levels import LevelsSolver, SolvedLevel
from daskls.solvers.rows import LocalRows, rows_nbytes
from daskls.solvers.squares.system import Solution, System
from daskls.solvers.tube import TubeProblem, cost_candidates, kernel_matrix

# The tolerance in the search for C is this share of the least loss so far, as a violation moves no
# loss by more than itself; and its maximum, in units of tol.
SEARCH_TOL_SHARE, MAX_SEARCH_TOL = 0.1, 10.0


class PinballSolver(LevelsSolver):
    """Kernel quantile regression; C of each level by folds on its own loss.

    Source: Takeuchi, Le, Sears, Smola, JMLR 2006; Steinwart, Christmann 2011. In the units of y the
    objective is ``|f|^2 / 2 + C sum_i w_i L(y_i - f(x_i) - b)``, with ``L(r) = max(q r, (q - 1)
    r)``. Difference: where C is chosen, b is shifted by the level's quantile of held-out residuals,
    as flexible functions run through training rows.
    """

    def problem(
        self, cell: CellRows, local: LocalRows, kernel: KernelSpec, spec: SolverSpec
    ) -> "_Quantiles":
        K = kernel_matrix(local.rows, kernel)
        y = np.ascontiguousarray(cell.targets[:, 0], np.float64)
        folds = assign_folds(np.zeros(len(y), np.int64), spec.cv, cell.seed)
        return _Quantiles(K, y, local.weights, spec, cost_candidates(local, spec), folds)

    def cost_unit(self, spec: SolverSpec) -> float:
        return spec.unit


@dataclass(frozen=True, eq=False)
class _Quantiles:
    K: Float64
    y: Float64
    weights: Float64
    spec: SolverSpec
    costs: tuple[float, ...]
    folds: Int64

    @property
    def diagonal(self) -> Float64:
        return np.diagonal(self.K)

    def solve(self, level: float) -> SolvedLevel:
        problem = _PinballProblem(self.K, self.y, self.weights, level, self.spec)
        chosen = problem.choose(self.costs, self.folds)
        beta, offset = problem.finish(chosen)
        ends = (self.costs[0], self.costs[-1])
        return SolvedLevel(
            beta,
            offset,
            chosen.cost,
            chosen.loss,
            len(self.costs) > 1 and chosen.cost in ends,
            problem.n_steps,
            problem.n_trained,
            problem.n_at_limit,
            chosen.n_tried,
        )


class _PinballProblem(TubeProblem):
    """The tube problem of one level: betas from C (q - 1) to C q, and a tube of no width."""

    def __init__(
        self, K: Float64, y: Float64, weights: Float64, level: float, spec: SolverSpec
    ) -> None:
        super().__init__(K, y, weights, 0.0, spec)
        self._level, self._is_shifted = level, spec.fit_intercept

    def search_tol(self, least: float) -> float:
        """Losses separate candidates long before their models are exact."""
        tol = self._spec.tol
        return float(np.clip(SEARCH_TOL_SHARE * least, tol, MAX_SEARCH_TOL * tol))

    def shift(self, missed: Float64) -> float:
        return Pinball().constant(missed, self._weights, self._level) if self._is_shifted else 0.0

    def bounds(self, costs: Float64) -> tuple[Float64, Float64]:
        return (self._level - 1.0) * costs, self._level * costs

    def losses(self, missed: Float64) -> Float64:
        return Pinball().losses(missed, self._level)


# Candidates of C, for y in units of its deviation: ridges 1 / (2 C) from 10 to 1e-4, as for
# squared errors.
EXPECTILE_COSTS = tuple(
    0.5 / ridge for ridge in (10, 3, 1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)
)
# The index of the candidate at which the descent along C starts.
FIRST_COST = 5
# The limit of solves until no row changes sides; a handful is usual.
MAX_SIDE_SOLVES = 50
# A row this near to its answer, in units of y's deviation, is on neither side; and an objective so
# little above another, relatively, is no larger.
SIDE_TOL = 1e-6
# The limit of halvings of a step that does not lower the objective.
MAX_STEP_HALVINGS = 30


class ExpectileSolver(LevelsSolver):
    """Kernel expectile regression; C of each level by leave-one-out values at fixed sides.

    Source: Newey, Powell, Econometrica 1987; Farooq, Steinwart 2017. The objective is ``|f|^2 / 2 +
    C sum_i w_i a_i (y_i - f(x_i) - b)^2``, with a_i the level q for rows above their answer, else 1
    - q. Differences: reweighted least squares instead of a dual method; where C is chosen, b is
    shifted by the level's expectile of the leave-one-out residuals.
    """

    def problem(
        self, cell: CellRows, local: LocalRows, kernel: KernelSpec, spec: SolverSpec
    ) -> "_Expectiles":
        y = np.ascontiguousarray(cell.targets[:, 0], np.float64)
        return _Expectiles(System(local.rows, kernel), y, local.weights, spec)

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        m, q = n_rows, len(sizes.spec.levels)
        return rows_nbytes(sizes, m) + m * m * (F8 + 2) + (4 * q + 24) * m * F8


@dataclass(frozen=True, eq=False)
class Iterate:
    """The coefficients of one iterate at some C, and the values with offset at training rows."""

    alpha: Float64
    values: Float64
    offset: float

    def towards(self, other: "Iterate", step: float) -> "Iterate":
        mine, theirs = (
            np.array([s.alpha, s.values, np.full_like(s.alpha, s.offset)]) for s in (self, other)
        )
        alpha, values, offset = mine + step * (theirs - mine)
        return Iterate(alpha, values, float(offset[0]))


class _Expectiles:
    def __init__(self, system: System, y: Float64, weights: Float64, spec: SolverSpec) -> None:
        self._system, self._y, self._weights, self._spec = system, y, weights, spec

    @property
    def diagonal(self) -> Float64:
        return self._system.diagonal

    def solve(self, level: float) -> SolvedLevel:
        """Walks from a middle C to its better neighbor until there is none."""
        C = self._spec.C
        costs = EXPECTILE_COSTS if C is None else tuple(sorted(C))
        at, is_shifted = min(FIRST_COST, len(costs) // 2), len(costs) > 1
        solved: dict[int, SolvedLevel] = {}
        start = self._constant(level)
        while True:
            for place in (at, at + 1, at - 1):
                if 0 <= place < len(costs) and place not in solved:
                    solved[place], start = self._fit(level, costs[place], start, is_shifted)
            best = min(solved, key=lambda place: (solved[place].loss, place))
            if best == at:
                break
            at = best
        tried = solved.values()
        return replace(
            solved[at],
            on_edge=len(costs) > 1 and at in (0, len(costs) - 1),
            n_trained=sum(one.n_trained for one in tried),
            n_at_limit=sum(one.n_at_limit for one in tried),
            n_tried=len(tried),
        )

    def _constant(self, level: float) -> Iterate:
        best = Expectile().constant(self._y, self._weights, level)
        offset = best if self._spec.fit_intercept else 0.0
        return Iterate(np.zeros_like(self._y), np.full_like(self._y, offset), offset)

    def _fit(
        self, level: float, cost: float, start: Iterate, is_shifted: bool
    ) -> tuple[SolvedLevel, Iterate]:
        """Train at one C; return the result with its leave-one-out loss, and the next start."""
        state, n_solves, is_open = start, 0, True
        above = state.values < self._y
        while is_open and n_solves < MAX_SIDE_SOLVES:
            goal = self._minimize_with_sides(above, level, cost)
            n_solves += 1
            state = self._search_line(state, goal, level, cost) if n_solves > 1 else goal
            sides = state.values < self._y
            # Rows this near to their answers change sides by rounding, and would do so forever.
            moved = np.abs(state.values - self._y)[sides != above]
            is_open = state is not goal or bool((moved > SIDE_TOL).any())
            above = sides
        _, solution = self._system_at(above, level, cost, held_out=True)
        assert solution.held_out is not None
        missed = self._y - solution.held_out[:, 0].astype(np.float64)
        shift = 0.0
        if is_shifted and self._spec.fit_intercept:
            shift = Expectile().constant(missed, self._weights, level)
        loss = Expectile().mean(missed - shift, level, self._weights)
        one = SolvedLevel(
            state.alpha,
            state.offset + shift,
            cost,
            loss,
            n_steps=n_solves,
            n_trained=n_solves,
            n_at_limit=int(is_open),
        )
        return one, state

    def _system_at(
        self, above: Mask, level: float, cost: float, *, held_out: bool = False
    ) -> tuple[Float64, Solution]:
        ridges = 1.0 / (2.0 * cost * self._weights * np.where(above, level, 1.0 - level))
        arguments = self._y[:, None], ridges
        offset = self._spec.fit_intercept
        return ridges, self._system.solve(*arguments, offset=offset, held_out=held_out)

    def _minimize_with_sides(self, above: Mask, level: float, cost: float) -> Iterate:
        ridges, solution = self._system_at(above, level, cost)
        alpha = solution.alpha[:, 0].astype(np.float64)
        # A row's residual is its ridge times its coefficient.
        return Iterate(alpha, self._y - ridges * alpha, float(solution.offsets[0]))

    def _objective(self, state: Iterate, level: float, cost: float) -> float:
        losses = Expectile().losses(self._y - state.values, level)
        norm = state.alpha @ (state.values - state.offset)
        return float(norm / 2 + cost * (self._weights @ losses))

    def _search_line(self, state: Iterate, goal: Iterate, level: float, cost: float) -> Iterate:
        """Return the goal, or a point on the way to it that is not above the state."""
        before, step = self._objective(state, level, cost), 1.0
        point = goal
        for _ in range(MAX_STEP_HALVINGS):
            if self._objective(point, level, cost) <= before + SIDE_TOL * abs(before):
                break
            step /= 2
            point = state.towards(goal, step)
        return point
