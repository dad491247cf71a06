"""Rows in the form of the exchange: a row is one record, its columns side by side."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from daskls.kernels.copies import find_copies
from daskls.records import Codes, Float64, Int64, Reals, RowNumbers, Table, Targets

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
