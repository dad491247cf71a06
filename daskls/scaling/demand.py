"""The expected work of what a fit chooses for all cells, and the functions that time it.

The number of candidates, and of the trials of each, depends on the data. The numbers assumed here
are within a third of those of fits on letter, ijcnn1, krkopt, phoneme, Covertype and a million rows
of noisy28. The functions named by strings are run by `daskls.run.pace`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.memory import TaskSizes, assign_nbytes
from daskls.plan import Outlook, StageDemand, Work
from daskls.records import F4, Float32, Float64, ScalingSpec, SolverSpec
from daskls.run.pace import Setting, seconds_in
from daskls.scaling.descent import TrialSplit
from daskls.scaling.fit import LEAST_RACED, MAX_CELL_ROWS
from daskls.scaling.grid import (
    TRIAL_ROWS,
    USUAL_RIDGE,
    Trial,
    TrialCell,
    TrialGrid,
    region_rows,
    rung_nbytes,
    trial_nbytes,
)
from daskls.scaling.paired import MOST_FEWER
from daskls.scaling.race import (
    N_FINALISTS,
    N_PLAIN,
    N_REFINED,
    N_REFINED_IN_CELLS,
)
from daskls.scaling.regions import FULLNESS, HELD_SHARE, WANTED_ROWS
from daskls.scaling.rounds import (
    ERROR_ROWS,
    N_COARSE_CELLS,
    N_ERROR_CELLS,
    N_LEARNING_CELLS,
    N_LEARNING_ROUNDS,
)
from daskls.scaling.rungs import (
    ASKED_ROWS,
    CELL_ROWS,
    DENSE_FROM,
    N_CELLS,
    Drawn,
    RacePlan,
    plan_race,
    race_rows,
)
from daskls.solvers.registry import find_loss
from daskls.solvers.squares.aims import Aim, aim_of
from daskls.targets import Target

BEGIN_SPLIT, SOLVE_SPLIT = "scaling.demand:time_distances", "scaling.demand:time_next_width"
TRIAL, SLOPES = "scaling.demand:leave_out", "scaling.demand:take_slopes"
ANSWER, COLLECT = "scaling.demand:answer_held", "run.pace:check_block"
# Most candidates in each rung, and the trials of each.
CANDIDATES_LEFT, TRIALS_PER_RUNG = (9, 5, 4), 7
# Trials on cells of regions in one choice, beside those of a coarse grid, and in the last one on
# cells of the final size; and the number of steps of a choice.
TRIALS_PER_CHOICE, TRIALS_TO_RETUNE, STEPS_PER_CHOICE = 9, 9, 3
# Rows of a drawn cell, as a share of the most.
DRAWN_SHARE = 0.8


@dataclass(frozen=True)
class OpenChoice:
    """What a fit leaves open for all its cells."""

    scaling: ScalingSpec
    spec: SolverSpec
    n_rows: int
    n_sample: int
    cell_size: int

    @property
    def n_kernels(self) -> int:
        """The number of candidate kernels."""
        return max(len(self.scaling.kernels), 1)

    @property
    def learns(self) -> bool:
        """Whether a scale may be learned."""
        return self.scaling.feature_scale == "learned" and self.n_rows >= LEAST_RACED

    @property
    def is_dense(self) -> bool:
        """Whether regions of full density decide after the race."""
        return self.n_rows > self.n_sample and not self.scaling.by_chance

    @property
    def n_candidates(self) -> int:
        """The number of different candidates on most data."""
        n_scales = 2 if self.scaling.feature_scale == "learned" else 1
        # Of ranks, indicators and both, usually one differs from no coding.
        n_scales += self.scaling.feature_coding == "auto"
        return n_scales * self.n_kernels

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose."""
        return self.n_candidates > 1 or bool(self.scaling.kernels) or self.learns

    @property
    def n_combinations(self) -> int:
        """The number of combinations of width and ridge."""
        grid = TrialGrid.of(self.spec if self.scaling.kernels else SolverSpec())
        return len(grid.widths) * len(grid.ridges)

    @property
    def cell_rows(self) -> int:
        """The rows of a cell of the final size."""
        return min(self.cell_size, MAX_CELL_ROWS)

    def race(self) -> RacePlan:
        """Return the plan of a race with the same numbers of rows; which rows does not matter."""
        n_pool, n_reserved = race_rows(self.n_sample)
        held = self.n_sample // HELD_SHARE if n_reserved else 0
        pool, reserved = min(n_pool, self.n_sample - held), min(n_reserved, held)
        is_whole = self.n_sample == self.n_rows >= DENSE_FROM
        own: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
        if is_whole and reserved and not self.scaling.by_chance:
            rows = int(DRAWN_SHARE * min(CELL_ROWS, self.cell_rows))
            asked = rows // HELD_SHARE
            own = ((np.arange(rows - asked), np.arange(asked)),) * N_CELLS
        return plan_race(Drawn(np.arange(pool), np.arange(reserved), own), self.cell_rows)


def scaling_stages(choice: OpenChoice, outlook: Outlook) -> tuple[StageDemand, ...]:
    """Return the stages that choose for all cells; none where everything is given."""
    if not choice.is_open:
        return ()
    race = _race(choice, outlook.extent.sizes)
    if not choice.is_dense:
        return (race,)
    return race, *_regions(choice, outlook)


def race_parts(choice: OpenChoice) -> list[tuple[int, int]]:
    """Return the numbers of rows of the last rung's parts, as input for `check_race`."""
    return [part.sizes for part in choice.race().last.parts]


def expected_spec(spec: SolverSpec, scaling: ScalingSpec | None) -> SolverSpec:
    """Return a spec with the parameters that are usually chosen for all cells."""
    if scaling is None or not scaling.kernels:
        return spec
    # The middle one of the candidate kernels: their costs differ little.
    kernel = scaling.kernels[len(scaling.kernels) // 2]
    grid = TrialGrid.of(spec).of_kernel(kernel)
    trial = grid.start(kernel)
    found = trial.resolve(replace(spec, kernel=kernel))
    if spec.C is None and not find_loss(spec).costs_by_cell:
        return replace(found, C=(1 / (2 * USUAL_RIDGE),))
    return replace(found, C=spec.C) if find_loss(spec).costs_by_cell else found


def _race(choice: OpenChoice, sizes: TaskSizes) -> StageDemand:
    plan, learns = choice.race(), choice.learns and not choice.is_dense
    works, n_tasks = [], 0
    n_trials = min(TRIALS_PER_RUNG, choice.n_combinations)
    for rung, most in zip(plan.rungs, CANDIDATES_LEFT, strict=False):
        n = min(choice.n_candidates, most)
        n_tasks += n
        for part in rung.parts:
            works += _rung_work(*part.sizes, n, n * n_trials)
    if plan.dense is not None:
        n = min(choice.n_candidates, CANDIDATES_LEFT[-1])
        n_tasks += n
        for part in plan.dense.parts:
            works += _rung_work(*part.sizes, n, n * plan.dense.most_trials)
    n_learned = choice.n_kernels * len(plan.learning)
    n_first = N_PLAIN + n_learned if learns else N_FINALISTS
    n_last = N_FINALISTS
    if plan.has_final:
        for part in plan.first.parts:
            works += _rung_work(*part.sizes, n_first, n_first)
        n_last = (N_REFINED_IN_CELLS if plan.last.cells else N_REFINED) + 1
    last = n_last * min(plan.last.most_trials, choice.n_combinations)
    for part in plan.last.parts:
        works += _rung_work(*part.sizes, n_last, last)
    if learns:
        works += list(_learned_in_race(plan))
    if learns and plan.has_final:
        n = 1 + MOST_FEWER
        for part in plan.first.parts:
            works += _rung_work(*part.sizes, n, n)
        for part in plan.last.parts:
            works += _rung_work(*part.sizes, 1, 1)
        n_tasks += n + 1
    n_tasks += n_first * plan.has_final + n_last + len(plan.learning)
    n_rounds = len(plan.rungs) + 3 + (plan.dense is not None)
    parts = [part.sizes for part in plan.last.parts]
    nbytes = rung_nbytes(parts, sizes.n_features, sizes.n_outputs)
    return StageDemand("scale", n_tasks, nbytes, tuple(works), n_rounds)


def _rung_work(n_training: int, n_others: int, n_begun: int, n_trials: int) -> list[Work]:
    """Return the work of all candidates on one part of a rung."""
    if not n_others:
        return [Work(TRIAL, n_training, n_trials)]
    return [Work(BEGIN_SPLIT, n_training, n_begun), Work(SOLVE_SPLIT, n_training, n_trials)]


def _learned_in_race(plan: RacePlan) -> Iterator[Work]:
    for ranges in plan.learning:
        for first, last in ranges:
            yield Work(SLOPES, last - first, N_LEARNING_ROUNDS)


def _regions(choice: OpenChoice, outlook: Outlook) -> tuple[StageDemand, StageDemand]:
    sizes, exchange = outlook.extent.sizes, outlook.exchange
    d, rows = sizes.n_features, region_rows(sizes.n_features)
    n_regions = math.ceil(min(WANTED_ROWS, choice.n_rows) / (FULLNESS * rows))
    block = outlook.extent.block_rows
    collecting = assign_nbytes(sizes, block) + block * d * F4
    collect = StageDemand(
        "regions",
        exchange.n_blocks + n_regions,
        collecting,
        (Work(COLLECT, min(block, TRIAL_ROWS), choice.n_rows / min(block, TRIAL_ROWS)),),
    )
    # Of a learned scale, of it without weak features (by bisection), and of that with parameters of
    # its own. There is a coarse grid before each choice.
    n_evaluated = choice.n_kernels + choice.learns * (2 + MOST_FEWER.bit_length())
    n_chosen = choice.n_kernels + 3 * choice.learns
    nbytes = trial_nbytes(rows, d, sizes.n_outputs, choice.cell_rows)
    n_steps = n_chosen * (1 + STEPS_PER_CHOICE) + n_evaluated + STEPS_PER_CHOICE
    n_steps += N_LEARNING_ROUNDS * choice.learns
    works = tuple(_region_work(choice, n_evaluated, n_chosen))
    return collect, StageDemand("scale", n_steps * n_regions, nbytes, works, n_steps)


def _region_work(choice: OpenChoice, n_evaluated: int, n_chosen: int) -> Iterator[Work]:
    """Yield the work on cells of regions: trials, predictions of held-out rows, slopes."""
    size = min(TRIAL_ROWS, choice.cell_rows)
    kernel = choice.scaling.kernels[0] if choice.scaling.kernels else choice.spec.kernel
    most = choice.n_combinations
    coarse = len(TrialGrid.of(choice.spec).coarse(kernel)) if find_kernel(kernel).has_width else 1
    trials = N_COARSE_CELLS * min(coarse, most) + N_ERROR_CELLS * min(TRIALS_PER_CHOICE, most)
    yield Work(TRIAL, size, n_chosen * trials)
    held_in = min(WANTED_ROWS, choice.n_rows) * (1 - 1 / HELD_SHARE)
    yield Work(ANSWER, size, n_evaluated * held_in / (DRAWN_SHARE * size))
    if choice.learns:
        yield Work(SLOPES, size, N_LEARNING_ROUNDS * N_LEARNING_CELLS)
    if choice.scaling.kernels and choice.cell_rows > TRIAL_ROWS:
        n_cells = min(N_ERROR_CELLS, ERROR_ROWS // choice.cell_rows)
        rows = int((1 + DRAWN_SHARE) / 2 * choice.cell_rows)
        yield Work(TRIAL, rows, n_cells * min(TRIALS_TO_RETUNE, most))


def time_distances(size: int, setting: Setting) -> float:
    """Time the distances of ``size`` rows to each other, and to the rows to predict."""
    return seconds_in(_split(size, setting))


def time_next_width(size: int, setting: Setting) -> float:
    """Time a trial of another width on ``size`` rows."""
    split, (start, beside) = _split(size, setting)(), _trials(setting)
    split.errors(start)
    return seconds_in(lambda: split.errors(beside))


def leave_out(size: int, setting: Setting) -> float:
    """Time the leave-one-out errors of a cell of ``size`` rows under one trial."""
    cell, (start, _) = _cell(size, setting), _trials(setting)
    return seconds_in(lambda: cell.errors([start]))


def take_slopes(size: int, setting: Setting) -> float:
    """Time the slopes of the leave-one-out error of a cell of ``size`` rows."""
    cell, (start, _) = _cell(size, setting), _trials(setting)
    return seconds_in(lambda: cell.error_slopes(start))


def answer_held(size: int, setting: Setting) -> float:
    """Time the predictions of a cell of ``size`` rows for the rows held out of it."""
    cell, (start, _) = _cell(size, setting), _trials(setting)
    queries = setting.draw(max(size // HELD_SHARE, 1))[0].astype(np.float32)
    return seconds_in(lambda: cell.values(queries, start))


def _split(size: int, setting: Setting) -> Callable[[], TrialSplit]:
    """Return a function that makes a `TrialSplit` of drawn rows."""
    A, Y = _drawn(size + ASKED_ROWS, setting)
    sizes = size, ASKED_ROWS
    return partial(TrialSplit, A, Y, np.ones(len(A)), *sizes, setting.spec.kernel, _aim(setting))


def _cell(size: int, setting: Setting) -> TrialCell:
    X, targets = setting.draw(size)
    return TrialCell(X.astype(np.float32), targets, np.ones(size), _aim(setting))


def _drawn(n_rows: int, setting: Setting) -> tuple[Float32, Float64]:
    X, targets = setting.draw(n_rows)
    return X.astype(np.float32), _aim(setting).columns(targets)


def _trials(setting: Setting) -> tuple[Trial, Trial]:
    """Return the first trial, and that of the next width."""
    kernel = setting.spec.kernel
    grid = TrialGrid().of_kernel(kernel)
    start = grid.start(kernel)
    beside = grid.at((grid.place(start)[0] + 1, grid.place(start)[1]), kernel)
    assert beside is not None
    return start, beside


def _aim(setting: Setting) -> Aim:
    k = setting.n_classes
    if setting.spec.target == "numbers":
        return aim_of(Target("numbers", center=np.zeros(k), scale=np.ones(k)), setting.spec)
    return aim_of(Target("classes", np.arange(k)), setting.spec)
