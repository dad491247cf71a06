"""A file of rows sorted by leaf, and its marker: the exchange consists of these.

A row is one record: features, targets, weight and global row number side by side, so the rows
of neighboring leaves are one range of the file. The marker names the file by its attempt, and holds
where each leaf begins and the checksum of its rows. So a task that is killed or runs twice does no
harm: see `store/artifacts.py`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from daskls.kernels.copies import find_copies
from daskls.records import AnyArray, Codes, Float64, Int64, Reals, RowNumbers, Table, Targets
from daskls.store.backend import Backend, attempt_key, draw_attempt
from daskls.store.files import BAD_CHECKSUM, checksum, damaged, malformed_is_damage
from daskls.store.packs import read_pack, write_pack

# Checksums, one per leaf.
Sums = NDArray[np.uint32]
# Bytes of records that are sorted at a time: the sorted copy of a block is never whole in memory.
SORTED_NBYTES = 1 << 20


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


def record_of(dtype: str, n_features: int, target_dtype: str, width: int) -> np.dtype[Any]:
    """Return the dtype of a row's record.

    >>> record_of("<f4", 28, "<i4", 1).itemsize
    132
    """
    columns = [("X", dtype, (n_features,)), ("targets", target_dtype, (width,))]
    return np.dtype([*columns, ("weights", "<f8"), ("numbers", "<i8")])


def pack_rows(rows: Rows, order: Int64, record: np.dtype[Any]) -> Iterator[Table]:
    """Yield the records of rows in the given order, in pieces of `SORTED_NBYTES`."""
    step = max(SORTED_NBYTES // record.itemsize, 1)
    targets = rows.targets[:, None] if rows.targets.ndim == 1 else rows.targets
    for start in range(0, len(order), step):
        own = order[start : start + step]
        piece = np.empty(len(own), record)
        piece["X"], piece["targets"] = rows.X[own], targets[own]
        piece["weights"], piece["numbers"] = rows.weights[own], rows.numbers[own]
        yield piece


def unpack_rows(records: Table) -> Rows:
    names = records.dtype.names or ()
    X, targets, weights, numbers = (np.ascontiguousarray(records[name]) for name in names)
    # Class codes are one column, numbers may be several.
    return Rows(X, targets[:, 0] if targets.dtype.kind == "i" else targets, weights, numbers)


@dataclass(frozen=True, eq=False)
class Marker:
    """The content of a marker of sorted rows.

    `offsets` (n_leaves + 1,) are the first row of each leaf, and the number of rows last; `sums`
    the checksums of the leaves' records; `identity` that of a block's values.
    """

    offsets: Int64
    sums: Sums
    attempt: int
    identity: int = 0


@dataclass(frozen=True, eq=False)
class SortedRows:
    """A file of rows of consecutive leaves, and its marker, by their key without suffixes."""

    store: Backend
    key: str
    record: np.dtype[Any]
    n_leaves: int

    def data(self, attempt: int) -> str:
        return attempt_key(f"{self.key}.rows", attempt)

    @property
    def marker(self) -> str:
        return f"{self.key}.marker"

    @property
    def is_written(self) -> bool:
        return self.store.exists(self.marker)

    def drop(self) -> None:
        """Remove the marker and the rows of all attempts."""
        # The marker first: rows that an interrupted removal leaves are never read.
        for pattern in (self.marker, f"{self.key}.*rows"):
            self.store.drop(pattern, strict=True)

    def write(self, sections: Iterable[tuple[Int64, Iterable[Table]]], identity: int = 0) -> None:
        """Write the rows, then their marker.

        The leaves of each section (counts, records) follow those of the one before; its records are
        sorted by leaf, in pieces of any size.
        """
        counts, sums = np.zeros(self.n_leaves, np.int64), np.zeros(self.n_leaves, np.uint32)
        attempt = draw_attempt()
        data = self.data(attempt)
        with self.store.stream(data) as file:
            for own, pieces in sections:
                at = int(counts.sum())
                counts += own
                offsets = np.r_[0, np.cumsum(counts)]
                for piece in pieces:
                    file.write(piece.data)
                    _add_sums(sums, offsets, at, piece)
                    at += len(piece)
        kept = {
            "offsets": np.r_[0, np.cumsum(counts)],
            "sums": sums,
            "checksum": np.array(identity, np.uint64),
            "attempt": np.array(attempt),
        }
        if not write_pack(self.store, self.marker, kept, self.read_marker):
            # Another attempt was first, and its marker names its own rows: nobody reads these.
            self.store.drop(data)

    def read_marker(self) -> Marker:
        """Return the marker of a file; the file's size is checked."""
        found, where = read_pack(self.store, self.marker), self.store.where(self.marker)
        offsets, sums = found.get("offsets", np.empty(0)), found.get("sums", np.empty(0))
        is_sound = offsets.shape == (self.n_leaves + 1,) and sums.shape == (self.n_leaves,)
        if not is_sound or offsets[0] or (np.diff(offsets) < 0).any():
            raise damaged(where, "its offsets do not increase")
        with malformed_is_damage(where):
            marker = Marker(offsets, sums, int(found["attempt"]), int(found["checksum"]))
        data, expected = self.data(marker.attempt), int(offsets[-1]) * self.record.itemsize
        size = self.store.size(data)
        if size != expected:
            why = f"it has {size} bytes, and {expected} are expected"
            raise damaged(self.store.where(data), why)
        return marker

    def read(self, marker: Marker, first: int, stop: int) -> Table:
        """Return the records of leaves ``first`` to ``stop`` - 1, by one read."""
        start, end = marker.offsets[[first, stop]].tolist()
        records = np.empty(end - start, self.record)
        ends = marker.offsets[first : stop + 1] - start
        fill_run(self.store, self.data(marker.attempt), records, start, ends, marker.sums[first:])
        return records

    def check(self) -> Marker:
        """Read and check all rows; return their marker."""
        marker = self.read_marker()
        most = max(SORTED_NBYTES // self.record.itemsize, 1)
        for first, stop in leaf_ranges(np.diff(marker.offsets), most):
            self.read(marker, first, stop)
        return marker


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


def fill_run(
    store: Backend, data: str, records: Table, start: int, ends: Int64, sums: AnyArray
) -> None:
    """Fill records with the rows of neighboring leaves of one file, and check them.

    `start` is the first row in the file; `ends` are where each leaf begins among the records, and
    where the last one ends; `sums` are of at least these leaves. DamageError when they are not what
    was written.
    """
    if not len(records):
        return
    with store.reading(data) as reader:
        reader.fill(records, start * records.itemsize)
    for leaf in np.flatnonzero(np.diff(ends)).tolist():
        if checksum(records[ends[leaf] : ends[leaf + 1]]) != sums[leaf]:
            raise damaged(reader.name, BAD_CHECKSUM)


def _add_sums(sums: Sums, offsets: Int64, at: int, piece: Table) -> None:
    """Add a piece of records, from row ``at`` of the file on, to the checksums of its leaves."""
    stop = at + len(piece)
    first = int(np.searchsorted(offsets, at, "right")) - 1
    last = int(np.searchsorted(offsets, stop, "left"))
    for leaf in range(first, last):
        a, b = max(int(offsets[leaf]), at), min(int(offsets[leaf + 1]), stop)
        if a < b:
            sums[leaf] = checksum(piece[a - at : b - at], int(sums[leaf]))
