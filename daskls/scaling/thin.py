"""A few thousand random rows, coded in every way in question, which candidates race on.

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
from daskls.records import AnyArray, Float32, Float64, Int64, Mask, Targets
from daskls.run.blas import one_blas_thread
from daskls.run.sample import Sample
from daskls.scaling.coding import Base
from daskls.scaling.held_out import widest
from daskls.scaling.regions import HELD_SHARE, LEAST_RUNS, RUN_ROWS
from daskls.scaling.trial import LEAST_ROWS, cut_rows
from daskls.seeds import HELD_ROWS, RACE
from daskls.solvers.squares.aims import Aim
from daskls.store.artifacts import open_store
from daskls.store.packs import read_pack, write_pack

__all__ = ["Drawn", "ThinJob", "ThinRows", "draw_cells_of", "draw_thin", "read_thin", "write_thin"]


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
