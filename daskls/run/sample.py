"""Stage 1, second pass: samples rows by keys of their global numbers, and takes checksums.

The sample is the rows with the smallest keys. A block returns its rows below a limit, under which
slightly more rows lie than are wanted; of all these, the smallest keys are kept. So no task draws
for another one, and the cost of a block does not depend on n.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.gaps import columns_with_gaps
from daskls.kernels.copies import find_copies
from daskls.partition.shuffle import key_limit, row_keys
from daskls.records import Float64, Int64, Keys, Labels, Mask, Reals, RowNumbers, Targets
from daskls.run.blocks import BlockRows, block_start, map_rows
from daskls.run.labels import BadValue, first_bad_value, value_error
from daskls.run.reserve import Reserve, ReservedRows, group_codes
from daskls.run.scan import TargetScan, block_checksum, take_kept
from daskls.seeds import SAMPLE
from daskls.targets import Target


@dataclass(frozen=True, eq=False)
class BlockSample:
    """One block's rows below the limit, its checksum, and its first invalid row.

    ``counts`` are its rows of each class without those reserved; so are ``numbers``. Columns where
    it lacks values have ``gaps``; None if none does.
    """

    numbers: RowNumbers
    X: Reals
    targets: Targets
    weights: Float64
    checksum: int
    counts: Int64
    bad: BadValue | None = None
    reserved: ReservedRows | None = None
    gaps: Mask | None = None


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows in the order of their numbers, and the checksum of all rows of the data."""

    numbers: RowNumbers
    X: Reals
    targets: Targets
    weights: Float64
    checksum: int
    reserved: ReservedRows | None = None

    def merged(self, *, whatever_target: bool = False) -> "Sample":
        """Return copies as one row: the first, of all weight; maybe those of other targets, too."""
        copies = find_copies(self.X) if whatever_target else find_copies(self.X, self.targets)
        if copies is None:
            return self
        first, of_row = copies
        weights = np.bincount(of_row, self.weights).astype(np.float64)
        columns = self.numbers[first], self.X[first], self.targets[first], weights
        return Sample(*columns, self.checksum, self.reserved)


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """The findings of a reading of X: more than the sample, the reserved rows, the rest's scan."""

    blocks: list[BlockSample]
    scan: TargetScan
    reserve: Reserve | None = None
    reserved: ReservedRows | None = None

    @property
    def gaps(self) -> Mask:
        """The columns in which some row lacks a value."""
        has_gaps = np.zeros(self.blocks[0].X.shape[1], bool)
        for block in self.blocks:
            has_gaps |= False if block.gaps is None else block.gaps
        return has_gaps

    def sample(self, class_weight: Float64, n_sample: int, seed: int) -> Sample:
        starts = self.scan.block_offsets.tolist()
        numbers = [start + b.numbers for start, b in zip(starts[:-1], self.blocks, strict=True)]
        keys = [row_keys(n, SAMPLE(seed)) for n in numbers]
        last = last_key(np.concatenate(keys), n_sample)
        chosen = [k <= last for k in keys]
        sampled = np.concatenate([a[mask] for a, mask in zip(numbers, chosen, strict=True)])
        X, targets, row_weights = (
            np.concatenate(
                [getattr(b, name)[mask] for b, mask in zip(self.blocks, chosen, strict=True)]
            )
            for name in ("X", "targets", "weights")
        )
        weights = self.scan.target.weigh(targets, row_weights, class_weight)
        checksum = sum(b.checksum for b in self.blocks) % 2**64
        return Sample(sampled, X, targets, weights, checksum, self.reserved)


def sample_rows(
    rows: BlockRows,
    scan: TargetScan,
    n_sample: int,
    seed: int,
    client: Any = None,
    reserve: Reserve | None = None,
    names: Sequence[str] | None = None,
    *,
    takes_nan: bool = False,
) -> DrawnRows:
    """Read X once: sample, validate and checksum it, and take the reserved rows."""
    n_left = scan.n_kept if reserve is None else reserve.expected(scan).n_kept
    while True:
        blocks = map_rows(
            sample_block,
            rows,
            rows.X,
            rows.y,
            rows.weights,
            client=client,
            target=scan.target,
            block_offsets=scan.block_offsets,
            limit=key_limit(n_left, n_sample),
            seed=seed,
            reserve=reserve,
            takes_nan=takes_nan,
        )
        bad = [block.bad for block in blocks if block.bad is not None]
        if bad:
            raise value_error(min(bad), names)
        if (sum(b.counts for b in blocks) != scan.counts).any():
            raise DataError(
                "y or the weights had other values at the second reading than at the first. A Dask "
                "array must compute the same values each time: seed it, or write it to Zarr."
            )
        if reserve is None:
            return DrawnRows(blocks, scan)
        parts = [b.reserved for b in blocks if b.reserved is not None]
        held = reserve.joined(parts)
        if reserve.frequent is None:
            columns = (
                np.concatenate([getattr(b, name) for b in blocks]) for name in ("X", "targets")
            )
            frequent = reserve.find_frequent(held, *columns)
            if len(frequent):
                reserve = replace(reserve, frequent=frequent)
                continue
        reserve.check(held)
        left = reserve.left(scan, held, [int(part.copies.sum()) for part in parts])
        return DrawnRows(blocks, left, reserve, held)


def sample_block(
    X: Reals,
    y: Labels,
    weights: Reals | None,
    *,
    target: Target,
    block_offsets: Int64,
    limit: int | None,
    seed: int,
    reserve: Reserve | None = None,
    takes_nan: bool = False,
    block_info: Any = None,
) -> BlockSample:
    block, first_row = block_start(block_info)
    bad = first_bad_value(X)
    lacks_some = takes_nan and bad is not None and bad.value != bad.value
    if lacks_some:
        bad = first_bad_value(X, but_nan=True)
    if bad is not None:
        # Returned, not raised: the error names the first bad block, whichever task ends first.
        none, targets = np.empty(0, np.int64), target.encode(y[:0])
        bad = bad._replace(row=first_row + bad.row)
        return BlockSample(none, X[:0], targets, np.empty(0), 0, none, bad)
    features, targets, row_weights = take_kept(X, y, weights, target)
    start, reserved = int(block_offsets[block]), None
    checksum = block_checksum(features, targets, row_weights, start)
    gaps = columns_with_gaps(features) if lacks_some else None
    counts = np.bincount(group_codes(targets), minlength=max(target.n_classes, 1))
    numbers = start + np.arange(len(features))
    if reserve is not None:
        (features, targets, row_weights, numbers), reserved = reserve.split(
            block, features, targets, row_weights, numbers
        )
    sampled = _below(numbers, limit, seed)
    columns = sampled, features[sampled], targets[sampled], row_weights[sampled]
    return BlockSample(*columns, checksum, counts, reserved=reserved, gaps=gaps)


def _below(numbers: RowNumbers, limit: int | None, seed: int) -> Int64:
    """Return the positions of the row numbers whose keys are below a limit; None: all."""
    if limit is None:
        return np.arange(len(numbers))
    return np.flatnonzero(row_keys(numbers, SAMPLE(seed)) < np.uint64(limit))


def last_key(keys: Keys, n_sample: int) -> np.uint64:
    """Return the ``n_sample``-th smallest key, or the largest of fewer; keys are distinct."""
    last = min(n_sample, len(keys)) - 1
    key: np.uint64 = np.partition(keys, last)[last]
    return key
