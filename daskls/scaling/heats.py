"""The heats of a race: which rows train, which are answered, and how many trials a candidate has.

Arithmetic of numbers of rows: seconds, memory and workers decide nothing of what is looked at.

A few thousand random rows, coded in every way in question, which candidates race on.

They are rows of the sample, so that X is not read again for them. Some are held out and take no
part in any choice but the last; in runs of consecutive rows, `regions.HELD_SHARE` says why. Where
the sample is all of the data, all rows of some cells join them: random rows alone are less dense
than those that models are trained on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskls.kernels.frame import scaled
from daskls.partition.shuffle import row_keys
from daskls.records import SMALLEST, AnyArray, Float32, Float64, Int64, Mask, Targets
from daskls.run.blas import one_blas_thread
from daskls.run.sample import Sample
from daskls.scaling.coding import Base
from daskls.scaling.regions import HELD_SHARE, LEAST_ROWS, LEAST_RUNS, RUN_ROWS, cut_rows
from daskls.scaling.rounds import widest
from daskls.seeds import HELD_ROWS, RACE
from daskls.solvers.squares.aims import Aim
from daskls.store.artifacts import open_store
from daskls.store.packs import read_pack, write_pack


@dataclass(frozen=True, eq=False)
class ThinJob:
    """What tasks need to read the rows, and `Steps` to keep what they find.

    Attributes
    ----------
    root : str. The store.
    aim : Aim
    """

    root: str
    aim: Aim

    def folder(self, kind: str) -> str:
        """Return the key of a kind of parts."""
        return f"regions/{kind}-thin"


@dataclass(frozen=True, eq=False)
class ThinRows:
    """Rows in one coding, in the order of `Drawn.rows`.

    Attributes
    ----------
    X : float32 array, shape (n, d')
    targets : array. Class codes (n,), or numbers (n, t).
    weights : float64 array, shape (n,)
    """

    X: Float32
    targets: Targets
    weights: Float64

    def take(self, own: slice) -> "ThinRows":
        """Return some of the rows."""
        return ThinRows(self.X[own], self.targets[own], self.weights[own])


@dataclass(frozen=True, eq=False)
class Drawn:
    """The rows of a race, as positions in the sample.

    Attributes
    ----------
    pool : int64 array. Random rows, in a drawn order.
    reserved : int64 array. Random rows of those that are held out.
    cells : tuple of (int64 array, int64 array). Of some cells that hold all rows of their part of
        space, those that train, and those that are held out; none of a sample that is thin.
    run_rows : int. Consecutive rows that are held out together.
    """

    pool: Int64
    reserved: Int64
    cells: tuple[tuple[Int64, Int64], ...] = ()
    run_rows: int = 1

    @property
    def runs(self) -> Int64:
        """The run of each row that is held out, those of cells last: they may err together."""
        held = np.concatenate([self.reserved, *(asked for _, asked in self.cells)])
        _, runs = np.unique(held // self.run_rows, return_inverse=True)
        return runs

    @property
    def rows(self) -> Int64:
        """All of them, in the order that they are stored in."""
        return np.concatenate([self.pool, self.reserved, *(p for own in self.cells for p in own)])


def draw_thin(n_sample: int, n_pool: int, n_reserved: int, seed: int) -> Drawn:
    """Draw random rows, of which those that are held out come in runs.

    Examples
    --------
    >>> drawn = draw_thin(10, 4, 3, 0)
    >>> drawn.pool, drawn.reserved
    (array([4, 7, 1, 6]), array([9, 8]))
    """
    order = RACE.generator(seed, purpose=0).permutation(n_sample)
    if not n_reserved:
        return Drawn(order[:n_pool], order[:0])
    held = held_out(n_sample, seed)[order]
    return Drawn(order[~held][:n_pool], order[held][:n_reserved], (), _run_rows(n_sample))


def held_out(n_rows: int, seed: int) -> Mask:
    """Return which rows are held out: a fifth, in runs, as of regions."""
    runs = np.arange(n_rows) // _run_rows(n_rows)
    found: Mask = row_keys(runs, HELD_ROWS(seed)) % np.uint64(HELD_SHARE) == 0
    return found


def _run_rows(n_rows: int) -> int:
    return min(max(n_rows // LEAST_RUNS, 1), RUN_ROWS)


def draw_cells_of(
    X: Float32, n_cells: int, cell_rows: int, seed: int
) -> tuple[tuple[Int64, Int64], ...]:
    """Return some cells of all rows, see `Drawn`.

    Parameters
    ----------
    X : float32 array, shape (m, d). All rows, by their spread: the same cells for every candidate,
        as their errors are compared row by row.
    n_cells, cell_rows : int
    seed : int
    """
    with one_blas_thread():
        _, cells = cut_rows(widest(X), cell_rows)
    held = held_out(len(X), seed)
    order = RACE.generator(seed, purpose=1).permutation(len(cells))
    own = [(cell[~held[cell]], cell[held[cell]]) for cell in (cells[i] for i in order)]
    # Cells of hardly any rows, or with none to answer, tell nothing.
    own = [(train, asked) for train, asked in own if len(train) >= LEAST_ROWS and len(asked)]
    return tuple(own[:n_cells])


def _key(job: ThinJob, number: int) -> str:
    return f"{job.folder('rows')}/{number:06d}-{number:06d}"


def write_thin(job: ThinJob, sample: Sample, drawn: Drawn, bases: Sequence[Base]) -> None:
    """Store the drawn rows in each coding, unless they are stored already."""
    store, rows = open_store(job.root), drawn.rows
    for number, base in enumerate(bases):
        if store.exists(_key(job, number)):
            continue
        columns: dict[str, AnyArray] = {
            "X": scaled(sample.X[rows], base.scale),
            "codes": sample.targets[rows],
            "weights": sample.weights[rows],
        }
        write_pack(job.root, _key(job, number), columns)


def read_thin(number: int, job: ThinJob) -> ThinRows:
    """Return the rows in one coding."""
    columns = read_pack(job.root, _key(job, number))
    return ThinRows(columns["X"], columns["codes"], columns["weights"])


# Rows that train in the heats, and rows that are answered beside them.
HEAT_ROWS, ASKED_ROWS = (250, 500, 1000), 1500
# Of fewer rows each is left out, of so many at the most; of still fewer there are no heats before.
LEFT_OUT_BELOW, LEFT_OUT_ROWS, LEAST_HEAT_ROWS = 3000, 1500, 400
# Rows that train in the final, and random ones that decide it; and that a scale is learned on.
FINAL_ROWS, RESERVED_ROWS, LEARNING_ROWS = 2000, 1500, 1000
# Cells of all their rows, where the sample is all of the data and has so many: and the rows of one.
DENSE_FROM, N_CELLS, CELL_ROWS = 6000, 8, 1000
# Trials of one candidate in the last heat.
LAST_LOOKS, UNBOUNDED = 6, 1 << 30
COLUMNS = ("X", "targets", "weights")


@dataclass(frozen=True)
class Part:
    """Rows that train a model, and rows that it answers.

    Attributes
    ----------
    train, asked : (int, int). First, and one past the last. None are asked: each that trains is
        answered without itself.
    """

    train: tuple[int, int]
    asked: tuple[int, int] = (0, 0)

    @property
    def n_training(self) -> int:
        """The number of rows that train."""
        return self.train[1] - self.train[0]

    @property
    def n_asked(self) -> int:
        """The number of rows that are answered after a model of others."""
        return self.asked[1] - self.asked[0]

    def of(self, rows: ThinRows) -> ThinRows:
        """Return the rows that train, and after them those that are asked."""
        own = [rows.take(slice(*which)) for which in (self.train, self.asked)]
        return ThinRows(*(np.concatenate([getattr(o, n) for o in own]) for n in COLUMNS))


@dataclass(frozen=True)
class Heat:
    """One comparison of all that are left.

    Attributes
    ----------
    thin : Part. Of random rows.
    cells : tuple of Part. Of all rows of some cells; as a whole they count as much as ``thin``.
    reaches : tuple of int. See `look.climb`.
    most_looks : int. Of one candidate.
    """

    thin: Part
    cells: tuple[Part, ...] = ()
    reaches: tuple[int, ...] = (2, 1)
    most_looks: int = UNBOUNDED

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts."""
        return self.thin, *self.cells

    def weights(self, rows: ThinRows) -> Float64:
        """Return the weights of the rows that are answered, part by part."""
        own = [rows.weights[slice(*(p.asked if p.n_asked else p.train))] for p in self.parts]
        thin, cells = own[0], np.concatenate([np.empty(0), *own[1:]])
        return np.concatenate([thin / thin.sum(), cells / max(cells.sum(), SMALLEST)])


@dataclass(frozen=True, eq=False)
class RacePlan:
    """What is done with the rows of a race.

    Attributes
    ----------
    heats : tuple of Heat
    last : Heat. Of held-out rows, or of each row without itself.
    runs : int64 array, shape (q,). Of the rows that the last heat answers, where they are held out:
        see `Drawn.runs`.
    learning : tuple of tuples of (int, int). What scales are learned on, each on several ranges of
        rows together: random rows, and those of cells.
    """

    heats: tuple[Heat, ...]
    last: Heat
    runs: Int64
    learning: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def has_final(self) -> bool:
        """Whether rows that nothing has seen decide."""
        return self.last.thin.n_asked > 0


def race_rows(n_rows: int) -> tuple[int, int]:
    """Return how many random rows of a sample take part in heats, and how many in the final.

    >>> race_rows(1000), race_rows(100_000)
    ((1000, 0), (2500, 1500))
    """
    if n_rows < LEFT_OUT_BELOW:
        return min(n_rows, LEFT_OUT_ROWS), 0
    return HEAT_ROWS[-1] + ASKED_ROWS, RESERVED_ROWS


def plan_race(drawn: Drawn, cell_rows: int) -> RacePlan:
    """Plan a race.

    Parameters
    ----------
    drawn : Drawn
    cell_rows : int. Of a cell: no model is larger.
    """
    pool, reserved = len(drawn.pool), len(drawn.reserved)
    if not reserved:
        sizes = (pool // 4, pool // 2) if pool >= LEAST_HEAT_ROWS else ()
        heats = _heats(pool, sizes)
        last = Heat(Part((0, pool)), most_looks=LAST_LOOKS if heats else UNBOUNDED)
        return RacePlan(heats, last, drawn.runs, (((0, min(pool, LEARNING_ROWS)),),))
    most = max(cell_rows, 2)
    final = Part((0, min(pool, FINAL_ROWS, most)), (pool, pool + reserved))
    cells = _cell_parts(drawn)
    heats = _heats(pool, [min(own, most) for own in HEAT_ROWS])
    thin = ((0, min(LEARNING_ROWS, most)),)
    learning = (thin, tuple(own.train for own in cells)) if cells else (thin,)
    return RacePlan(heats, Heat(final, cells, (1,), LAST_LOOKS), drawn.runs, learning)


def _cell_parts(drawn: Drawn) -> tuple[Part, ...]:
    """Return the part of each cell that was drawn."""
    at, found = len(drawn.pool) + len(drawn.reserved), []
    for train, asked in drawn.cells:
        middle = at + len(train)
        found.append(Part((at, middle), (middle, middle + len(asked))))
        at = middle + len(asked)
    return tuple(found)


def _heats(pool: int, sizes: Sequence[int]) -> tuple[Heat, ...]:
    """Return a heat a size: by octaves and decades at first."""
    found = []
    for number, (size, most) in enumerate(zip(sizes, HEAT_ROWS, strict=False)):
        own = min(size, most)
        asked = own, min(pool, own + ASKED_ROWS)
        found.append(Heat(Part((0, own), asked), reaches=(2,) if number == 0 else (2, 1)))
    return tuple(found)
