"""Stage 1, second pass: samples rows by keys of their global numbers, and takes checksums.

The sample is the rows with the smallest keys. A block returns its rows below a limit, under which
slightly more rows lie than are wanted; of all these, the smallest keys are kept. So no task draws
for another one, and the cost of a block does not depend on n.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.kernels.copies import find_copies
from daskls.partition.shuffle import key_limit, row_keys
from daskls.records import Float64, Int64, Keys, Labels, Reals, RowNumbers, Targets
from daskls.run.blocks import BlockRows, block_start, map_rows
from daskls.run.labels import BadValue, first_bad_value, value_error
from daskls.run.reserve import Reserve, ReservedRows
from daskls.run.scan import TargetScan, block_checksum, take_kept
from daskls.seeds import SAMPLE
from daskls.targets import Target


@dataclass(frozen=True, eq=False)
class BlockSample:
    """One block's rows below the limit, its checksum, and its first invalid row.

    ``reserved`` are its reserved rows, which are not part of the sample or of any other stage.
    """

    numbers: RowNumbers
    X: Reals
    targets: Targets
    weights: Float64
    checksum: int
    bad: BadValue | None = None
    reserved: ReservedRows | None = None


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows in the order of their numbers, and checksums of the data.

    Attributes
    ----------
    numbers : int64 array, shape (m,), increasing. Global row numbers.
    X : real array, shape (m, d)
    targets : array. Class codes (m,), or numbers (m, t).
    weights : float64 array, shape (m,), > 0. Class weights included.
    checksum : int. Of all rows of the data but the reserved ones.
    reserved : ReservedRows, or None. As they are given, also when all others are scaled.
    """

    numbers: RowNumbers
    X: Reals
    targets: Targets
    weights: Float64
    checksum: int
    reserved: ReservedRows | None = None

    def merged(self, *, whatever_target: bool = False) -> "Sample":
        """Return copies, rows of equal features and targets, as one row: the first, of all weight.

        Returns the sample itself where no row repeats. With ``whatever_target`` rows of equal
        features are one, with the first one's target.
        """
        copies = find_copies(self.X) if whatever_target else find_copies(self.X, self.targets)
        if copies is None:
            return self
        first, of_row = copies
        weights = np.bincount(of_row, self.weights).astype(np.float64)
        columns = self.numbers[first], self.X[first], self.targets[first], weights
        return Sample(*columns, self.checksum, self.reserved)

    @property
    def data_checksum(self) -> int:
        """The checksum of all rows of the data, reserved ones included."""
        reserved = 0 if self.reserved is None else self.reserved.checksum
        return (self.checksum + reserved) % 2**64


def sample_rows(
    rows: BlockRows,
    scan: TargetScan,
    class_weight: Float64,
    n_sample: int,
    seed: int,
    client: Any = None,
    reserve: Reserve | None = None,
    names: Sequence[str] | None = None,
) -> Sample:
    """Read X once: sample, validate and checksum it, and take the reserved rows.

    Parameters
    ----------
    rows : BlockRows. With the given weights, in which reserved rows are not 0.
    scan : TargetScan. Of all rows but the reserved ones.
    class_weight : float64 array, shape (k,)
    reserve : Reserve, or None without reserved rows
    names : sequence of str, or None. The names of columns, for the error.

    Raises
    ------
    DataError : a value is NaN, infinite or too large; the error names the first such row
    """
    blocks = map_rows(
        sample_block,
        rows,
        rows.X,
        rows.y,
        rows.weights,
        client=client,
        target=scan.target,
        class_weight=class_weight,
        first_kept=scan.first_kept,
        limit=key_limit(scan.n_kept, n_sample),
        seed=seed,
        reserve=reserve,
    )
    bad = [block.bad for block in blocks if block.bad is not None]
    if bad:
        raise value_error(min(bad), names)
    return _joined(blocks, n_sample, seed)


def sample_block(
    X: Reals,
    y: Labels,
    weights: Reals | None,
    *,
    target: Target,
    class_weight: Float64,
    first_kept: Int64,
    limit: int | None,
    seed: int,
    reserve: Reserve | None = None,
    block_info: Any = None,
) -> BlockSample:
    """Return one block's rows with keys below the limit; validate and checksum all of its rows."""
    block, first_row = block_start(block_info)
    bad = first_bad_value(X)
    if bad is not None:
        # Returned, not raised: the error names the first bad block, whichever task ends first.
        none, targets = np.empty(0, np.int64), target.encode(y[:0])
        bad = bad._replace(row=first_row + bad.row)
        return BlockSample(none, X[:0], targets, np.empty(0), 0, bad)
    kept, targets, given = take_kept(X, y, weights, target)
    start = int(first_kept[block])
    reserved = None
    if reserve is not None:
        (kept, targets, given), reserved = reserve.split(block, start, kept, targets, given)
    mine = _below(start + np.arange(len(kept)), limit, seed)
    checksum = block_checksum(kept, targets, given, start)
    weighed = target.weigh(targets, given.astype(np.float64), class_weight)
    own = kept[mine], targets[mine], weighed[mine]
    return BlockSample(start + mine, *own, checksum, reserved=reserved)


def _below(numbers: RowNumbers, limit: int | None, seed: int) -> Int64:
    """Return the positions of the row numbers whose keys are below a limit; None: all."""
    if limit is None:
        return np.arange(len(numbers))
    return np.flatnonzero(row_keys(numbers, SAMPLE(seed)) < np.uint64(limit))


def _joined(blocks: list[BlockSample], n_sample: int, seed: int) -> Sample:
    """Return the rows with the smallest keys of all blocks."""
    keys = [row_keys(b.numbers, SAMPLE(seed)) for b in blocks]
    last = last_key(np.concatenate(keys), n_sample)
    chosen = [own <= last for own in keys]
    numbers, X, targets, weights = (
        np.concatenate([getattr(b, name)[own] for b, own in zip(blocks, chosen, strict=True)])
        for name in ("numbers", "X", "targets", "weights")
    )
    checksum = sum(b.checksum for b in blocks) % 2**64
    return Sample(numbers, X, targets, weights, checksum, _reserved(blocks))


def last_key(keys: Keys, n_sample: int) -> np.uint64:
    """Return the ``n_sample``-th smallest key, or the largest of fewer; keys are distinct."""
    last = min(n_sample, len(keys)) - 1
    found: np.uint64 = np.partition(keys, last)[last]
    return found


def _reserved(blocks: list[BlockSample]) -> ReservedRows | None:
    """Return the reserved rows of all blocks, in the order of their numbers."""
    own = [b.reserved for b in blocks if b.reserved is not None]
    if not own:
        return None
    X, targets = np.concatenate([r.X for r in own]), np.concatenate([r.targets for r in own])
    return ReservedRows(X, targets, sum(r.checksum for r in own) % 2**64)
