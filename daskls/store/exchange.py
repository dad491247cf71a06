"""The exchange: rows regrouped by leaf on disk, in two stages.

Stage 2 writes one raw file a block: for each partition the block's rows sorted by leaf, section
after section (features, class codes, weights, global row numbers). Then a small marker takes the
file's offsets and checksum. Stage 3 reads a bundle's run from every file by position. One task
writes each file, the marker comes last, both by atomic rename: a task that is killed or runs twice
does no harm.

Within a leaf the rows stand in the order of their global row numbers, whatever the blocks were.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import numpy as np

from daskls.errors import StoreError
from daskls.records import FloatArray, IntArray
from daskls.store.files import make_folders, open_numpy, replace_file

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

    def _marker(self, block: int) -> Path:
        return Path(self.path) / f"block-{block:06d}.npz"

    @property
    def _manifest(self) -> Path:
        return Path(self.path) / "manifest.npy"

    def find_block(self, block: int) -> int | None:
        """Return a finished block's checksum, or None."""
        marker = self._marker(block)
        if not marker.exists():
            return None
        with open_numpy(marker) as saved:
            return int(saved["checksum"])

    def count_blocks(self) -> int:
        """Return how many blocks are finished."""
        return len(list(Path(self.path).glob("block-*.npz")))

    def write_block(
        self, block: int, rows: Rows, partitions: Iterable[IntArray], checksum: int
    ) -> None:
        """Write one block's rows sorted by leaf, partition by partition; then its marker.

        Parameters
        ----------
        block : int
        rows : Rows, in the order of their numbers
        partitions : iterable of int array, shape (m,). Each row's leaf in each partition; taken
            one at a time, so that memory does not grow with their number.
        checksum : int in [0, 2^64)
        """
        counts = np.zeros(self.n_leaves, np.int64)
        columns = (rows.X, rows.codes, rows.weights, rows.numbers)
        with replace_file(self._file(block)) as temporary, temporary.open("wb") as file:
            for leaves in partitions:
                counts += np.bincount(leaves, minlength=self.n_leaves)
                order = np.argsort(leaves, kind="stable")
                for column, (dtype, _) in zip(columns, self._sections, strict=True):
                    file.write(np.ascontiguousarray(column[order], dtype).data)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        with replace_file(self._marker(block)) as temporary, temporary.open("wb") as file:
            np.savez(file, offsets=offsets, checksum=np.uint64(checksum))

    def stack_manifest(self) -> IntArray:
        """Write the offsets of all blocks as one array; return the rows of each leaf."""
        offsets = np.empty((self.n_blocks, self.n_leaves + 1), np.int64)
        for block in range(self.n_blocks):
            with open_numpy(self._marker(block)) as saved:
                offsets[block] = saved["offsets"]
        with replace_file(self._manifest) as temporary, temporary.open("wb") as file:
            # One row a leaf, so that a leaf's task reads its own two rows only.
            np.save(file, np.ascontiguousarray(offsets.T))
        leaf_rows: IntArray = np.diff(offsets, axis=1).sum(axis=0)
        return leaf_rows

    def read_leaf(self, leaf: int) -> Rows:
        """Return all rows of a leaf, in the order of their numbers; read block by block."""
        with open_numpy(self._manifest, mmap_mode="r") as offsets:
            starts, stops, sizes = (np.array(offsets[i]) for i in (leaf, leaf + 1, -1))
        counts = stops - starts
        columns = [np.empty((int(counts.sum()), width), dtype) for dtype, width in self._sections]
        filled = 0
        for block in np.flatnonzero(counts):
            places = slice(filled, filled + counts[block])
            n_rows = int(sizes[block]) // self.n_partitions
            self._read_run(int(block), n_rows, int(starts[block]), columns, places)
            filled += counts[block]
        X, codes, weights, numbers = columns
        return Rows(X, codes[:, 0], weights[:, 0], numbers[:, 0])

    def _read_run(
        self, block: int, n_rows: int, start: int, columns: list[FloatArray], places: slice
    ) -> None:
        """Read one leaf's rows of one block into their places, section by section.

        ``start`` counts the rows of all partitions, of which each has ``n_rows``.
        """
        partition, start = divmod(start, n_rows)
        section = partition * n_rows * sum(column.strides[0] for column in columns)
        with self._file(block).open("rb", buffering=0) as file:
            for column in columns:
                row_nbytes = column.strides[0]
                file.seek(section + start * row_nbytes)
                run = column[places]
                if not _fill(file, run):
                    raise StoreError(
                        f"{self._file(block)} is shorter than its marker says: "
                        f"expected {self.n_partitions * n_rows} rows. "
                        f"Remove {Path(self.path).parent}, fit again."
                    )
                section += n_rows * row_nbytes


def _fill(file: FileIO, run: FloatArray) -> bool:
    """Read a whole run, in as many reads as the system takes; False if the file ends before."""
    view = run.view(np.uint8).reshape(-1).data
    filled = 0
    while filled < len(view):
        n_read = file.readinto(view[filled:])
        if not n_read:
            return False
        filled += n_read
    return True
