"""Quantiles: the tube without width, its box more to one side, once a level and a cell.

Expectiles: least squares whose weights depend on the side of each row, solved by turns.

With the sides fixed each solve is a linear system, and a row's value without it comes from its
inverse. That is exact for these sides; a row that is left out would move some others across, which
leave-one-out values here leave as they are (docs/quantiles.md has how much that is).
"""

from dataclasses import dataclass, replace

import numpy as np

from daskls.records import F8, Float64, Int64, KernelSpec, Mask, SolverSpec
from daskls.solvers.base import CellRows, Sizes
from daskls.solvers.grid import assign_folds
from daskls.solvers.levels import Expectile, LevelsSolver, Pinball, SolvedLevel
from daskls.solvers.rows import LocalRows, rows_nbytes
from daskls.solvers.squares.system import Solution, System
from daskls.solvers.tube import TubeProblem, cost_candidates, kernel_matrix

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


# Candidates of C: ridges 1 / (2 C) from 10 to 1e-4, as of squared errors, of y in its deviation.
EXPECTILE_COSTS = tuple(
    0.5 / ridge for ridge in (10, 3, 1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)
)
# Where the walk down the valley of losses begins.
FIRST_COST = 5
# Solves with other sides until none changes; a handful is usual.
MOST_SOLVES = 50
# Of y's deviation: a row so near to its answer is on no side.
NO_SIDE = 1e-6
# Halvings of a step that does not lower the objective.
MOST_HALVINGS = 30


class ExpectileSolver(LevelsSolver):
    """Kernel expectile regression, C of each level by leave-one-out values at fixed sides.

    Source: Newey, Powell, Asymmetric least squares estimation and testing, Econometrica 1987;
    Farooq, Steinwart, An SVM-like approach for expectile regression, 2017. The objective is
    ``|f|^2 / 2 + C sum_i w_i a_i (y_i - f(x_i) - b)^2``, a the level q of rows above, else 1 - q.
    Differences: Newton's steps, which are reweighted least squares, in place of a dual method;
    where C is chosen, b is moved by the level's expectile of what rows miss without themselves.
    """

    def problem(
        self, cell: CellRows, own: LocalRows, kernel: KernelSpec, spec: SolverSpec
    ) -> "_Expectiles":
        """As of `LevelsSolver`."""
        y = np.ascontiguousarray(cell.targets[:, 0], np.float64)
        return _Expectiles(System(own.rows, kernel), y, own.weights, spec)

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """As of `LevelsSolver`: a matrix that becomes its own factor, in float64 if need be."""
        m, q = n_rows, len(sizes.spec.levels)
        return rows_nbytes(sizes, m) + m * m * (F8 + 2) + (4 * q + 24) * m * F8


@dataclass(frozen=True, eq=False)
class Sides:
    """Coefficients at some C, and the values that they give.

    Attributes
    ----------
    alpha : float64 array, shape (m,)
    values : float64 array, shape (m,). Those of training rows, the offset in them.
    offset : float
    """

    alpha: Float64
    values: Float64
    offset: float

    def towards(self, other: "Sides", step: float) -> "Sides":
        """Return what lies on the way to others."""
        mine, theirs = (
            np.array([s.alpha, s.values, np.full_like(s.alpha, s.offset)]) for s in (self, other)
        )
        alpha, values, offset = mine + step * (theirs - mine)
        return Sides(alpha, values, float(offset[0]))


class _Expectiles:
    """One cell, whose kernel matrix serves all levels."""

    def __init__(self, system: System, y: Float64, weights: Float64, spec: SolverSpec) -> None:
        self._system, self._y, self._weights, self._spec = system, y, weights, spec

    @property
    def diagonal(self) -> Float64:
        """The kernel matrix's diagonal."""
        return self._system.diagonal

    def solve(self, level: float) -> SolvedLevel:
        """As of `LevelProblem`: down the valley of losses, from the middle."""
        given = self._spec.C
        costs = EXPECTILE_COSTS if given is None else tuple(sorted(given))
        at, is_shifted = min(FIRST_COST, len(costs) // 2), len(costs) > 1
        found: dict[int, SolvedLevel] = {}
        start = self._constant(level)
        while True:
            for place in (at, at + 1, at - 1):
                if 0 <= place < len(costs) and place not in found:
                    found[place], start = self._fit(level, costs[place], start, is_shifted)
            best = min(found, key=lambda place: (found[place].loss, place))
            if best == at:
                break
            at = best
        own = found.values()
        return replace(
            found[at],
            on_edge=len(costs) > 1 and at in (0, len(costs) - 1),
            n_trained=sum(one.n_trained for one in own),
            n_at_limit=sum(one.n_at_limit for one in own),
            n_tried=len(own),
        )

    def _constant(self, level: float) -> Sides:
        """Return where solves begin: no function but the best constant."""
        best = Expectile().constant(self._y, self._weights, level)
        offset = best if self._spec.fit_intercept else 0.0
        return Sides(np.zeros_like(self._y), np.full_like(self._y, offset), offset)

    def _fit(
        self, level: float, cost: float, start: Sides, is_shifted: bool
    ) -> tuple[SolvedLevel, Sides]:
        """Train at one C; return its loss on rows that were left out, and where the next begins."""
        state, n_solves, is_open = start, 0, True
        above = state.values < self._y
        while is_open and n_solves < MOST_SOLVES:
            goal = self._with_sides(above, level, cost)
            n_solves += 1
            state = self._lower(state, goal, level, cost) if n_solves > 1 else goal
            sides = state.values < self._y
            # What changes sides at so little of a miss does so by rounding, and would for ever.
            moved = np.abs(state.values - self._y)[sides != above]
            is_open = state is not goal or bool((moved > NO_SIDE).any())
            above = sides
        _, found = self._system_at(above, level, cost, held_out=True)
        assert found.held_out is not None
        missed = self._y - found.held_out[:, 0].astype(np.float64)
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
        """Return the ridge of each row with the sides fixed, and the solution."""
        ridges = 1.0 / (2.0 * cost * self._weights * np.where(above, level, 1.0 - level))
        given = self._y[:, None], ridges
        offset = self._spec.fit_intercept
        return ridges, self._system.solve(*given, offset=offset, held_out=held_out)

    def _with_sides(self, above: Mask, level: float, cost: float) -> Sides:
        """Return the minimum with the sides fixed."""
        ridges, found = self._system_at(above, level, cost)
        alpha = found.alpha[:, 0].astype(np.float64)
        # What a row misses is its ridge times its coefficient.
        return Sides(alpha, self._y - ridges * alpha, float(found.offsets[0]))

    def _objective(self, state: Sides, level: float, cost: float) -> float:
        """Return the objective, whose norm is that of the function without its offset."""
        losses = Expectile().losses(self._y - state.values, level)
        norm = state.alpha @ (state.values - state.offset)
        return float(norm / 2 + cost * (self._weights @ losses))

    def _lower(self, state: Sides, goal: Sides, level: float, cost: float) -> Sides:
        """Return the goal, or what lies on the way to it and is lower than the state."""
        before, step = self._objective(state, level, cost), 1.0
        found = goal
        for _ in range(MOST_HALVINGS):
            if self._objective(found, level, cost) <= before + NO_SIDE * abs(before):
                break
            step /= 2
            found = state.towards(goal, step)
        return found
