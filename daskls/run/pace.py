"""The pace of pieces of work: each is done once or twice on a worker, and timed there.

Rows are drawn anew, of the fit's width and classes: nothing of the data is read.

Pieces of work that methods share, timed: functions of (size, setting) that return seconds.

`daskls.plan.demand.Work` names them.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from daskls.partition.grow import grow_tree
from daskls.partition.space import Forest, grow_forest
from daskls.partition.tree import route_rows
from daskls.plan.demand import GROUP_BLOCKS, Paces, Work
from daskls.records import CellReport, Ints, Reals, SolverSpec, Table, Targets
from daskls.registry import load_object
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.compute import compute_each
from daskls.run.contract import Method
from daskls.run.labels import first_bad_value
from daskls.run.scan import block_checksum
from daskls.solvers.base import CellRows
from daskls.solvers.registry import find_solver
from daskls.store.artifacts import open_store
from daskls.store.backend import Backend
from daskls.store.files import checksum
from daskls.store.sorted_rows import Rows, pack_rows, record_of, unpack_rows
from daskls.store.temporary import temporary_path

# Sizes rise from the least to that of the fit, unless a piece takes enough seconds: by this factor
# while it takes next to none, else by two, as its time may go by the cube.
LEAST_SIZE, FACTOR, NEXT_TO_NONE_S, ENOUGH_S = 250, 4, 5e-3, 0.15
# The least of so many times, of what is short: others work beside it.
SHORT_S, N_TIMES = 0.05, 3
# Features that targets depend on, and the share of rows with another class.
MOST_USED, NOISE = 8, 0.1
# Of the rows that are timed: no fit draws from it.
TIMED_SEED = 0


@dataclass(frozen=True)
class Setting:
    """What pieces of work are timed on.

    Attributes
    ----------
    method : Method
    spec : SolverSpec. With what is expected to be chosen before space is cut.
    n_features : int
    dtype : str. Of features.
    n_classes : int. Classes, or the numbers of a row's target.
    n_leaves : int. Of one partition.
    cell_size : int
    leaf_rows : int
    n_asked : int. Rows of a cell whose held-out values are wanted.
    """

    method: Method
    spec: SolverSpec
    n_features: int
    dtype: str
    n_classes: int
    n_leaves: int
    cell_size: int
    leaf_rows: int
    n_asked: int = 0

    def draw(self, n_rows: int) -> tuple[Reals, Targets]:
        """Return rows, and what they are to be answered with: noisy functions of them."""
        return _drawn(self, n_rows)


@lru_cache(maxsize=2)
def _drawn(setting: Setting, n_rows: int) -> tuple[Reals, Targets]:
    rng = np.random.default_rng(TIMED_SEED)
    X = rng.standard_normal((n_rows, setting.n_features), np.float32)
    few = X[:, :MOST_USED]
    values = np.sin(2.0 * few) @ rng.standard_normal((few.shape[1], setting.n_classes))
    if setting.spec.target == "numbers":
        noisy = values + NOISE * rng.standard_normal(values.shape)
        return X.astype(setting.dtype), noisy / max(float(noisy.std()), NOISE)
    codes = values.argmax(axis=1)
    other = rng.random(n_rows) < NOISE
    codes[other] = rng.integers(setting.n_classes, size=int(other.sum()))
    return X.astype(setting.dtype), codes.astype(np.int32)


def measure_paces(
    works: Iterable[Work], setting: Setting, client: Any = None
) -> tuple[Paces, float]:
    """Time a piece of each kind of work on one worker.

    Parameters
    ----------
    works : iterable of Work
    setting : Setting
    client : distributed client, or None for the current scheduler

    Returns
    -------
    paces : Paces. Sizes and CPU seconds.
    busy : float, >= 1. Seconds that passed for each of the processor's: what other work beside it
        takes away.
    """
    largest: dict[str, int] = {}
    for work in works:
        largest[work.what] = max(largest.get(work.what, 1), work.size)
    ((paces, busy),) = compute_each(time_works, [(largest, setting)], client)
    return paces, busy


@undisturbed
def time_works(largest: dict[str, int], setting: Setting) -> tuple[Paces, float]:
    """Time a piece of each kind of work, up to the largest; and tell how busy the machine is."""
    passed, own = time.perf_counter(), time.thread_time()
    try:
        paces = {what: _timed(what, size, setting) for what, size in largest.items()}
    finally:
        _drawn.cache_clear()
    passed, own = time.perf_counter() - passed, time.thread_time() - own
    return paces, max(passed / max(own, SHORT_S), 1.0)


def _timed(what: str, largest: int, setting: Setting) -> list[tuple[int, float]]:
    time_piece = load_object(what)
    size = min(LEAST_SIZE, largest)
    # What is compiled or loaded first is no part of a piece.
    time_piece(size, setting)
    points: list[tuple[int, float]] = []
    while True:
        seconds = time_piece(size, setting)
        for _ in range(N_TIMES - 1 if seconds < SHORT_S else 0):
            seconds = min(seconds, time_piece(size, setting))
        points.append((size, seconds))
        if size == largest or seconds > ENOUGH_S:
            return points
        size = min((FACTOR if seconds < NEXT_TO_NONE_S else 2) * size, largest)


# Leaves that rows are routed to, at the most, and rows a leaf that their tree is grown on.
MOST_ROUTED, ROWS_A_LEAF = 512, 32
# Runs that are read, one after the other.
N_RUNS = 8
KEY = "timed"


def seconds_in(work: Callable[[], object]) -> float:
    """Return the seconds of this thread's processor that a call takes, on one thread of BLAS."""
    with one_blas_thread():
        began = time.thread_time()
        work()
        return time.thread_time() - began


def check_block(size: int, setting: Setting) -> float:
    """Time looking at a block's values, and identifying its rows."""
    X, targets = setting.draw(size)

    def work() -> None:
        first_bad_value(X)
        block_checksum(X, targets, np.ones(size), 0)

    return seconds_in(work)


def grow_trunk(size: int, setting: Setting) -> float:
    """Time growing a tree on a sample of so many rows."""
    X, _ = setting.draw(size)
    return seconds_in(lambda: _grown(X, setting.n_leaves))


@lru_cache(maxsize=1)
def _router(setting: Setting, n_leaves: int) -> Forest:
    """Return trees that rows are routed by: the same for blocks of every size."""
    return _grown(setting.draw(max(ROWS_A_LEAF * n_leaves, 2))[0], n_leaves)


def _grown(X: Reals, n_leaves: int) -> Forest:
    bound = max(-(-len(X) // n_leaves), 2)
    return grow_forest(X, bound, X.mean(axis=0, dtype=np.float64), 1, 0)


def regroup_block(size: int, setting: Setting) -> float:
    """Time identifying a block's rows, finding their leaves, sorting and writing them."""
    X, targets = setting.draw(size)
    forest = _router(setting, min(setting.n_leaves, MOST_ROUTED))
    numbers, weights = np.arange(size), np.ones(size)

    def work(store: Backend) -> None:
        block_checksum(X, targets, weights, 0)
        (leaves,) = forest.assign(X, numbers)
        _write(store, Rows(X, targets, weights, numbers), leaves, _record(setting))

    return _stored(lambda store: seconds_in(lambda: work(store)))


def _record(setting: Setting) -> np.dtype[Any]:
    is_number = setting.spec.target == "numbers"
    target = ("<f8", setting.n_classes) if is_number else ("<i4", 1)
    return record_of(setting.dtype, setting.n_features, *target)


def _write(store: Backend, rows: Rows, leaves: Ints, record: np.dtype[Any]) -> None:
    order = np.argsort(leaves, kind="stable")
    with store.stream(KEY) as file:
        for piece in pack_rows(rows, order, record):
            file.write(piece.data)
            checksum(piece)


def merge_rows(size: int, setting: Setting) -> float:
    """Time reading rows of several blocks, putting them in order, and writing them."""
    records = np.zeros(size, _record(setting))
    # As of 32 blocks whose leaves follow each other.
    place = np.argsort(np.arange(size) % GROUP_BLOCKS, kind="stable")

    def work(store: Backend) -> None:
        with store.reading(KEY) as reader:
            reader.fill(records, 0)
        merged = np.empty_like(records)
        merged[place] = records
        checksum(records)
        _write_whole(store, merged)

    def stored(store: Backend) -> float:
        _write_whole(store, records)
        return seconds_in(lambda: work(store))

    return _stored(stored)


def _write_whole(store: Backend, records: Table) -> None:
    with store.stream(KEY) as file:
        file.write(records.data)
        checksum(records)


def read_run(size: int, setting: Setting) -> float:
    """Time reading one run of so many rows."""
    records = np.zeros(size, _record(setting))

    def work(store: Backend) -> None:
        for _ in range(N_RUNS):
            with store.reading(KEY) as reader:
                reader.fill(records, 0)
            checksum(records)
            unpack_rows(records)

    def stored(store: Backend) -> float:
        _write_whole(store, records)
        return seconds_in(lambda: work(store)) / N_RUNS

    return _stored(stored)


def _stored(time_in: Callable[[Backend], float]) -> float:
    """Return what is timed in a store of its own, where Dask keeps temporary data."""
    path = temporary_path()
    store = open_store(path)
    store.make()
    try:
        return time_in(store)
    finally:
        store.drop("")


def cut_leaf(size: int, setting: Setting) -> float:
    """Time cutting a leaf of so many rows into cells, and sorting them."""
    X, _ = setting.draw(size)
    center = X.mean(axis=0, dtype=np.float64)

    def work() -> None:
        tree = grow_tree(X, setting.cell_size, center)
        cells = route_rows(tree, X)
        for cell in range(tree.n_leaves):
            X[np.flatnonzero(cells == cell)]

    return seconds_in(work)


def train_cell(size: int, setting: Setting) -> float:
    """Time training a cell by the spec's solver."""
    X, targets = setting.draw(size)
    asked = None
    if setting.n_asked:
        asked = np.linspace(0, size - 1, min(setting.n_asked, size)).astype(np.int64)
    cell = CellRows(X, targets, np.ones(size), CellReport(0, 0, size, 0, 0.0), (0,), asked)
    return seconds_in(lambda: list(find_solver(setting.spec).fit(iter([cell]), setting.spec)))
