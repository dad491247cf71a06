"""The rows of a race, and its rungs: which rows train, which are predicted, and how many trials.

The plan follows from numbers of rows alone. Candidates race on a few thousand random rows of the
sample, stored in every candidate coding; some are held out for the final. Where the sample is all
of the data, all rows of some cells are added: random rows alone are less dense.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from dask.tokenize import tokenize

from daskls.blas import one_blas_thread
from daskls.kernels.frame import scaled
from daskls.partition.grow import MIN_SIDE
from daskls.partition.shuffle import row_keys
from daskls.records import SMALLEST, AnyArray, Float32, Float64, Int64, Mask, Targets
from daskls.run.sample import Sample
from daskls.scaling.coding import Base
from daskls.scaling.regions import HELD_SHARE, LEAST_ROWS, cut_rows, rows_in_run
from daskls.scaling.rounds import widest
from daskls.seeds import HELD_ROWS, RACE
from daskls.solvers.squares.aims import Aim
from daskls.store.artifact import read_arrays, write_artifact
from daskls.store.objects import open_store

# Rows that train in each rung, and rows that are predicted in it.
RUNG_ROWS, ASKED_ROWS = (250, 500, 1000), 1500
# With fewer rows than the first, each is left out in turn, of at most the second number; with fewer
# than the third there are no rungs before that.
LEFT_OUT_BELOW, LEFT_OUT_ROWS, LEAST_RUNG_ROWS = 3000, 1500, 400
# Rows that train in a final without cells, random rows that decide it, and random rows that a scale
# is learned on with cells and without: there 800 learn no worse scales (seven tables, five seeds),
# and 1000 cost twice as much.
FINAL_ROWS, RESERVED_ROWS, LEARNING_ROWS, LEARNING_ROWS_ALONE = 2000, 1500, 1000, 800
# With at least this many rows, all of them sampled, cells join the race: their number, and the most
# rows of one.
DENSE_FROM, N_CELLS, CELL_ROWS = 6000, 8, 1000
# Of these, so many settle the width and the ridge of each candidate before scales are learned: in
# dense rows the best width is smaller (on 50,000 rows of covtype a quarter to a thirtieth of the
# thin rows'), and a scale that was learned at the thin rows' width lost to none. Half of a cell's
# rows are left out in turn: beside the factorization, their values cost an eighth of those of all.
N_SETTLING, SETTLING_TRIALS, SETTLING_SHARE = 3, 8, 0.5
# Random training rows and cells of a first look at the finalists, and cells that scales are learned
# on. The final has as many random rows, and all cells.
FIRST_ROWS, FIRST_CELLS, LEARNING_CELLS = 1000, 4, 4
# Most trials of a candidate in the last rung; in the others the number is unbounded.
LAST_TRIALS, UNBOUNDED = 4, 1 << 30
COLUMNS = ("X", "targets", "weights")


@dataclass(frozen=True, eq=False)
class RaceJob:
    """What tasks need to read the rows of a race; ``token`` names them and their scales."""

    root: str
    aim: Aim
    token: str = ""

    def folder(self, kind: str) -> str:
        return f"regions/{kind}-thin"


@dataclass(frozen=True, eq=False)
class RaceRows:
    X: Float32
    targets: Targets
    weights: Float64

    def take(self, own: slice | Int64) -> "RaceRows":
        return RaceRows(self.X[own], self.targets[own], self.weights[own])


@dataclass(frozen=True, eq=False)
class Drawn:
    """The rows of a race, as positions in the sample.

    `pool` are random rows that are not held out, in a drawn order; `reserved` random ones that are.
    `cells` are training rows and held-out rows of some cells with all rows of their part of space.
    """

    pool: Int64
    reserved: Int64
    cells: tuple[tuple[Int64, Int64], ...] = ()
    run_rows: int = 1

    @property
    def runs(self) -> Int64:
        """The run of each held-out row, those of cells last: errors in a run may be correlated."""
        held = np.concatenate([self.reserved, *(asked for _, asked in self.cells)])
        _, runs = np.unique(held // self.run_rows, return_inverse=True)
        return runs

    @property
    def rows(self) -> Int64:
        return np.concatenate([self.pool, self.reserved, *(p for own in self.cells for p in own)])


@dataclass(frozen=True)
class Part:
    """Rows that train a model, and rows that it predicts, both (first, one past the last)."""

    train: tuple[int, int]
    asked: tuple[int, int]

    @classmethod
    def leaving_out(cls, first: int, last: int, share: float = 1.0) -> "Part":
        """Return a part that predicts a share of its training rows, each without itself."""
        return cls((first, last), (last - int(share * (last - first)), last))

    @property
    def leaves_out(self) -> bool:
        return self.train[0] <= self.asked[0] and self.asked[1] <= self.train[1]

    @property
    def n_training(self) -> int:
        return self.train[1] - self.train[0]

    @property
    def n_asked(self) -> int:
        return self.asked[1] - self.asked[0]

    @property
    def sizes(self) -> tuple[int, int]:
        return self.n_training, 0 if self.leaves_out else self.n_asked

    def of(self, rows: RaceRows) -> RaceRows:
        which = (self.train,) if self.leaves_out else (self.train, self.asked)
        own = [rows.take(slice(*each)) for each in which]
        return RaceRows(*(np.concatenate([getattr(o, n) for o in own]) for n in COLUMNS))


@dataclass(frozen=True)
class Rung:
    """One comparison of all candidates that are left, by random rows and those of some cells.

    Together the cells weigh as much as ``sampled``, but each row alike where rows are left out in
    turn.
    """

    sampled: Part
    cells: tuple[Part, ...] = ()
    reaches: tuple[int, ...] = (2, 1)
    most_trials: int = UNBOUNDED

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.sampled, *self.cells

    def weights(self, rows: RaceRows) -> Float64:
        own = [rows.weights[slice(*part.asked)] for part in self.parts]
        if self.sampled.leaves_out:
            left_out: Float64 = np.concatenate(own)
            left_out /= left_out.sum()
            return left_out
        sampled, cells = own[0], np.concatenate([np.empty(0), *own[1:]])
        return np.concatenate([sampled / sampled.sum(), cells / max(cells.sum(), SMALLEST)])


@dataclass(frozen=True, eq=False)
class RacePlan:
    """The comparisons of a race, and the rows of each.

    `last` is of held-out rows, in `runs`, or of each row without itself; `first` tells by fewer
    rows which candidates `last` need not evaluate. Of `dense` cells half of the rows are left out
    in turn. Scales are learned on each tuple of ranges in `learning`. Of `thick` as many rows as in
    `last` train, and none that decides is asked.
    """

    rungs: tuple[Rung, ...]
    first: Rung
    last: Rung
    runs: Int64
    learning: tuple[tuple[tuple[int, int], ...], ...]
    thick: Rung
    dense: Rung | None = None

    @property
    def has_final(self) -> bool:
        return not self.last.sampled.leaves_out


def race_rows(n_rows: int) -> tuple[int, int]:
    """Return how many random rows of a sample the rungs use, and how many are reserved.

    >>> race_rows(1000), race_rows(100_000)
    ((1000, 0), (2500, 1500))
    """
    if n_rows < LEFT_OUT_BELOW:
        return min(n_rows, LEFT_OUT_ROWS), 0
    return RUNG_ROWS[-1] + ASKED_ROWS, RESERVED_ROWS


def plan_race(drawn: Drawn, cell_rows: int) -> RacePlan:
    """Plan a race whose models have at most ``cell_rows`` rows."""
    pool, reserved = len(drawn.pool), len(drawn.reserved)
    if not reserved:
        sizes = (pool // 4, pool // 2) if pool >= LEAST_RUNG_ROWS else ()
        rungs = _rungs(pool, sizes)
        last = Rung(Part.leaving_out(0, pool), most_trials=LAST_TRIALS if rungs else UNBOUNDED)
        halves = ((0, pool // 2),), ((pool // 2, pool),)
        return RacePlan(rungs, last, last, drawn.runs, halves, replace(last, most_trials=UNBOUNDED))
    most = max(cell_rows, 2)
    cells = _cell_parts(drawn)
    # Cells tell what more rows change, better than more random rows.
    n_final = FIRST_ROWS if cells else FINAL_ROWS
    final = Part((0, min(pool, n_final, most)), (pool, pool + reserved))
    rungs = _rungs(pool, [min(own, most) for own in RUNG_ROWS])
    sampled = ((0, min(LEARNING_ROWS if cells else LEARNING_ROWS_ALONE, most)),)
    in_cells = tuple(own.train for own in cells[:LEARNING_CELLS])
    learning = (sampled, in_cells) if cells else (sampled,)
    few = Part((0, min(final.n_training, FIRST_ROWS)), final.asked)
    first = Rung(few, cells[:FIRST_CELLS], (1,), 1)
    settling = [Part.leaving_out(*own.train, SETTLING_SHARE) for own in cells[:N_SETTLING]]
    dense = Rung(settling[0], tuple(settling[1:]), (2, 1), SETTLING_TRIALS) if settling else None
    last = Rung(final, cells, (1,), LAST_TRIALS)
    n_thick = min(FINAL_ROWS, 4 * pool // 5, most)
    thick = Rung(Part((0, n_thick), (n_thick, pool)))
    return RacePlan(rungs, first, last, drawn.runs, learning, thick, dense)


def expected_parts(n_sample: int, cell_rows: int, *, has_cells: bool) -> list[tuple[int, int]]:
    """Return the sizes of the last rung's parts, at most, before rows are drawn from a sample.

    >>> expected_parts(2000, 500, has_cells=True), expected_parts(50_000, 2000, has_cells=False)
    ([(1500, 0)], [(2000, 1500)])
    """
    drawn = draw_race_rows(n_sample, *race_rows(n_sample), 0)
    if has_cells and n_sample >= DENSE_FROM:
        rows = min(CELL_ROWS, cell_rows)
        train, asked = np.split(np.arange(rows), [rows - rows // HELD_SHARE])
        drawn = replace(drawn, cells=((train, asked),) * N_CELLS)
    return [part.sizes for part in plan_race(drawn, cell_rows).last.parts]


def _cell_parts(drawn: Drawn) -> tuple[Part, ...]:
    at, found = len(drawn.pool) + len(drawn.reserved), []
    for train, asked in drawn.cells:
        middle = at + len(train)
        found.append(Part((at, middle), (middle, middle + len(asked))))
        at = middle + len(asked)
    return tuple(found)


def _rungs(pool: int, sizes: Sequence[int]) -> tuple[Rung, ...]:
    """Return one rung for each size; the first descends by coarse steps only."""
    found = []
    for number, (size, most) in enumerate(zip(sizes, RUNG_ROWS, strict=False)):
        own = min(size, most)
        asked = own, min(pool, own + ASKED_ROWS)
        found.append(Rung(Part((0, own), asked), reaches=(2,) if number == 0 else (2, 1)))
    return tuple(found)


def draw_race_rows(
    n_sample: int, n_pool: int, n_reserved: int, seed: int, held: Mask | None = None
) -> Drawn:
    """Draw random rows; those in ``held`` are held out, by default those of `held_out`.

    >>> drawn = draw_race_rows(10, 4, 3, 0)
    >>> drawn.pool, drawn.reserved
    (array([4, 7, 1, 6]), array([9, 8]))
    """
    order = RACE.generator(seed, purpose=0).permutation(n_sample)
    if not n_reserved:
        return Drawn(order[:n_pool], order[:0])
    held = (held_out(n_sample, seed) if held is None else held)[order]
    return Drawn(order[~held][:n_pool], order[held][:n_reserved], (), rows_in_run(n_sample))


def held_out(n_rows: int, seed: int) -> Mask:
    """Return which rows are held out: one in `HELD_SHARE`, in runs, as in regions."""
    runs = np.arange(n_rows) // rows_in_run(n_rows)
    found: Mask = row_keys(runs, HELD_ROWS(seed)) % np.uint64(HELD_SHARE) == 0
    return found


def draw_cells_of(
    X: Float32, n_cells: int, cell_rows: int, seed: int, held: Mask | None = None
) -> tuple[tuple[Int64, Int64], ...]:
    """Return the rows of some cells, the same for all candidates, see `Drawn.cells`."""
    with one_blas_thread():
        _, cells = cut_rows(widest(X), cell_rows)
    held = held_out(len(X), seed) if held is None else held
    rng = RACE.generator(seed, purpose=1)
    drawn = [rng.permutation(cells[i]) for i in rng.permutation(len(cells))]
    own = [(cell[~held[cell]], cell[held[cell]]) for cell in drawn]
    # Cells with very few training rows, or with no held-out row, are of no use.
    own = [(train, asked) for train, asked in own if len(train) >= LEAST_ROWS and len(asked)]
    # Nor do tiny ones tell much: of a feature with many categories each may be a cell of its own.
    own.sort(key=lambda cell: sum(map(len, cell)) < MIN_SIDE * cell_rows)
    return tuple(own[:n_cells])


def most_mixed_first(
    cells: tuple[tuple[Int64, Int64], ...], targets: Targets, aim: Aim
) -> tuple[tuple[Int64, Int64], ...]:
    """A cell of one class says nothing about the width, and of a rare class most cells are such."""

    def variation(train: Int64) -> float:
        Y = aim.columns(targets[train]).astype(np.float64)
        return float((Y**2).sum() - (Y.sum(axis=0) ** 2).sum() / len(Y))

    return tuple(sorted(cells, key=lambda own: -variation(own[0])))


def token_of(drawn: Drawn, bases: Sequence[Base]) -> str:
    token: str = tokenize(drawn.rows, [base.scale for base in bases])
    return token


def write_race_rows(job: RaceJob, sample: Sample, drawn: Drawn, bases: Sequence[Base]) -> None:
    store, rows = open_store(job.root), drawn.rows
    for number, base in enumerate(bases):
        if store.exists(_key(job, number)):
            continue
        columns: dict[str, AnyArray] = {
            "X": scaled(sample.X[rows], base.scale),
            "codes": sample.targets[rows],
            "weights": sample.weights[rows],
        }
        write_artifact(job.root, _key(job, number), columns)


def read_race_rows(number: int, job: RaceJob) -> RaceRows:
    columns = read_arrays(job.root, _key(job, number))
    return RaceRows(columns["X"], columns["codes"], columns["weights"])


def _key(job: RaceJob, number: int) -> str:
    return f"{job.folder('rows')}/{number:06d}-{number:06d}.{job.token}"
