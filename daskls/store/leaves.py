"""The training rows of models that search among them, regrouped by leaf and by region.

``rows/<first>-<last>`` holds the rows of some leaves as flat arrays. A row's *position* counts
through all leaves. Leaves are read one at a time and kept in a cache of bounded size, one per
process.
"""

import threading
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from daskls.records import AnyArray, Float64, Int64, LeafRows, Regions, RowNumbers, Targets
from daskls.store.artifact import Artifact, open_artifact, write_artifact
from daskls.store.caches import SizedCache, cached, fork_safe
from daskls.store.choices import width_of
from daskls.store.errors import check_codes, check_counts, damaged
from daskls.store.exchange import Rows
from daskls.store.layout import Root, root_stamp
from daskls.store.models import bundle_key, finished_bundles
from daskls.store.objects import Location

ROWS_KIND = "rows"
INDEX = "leaves"
# Rows that a process caches between tasks and blocks: up to three bundles of gathered rows, since
# queries near the border of a leaf read its neighbors again and again. A task with less than four
# times as much memory caches a quarter of its own (run/regroup.py).
CACHE_NBYTES = 96 << 20


def stored_dtype(dtype: np.dtype[Any]) -> str:
    """Return the dtype that rows are stored in: a float that holds the data set's values.

    Searches compute with floats, and so take rows as they are stored.
    """
    if dtype.kind == "f":
        return "<f8" if dtype.itemsize > 4 else "<f4"
    return "<f4" if dtype.itemsize <= 2 else "<f8"


def pack(regions: Regions) -> Float64:
    radii = np.column_stack([regions.r_min, regions.r_max])
    return np.hstack([regions.centers, regions.low, regions.high, radii])


def unpack(packed: Float64) -> Regions:
    d = (packed.shape[1] - 2) // 3
    parts = np.split(packed, [d, 2 * d, 3 * d], axis=1)
    centers, low, high, radii = (np.ascontiguousarray(part) for part in parts)
    return Regions(centers, radii[:, 0].copy(), radii[:, 1].copy(), low, high)


def write_leaves(
    root: Location,
    first_leaf: int,
    leaves: Sequence[Rows],
    region_ptrs: Sequence[Int64],
    inner: Sequence[Regions],
    regions: Regions,
) -> None:
    """Write the rows of consecutive leaves, each sorted by region.

    `region_ptrs` are where each leaf's regions begin, and its rows end; `inner` are the regions
    inside each leaf, `regions` the leaves themselves.
    """
    arrays = {
        "X": np.concatenate([leaf.X for leaf in leaves]),
        "codes": np.concatenate([leaf.targets for leaf in leaves]),
        "weights": np.concatenate([leaf.weights for leaf in leaves]),
        "numbers": np.concatenate([leaf.numbers for leaf in leaves]),
        "leaf_rows": np.array([len(leaf.X) for leaf in leaves]),
        "n_regions": np.array([len(ptr) - 1 for ptr in region_ptrs]),
        "region_rows": np.concatenate([np.diff(ptr) for ptr in region_ptrs]),
        "regions": np.concatenate([pack(leaf) for leaf in inner]),
        "leaves": pack(regions),
    }
    key = bundle_key(first_leaf, first_leaf + len(leaves) - 1, ROWS_KIND)
    write_artifact(root, key, arrays)


def write_leaf_index(root: Root, bundles: list[tuple[int, int]]) -> None:
    """Gather the arrays of all leaves that a search needs before it reads any leaf."""
    parts = [open_leaf_part(root.store, *bundle) for bundle in bundles]
    arrays = {
        # Regions of leaves without rows have no bounds.
        name: np.concatenate([part.read(name, finite=False) for part in parts])
        for name in ("leaf_rows", "n_regions", "region_rows", "leaves", "regions")
    }
    arrays["bundles"] = np.array(bundles, np.int64)
    root.write(INDEX, arrays, {})


def open_leaf_part(root: Location, first: int, last: int) -> Artifact:
    return open_artifact(root, bundle_key(first, last, ROWS_KIND))


class LeafReader:
    """Reads a model's rows, leaf by leaf.

    `first_positions` has the position of each leaf's first row, and the number of rows last.
    """

    def __init__(self, root: Root, cache_nbytes: int = CACHE_NBYTES) -> None:
        index = root.part(INDEX, "its training rows")
        where, width = index.where(), 3 * width_of(root) + 2
        leaf_rows = index.read("leaf_rows", shape=(None,), kind="i")
        n_leaves = len(leaf_rows)
        n_regions = index.read("n_regions", shape=(n_leaves,), kind="i")
        self._region_rows = index.read("region_rows", shape=(None,), kind="i")
        self._bundles = [(int(a), int(b)) for a, b in index.read("bundles", shape=(None, 2))]
        starts, stops = zip(*self._bundles, (n_leaves, 0), strict=True)
        if starts != (0, *(last + 1 for last in stops[:-1])):
            raise damaged(where, "its bundles are not those of its leaves")
        self.store, self._target = root.store, root.target
        self.first_positions = check_counts(where, "leaf_rows", leaf_rows, root.n_rows)
        self._region_ptr = check_counts(where, "n_regions", n_regions, len(self._region_rows))
        by_region = check_counts(where, "region_rows", self._region_rows, root.n_rows)
        if not np.array_equal(by_region[self._region_ptr], self.first_positions):
            raise damaged(where, "the rows of cells do not add up to those of leaves")
        shape = len(self._region_rows), width
        self.regions = unpack(index.read("leaves", shape=(n_leaves, width), finite=False))
        self._inner_regions = unpack(index.read("regions", shape=shape, kind="f", finite=False))
        self._first_leaves = np.array([first for first, _ in self._bundles])
        self.cache = SizedCache(cache_nbytes)
        self._parts: dict[int, Artifact] = {}

    @property
    def n_rows(self) -> int:
        return int(self.first_positions[-1])

    @property
    def n_leaves(self) -> int:
        return len(self.regions.r_max)

    def check_bundles(self) -> None:
        missing = set(self._bundles) - set(finished_bundles(self.store, ROWS_KIND))
        if missing:
            where = self.store.where(bundle_key(*min(missing), ROWS_KIND))
            raise damaged(where, "it is missing")

    def leaf_of(self, positions: Int64) -> Int64:
        leaves: Int64 = np.searchsorted(self.first_positions, positions, side="right") - 1
        return leaves

    def read_leaf(self, leaf: int) -> LeafRows:
        rows: LeafRows | None = self.cache.get((leaf, "rows"))
        if rows is None:
            inner = slice(*self._region_ptr[leaf : leaf + 2])
            rows = LeafRows(
                self._column(leaf, "X"),
                self._column(leaf, "numbers"),
                np.r_[0, np.cumsum(self._region_rows[inner])],
                self._inner_regions.take(inner),
                int(self.first_positions[leaf]),
            )
            self.cache.put((leaf, "rows"), rows, rows.nbytes)
        return rows

    def _read_labels(self, leaf: int) -> tuple[Targets, Float64]:
        labels: tuple[Targets, Float64] | None = self.cache.get((leaf, "labels"))
        if labels is None:
            codes = self._column(leaf, "codes")
            if self._target.kind == "classes":
                # They index the votes.
                where = self.store.where(ROWS_KIND)
                check_codes(where, "codes", codes, self._target.n_classes)
            labels = codes, self._column(leaf, "weights")
            # Successive chunks of neighborhoods read the same leaves.
            self.cache.put((leaf, "labels"), labels, sum(column.nbytes for column in labels))
        return labels

    def _column(self, leaf: int, name: str, whole: bool = False) -> AnyArray:
        """Return one array for a leaf's rows, or with ``whole`` for all rows of its bundle."""
        first, last = self._bundles[int(np.searchsorted(self._first_leaves, leaf, "right")) - 1]
        if first not in self._parts:
            # Kept open: its description is needed for every read.
            self._parts[first] = open_leaf_part(self.store, first, last)
        begin, start, stop, end = self.first_positions[[first, leaf, leaf + 1, last + 1]].tolist()
        widths = {"X": (self.regions.low.shape[1],)}
        if self._target.kind == "numbers":
            widths["codes"] = (self._target.width,)
        rows = slice(None) if whole else slice(start - begin, stop - begin)
        return self._parts[first].read(name, rows, shape=(end - begin, *widths.get(name, ())))

    def read_numbers(self) -> RowNumbers:
        return np.concatenate([self._column(a, "numbers", whole=True) for a, _ in self._bundles])

    def read_positions(self, positions: Int64) -> Rows:
        """Return the rows at some positions, read leaf by leaf."""
        flat = positions.ravel()
        if not len(flat):
            raise ValueError("no positions to read")
        leaves = self.leaf_of(flat)
        order = np.argsort(leaves, kind="stable")
        touched, starts = np.unique(leaves[order], return_index=True)
        columns: list[AnyArray] = []
        for leaf, indices in zip(touched.tolist(), np.split(order, starts[1:]), strict=True):
            rows = self.read_leaf(leaf)
            sources = (rows.X, *self._read_labels(leaf), rows.numbers)
            if not columns:
                columns = [np.empty((len(flat), *c.shape[1:]), c.dtype) for c in sources]
            inside = flat[indices] - rows.first_position
            for column, source in zip(columns, sources, strict=True):
                column[indices] = source[inside]
        return Rows(*(column.reshape(*positions.shape, *column.shape[1:]) for column in columns))


_open_lock = fork_safe(threading.Lock())


def open_leaves(location: str, fingerprint: str, cache_nbytes: int = CACHE_NBYTES) -> LeafReader:
    """Return the reader of a model's rows, kept open for this process's next task."""
    # The threads of a process share one reader, and so one cache.
    with _open_lock:
        return _open_leaves(location, fingerprint, root_stamp(location), cache_nbytes)


@cached(1)
def _open_leaves(location: str, fingerprint: str, _: Hashable, cache_nbytes: int) -> LeafReader:
    return LeafReader(Root.open(location, fingerprint), cache_nbytes)
