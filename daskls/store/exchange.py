"""The exchange: rows regrouped by leaf on disk.

Stage 2 writes one file per block, its rows sorted by leaf within each partition. If blocks and
leaves are so many that reading every leaf from every block takes too many requests, the blocks are
merged once: each group of neighboring blocks becomes as many files, each with the group's rows in a
range of leaves, a *window*. The manifest, one file per window, then says where each leaf's rows
lie. Stage 3 reads a leaf as one range from every block, or from every group.

Within a leaf, rows are in the order of their global row numbers, whatever the blocks were.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from daskls.errors import DamageError
from daskls.records import LEAVES_NBYTES, Int64, Ints, Table
from daskls.store.artifacts import Location, open_store
from daskls.store.backend import Backend, Reader, Writer
from daskls.store.files import BAD_CHECKSUM, SUM_NBYTES, checksum, damaged, sum_as_bytes
from daskls.store.packs import read_pack, write_pack
from daskls.store.sorted_rows import (
    Marker,
    Rows,
    SortedRows,
    fill_run,
    leaf_ranges,
    pack_rows,
    record_of,
    unpack_rows,
)

# Markers read concurrently: no difference in a folder, but in a bucket each read waits.
N_READERS = 8
# The pack in the exchange's folder that holds the number of rows of each block.
GRID = "grid"
# An entry of the manifest: the range of a leaf's rows in one file, and their checksum.
ENTRY = np.dtype([("start", "<i8"), ("stop", "<i8"), ("sum", "<u4")])


@dataclass(frozen=True)
class Exchange:
    """A handle on the exchange: its location and the shape of what it holds.

    Leaves are numbered through all partitions; each partition holds every row once. `group_blocks`
    blocks are merged into one group; 1: none are.
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

    @cached_property
    def _record(self) -> np.dtype[Any]:
        return record_of(self.dtype, self.n_features, self.target_dtype, self.target_width)

    @cached_property
    def _store(self) -> Backend:
        return open_store(self.location.rpartition("/")[0])

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
        """Create the exchange's folder, and store the number of rows of each block."""
        self._store.make(self._folder)
        key = f"{self._folder}/{GRID}"
        if not self._store.exists(key):
            write_pack(self._store, key, {"rows": np.array([*grid], np.int64)})

    def delete(self) -> None:
        self._store.drop(self._folder)

    def nbytes(self) -> int:
        return self._store.nbytes(self._folder)

    def _block_file(self, block: int) -> SortedRows:
        key = f"{self._folder}/block-{block:06d}"
        return SortedRows(self._store, key, self._record, self.n_leaves)

    def _group_file(self, group: int, window: int) -> SortedRows:
        first, stop = self.window(window)
        key = f"{self._folder}/group-{group:06d}-{window:06d}"
        return SortedRows(self._store, key, self._record, stop - first)

    def _manifest(self, window: int) -> str:
        return f"{self._folder}/manifest-{window:06d}"

    # Blocks

    def find_block(self, block: int) -> int | None:
        """Return a finished block's checksum, or None; a block in a folder is read whole to check.

        DamageError when it is not what was written.
        """
        file = self._block_file(block)
        if not file.is_written:
            return None
        return self._verified_marker(file).identity

    def _verified_marker(self, file: SortedRows) -> Marker:
        """Return a file's marker; in a folder, all rows are read to check them.

        Over a network that would cost as much as writing them anew: the checksums are compared when
        leaves are read.
        """
        return file.check() if self._store.local() is not None else file.read_marker()

    def drop_block(self, block: int) -> None:
        """Remove a block, of all attempts, and what was made from it."""
        # What was made from the block goes first, so that an interrupted removal leaves nothing
        # that was made from a missing block.
        group = f"{self._folder}/group-{block // self.group_blocks:06d}-*"
        self._store.drop(f"{self._folder}/manifest-*", strict=True)
        self._store.drop(f"{group}.marker", strict=True)
        self._store.drop(group, strict=True)
        self._block_file(block).drop()

    def count_blocks(self) -> int:
        return len(self._store.find(f"{self._folder}/block-*.marker"))

    def write_block(
        self, block: int, rows: Rows, partitions: Iterable[Ints], identity: int
    ) -> None:
        """Write one block's rows sorted by leaf, partition by partition, then its marker.

        Rows are in the order of their numbers. Partitions, each row's leaf (m,) in each, are taken
        one at a time, so that memory does not grow with their number. `identity` is the checksum of
        the values, whatever their order.
        """

        def sections() -> Iterator[tuple[Int64, Iterator[Table]]]:
            for leaves in partitions:
                # Stable: within a leaf rows stay in the order of their numbers.
                order = np.argsort(leaves, kind="stable")
                counts = np.bincount(leaves, minlength=self.n_leaves)
                yield counts, pack_rows(rows, order, self._record)

        self._block_file(block).write(sections(), identity)

    # Groups

    def count_merged(self) -> int:
        return len(self._store.find(f"{self._folder}/group-*.marker"))

    def merge(self, group: int, window: int) -> None:
        """Write the rows of a group of blocks in one window, sorted by leaf.

        An intact file is left alone; DamageError when a block is not intact. Peak memory: about
        twice the bytes of a block, and the largest run.
        """
        file, (first, stop) = self._group_file(group, window), self.window(window)
        if file.is_written:
            self._verified_marker(file)
            return
        begin = group * self.group_blocks
        blocks = range(begin, min(begin + self.group_blocks, self.n_blocks))
        files = [self._block_file(block) for block in blocks]
        markers = self._read_markers(files)
        counts = sum(np.diff(marker.offsets[first : stop + 1]) for marker in markers)
        # Merge leaves of about a block's rows at a time; a block's file holds its rows once per
        # partition. A leaf with more rows is merged block by block.
        most = max(int(marker.offsets[-1]) for marker in markers) // self.n_partitions
        pieces = (
            piece
            for a, b in leaf_ranges(np.asarray(counts), most)
            for piece in _merge_leaves(files, markers, first + a, first + b)
        )
        file.write([(np.asarray(counts), pieces)])

    def drop_merged(self, group: int, window: int) -> bool:
        """Remove a group's file of a window, and the manifest that names it; False without one."""
        file = self._group_file(group, window)
        if not file.is_written:
            return False
        self._store.drop(self._manifest(window), strict=True)
        file.drop()
        return True

    @staticmethod
    def _read_markers(files: list[SortedRows]) -> list[Marker]:
        with ThreadPoolExecutor(min(N_READERS, len(files))) as pool:
            return list(pool.map(SortedRows.read_marker, files))

    # Leaves

    def _files(self, window: int) -> list[SortedRows]:
        if not self.is_merged:
            return [self._block_file(block) for block in range(self.n_blocks)]
        return [self._group_file(group, window) for group in range(self.n_groups)]

    def write_manifest(self, window: int = 0) -> Int64:
        """Write where a window's leaves lie, unless it is written; return the rows of each leaf.

        DamageError when a marker, or the size of a file, is not what was written.
        """
        files = self._files(window)
        # It is removed with any of these files, so an intact manifest describes them.
        with suppress(DamageError):
            return self._read_manifest(window, len(files))
        markers = self._read_markers(files)
        starts = np.array([marker.offsets for marker in markers])
        sums = np.array([marker.sums for marker in markers])
        # One record per leaf, so that a leaf's task reads only its own. The last record describes
        # the files: the attempt that wrote each, and its number of rows.
        last = np.zeros(len(files), ENTRY)
        last["start"], last["stop"] = [marker.attempt for marker in markers], starts[:, -1]
        first, stop = self.window(window)
        with self._store.stream(self._manifest(window)) as file:
            for leaf in range(stop - first):
                record = np.empty(len(files), ENTRY)
                record["start"], record["stop"] = starts[:, leaf], starts[:, leaf + 1]
                record["sum"] = sums[:, leaf]
                _write_entries(file, record, first + leaf)
            _write_entries(file, last, self.n_leaves + window)
        leaf_rows: Int64 = np.diff(starts, axis=1).sum(axis=0)
        return leaf_rows

    def _read_manifest(self, window: int, n_files: int) -> Int64:
        """Return the rows of each leaf of a window, from its manifest."""
        first, stop = self.window(window)
        with self._store.reading(self._manifest(window)) as reader:
            _read_entries(reader, stop - first, n_files, [self.n_leaves + window])
            entries = _read_entries(reader, 0, n_files, range(first, stop))
        leaf_rows: Int64 = (entries["stop"] - entries["start"]).sum(axis=1)
        return leaf_rows

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
            own = range(max(first, begin), min(last + 1, end))
            files = self._files(window)
            with self._store.reading(self._manifest(window)) as reader:
                entries = _read_entries(reader, own.start - begin, len(files), own)
                (written,) = _read_entries(
                    reader, end - begin, len(files), [self.n_leaves + window]
                )
            data = [file.data(int(at)) for file, at in zip(files, written["start"], strict=True)]
            counts = (entries["stop"] - entries["start"]).sum(axis=1)
            for a, b in leaf_ranges(counts, most):
                if b - a == 1:
                    # No variable refers to the records while the caller uses the rows.
                    yield unpack_rows(self._read_together(data, entries[a:b])[0])
                    continue
                records, ends, n_rows = self._read_together(data, entries[a:b])
                for stops, sizes in zip(ends.T, n_rows.T, strict=True):
                    runs = zip(stops - sizes, stops, strict=True)
                    yield unpack_rows(np.concatenate([records[i:j] for i, j in runs]))

    def _read_together(self, data: list[str], entries: Table) -> tuple[Table, Int64, Int64]:
        """Return the records of neighboring leaves, sorted by file, then by leaf.

        Also where each leaf ends in each file's records, and its number of records, both (files,
        leaves).
        """
        counts: Int64 = (entries["stop"] - entries["start"]).T
        ends: Int64 = np.cumsum(counts).reshape(counts.shape)
        records = np.empty(int(counts.sum()), self._record)
        for i in np.flatnonzero(counts.any(axis=1)).tolist():
            at = np.concatenate([[ends[i, 0] - counts[i, 0]], ends[i]])
            run, start = records[at[0] : at[-1]], int(entries["start"][0, i])
            fill_run(self._store, data[i], run, start, at - at[0], entries["sum"][:, i])
        return records, ends, counts


def stored_grids(location: Location) -> list[tuple[int, ...]]:
    """Return the rows of each block, for each exchange in a store: mostly there is one.

    The exchange of which the largest share is written comes first.
    """
    store, found = open_store(location), []
    for key in store.find(f"exchange-*/{GRID}"):
        # An exchange with a damaged grid is written anew.
        with suppress(DamageError):
            grid = tuple(read_pack(store, key, ["rows"])["rows"].tolist())
            n_done = len(store.find(f"{key.removesuffix(GRID)}block-*.marker"))
            found.append((n_done / max(len(grid), 1), grid))
    return [grid for _, grid in sorted(found, key=lambda own: own[0], reverse=True)]


def _merge_leaves(
    files: list[SortedRows], markers: list[Marker], first: int, stop: int
) -> Iterator[Table]:
    """Yield the records of some leaves of several blocks, sorted by leaf, then by block."""
    runs = (own.read(marker, first, stop) for own, marker in zip(files, markers, strict=True))
    if stop - first == 1:
        # Already in order; and one leaf may have more rows than a block.
        yield from runs
        return
    counts = [np.diff(marker.offsets[first : stop + 1]) for marker in markers]
    leaves = np.concatenate([np.repeat(np.arange(stop - first), own) for own in counts])
    # Where each row goes. Stable: within a leaf, rows of earlier blocks, whose numbers are smaller,
    # come first.
    place = np.empty(len(leaves), np.int64)
    place[np.argsort(leaves, kind="stable")] = np.arange(len(leaves))
    records, at = np.empty(len(leaves), files[0].record), 0
    for run in runs:
        records[place[at : at + len(run)]] = run
        at += len(run)
    yield records


def _write_entries(file: Writer, entries: Table, number: int) -> None:
    """Write a record of the manifest; its checksum covers its number, so none can move."""
    file.write(entries.data)
    file.write(sum_as_bytes(checksum(entries, number)))


def _read_entries(reader: Reader, place: int, n_files: int, numbers: Sequence[int]) -> Table:
    """Return neighboring records of a manifest from ``place`` on, (m, files).

    ``numbers`` are theirs, each covered by its record's checksum.
    """
    content = np.empty((len(numbers), n_files * ENTRY.itemsize + SUM_NBYTES), np.uint8)
    reader.fill(content, place * content.shape[1])
    entries = np.empty((len(numbers), n_files), ENTRY)
    for i, number in enumerate(numbers):
        entries[i] = content[i, :-SUM_NBYTES].view(ENTRY)
        if sum_as_bytes(checksum(entries[i], number)) != content[i, -SUM_NBYTES:].tobytes():
            raise damaged(reader.name, BAD_CHECKSUM)
    return entries
