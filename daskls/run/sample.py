"""Stage 1, second half: rows drawn by their global numbers, and the identity of the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.records import Float64, Int64, Labels, Reals, RowNumbers, Targets
from daskls.run.blocks import block_start, map_rows
from daskls.run.rows import BlockRows
from daskls.run.scan import TargetScan, block_checksum, take_kept
from daskls.run.values import first_bad_value, value_error
from daskls.seeds import SAMPLE
from daskls.targets import Target

__all__ = ["Sample", "sample_block", "sample_numbers", "sample_rows"]


@dataclass(frozen=True, eq=False)
class BlockSample:
    """The sampled rows of one block, its checksum, and its first row that is not finite."""

    X: Reals
    targets: Targets
    weights: Float64
    checksum: int
    bad_row: int | None
    bad_value: float


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows in the order of their numbers, and the checksum of all rows.

    Attributes
    ----------
    X : real array, shape (m, d)
    targets : array. Class codes (m,), or numbers (m, t).
    weights : float64 array, shape (m,), > 0. Those of classes included.
    checksum : int
    """

    X: Reals
    targets: Targets
    weights: Float64
    checksum: int


def sample_numbers(n_rows: int, n_sample: int, seed: int) -> RowNumbers:
    """Return sorted global row numbers: the same in every task, regardless of the blocks."""
    if n_sample >= n_rows:
        return np.arange(n_rows)
    rng = SAMPLE.generator(seed, n_rows=n_rows)
    # They are sorted, so their order need not be drawn.
    return np.sort(rng.choice(n_rows, n_sample, replace=False, shuffle=False))


def sample_block(
    X: Reals,
    y: Labels,
    weights: Reals | None,
    *,
    target: Target,
    class_weight: Float64,
    first_kept: Int64,
    n_sample: int,
    seed: int,
    block_info: Any = None,
) -> BlockSample:
    """Draw one block's sampled rows; check and identify all of its rows on the way."""
    block, first_row = block_start(block_info)
    bad = first_bad_value(X)
    if bad is not None:
        # Not raised here: of several bad blocks the first is named, whichever task ends first.
        return BlockSample(X[:0], target.encode(y[:0]), np.empty(0), 0, first_row + bad[0], bad[1])
    kept, targets, given = take_kept(X, y, weights, target)
    start, stop = first_kept[block], first_kept[block + 1]
    # Drawn in each task: as a keyword they would be sent with every one.
    numbers = sample_numbers(int(first_kept[-1]), n_sample, seed)
    mine = numbers[np.searchsorted(numbers, start) : np.searchsorted(numbers, stop)] - start
    checksum = block_checksum(kept, targets, given, int(start))
    weighed = target.weigh(targets, given.astype(np.float64), class_weight)
    return BlockSample(kept[mine], targets[mine], weighed[mine], checksum, None, 0.0)


def sample_rows(
    rows: BlockRows,
    scan: TargetScan,
    class_weight: Float64,
    n_sample: int,
    seed: int,
    client: Any = None,
) -> Sample:
    """Read X once: sample it, check it, identify it.

    Raises
    ------
    DataError : when a value is NaN, infinite or too large, with the first such row's number
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
        n_sample=n_sample,
        seed=seed,
    )
    bad = [(b.bad_row, b.bad_value) for b in blocks if b.bad_row is not None]
    if bad:
        raise value_error(*min(bad))
    X, targets, weights = (
        np.concatenate([getattr(b, name) for b in blocks]) for name in ("X", "targets", "weights")
    )
    return Sample(X, targets, weights, sum(b.checksum for b in blocks) % 2**64)
