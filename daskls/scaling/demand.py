"""The work of the choice for all cells, before rows are read: how many looks, of how many rows.

How many candidates there are, and how far each climbs, the data decide. What is expected here is
what fits of letter, ijcnn1, krkopt, phoneme, Covertype and a million rows of noisy28 came to,
within a third.

Looks at candidates, timed; see `daskls.run.pace`.
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
from daskls.scaling.decide import N_LEFT
from daskls.scaling.fit import LEAST_RACED, MAX_CELL_ROWS
from daskls.scaling.grid import (
    LOOK_ROWS,
    USUAL_RIDGE,
    Trial,
    TrialCell,
    TrialGrid,
    heat_nbytes,
    look_nbytes,
    region_rows,
)
from daskls.scaling.heats import (
    ASKED_ROWS,
    CELL_ROWS,
    DENSE_FROM,
    N_CELLS,
    Drawn,
    RacePlan,
    plan_race,
    race_rows,
)
from daskls.scaling.look import Look
from daskls.scaling.race import LEARNING_ROUNDS, N_LEARNED
from daskls.scaling.regions import FULLNESS, HELD_SHARE, WANTED_ROWS
from daskls.scaling.rounds import (
    ERROR_ROWS,
    N_COARSE_CELLS,
    N_ERROR_CELLS,
    N_GRADIENT_CELLS,
    N_LEARNING_ROUNDS,
)
from daskls.solvers.registry import find_loss
from daskls.solvers.squares.aims import Aim, aim_of
from daskls.targets import Target

BEGIN, LOOK = "scaling.demand:begin_look", "scaling.demand:look_on"
TRIAL, GRADIENT = "scaling.demand:leave_out", "scaling.demand:take_gradients"
ANSWER, COLLECT = "scaling.demand:answer_held", "run.pace:check_block"
# Candidates that are left in each heat, at the most, and looks of one; looks of the last heat.
CANDIDATES_LEFT, LOOKS_A_HEAT, LOOKS_AT_LAST = (9, 5, 4), 7, 18
# Trials on cells of regions: of one choice, and of the last one on cells of the final size; and in
# how many steps they come.
TRIALS_A_CHOICE, TRIALS_AT_LAST, STEPS_A_CHOICE = 16, 9, 7
# Rows of a cell that is drawn, as a share of the most.
DRAWN_SHARE = 0.8


@dataclass(frozen=True)
class OpenChoice:
    """What a fit leaves open for all its cells.

    Attributes
    ----------
    scaling : ScalingSpec
    spec : SolverSpec
    n_rows, n_sample, cell_size : int
    """

    scaling: ScalingSpec
    spec: SolverSpec
    n_rows: int
    n_sample: int
    cell_size: int

    @property
    def n_kernels(self) -> int:
        """The number of kernels in question."""
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
        """The number of candidates that differ, as of most data."""
        n_scales = 2 if self.scaling.feature_scale == "learned" else 1
        # Of ranks, indicators and both one coding differs, as a rule.
        n_scales += self.scaling.feature_coding == "auto"
        return n_scales * self.n_kernels

    @property
    def is_open(self) -> bool:
        """Whether anything is to be found out."""
        return self.n_candidates > 1 or bool(self.scaling.kernels) or self.learns

    @property
    def most_looks(self) -> int:
        """The combinations of width and ridge."""
        grid = TrialGrid.of(self.spec if self.scaling.kernels else SolverSpec())
        return len(grid.widths) * len(grid.ridges)

    @property
    def cell_rows(self) -> int:
        """Rows of a cell of the final size."""
        return min(self.cell_size, MAX_CELL_ROWS)

    def race(self) -> RacePlan:
        """Return the heats: of so many rows, whichever they are."""
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


def expected_spec(spec: SolverSpec, scaling: ScalingSpec | None) -> SolverSpec:
    """Return a spec with what is usually chosen for all cells."""
    if scaling is None or not scaling.kernels:
        return spec
    # Of those in question the one in the middle: they differ little in what a cell takes.
    kernel = scaling.kernels[len(scaling.kernels) // 2]
    grid = TrialGrid.of(spec).of_kernel(kernel)
    trial = grid.start(kernel)
    found = trial.resolve(replace(spec, kernel=kernel))
    if spec.C is None and not find_loss(spec).costs_by_cell:
        return replace(found, C=(1 / (2 * USUAL_RIDGE),))
    return replace(found, C=spec.C) if find_loss(spec).costs_by_cell else found


def race_parts(choice: OpenChoice) -> list[tuple[int, int]]:
    """Return the parts of the last heat as `check_race` takes them."""
    return [(part.n_training, part.n_asked) for part in choice.race().last.parts]


def scaling_stages(choice: OpenChoice, outlook: Outlook) -> tuple[StageDemand, ...]:
    """Return the stages that choose for all cells; none where all is given."""
    if not choice.is_open:
        return ()
    race = _race(choice, outlook.extent.sizes)
    if not choice.is_dense:
        return (race,)
    return race, *_regions(choice, outlook)


def _race(choice: OpenChoice, sizes: TaskSizes) -> StageDemand:
    plan = choice.race()
    works, n_tasks = [], 0
    looks = min(LOOKS_A_HEAT, choice.most_looks)
    for heat, most in zip(plan.heats, CANDIDATES_LEFT, strict=False):
        n = min(choice.n_candidates, most)
        n_tasks += n
        for part in heat.parts:
            works += _looks(part.n_training, part.n_asked, n, n * looks)
    n_last, last = len(CANDIDATES_LEFT), min(LOOKS_AT_LAST, 3 * choice.most_looks)
    for part in plan.last.parts:
        works += _looks(part.n_training, part.n_asked, 2 * n_last, last)
    if choice.learns:
        works += list(_learned_in_race(plan))
    n_tasks += 2 * n_last + N_LEARNED * len(plan.learning)
    n_rounds = len(plan.heats) + 3
    parts = [(part.n_training, part.n_asked) for part in plan.last.parts]
    nbytes = heat_nbytes(parts, sizes.n_features, sizes.n_outputs)
    return StageDemand("scale", n_tasks, nbytes, tuple(works), n_rounds)


def _looks(n_training: int, n_asked: int, n_begun: int, n_looks: int) -> list[Work]:
    """Return the work of candidates on one part of a heat."""
    if not n_asked:
        return [Work(TRIAL, n_training, n_looks)]
    return [Work(BEGIN, n_training, n_begun), Work(LOOK, n_training, n_looks)]


def _learned_in_race(plan: RacePlan) -> Iterator[Work]:
    for ranges in plan.learning:
        for first, last in ranges:
            yield Work(GRADIENT, last - first, N_LEARNED * LEARNING_ROUNDS)


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
        (Work(COLLECT, min(block, LOOK_ROWS), choice.n_rows / min(block, LOOK_ROWS)),),
    )
    n_looked = N_LEFT + choice.learns + choice.n_kernels - 1
    n_chosen = n_looked + choice.learns
    looking = look_nbytes(rows, d, sizes.n_outputs, choice.cell_rows)
    n_steps = n_chosen * STEPS_A_CHOICE + n_looked + STEPS_A_CHOICE
    n_steps += N_LEARNING_ROUNDS * choice.learns
    works = tuple(_looked(choice, n_looked, n_chosen))
    return collect, StageDemand("scale", n_steps * n_regions, looking, works, n_steps)


def _looked(choice: OpenChoice, n_looked: int, n_chosen: int) -> Iterator[Work]:
    """Yield the work on cells of regions: trials, answers to held-out rows, derivatives."""
    look = min(LOOK_ROWS, choice.cell_rows)
    kernel = choice.scaling.kernels[0] if choice.scaling.kernels else choice.spec.kernel
    most = choice.most_looks
    coarse = len(TrialGrid.of(choice.spec).coarse(kernel)) if find_kernel(kernel).has_width else 1
    trials = N_COARSE_CELLS * min(coarse, most) + N_ERROR_CELLS * min(TRIALS_A_CHOICE, most)
    yield Work(TRIAL, look, n_chosen * trials)
    held_in = min(WANTED_ROWS, choice.n_rows) * (1 - 1 / HELD_SHARE)
    yield Work(ANSWER, look, n_looked * held_in / (DRAWN_SHARE * look))
    if choice.learns:
        yield Work(GRADIENT, look, N_LEARNING_ROUNDS * N_GRADIENT_CELLS)
    if choice.scaling.kernels and choice.cell_rows > LOOK_ROWS:
        n_cells = min(N_ERROR_CELLS, ERROR_ROWS // choice.cell_rows)
        rows = int((1 + DRAWN_SHARE) / 2 * choice.cell_rows)
        yield Work(TRIAL, rows, n_cells * min(TRIALS_AT_LAST, most))


def _trials(setting: Setting) -> tuple[Trial, Trial]:
    """Return where looks begin, and the trial of the next width."""
    kernel = setting.spec.kernel
    grid = TrialGrid().of_kernel(kernel)
    start = grid.start(kernel)
    beside = grid.at((grid.place(start)[0] + 1, grid.place(start)[1]), kernel)
    assert beside is not None
    return start, beside


def _aim(setting: Setting) -> Aim:
    k = setting.n_classes
    if setting.spec.target == "numbers":
        return aim_of(Target("numbers", center=np.zeros(k), scale=np.ones(k)))
    return aim_of(Target("classes", np.arange(k)))


def _drawn(n_rows: int, setting: Setting) -> tuple[Float32, Float64]:
    X, targets = setting.draw(n_rows)
    return X.astype(np.float32), _aim(setting).columns(targets)


def _look(size: int, setting: Setting) -> Callable[[], Look]:
    """Return what begins a look at drawn rows."""
    A, Y = _drawn(size + ASKED_ROWS, setting)
    return partial(Look, A, Y, np.ones(len(A)), size, setting.spec.kernel, _aim(setting))


def begin_look(size: int, setting: Setting) -> float:
    """Time distances of so many rows to each other, and to those that are asked."""
    return seconds_in(_look(size, setting))


def look_on(size: int, setting: Setting) -> float:
    """Time a trial of another width on so many rows."""
    look, (start, beside) = _look(size, setting)(), _trials(setting)
    look.errors(start)
    return seconds_in(lambda: look.errors(beside))


def _cell(size: int, setting: Setting) -> TrialCell:
    X, targets = setting.draw(size)
    return TrialCell(X.astype(np.float32), targets, np.ones(size), _aim(setting))


def leave_out(size: int, setting: Setting) -> float:
    """Time leave-one-out errors of a cell under one trial."""
    cell, (start, _) = _cell(size, setting), _trials(setting)
    return seconds_in(lambda: cell.errors([start]))


def take_gradients(size: int, setting: Setting) -> float:
    """Time the derivatives of a cell's functions."""
    cell, (start, _) = _cell(size, setting), _trials(setting)
    return seconds_in(lambda: cell.gradients(start))


def answer_held(size: int, setting: Setting) -> float:
    """Time answers of a cell to the rows that were held out of it."""
    cell, (start, _) = _cell(size, setting), _trials(setting)
    queries = setting.draw(max(size // HELD_SHARE, 1))[0].astype(np.float32)
    return seconds_in(lambda: cell.values(queries, start))
