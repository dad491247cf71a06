"""The exchange: rows regrouped by leaf on disk, in two stages.

Stage 2 writes one raw file a block: for each partition the block's rows sorted by leaf, section
after section (features, class codes, weights, global row numbers). Then a small marker takes the
file's offsets, a checksum of each leaf's run through all sections, and one of the block's values.
Stage 3 reads a bundle's run from every file by position, and compares its sum. One task writes each
file, the marker comes last, both by atomic rename: a task that is killed or runs twice does no
harm. The manifest holds the offsets and sums of all blocks, leaf by leaf, each leaf's sealed.

Within a leaf the rows stand in the order of their global row numbers, whatever the blocks were.
"""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from daskls.records import FloatArray, IntArray
from daskls.store.checksums import SUM_NBYTES, checksum, sum_as_bytes
from daskls.store.files import disk_errors, make_folders, replace_file
from daskls.store.guard import check_inside, damaged, find_size, open_file, read_into
from daskls.store.packs import read_pack, write_pack

__all__ = ["Exchange", "Rows"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as the exchange carries them.

    Attributes
    ----------
    X : array, shape (m, d), the data set's dtype
    codes : int32 array, shape (m,)
    weights : float64 array, shape (m,)
    numbers : int64 array, shape (m,). Global row numbers.
    """

    X: FloatArray
    codes: IntArray
    weights: FloatArray
    numbers: IntArray

    def take(self, rows: IntArray) -> "Rows":
        """Return the given rows, in the given order."""
        return Rows(self.X[rows], self.codes[rows], self.weights[rows], self.numbers[rows])


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

    @property
    def _sections(self) -> list[tuple[str, int]]:
        """Dtype and values a row of each section of a block's file."""
        return [(self.dtype, self.n_features), ("<i4", 1), ("<f8", 1), ("<i8", 1)]

    def create(self) -> None:
        """Make the folder."""
        folder = Path(self.path)
        make_folders(folder.parent, folder)

    def delete(self) -> None:
        """Remove the folder and all it holds."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _file(self, block: int) -> Path:
        return Path(self.path) / f"block-{block:06d}.rows"

    @property
    def _root(self) -> Path:
        return Path(self.path).parent

    def _marker(self, block: int) -> str:
        return f"{Path(self.path).name}/block-{block:06d}.marker"

    @property
    def _manifest(self) -> Path:
        return Path(self.path) / "manifest"

    def find_block(self, block: int) -> int | None:
        """Return a finished block's checksum, or None; all of it is read.

        Raises
        ------
        DamageError : it is not what was written
        """
        marker = self._marker(block)
        if not os.path.lexists(self._root / marker):
            return None
        self.check_block(block)
        return int(read_pack(self._root, marker, ["checksum"])["checksum"])

    def drop_block(self, block: int) -> None:
        """Remove a block, and the manifest that names it."""
        for path in (self._root / self._marker(block), self._file(block), self._manifest):
            with disk_errors(path):
                path.unlink(missing_ok=True)

    def count_blocks(self) -> int:
        """Return how many blocks are finished."""
        return len(list(Path(self.path).glob("block-*.marker")))

    def write_block(
        self, block: int, rows: Rows, partitions: Iterable[IntArray], identity: int
    ) -> None:
        """Write one block's rows sorted by leaf, partition by partition; then its marker.

        Parameters
        ----------
        block : int
        rows : Rows, in the order of their numbers
        partitions : iterable of int array, shape (m,). Each row's leaf in each partition; taken
            one at a time, so that memory does not grow with their number.
        identity : int in [0, 2^64). The checksum of the values, whatever their order.
        """
        counts = np.zeros(self.n_leaves, np.int64)
        sums = np.zeros(self.n_leaves, np.uint32)
        columns = (rows.X, rows.codes, rows.weights, rows.numbers)
        with replace_file(self._file(block)) as temporary, temporary.open("wb") as file:
            for leaves in partitions:
                own = np.bincount(leaves, minlength=self.n_leaves)
                counts += own
                order = np.argsort(leaves, kind="stable")
                for column, (dtype, _) in zip(columns, self._sections, strict=True):
                    section = np.ascontiguousarray(column[order], dtype)
                    file.write(section.data)
                    _add_sums(sums, section, own)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        kept = {"offsets": offsets, "sums": sums, "checksum": np.array(identity, np.uint64)}
        write_pack(self._root, self._marker(block), kept)

    def stack_manifest(self) -> IntArray:
        """Write the offsets and sums of all blocks, leaf by leaf; return the rows of each leaf.

        Raises
        ------
        DamageError : a marker, or the size of a block's file, is not what was written
        """
        offsets = np.empty((self.n_blocks, self.n_leaves + 1), np.int64)
        sums = np.empty((self.n_blocks, self.n_leaves), np.uint32)
        for block in range(self.n_blocks):
            offsets[block], sums[block] = self.read_marker(block)
        # A record a leaf, so that a leaf's task reads its own only; then the sizes of the blocks.
        sizes = np.zeros(self.n_blocks, self._record)
        sizes["stop"] = offsets[:, -1]
        with replace_file(self._manifest) as temporary, temporary.open("wb") as file:
            for leaf in range(self.n_leaves):
                record = np.empty(self.n_blocks, self._record)
                record["start"], record["stop"] = offsets[:, leaf], offsets[:, leaf + 1]
                record["sum"] = sums[:, leaf]
                self._write_record(file, leaf, record)
            self._write_record(file, self.n_leaves, sizes)
        leaf_rows: IntArray = np.diff(offsets, axis=1).sum(axis=0)
        return leaf_rows

    @property
    def _record(self) -> np.dtype[Any]:
        """What the manifest says of a leaf in one block: its rows, and their sum."""
        return np.dtype([("start", "<i8"), ("stop", "<i8"), ("sum", "<u4")])

    def _write_record(self, file: BinaryIO, number: int, record: FloatArray) -> None:
        file.write(record.data)
        file.write(sum_as_bytes(checksum(record, number)))

    def _read_record(self, file: FileIO, number: int) -> FloatArray:
        """Return a record of the manifest."""
        record, behind = np.empty(self.n_blocks, self._record), np.empty(SUM_NBYTES, np.uint8)
        file.seek(number * (record.nbytes + SUM_NBYTES))
        read_into(file, self._manifest, record)
        read_into(file, self._manifest, behind)
        if sum_as_bytes(checksum(record, number)) != behind.tobytes():
            raise damaged(self._manifest, "its checksum is not that of what was written")
        return record

    def read_marker(self, block: int) -> tuple[IntArray, IntArray]:
        """Return offsets and sums of a finished block, whose file has the size that they say.

        Raises
        ------
        DamageError : they are not what was written
        """
        marker = self._marker(block)
        found = read_pack(self._root, marker, ["offsets", "sums"])
        offsets, sums = found["offsets"], found["sums"]
        rise = offsets.shape == (self.n_leaves + 1,) and sums.shape == (self.n_leaves,)
        if not rise or offsets[0] or (np.diff(offsets) < 0).any():
            raise damaged(self._root / marker, "its offsets do not rise")
        n_rows, rest = divmod(int(offsets[-1]), self.n_partitions)
        if rest:
            raise damaged(self._root / marker, f"{rest} rows are not in all partitions")
        check_inside(self._file(block), self._root)
        size = find_size(self._file(block), self._root)
        expected = n_rows * self.n_partitions * self._row_nbytes
        if size != expected:
            raise damaged(self._file(block), f"it has {size} bytes, and {expected} are expected")
        return offsets, sums

    @property
    def _row_nbytes(self) -> int:
        return sum(np.dtype(dtype).itemsize * width for dtype, width in self._sections)

    def check_block(self, block: int) -> None:
        """Read all of a finished block.

        Raises
        ------
        DamageError : it is not what was written
        """
        offsets, sums = self.read_marker(block)
        counts, n_rows = np.diff(offsets), int(offsets[-1]) // self.n_partitions
        for leaf in np.flatnonzero(counts).tolist():
            columns = self._empty(int(counts[leaf]))
            self._read_run(block, n_rows, int(offsets[leaf]), columns, slice(None), int(sums[leaf]))

    def read_leaf(self, leaf: int) -> Rows:
        """Return all rows of a leaf, in the order of their numbers; read block by block.

        Raises
        ------
        DamageError : a file is missing, or not what was written
        """
        check_inside(self._manifest, self._root)
        with open_file(self._manifest, self._root) as file:
            record, sizes = (self._read_record(file, i) for i in (leaf, self.n_leaves))
        counts = record["stop"] - record["start"]
        columns = self._empty(int(counts.sum()))
        filled = 0
        for block in np.flatnonzero(counts).tolist():
            places = slice(filled, filled + int(counts[block]))
            n_rows = int(sizes["stop"][block]) // self.n_partitions
            start, own_sum = int(record["start"][block]), int(record["sum"][block])
            self._read_run(block, n_rows, start, columns, places, own_sum)
            filled = places.stop
        X, codes, weights, numbers = columns
        return Rows(X, codes[:, 0], weights[:, 0], numbers[:, 0])

    def _empty(self, n_rows: int) -> list[FloatArray]:
        """Return columns to be filled with rows."""
        return [np.empty((n_rows, width), dtype) for dtype, width in self._sections]

    def _read_run(
        self,
        block: int,
        n_rows: int,
        start: int,
        columns: list[FloatArray],
        places: slice,
        expected: int,
    ) -> None:
        """Read one leaf's rows of one block into their places, section by section.

        ``start`` counts the rows of all partitions, of which each has ``n_rows``; ``expected`` is
        the sum of the run.
        """
        path, own_sum = self._file(block), 0
        partition, start = divmod(start, n_rows)
        section = partition * n_rows * self._row_nbytes
        with open_file(path, self._root) as file:
            for column in columns:
                row_nbytes = column.strides[0]
                file.seek(section + start * row_nbytes)
                run = column[places]
                read_into(file, path, run)
                own_sum = checksum(run, own_sum)
                section += n_rows * row_nbytes
        if own_sum != expected:
            raise damaged(path, "its checksum is not that of what was written")


def _add_sums(sums: IntArray, section: FloatArray, counts: IntArray) -> None:
    """Go on with the sum of each leaf through one section, in which leaves follow each other."""
    raw = section.reshape(-1).view(np.uint8)
    row_nbytes = section.nbytes // max(len(section), 1)
    stop = 0
    for leaf in np.flatnonzero(counts).tolist():
        start, stop = stop, stop + int(counts[leaf]) * row_nbytes
        sums[leaf] = checksum(raw[start:stop], int(sums[leaf]))
