"""Splits of rows: cells that train under trial, each with the rows that it predicts.

A random sample is one cell, and so is any part of space with all of its rows. The split sets of a
search follow from numbers of rows alone. Candidates first see a few thousand random rows of the
sample, stored in every coding; some are held out until the decision. Where the sample is all of the
data, all rows of some cells are added, as random rows alone are less dense; where it is not,
regions decide.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from dask.tokenize import tokenize

from daskls.blas import one_blas_thread
from daskls.kernels.frame import scaled
from daskls.partition.grow import MIN_SIDE
from daskls.partition.shuffle import row_keys
from daskls.records import SMALLEST, Float32, Float64, Int64, Mask, Targets
from daskls.run.sample import Sample
from daskls.scaling.cells import CodedRows, TrialRows
from daskls.scaling.coding import BaseCoding
from daskls.scaling.grid import tuning_cells
from daskls.scaling.regions import (
    HELD_SHARE,
    LEAST_ROWS,
    LEFT_OUT_SHARE,
    RegionJob,
    RegionSplit,
    cut_rows,
    draw_splits,
    rows_in_run,
    widest,
)
from daskls.scaling.regions import cells_of as cells_of_region
from daskls.seeds import HELD_ROWS, RACE
from daskls.solvers.squares.target_coding import TargetCoding
from daskls.store.artifact import read_arrays, write_artifact
from daskls.store.objects import open_store

# Rows that train in each rung, and rows that are predicted in it.
RUNG_ROWS, PREDICTED_ROWS = (250, 500, 1000), 1500
# By how many grid places the ridge moves there.
REACHES = (2,), (2, 1), (1,)
# With fewer rows than the first, each is left out in turn, of at most the second number; with fewer
# than the third there are no rungs before that.
LEFT_OUT_BELOW, LEFT_OUT_ROWS, LEAST_RUNG_ROWS = 3000, 1500, 400
# Random rows that decide; that train then, without cells and beside them; and that a scale is
# learned on without cells.
RESERVED_ROWS, FINAL_ROWS, ROWS_BESIDE_CELLS, LEARNING_ROWS = 1500, 1500, 1000, 800
# With at least this many rows, all of them sampled, cells join: their number, the most rows of one,
# and how many of them tune width and ridge, learn scales, and decide.
DENSE_FROM, N_CELLS, CELL_ROWS = 6000, 8, 1000
TUNING_CELLS, LEARNING_CELLS, DECIDING_CELLS = 2, 2, 4
# Cells of regions that learn; they and those that tune are a draw of their own. All held-out rows
# decide.
REGION_LEARNING_CELLS, TUNING_DRAW, LEARNING_DRAW = 12, 200, 100
# Most trials to tune a candidate in cells, and before the decision; else there is no limit.
TUNING_TRIALS, LAST_TRIALS, UNBOUNDED = 8, 4, 1 << 30


@dataclass(frozen=True)
class Split:
    """Random rows, or rows of a cell, that train, and rows to predict: (first, one past the last).

    Those that train, too, are predicted without themselves.
    """

    train: tuple[int, int]
    predicted: tuple[int, int]

    @classmethod
    def leaving_out(cls, first: int, last: int, share: float = 1.0) -> "Split":
        """Return a split that predicts a share of its training rows, each without itself."""
        return cls((first, last), (last - int(share * (last - first)), last))

    @property
    def leaves_out(self) -> bool:
        return self.train[0] <= self.predicted[0] and self.predicted[1] <= self.train[1]

    @property
    def n_training(self) -> int:
        return self.train[1] - self.train[0]

    @property
    def n_predicted(self) -> int:
        return self.predicted[1] - self.predicted[0]

    @property
    def sizes(self) -> tuple[int, int]:
        return self.n_training, 0 if self.leaves_out else self.n_predicted

    def of(self, rows: CodedRows) -> TrialRows:
        positions = np.arange(*self.train)
        if not self.leaves_out:
            positions = np.concatenate([positions, np.arange(*self.predicted)])
        return TrialRows(rows.take(positions), self.n_training, np.arange(self.n_predicted))


@dataclass(frozen=True)
class SplitSet:
    """Splits that train and predict, by how many grid places a trial moves, and the most trials.

    Random rows, if they come first, weigh as much as all cells together.
    """

    splits: tuple[Split | RegionSplit, ...]
    ridge_steps: tuple[int, ...] = (2, 1)
    most_trials: int = UNBOUNDED
    has_random: bool = False

    @property
    def once(self) -> "SplitSet":
        return replace(self, most_trials=1)

    def weights(self, parts: Sequence[Float64]) -> Float64:
        """Return the weights of predicted rows from those in each part."""
        if self.has_random and len(parts) > 1:
            cells = max(sum(float(w.sum()) for w in parts[1:]), SMALLEST)
            parts = [parts[0] / parts[0].sum(), *(w / cells for w in parts[1:])]
        return np.concatenate([np.empty(0), *parts])


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """The split sets of a search: `rungs` for many candidates, and those of the decision.

    Rows of `tuning` choose width and ridge, those of each split in `learning` a scale; `deciding`
    compares models on rows that nothing has seen. `final` tunes what was chosen, with as many rows
    as there are. They are `is_dense` where all are of cells that lie as densely as those of the
    model. As many rows train in `thick` as in `final`, and none that decides is predicted. Where
    rows are few (`leave_out`), `final` leaves out each in turn, and decides.
    """

    learning: tuple[Split | RegionSplit, ...]
    final: SplitSet
    deciding: SplitSet
    tuning: SplitSet | None = None
    rungs: tuple[SplitSet, ...] = ()
    thick: SplitSet | None = None
    is_dense: bool = False
    leave_out: bool = False


@dataclass(frozen=True, eq=False)
class SampledRows:
    """The rows of split sets, as positions in the sample.

    `pool` are random rows that are not held out, in a drawn order; `reserved` random ones that are.
    `cells` are training rows and held-out rows of some cells with all rows of their part of space.
    """

    pool: Int64
    reserved: Int64
    cells: tuple[tuple[Int64, Int64], ...] = ()

    @property
    def rows(self) -> Int64:
        return np.concatenate([self.pool, self.reserved, *(p for cell in self.cells for p in cell)])


@dataclass(frozen=True, eq=False)
class SampleJob:
    """The keys by which tasks read rows of the sample; ``token`` names them and their scales."""

    root: str
    aim: TargetCoding
    token: str = ""

    def folder(self, kind: str) -> str:
        return f"regions/{kind}-thin"

    def key(self, base: int) -> str:
        return f"{self.folder('rows')}/{base:06d}-{base:06d}.{self.token}"


Job = SampleJob | RegionJob


def read_cells(
    splits: Sequence[Split | RegionSplit], base: int, factors: Float64, job: Job
) -> Iterator[Iterator[TrialRows]]:
    """Yield the cells of each split: regions are cut in a scale, a sample is stored by base."""
    if isinstance(job, RegionJob):
        for split in splits:
            assert isinstance(split, RegionSplit)
            yield cells_of_region(split, factors, job)
        return
    columns = read_arrays(job.root, job.key(base))
    rows = CodedRows(*(columns[f.name] for f in fields(CodedRows)))
    for split in splits:
        assert isinstance(split, Split)
        yield iter([split.of(rows)])


def race_rows(n_rows: int) -> tuple[int, int]:
    """Return how many random rows of a sample the rungs use, and how many are reserved.

    >>> race_rows(1000), race_rows(100_000)
    ((1000, 0), (2500, 1500))
    """
    if n_rows < LEFT_OUT_BELOW:
        return min(n_rows, LEFT_OUT_ROWS), 0
    return RUNG_ROWS[-1] + PREDICTED_ROWS, RESERVED_ROWS


def plan_of_sample(drawn: SampledRows, cell_rows: int) -> SearchPlan:
    """Plan split sets of random rows and cells, whose models have at most ``cell_rows`` rows."""
    pool, reserved = len(drawn.pool), len(drawn.reserved)
    if not reserved:
        rungs = _rungs(pool, (pool // 4, pool // 2) if pool >= LEAST_RUNG_ROWS else ())
        every = SplitSet((Split.leaving_out(0, pool),))
        final = replace(every, most_trials=LAST_TRIALS if rungs else UNBOUNDED)
        return SearchPlan((), final, final, None, rungs, every, leave_out=True)
    most, cells = max(cell_rows, 2), _cell_splits(drawn)
    # Cells tell what more rows change, better than more random rows.
    n_final = min(pool, ROWS_BESIDE_CELLS if cells else FINAL_ROWS, most)
    held = pool, pool + reserved
    final = SplitSet((Split((0, n_final), held), *cells), (1,), LAST_TRIALS, has_random=True)
    few = Split((0, min(n_final, ROWS_BESIDE_CELLS)), held)
    deciding = SplitSet((few, *cells[:DECIDING_CELLS]), most_trials=1, has_random=True)
    tuned = tuple(Split.leaving_out(*split.train, LEFT_OUT_SHARE) for split in cells[:TUNING_CELLS])
    tuning = SplitSet(tuned, most_trials=TUNING_TRIALS) if cells else None
    learning = Split.leaving_out(0, min(LEARNING_ROWS, most)), *cells[:LEARNING_CELLS]
    n_thick = min(FINAL_ROWS, 4 * pool // 5, most)
    thick = SplitSet((Split((0, n_thick), (n_thick, pool)),))
    rungs = _rungs(pool, [min(n, most) for n in RUNG_ROWS])
    return SearchPlan(learning, final, deciding, tuning, rungs, thick)


def plan_of_regions(job: RegionJob, trial_rows: int, cell_rows: int) -> SearchPlan:
    """Plan splits of cells of ``trial_rows``, and one of cells as large as those of the model."""

    def tuning(rows: int) -> SplitSet:
        return SplitSet(draw_splits(job, tuning_cells(rows), rows, TUNING_DRAW))

    all_held = tuple(RegionSplit(region, trial_rows) for region in range(job.n_regions))
    return SearchPlan(
        draw_splits(job, REGION_LEARNING_CELLS, trial_rows, LEARNING_DRAW),
        tuning(cell_rows),
        SplitSet(all_held, most_trials=1),
        tuning(trial_rows),
        is_dense=True,
    )


def expected_splits(n_sample: int, cell_rows: int, *, has_cells: bool) -> list[tuple[int, int]]:
    """Return the sizes of the last splits, at most, before rows are drawn from a sample.

    >>> expected_splits(2000, 500, has_cells=True), expected_splits(50_000, 2000, has_cells=False)
    ([(1500, 0)], [(1500, 1500)])
    """
    drawn = draw_rows(n_sample, *race_rows(n_sample), 0)
    if has_cells and n_sample >= DENSE_FROM:
        rows = min(CELL_ROWS, cell_rows)
        train, predicted = np.split(np.arange(rows), [rows - rows // HELD_SHARE])
        drawn = replace(drawn, cells=((train, predicted),) * N_CELLS)
    return [p.sizes for p in plan_of_sample(drawn, cell_rows).final.splits if isinstance(p, Split)]


def _cell_splits(drawn: SampledRows) -> tuple[Split, ...]:
    at, splits = len(drawn.pool) + len(drawn.reserved), []
    for train, predicted in drawn.cells:
        middle = at + len(train)
        splits.append(Split((at, middle), (middle, middle + len(predicted))))
        at = middle + len(predicted)
    return tuple(splits)


def _rungs(pool: int, sizes: Sequence[int]) -> tuple[SplitSet, ...]:
    """Return one rung for each size; the first descends by coarse steps, the last by fine ones."""
    rungs = []
    for number, (size, most) in enumerate(zip(sizes, RUNG_ROWS, strict=False)):
        n = min(size, most)
        split = Split((0, n), (n, min(pool, n + PREDICTED_ROWS)))
        rungs.append(SplitSet((split,), REACHES[number]))
    return tuple(rungs)


def draw_rows(
    n_sample: int, n_pool: int, n_reserved: int, seed: int, held: Mask | None = None
) -> SampledRows:
    """Draw random rows; those in ``held`` are held out, by default those of `held_out`.

    >>> drawn = draw_rows(10, 4, 3, 0)
    >>> drawn.pool, drawn.reserved
    (array([4, 7, 1, 6]), array([9, 8]))
    """
    order = RACE.generator(seed, purpose=0).permutation(n_sample)
    if not n_reserved:
        return SampledRows(order[:n_pool], order[:0])
    held = (held_out(n_sample, seed) if held is None else held)[order]
    return SampledRows(order[~held][:n_pool], order[held][:n_reserved])


def held_out(n_rows: int, seed: int) -> Mask:
    """Return which rows are held out: one in `HELD_SHARE`, in runs, as in regions."""
    runs = np.arange(n_rows) // rows_in_run(n_rows)
    is_held: Mask = row_keys(runs, HELD_ROWS(seed)) % np.uint64(HELD_SHARE) == 0
    return is_held


def draw_cells(
    X: Float32, targets: Targets, cell_rows: int, seed: int, held: Mask, aim: TargetCoding
) -> tuple[tuple[Int64, Int64], ...]:
    """Return the rows of some cells, the same for all candidates, see `SampledRows.cells`."""
    rows = min(CELL_ROWS, cell_rows)
    with one_blas_thread():
        _, cells = cut_rows(widest(X), rows)
    rng = RACE.generator(seed, purpose=1)
    drawn = [rng.permutation(cells[i]) for i in rng.permutation(len(cells))]
    splits = [(cell[~held[cell]], cell[held[cell]]) for cell in drawn]
    # Cells with very few training rows, or with no held-out row, are of no use.
    splits = [(train, test) for train, test in splits if len(train) >= LEAST_ROWS and len(test)]
    # Nor do tiny ones tell much: of a feature with many categories each may be a cell of its own.
    splits.sort(key=lambda cell: sum(map(len, cell)) < MIN_SIDE * rows)
    return tuple(sorted(splits[:N_CELLS], key=lambda cell: -_variation(targets[cell[0]], aim)))


def _variation(targets: Targets, aim: TargetCoding) -> float:
    """A cell of one class says nothing about the width, and of a rare class most cells are such."""
    Y = aim.columns(targets).astype(np.float64)
    return float((Y**2).sum() - (Y.sum(axis=0) ** 2).sum() / len(Y))


def token_of(drawn: SampledRows, bases: Sequence[BaseCoding]) -> str:
    token: str = tokenize(drawn.rows, [base.scale for base in bases])
    return token


def write_rows(
    job: SampleJob, sample: Sample, drawn: SampledRows, bases: Sequence[BaseCoding]
) -> None:
    store, rows = open_store(job.root), drawn.rows
    for number, base in enumerate(bases):
        if store.exists(job.key(number)):
            continue
        columns = {
            "X": scaled(sample.X[rows], base.scale),
            "targets": sample.targets[rows],
            "weights": sample.weights[rows],
            "groups": rows // rows_in_run(len(sample.X)),
        }
        write_artifact(job.root, job.key(number), columns)
