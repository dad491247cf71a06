"""Pieces of work that methods share, timed: functions of (size, setting) that return seconds.

`daskls.plan.demand.Work` names them.
"""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from daskls.partition.forest import Forest, grow_forest
from daskls.partition.grow import grow_tree
from daskls.partition.tree import route_rows
from daskls.plan.exchange import GROUP_BLOCKS
from daskls.records import CellReport, Ints, Reals, Table
from daskls.run.blas import one_blas_thread
from daskls.run.pace import Setting
from daskls.run.scan import block_checksum
from daskls.run.values import first_bad_value
from daskls.solvers.base import CellRows
from daskls.solvers.registry import find_solver
from daskls.store.artifacts import open_store
from daskls.store.backend import Backend
from daskls.store.checksums import checksum
from daskls.store.sorted_rows import Rows, pack_rows, record_of, unpack_rows
from daskls.store.temporary import temporary_path

__all__ = [
    "check_block",
    "cut_leaf",
    "grow_trunk",
    "merge_rows",
    "read_run",
    "regroup_block",
    "seconds_in",
    "train_cell",
]

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
