"""Times pieces of work on a worker, for the expected seconds of a fit.

A piece of work is a function of (size, setting) that returns CPU seconds; `daskls.plan.demand.Work`
names it as "module:function". Those that methods share are here. They run on random rows with the
fit's number of features and classes; nothing of the data is read.
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

# Sizes rise from LEAST_SIZE to that of the fit, or until a piece takes ENOUGH_S: by FACTOR while a
# piece takes less than NEXT_TO_NONE_S, then by two, as its time may grow with the cube.
LEAST_SIZE, FACTOR, NEXT_TO_NONE_S, ENOUGH_S = 250, 4, 5e-3, 0.15
# A piece that takes less than SHORT_S is timed this often, and the least time counts, as other work
# may run beside it.
SHORT_S, N_TIMES = 0.05, 3
# Features that random targets depend on, and the share of rows whose class is random.
MOST_USED, NOISE = 8, 0.1
# The seed of the random rows; no fit draws from it.
TIMED_SEED = 0
# The most leaves that rows are routed to, and the rows per leaf that their tree is grown on.
MOST_ROUTED, ROWS_PER_LEAF = 512, 32
# How many runs of rows are read, one after the other, to time one.
N_RUNS = 8
KEY = "timed"


@dataclass(frozen=True)
class Setting:
    """The parameters and sizes that pieces of work are timed with.

    Attributes
    ----------
    method : Method
    spec : SolverSpec. With the expected choices of what is chosen before space is cut.
    n_features : int
    dtype : str. Of features.
    n_classes : int. Classes, or numbers per row in a regression.
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
        """Return random rows (m, d), and targets that are noisy functions of them."""
        return _drawn(self, n_rows)


@lru_cache(maxsize=2)
def _drawn(setting: Setting, n_rows: int) -> tuple[Reals, Targets]:
    """Draw the rows and targets; kept, as pieces of work of one size share them."""
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
    """Time a piece of each kind of work on one worker, up to the largest size of ``works``.

    Returns
    -------
    paces : Paces. Sizes and CPU seconds.
    busy : float, >= 1. Wall seconds per CPU second: how much other work slows the worker down.
    """
    largest: dict[str, int] = {}
    for work in works:
        largest[work.what] = max(largest.get(work.what, 1), work.size)
    ((paces, busy),) = compute_each(time_works, [(largest, setting)], client)
    return paces, busy


@undisturbed
def time_works(largest: dict[str, int], setting: Setting) -> tuple[Paces, float]:
    """Time a piece of each kind of work up to its largest size; see `measure_paces`."""
    passed, own = time.perf_counter(), time.thread_time()
    try:
        paces = {what: _timed(what, size, setting) for what, size in largest.items()}
    finally:
        _drawn.cache_clear()
    passed, own = time.perf_counter() - passed, time.thread_time() - own
    return paces, max(passed / max(own, SHORT_S), 1.0)


def _timed(what: str, largest: int, setting: Setting) -> list[tuple[int, float]]:
    """Return the sizes at which one kind of work was timed, and the seconds of each."""
    time_piece = load_object(what)
    size = min(LEAST_SIZE, largest)
    # Once without timing: code that the first call compiles or loads does not count.
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


def seconds_in(work: Callable[[], object]) -> float:
    """Return the CPU seconds that a call takes in this thread, with one BLAS thread."""
    with one_blas_thread():
        began = time.thread_time()
        work()
        return time.thread_time() - began


def check_block(size: int, setting: Setting) -> float:
    """Time the validation and the checksum of a block."""
    X, targets = setting.draw(size)

    def work() -> None:
        first_bad_value(X)
        block_checksum(X, targets, np.ones(size), 0)

    return seconds_in(work)


def grow_trunk(size: int, setting: Setting) -> float:
    """Time growing a tree on a sample."""
    X, _ = setting.draw(size)
    return seconds_in(lambda: _grown(X, setting.n_leaves))


def regroup_block(size: int, setting: Setting) -> float:
    """Time the checksum of a block, finding the leaves of its rows, sorting and writing them."""
    X, targets = setting.draw(size)
    forest = _router(setting, min(setting.n_leaves, MOST_ROUTED))
    numbers, weights = np.arange(size), np.ones(size)

    def work(store: Backend) -> None:
        block_checksum(X, targets, weights, 0)
        (leaves,) = forest.assign(X, numbers)
        _write(store, Rows(X, targets, weights, numbers), leaves, _record(setting))

    return _stored(lambda store: seconds_in(lambda: work(store)))


def merge_rows(size: int, setting: Setting) -> float:
    """Time reading the rows of several blocks, putting them in order, and writing them."""
    records = np.zeros(size, _record(setting))
    # As if the leaves of GROUP_BLOCKS blocks were interleaved.
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


def read_run(size: int, setting: Setting) -> float:
    """Time reading one run of rows."""
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


def cut_leaf(size: int, setting: Setting) -> float:
    """Time cutting a leaf into cells, and sorting its rows by cell."""
    X, _ = setting.draw(size)
    center = X.mean(axis=0, dtype=np.float64)

    def work() -> None:
        tree = grow_tree(X, setting.cell_size, center)
        cells = route_rows(tree, X)
        for cell in range(tree.n_leaves):
            X[np.flatnonzero(cells == cell)]

    return seconds_in(work)


def train_cell(size: int, setting: Setting) -> float:
    """Time training a cell with the solver of the spec."""
    X, targets = setting.draw(size)
    asked = None
    if setting.n_asked:
        asked = np.linspace(0, size - 1, min(setting.n_asked, size)).astype(np.int64)
    cell = CellRows(X, targets, np.ones(size), CellReport(0, 0, size, 0, 0.0), (0,), asked)
    return seconds_in(lambda: list(find_solver(setting.spec).fit(iter([cell]), setting.spec)))


@lru_cache(maxsize=1)
def _router(setting: Setting, n_leaves: int) -> Forest:
    """Return the trees that route rows; kept, as blocks of all sizes share them."""
    return _grown(setting.draw(max(ROWS_PER_LEAF * n_leaves, 2))[0], n_leaves)


def _grown(X: Reals, n_leaves: int) -> Forest:
    """Return a tree of about ``n_leaves`` leaves, grown on some rows."""
    bound = max(-(-len(X) // n_leaves), 2)
    return grow_forest(X, bound, X.mean(axis=0, dtype=np.float64), 1, 0)


def _record(setting: Setting) -> np.dtype[Any]:
    """Return the dtype of a row in the exchange."""
    is_number = setting.spec.target == "numbers"
    target = ("<f8", setting.n_classes) if is_number else ("<i4", 1)
    return record_of(setting.dtype, setting.n_features, *target)


def _write(store: Backend, rows: Rows, leaves: Ints, record: np.dtype[Any]) -> None:
    """Write rows in the order of their leaves, with checksums."""
    order = np.argsort(leaves, kind="stable")
    with store.stream(KEY) as file:
        for piece in pack_rows(rows, order, record):
            file.write(piece.data)
            checksum(piece)


def _write_whole(store: Backend, records: Table) -> None:
    """Write records in one piece, with their checksum."""
    with store.stream(KEY) as file:
        file.write(records.data)
        checksum(records)


def _stored(time_in: Callable[[Backend], float]) -> float:
    """Return the seconds of work in a new store, where Dask keeps temporary data; remove it."""
    path = temporary_path()
    store = open_store(path)
    store.make()
    try:
        return time_in(store)
    finally:
        store.drop("")
