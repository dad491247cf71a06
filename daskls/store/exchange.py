"""The exchange: rows regrouped by leaf on disk, in two stages.

Stage 2 writes one raw file a block: for each partition the block's rows sorted by leaf, section
after section (features, targets, weights, global row numbers). Then a small marker names the
file, by its attempt, and takes its offsets, a checksum of each leaf's run through all sections, and
one of the block's values. Stage 3 reads a bundle's run from every file by position, and compares
its sum. A task that is killed or runs twice does no harm: see `store/artifacts.py`. The manifest
holds the offsets and sums of all blocks, leaf by leaf, each leaf's sealed, and the attempts.

Within a leaf the rows are in the order of their global row numbers, regardless of the blocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from daskls.records import AnyArray, Codes, Float64, Int64, Ints, Reals, RowNumbers, Table, Targets
from daskls.store.artifacts import attempt_key, draw_attempt, open_store
from daskls.store.backend import Backend, Reader, Writer
from daskls.store.checksums import SUM_NBYTES, checksum, sum_as_bytes
from daskls.store.guard import NOT_WRITTEN, damaged
from daskls.store.packs import read_pack, write_pack

__all__ = ["Exchange", "Rows"]

# Checksums of runs of rows.
Sums = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as the exchange carries them.

    Attributes
    ----------
    X : array, shape (m, d), the data set's dtype
    targets : array. Class codes, int32 (m,), or numbers, float64 (m, t): see `daskls.targets`.
    weights : float64 array, shape (m,)
    numbers : int64 array, shape (m,). Global row numbers.
    """

    X: Reals
    targets: Targets
    weights: Float64
    numbers: RowNumbers

    @property
    def codes(self) -> Codes:
        """The targets of a fit of classes: no type tells its rows from those of numbers."""
        return cast(Codes, self.targets)

    def take(self, rows: Int64) -> "Rows":
        """Return the given rows, in the given order."""
        return Rows(self.X[rows], self.targets[rows], self.weights[rows], self.numbers[rows])


@dataclass(frozen=True)
class Exchange:
    """A handle on the exchange's folder: a path and the shape of what it holds.

    Leaves are numbered through all partitions, of which each holds every row once.
    """

    path: str
    n_blocks: int
    n_leaves: int
    n_features: int
    dtype: str
    n_partitions: int = 1
    target_dtype: str = "<i4"
    target_width: int = 1

    @property
    def _sections(self) -> list[tuple[str, int]]:
        """Dtype and values a row of each section of a block's file."""
        of_target = (self.target_dtype, self.target_width)
        return [(self.dtype, self.n_features), of_target, ("<f8", 1), ("<i8", 1)]

    @cached_property
    def _store(self) -> Backend:
        return open_store(self.path.rpartition("/")[0])

    @property
    def _folder(self) -> str:
        return self.path.rpartition("/")[2]

    def __getstate__(self) -> dict[str, Any]:
        # Without the opened store: the handle travels to every task.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def create(self) -> None:
        """Make the folder of the blocks."""
        self._store.make(self._folder)

    def delete(self) -> None:
        """Remove all that the exchange holds."""
        self._store.drop(self._folder)

    def nbytes(self) -> int:
        """Return the bytes on disk."""
        return self._store.nbytes(self._folder)

    def _data(self, block: int, attempt: int) -> str:
        return attempt_key(f"{self._folder}/block-{block:06d}.rows", attempt)

    def _marker(self, block: int) -> str:
        return f"{self._folder}/block-{block:06d}.marker"

    @property
    def _manifest(self) -> str:
        return f"{self._folder}/manifest"

    def find_block(self, block: int) -> int | None:
        """Return a finished block's checksum, or None; all of it is read.

        Raises
        ------
        DamageError : it is not what was written
        """
        marker = self._marker(block)
        if not self._store.exists(marker):
            return None
        self.check_block(block)
        return int(read_pack(self._store, marker, ["checksum"])["checksum"])

    def drop_block(self, block: int) -> None:
        """Remove a block, of all attempts, and the manifest that names it."""
        # The marker first: what is left if the removal is cut off is nobody's.
        data = f"{self._folder}/block-{block:06d}.*rows"
        for pattern in (self._marker(block), data, self._manifest):
            self._store.drop(pattern, strict=True)

    def count_blocks(self) -> int:
        """Return how many blocks are finished."""
        return len(self._store.find(f"{self._folder}/block-*.marker"))

    def write_block(
        self, block: int, rows: Rows, partitions: Iterable[Ints], identity: int
    ) -> None:
        """Write one block's rows sorted by leaf, partition by partition; then its marker.

        Parameters
        ----------
        block : int
        rows : Rows, in the order of their numbers
        partitions : iterable of int array, shape (m,). Each row's leaf in each partition; taken
            one at a time, so that memory does not grow with their number.
        identity : int in [0, 2^64). The checksum of the values, regardless of their order.
        """
        counts = np.zeros(self.n_leaves, np.int64)
        sums = np.zeros(self.n_leaves, np.uint32)
        columns = (rows.X, rows.targets, rows.weights, rows.numbers)
        attempt = draw_attempt()
        data = self._data(block, attempt)
        with self._store.stream(data) as file:
            for leaves in partitions:
                own = np.bincount(leaves, minlength=self.n_leaves)
                counts += own
                # Stable: within a leaf rows stay in the order of their numbers.
                order = np.argsort(leaves, kind="stable")
                for column, (dtype, _) in zip(columns, self._sections, strict=True):
                    # One column sorted at a time; raw, as packing saves 5 to 8 % for 1.7 times the
                    # CPU.
                    section = np.ascontiguousarray(column[order], dtype)
                    file.write(section.data)
                    _add_sums(sums, section, own)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        kept = {
            "offsets": offsets,
            "sums": sums,
            "checksum": np.array(identity, np.uint64),
            "attempt": np.array(attempt),
        }
        if not write_pack(self._store, self._marker(block), kept, lambda: self.read_marker(block)):
            # Another attempt was first, and its marker names its own data: nobody reads these.
            self._store.drop(data)

    def stack_manifest(self) -> Int64:
        """Write the offsets and sums of all blocks, leaf by leaf; return the rows of each leaf.

        Raises
        ------
        DamageError : a marker, or the size of a block's file, is not what was written
        """
        offsets = np.empty((self.n_blocks, self.n_leaves + 1), np.int64)
        sums = np.empty((self.n_blocks, self.n_leaves), np.uint32)
        # A record a leaf, so that a leaf's task reads its own only; then one of the blocks: the
        # attempt that holds each, and its size.
        blocks = np.zeros(self.n_blocks, self._record)
        for block in range(self.n_blocks):
            offsets[block], sums[block], blocks["start"][block] = self.read_marker(block)
        blocks["stop"] = offsets[:, -1]
        with self._store.stream(self._manifest) as file:
            for leaf in range(self.n_leaves):
                record = np.empty(self.n_blocks, self._record)
                record["start"], record["stop"] = offsets[:, leaf], offsets[:, leaf + 1]
                record["sum"] = sums[:, leaf]
                self._write_record(file, leaf, record)
            self._write_record(file, self.n_leaves, blocks)
        leaf_rows: Int64 = np.diff(offsets, axis=1).sum(axis=0)
        return leaf_rows

    @property
    def _record(self) -> np.dtype[Any]:
        """An entry of the manifest: the rows of a leaf in one block, and their sum."""
        return np.dtype([("start", "<i8"), ("stop", "<i8"), ("sum", "<u4")])

    def _write_record(self, file: Writer, number: int, record: Table) -> None:
        file.write(record.data)
        file.write(sum_as_bytes(checksum(record, number)))

    def _read_record(self, reader: Reader, number: int) -> Table:
        """Return a record of the manifest."""
        record, behind = np.empty(self.n_blocks, self._record), np.empty(SUM_NBYTES, np.uint8)
        at = number * (record.nbytes + SUM_NBYTES)
        reader.fill(record, at)
        reader.fill(behind, at + record.nbytes)
        if sum_as_bytes(checksum(record, number)) != behind.tobytes():
            raise damaged(reader.name, NOT_WRITTEN)
        return record

    def read_marker(self, block: int) -> tuple[Int64, Sums, int]:
        """Return offsets, sums and attempt of a finished block, whose file has the size they say.

        Raises
        ------
        DamageError : they are not what was written
        """
        marker = self._marker(block)
        found, where = read_pack(self._store, marker), self._store.where(marker)
        offsets, sums = found.get("offsets", np.empty(0)), found.get("sums", np.empty(0))
        rise = offsets.shape == (self.n_leaves + 1,) and sums.shape == (self.n_leaves,)
        if not rise or offsets[0] or (np.diff(offsets) < 0).any():
            raise damaged(where, "its offsets do not rise")
        n_rows, rest = divmod(int(offsets[-1]), self.n_partitions)
        if rest:
            raise damaged(where, f"{rest} rows are not in all partitions")
        # Markers of before name no attempt.
        attempt = int(found.get("attempt", 0))
        data = self._data(block, attempt)
        size, expected = self._store.size(data), n_rows * self.n_partitions * self._row_nbytes
        if size != expected:
            why = f"it has {size} bytes, and {expected} are expected"
            raise damaged(self._store.where(data), why)
        return offsets, sums, attempt

    @property
    def _row_nbytes(self) -> int:
        return sum(np.dtype(dtype).itemsize * width for dtype, width in self._sections)

    def check_block(self, block: int) -> None:
        """Read all of a finished block.

        Raises
        ------
        DamageError : it is not what was written
        """
        offsets, sums, attempt = self.read_marker(block)
        counts, n_rows = np.diff(offsets), int(offsets[-1]) // self.n_partitions
        data = self._data(block, attempt)
        for leaf in np.flatnonzero(counts).tolist():
            columns = self._empty(int(counts[leaf]))
            self._read_run(data, n_rows, int(offsets[leaf]), columns, int(sums[leaf]))

    def read_leaf(self, leaf: int) -> Rows:
        """Return all rows of a leaf, in the order of their numbers; read block by block.

        Raises
        ------
        DamageError : a file is missing, or not what was written
        """
        with self._store.reading(self._manifest) as reader:
            record, blocks = (self._read_record(reader, i) for i in (leaf, self.n_leaves))
        counts = record["stop"] - record["start"]
        columns = self._empty(int(counts.sum()))
        filled = 0
        for block in np.flatnonzero(counts).tolist():
            run = slice(filled, filled + int(counts[block]))
            self._read_run(
                self._data(block, int(blocks["start"][block])),
                int(blocks["stop"][block]) // self.n_partitions,
                int(record["start"][block]),
                [column[run] for column in columns],
                int(record["sum"][block]),
            )
            filled = run.stop
        X, targets, weights, numbers = columns
        # Codes are a column, numbers may be several.
        targets = targets[:, 0] if targets.dtype.kind == "i" else targets
        return Rows(X, targets, weights[:, 0], numbers[:, 0])

    def _empty(self, n_rows: int) -> list[AnyArray]:
        """Return columns to be filled with rows."""
        return [np.empty((n_rows, width), dtype) for dtype, width in self._sections]

    def _read_run(
        self, data: str, n_rows: int, start: int, columns: list[AnyArray], expected: int
    ) -> None:
        """Fill columns with one leaf's rows of one block, section by section.

        ``start`` counts the rows of all partitions, of which each has ``n_rows``; ``expected`` is
        the sum of the run.
        """
        own_sum = 0
        partition, start = divmod(start, n_rows)
        section = partition * n_rows * self._row_nbytes
        with self._store.reading(data) as reader:
            for column in columns:
                row_nbytes = column.strides[0]
                reader.fill(column, section + start * row_nbytes)
                own_sum = checksum(column, own_sum)
                section += n_rows * row_nbytes
        if own_sum != expected:
            raise damaged(reader.name, NOT_WRITTEN)


def _add_sums(sums: Sums, section: AnyArray, counts: Int64) -> None:
    """Go on with the sum of each leaf through one section, in which leaves follow each other."""
    raw = section.reshape(-1).view(np.uint8)
    row_nbytes = section.nbytes // max(len(section), 1)
    stop = 0
    for leaf in np.flatnonzero(counts).tolist():
        start, stop = stop, stop + int(counts[leaf]) * row_nbytes
        sums[leaf] = checksum(raw[start:stop], int(sums[leaf]))
