"""The exchange: rows regrouped by leaf on disk.

Stage 2 writes one file per block, its rows sorted by leaf within each partition. If blocks and
leaves are so many that reading every leaf from every block takes too many requests, the blocks are
merged once: each group of neighboring blocks becomes as many files, each with the group's rows in a
range of leaves, a *window*. The manifest, one file per window, then says where each leaf's rows
lie. Stage 3 reads a leaf as one range from every block, or from every group.

Within a leaf, rows are in the order of their global row numbers, whatever the blocks were.

Queries of very many rows travel the same way, and so do their answers: `Exchange.read_run`.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from daskls.errors import DamageError
from daskls.kernels.copies import find_copies
from daskls.records import (
    LEAVES_NBYTES,
    Codes,
    Float64,
    Int64,
    Ints,
    Reals,
    RowNumbers,
    Table,
    Targets,
)
from daskls.store.artifact import (
    LOCAL_OPENED_NBYTES,
    Artifact,
    open_artifact,
    read_arrays,
    streamed_artifact,
    write_artifact,
)
from daskls.store.caches import cached
from daskls.store.errors import GO_ON, damaged
from daskls.store.objects import BaseStore, Location, open_store

# Files of a bucket that are opened concurrently, as each request waits.
N_READERS = 8
# Bytes of records that are sorted at a time: the sorted copy of a block is never whole in memory.
SORTED_NBYTES = 1 << 20
# Opened files that a process keeps.
N_OPEN = 1024
# The artifact in the exchange's folder that holds the number of rows of each block.
GRID = "grid"
# The arrays of a file: its rows, sorted by leaf, and where each leaf begins, and the last one ends.
RECORDS, OFFSETS = "records", "offsets"
# The array of a manifest: the first row of a leaf in each file, and the one after its last.
ENTRIES = "entries"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in the form of the exchange.

    X has the data set's dtype; targets are class codes (m,) or numbers (m, t). `counts` are the
    rows that each stands for, None for 1 each; they are not stored.
    """

    X: Reals
    targets: Targets
    weights: Float64
    numbers: RowNumbers
    counts: Int64 | None = None

    @property
    def codes(self) -> Codes:
        """The targets as class codes, for fits of classes; the type alone does not say which."""
        return cast(Codes, self.targets)

    def take(self, rows: Int64) -> "Rows":
        columns = self.X[rows], self.targets[rows], self.weights[rows], self.numbers[rows]
        return Rows(*columns, None if self.counts is None else self.counts[rows])

    def merged(self) -> "Rows":
        """Copies, rows of equal features and targets, as one row: the first, of all weight."""
        copies = find_copies(self.X, self.targets)
        if copies is None:
            return self
        first, of_row = copies
        weights = np.bincount(of_row, self.weights).astype(np.float64)
        return replace(self.take(first), weights=weights, counts=np.bincount(of_row))

    @property
    def n_rows(self) -> int:
        """The number of rows, copies included."""
        return len(self.X) if self.counts is None else int(self.counts.sum())


def pack_rows(rows: Rows, order: Int64, record: np.dtype[Any]) -> Iterator[Table]:
    """Yield the records of rows in the given order, in pieces of `SORTED_NBYTES`."""
    step = max(SORTED_NBYTES // record.itemsize, 1)
    targets = rows.targets[:, None] if rows.targets.ndim == 1 else rows.targets
    for start in range(0, len(order), step):
        indices = order[start : start + step]
        piece = np.empty(len(indices), record)
        piece["X"], piece["targets"] = rows.X[indices], targets[indices]
        piece["weights"], piece["numbers"] = rows.weights[indices], rows.numbers[indices]
        yield piece


def unpack_rows(records: Table) -> Rows:
    names = records.dtype.names or ()
    X, targets, weights, numbers = (np.ascontiguousarray(records[name]) for name in names)
    # Class codes are one column, numbers may be several.
    return Rows(X, targets[:, 0] if targets.dtype.kind == "i" else targets, weights, numbers)


@dataclass(frozen=True)
class Exchange:
    """A handle on the exchange: its location and the shape of what it holds.

    Leaves are numbered through all partitions; each partition holds every row once. `group_blocks`
    blocks are merged into one group; 1: none are. `then` is as for `BaseStore`.
    """

    location: str
    n_blocks: int
    n_leaves: int
    n_features: int
    dtype: str
    n_partitions: int = 1
    target_dtype: str = "<i4"
    target_width: int = 1
    group_blocks: int = 1
    then: str = GO_ON

    @cached_property
    def _record(self) -> np.dtype[Any]:
        columns = [("X", self.dtype, (self.n_features,))]
        columns += [("targets", self.target_dtype, (self.target_width,))]
        return np.dtype([*columns, ("weights", "<f8"), ("numbers", "<i8")])

    @cached_property
    def _store(self) -> BaseStore:
        store = open_store(self.location.rpartition("/")[0])
        store.then = self.then
        return store

    @property
    def _folder(self) -> str:
        return self.location.rpartition("/")[2]

    def __getstate__(self) -> dict[str, Any]:
        # Without the opened store: the handle is sent to every task.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def is_merged(self) -> bool:
        return self.group_blocks > 1

    @property
    def n_groups(self) -> int:
        return -(-self.n_blocks // self.group_blocks)

    @property
    def n_windows(self) -> int:
        """The number of windows: a group's file of one is about as large as a block."""
        return min(self.group_blocks, self.n_leaves)

    def window(self, number: int) -> tuple[int, int]:
        """Return the first leaf of a window and that of the next one."""
        first, stop = (self.n_leaves * i // self.n_windows for i in (number, number + 1))
        return first, stop

    def _window_of(self, leaf: int) -> int:
        number = leaf * self.n_windows // self.n_leaves
        return number + (leaf >= self.window(number)[1])

    def create(self, grid: Iterable[int]) -> None:
        """Store the number of rows of each block, unless it is stored."""
        key = f"{self._folder}/{GRID}"
        write_artifact(self._store, key, {"rows": np.array([*grid], np.int64)})

    def delete(self) -> None:
        self._store.drop(self._folder)

    def nbytes(self) -> int:
        return self._store.nbytes(self._folder)

    def _block(self, block: int) -> str:
        return f"{self._folder}/block-{block:06d}"

    def _group(self, group: int, window: int) -> str:
        return f"{self._folder}/group-{group:06d}-{window:06d}"

    def _manifest(self, window: int) -> str:
        return f"{self._folder}/manifest-{window:06d}"

    # Blocks

    def find_block(self, block: int) -> int | None:
        """Return a finished block's checksum, or None; DamageError when it is damaged."""
        key = self._block(block)
        if not self._store.exists(key):
            return None
        return int(open_artifact(self._store, key).attrs["checksum"])

    def drop_block(self, block: int) -> None:
        """Remove a block, and what was made from it."""
        # Files made from the block go first, so that an interrupted removal leaves nothing
        # that was made from a missing block.
        self._store.drop(f"{self._folder}/manifest-*", strict=True)
        group = f"{self._folder}/group-{block // self.group_blocks:06d}-*"
        self._store.drop(group, self._block(block), strict=True)

    def count_blocks(self) -> int:
        return len(self._store.find(f"{self._folder}/block-*"))

    def write_block(
        self, block: int, rows: Rows, partitions: Iterable[Ints], identity: int
    ) -> None:
        """Write one block's rows sorted by leaf, partition by partition.

        Rows are in the order of their numbers. Partitions, each row's leaf (m,) in each, are taken
        one at a time, so that memory does not grow with their number. `identity` is the checksum of
        the values, whatever their order.
        """
        counts = np.zeros(self.n_leaves, np.int64)
        n_records = len(rows.X) * self.n_partitions
        with self._writing(self._block(block), n_records, self.n_leaves, identity) as file:
            for leaves in partitions:
                # Stable: within a leaf rows stay in the order of their numbers.
                order = np.argsort(leaves, kind="stable")
                counts += np.bincount(leaves, minlength=self.n_leaves)
                for piece in pack_rows(rows, order, self._record):
                    file.write(piece)
            file.write(np.r_[0, np.cumsum(counts)])

    def _writing(self, key: str, n_records: int, n_leaves: int, identity: int = 0) -> Any:
        shapes = {RECORDS: (self._record, (n_records,)), OFFSETS: (np.int64, (n_leaves + 1,))}
        return streamed_artifact(self._store, key, shapes, {"checksum": identity})

    # Groups

    def count_merged(self) -> int:
        return len(self._store.find(f"{self._folder}/group-*"))

    def merge(self, group: int, window: int) -> None:
        """Write the rows of a group of blocks in one window, sorted by leaf.

        One that exists is left alone; DamageError when a block is not intact. Peak memory: about
        twice the bytes of a block, and the largest run.
        """
        key, (first, stop) = self._group(group, window), self.window(window)
        if self._store.exists(key):
            return
        begin = group * self.group_blocks
        blocks = range(begin, min(begin + self.group_blocks, self.n_blocks))
        files = [open_artifact(self._store, self._block(block)) for block in blocks]
        offsets = self._read_offsets(files, self.n_leaves)
        counts = np.diff(offsets[:, first : stop + 1], axis=1).sum(axis=0)
        # Merge leaves of about a block's rows at a time; a block's file holds its rows once per
        # partition. A leaf with more rows is merged block by block.
        most = int(offsets[:, -1].max()) // self.n_partitions
        with self._writing(key, int(counts.sum()), stop - first) as out:
            for a, b in leaf_ranges(counts, most):
                for piece in _merge_leaves(files, offsets[:, first + a : first + b + 1]):
                    out.write(piece)
            out.write(np.r_[0, np.cumsum(counts)])

    # Leaves

    def _files(self, window: int) -> list[str]:
        if not self.is_merged:
            return [self._block(block) for block in range(self.n_blocks)]
        return [self._group(group, window) for group in range(self.n_groups)]

    def _open(self, keys: list[str]) -> list[Artifact]:
        """Return files, opened; the checksums of this process's last ones are kept."""
        where = self._store.where()
        if self._store.local() is not None:
            return [_open_file(where, key) for key in keys]
        with ThreadPoolExecutor(min(N_READERS, len(keys))) as pool:
            return list(pool.map(lambda key: _open_file(where, key), keys))

    def _read_offsets(self, files: list[Artifact], n_leaves: int) -> Int64:
        """Return where leaves begin, and the last one ends, in each file."""
        return np.stack([file.read(OFFSETS, shape=(n_leaves + 1,), kind="i") for file in files])

    def write_manifest(self, window: int = 0) -> Int64:
        """Write where a window's leaves lie, unless it is written; return the rows of each leaf.

        DamageError when a file's offsets are not what was written.
        """
        first, stop = self.window(window)
        keys = self._files(window)
        # It is removed with any of these files, so an intact manifest describes them.
        with suppress(DamageError):
            return self._leaf_rows(self._read_entries(window, slice(None)))
        offsets = self._read_offsets(self._open(keys), stop - first)
        entries = np.stack([offsets[:, :-1].T, offsets[:, 1:].T], axis=-1)
        write_artifact(self._store, self._manifest(window), {ENTRIES: entries}, replace=True)
        return self._leaf_rows(entries)

    @staticmethod
    def _leaf_rows(entries: Int64) -> Int64:
        leaf_rows: Int64 = (entries[..., 1] - entries[..., 0]).sum(axis=1)
        return leaf_rows

    def _read_entries(self, window: int, leaves: slice) -> Int64:
        """Return the ranges of some leaves of a window in its files, (leaves, files, 2)."""
        first, stop = self.window(window)
        shape = stop - first, len(self._files(window)), 2
        manifest = open_artifact(self._store, self._manifest(window))
        return manifest.read(ENTRIES, leaves, shape=shape, kind="i")

    def read_leaf(self, leaf: int) -> Rows:
        """Return all rows of a leaf in the order of their numbers, by one read per file."""
        return next(self.read_leaves(leaf, leaf))

    def read_leaves(self, first: int, last: int) -> Iterator[Rows]:
        """Yield all rows of each leaf from ``first`` to ``last``, in the order of their numbers.

        Neighboring leaves of up to `LEAVES_NBYTES` are read together, by one read per file.
        DamageError when a file is missing, or not what was written.
        """
        most = LEAVES_NBYTES // self._record.itemsize
        for window in range(self._window_of(first), self._window_of(last) + 1):
            begin, end = self.window(window)
            leaves = range(max(first, begin), min(last + 1, end))
            entries = self._read_entries(window, slice(leaves.start - begin, leaves.stop - begin))
            files = self._open(self._files(window))
            for a, b in leaf_ranges(self._leaf_rows(entries), most):
                if b - a == 1:
                    # No variable refers to the records while the caller uses the rows.
                    yield unpack_rows(self._read_together(files, entries[a:b])[0])
                    continue
                records, ends, n_rows = self._read_together(files, entries[a:b])
                for stops, sizes in zip(ends.T, n_rows.T, strict=True):
                    runs = zip(stops - sizes, stops, strict=True)
                    yield unpack_rows(np.concatenate([records[i:j] for i, j in runs]))

    def read_run(self, leaves: tuple[int, int], blocks: tuple[int, int]) -> Rows:
        """Return the rows of neighboring leaves in neighboring blocks, block by block, by leaf.

        Both are given as the first and the one after the last. No manifest is read.
        """
        files, ends = self._open([self._block(block) for block in range(*blocks)]), []
        for file in files:
            span = slice(leaves[0], leaves[1] + 1)
            offsets = file.read(OFFSETS, span, shape=(self.n_leaves + 1,), kind="i")
            ends.append(offsets[[0, -1]])
        return unpack_rows(self._read_together(files, np.stack(ends)[None])[0])

    def _read_together(self, files: list[Artifact], entries: Int64) -> tuple[Table, Int64, Int64]:
        """Return the records of neighboring leaves, sorted by file, then by leaf.

        Also where each leaf ends in each file's records, and its number of records, both (files,
        leaves).
        """
        counts: Int64 = (entries[..., 1] - entries[..., 0]).T
        ends: Int64 = np.cumsum(counts).reshape(counts.shape)
        records, at = np.empty(int(counts.sum()), self._record), 0
        for i in np.flatnonzero(counts.any(axis=1)).tolist():
            span = slice(int(entries[0, i, 0]), int(entries[-1, i, 1]))
            run = files[i].read(RECORDS, span)
            if run.dtype != self._record or len(run) != counts[i].sum():
                raise damaged(files[i].where(), "its rows are not those of the manifest")
            records[at : at + len(run)] = run
            at += len(run)
        return records, ends, counts


@cached(N_OPEN)
def _open_file(store: str, key: str) -> Artifact:
    """Return a file of the exchange; its name says what it holds, whoever wrote it."""
    return open_artifact(store, key, LOCAL_OPENED_NBYTES)


def stored_grids(location: Location) -> list[tuple[int, ...]]:
    """Return the rows of each block, for each exchange in a store: mostly there is one.

    The exchange of which the largest share is written comes first.
    """
    store, grids = open_store(location), []
    for key in store.find(f"exchange-*/{GRID}"):
        # An exchange with a damaged grid is written anew.
        with suppress(DamageError):
            grid = tuple(read_arrays(store, key, ["rows"])["rows"].tolist())
            n_done = len(store.find(f"{key.removesuffix(GRID)}block-*"))
            grids.append((n_done / max(len(grid), 1), grid))
    return [grid for _, grid in sorted(grids, key=lambda entry: entry[0], reverse=True)]


def _merge_leaves(files: list[Artifact], offsets: Int64) -> Iterator[Table]:
    """Yield the records of some leaves of several blocks, sorted by leaf, then by block.

    `offsets` (files, leaves + 1) are where the leaves begin, and the last one ends.
    """
    ranges = ((int(starts[0]), int(starts[-1])) for starts in offsets)
    runs = (file.read(RECORDS, slice(*bounds)) for file, bounds in zip(files, ranges, strict=True))
    n_leaves = offsets.shape[1] - 1
    if n_leaves == 1:
        # Already in order; and one leaf may have more rows than a block.
        yield from runs
        return
    leaves = np.concatenate([np.repeat(np.arange(n_leaves), np.diff(starts)) for starts in offsets])
    # Where each row goes. Stable: within a leaf, rows of earlier blocks, whose numbers are smaller,
    # come first.
    place = np.empty(len(leaves), np.int64)
    place[np.argsort(leaves, kind="stable")] = np.arange(len(leaves))
    records, at = np.empty(len(leaves), files[0].dtype_of(RECORDS)), 0
    for run in runs:
        records[place[at : at + len(run)]] = run
        at += len(run)
        # Not beside the next one.
        del run
    yield records


def leaf_ranges(counts: Int64, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of neighboring leaves with at most ``most`` rows, or of one larger leaf.

    >>> list(leaf_ranges(np.array([2, 1, 5, 1]), 3))
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.r_[0, np.cumsum(counts)]
    first = 0
    while first < len(counts):
        stop = int(np.searchsorted(ends, ends[first] + most, "right")) - 1
        stop = min(max(stop, first + 1), len(counts))
        yield first, stop
        first = stop
