"""Reserves rows for a bound on false alarms or for intervals; no other stage of a fit sees them.

The rows with the smallest keys, hashes of global row numbers, are reserved: a fixed count of each
class, or of all rows if y holds numbers. To all later stages a reserved row has weight 0, as if it
did not exist. Its features are taken while X is read for the sample, which saves another reading.
The number of reserved rows is a share of the data, and enough for the order statistic that they
give.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np

from daskls.errors import DataError, MemoryPlanError, ParameterError
from daskls.partition.shuffle import key_limit, row_keys
from daskls.records import (
    Codes,
    FalseAlarmSpec,
    Float64,
    Int64,
    IntervalSpec,
    Keys,
    Labels,
    Mask,
    Reals,
    ReserveSpec,
    RowNumbers,
    Targets,
)
from daskls.run.blocks import BlockRows, block_start, map_rows
from daskls.run.scan import TargetScan, block_checksum, kept_rows, name_classes
from daskls.run.workers import free_nbytes
from daskls.seeds import THRESHOLD_ROWS
from daskls.solvers.order_statistic import (
    least_delta,
    least_rate,
    most_coverage,
    rows_needed,
    rows_to_cover,
)
from daskls.targets import Target

# One in SHARE of the negatives, or of numbers, if that is enough; else up to one in MOST_SHARE.
SHARE = 5
MOST_SHARE = 2
# Aim at this many times the rows that are needed: the rank then lies well below the largest value.
COMFORT = 2
# The most negatives, or numbers: more would reduce the random error of the rank only a little.
MOST_RESERVED = 20_000
# One in POSITIVE_SHARE of the positives, which are often few: they only serve to draw the curve.
POSITIVE_SHARE = 10
MOST_POSITIVES = 5000
# Bytes of the features of reserved rows, which the client holds.
RESERVED_NBYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Reserve:
    """Decides which rows are reserved.

    Attributes
    ----------
    last_keys : uint64 array, shape (k,). The largest reserved key of each class; of numbers (1,).
    counts : int64 array, shape (k,). The reserved rows of each class; of numbers (1,).
    first_kept : int64 array, shape (n_blocks + 1,). Rows of positive weight before each block,
        reserved ones included.
    seed : int. The fit's.
    """

    last_keys: Keys
    counts: Int64
    first_kept: Int64
    seed: int

    def holds(self, block: int, codes: Codes) -> Mask:
        """Return which of a block's rows of positive weight are reserved, bool (m,).

        ``codes`` are the class codes of these rows, 0 for numbers.
        """
        numbers = int(self.first_kept[block]) + np.arange(len(codes))
        keys = row_keys(numbers, THRESHOLD_ROWS(self.seed))
        found: Mask = (keys <= self.last_keys[codes]) & (self.counts[codes] > 0)
        return found

    def split(
        self, block: int, start: int, X: Reals, targets: Targets, weights: Float64
    ) -> "tuple[tuple[Reals, Targets, Float64], ReservedRows]":
        """Split a block: return features, targets and weights of its other rows, and the reserved.

        Parameters
        ----------
        block : int
        start : int. The number of other rows before the block.
        X, targets, weights : arrays of m rows. The block's rows of positive weight.
        """
        held = self.holds(block, _group_codes(targets))
        own = X[held], targets[held], weights[held]
        checksum = block_checksum(*own, int(self.first_kept[block]) - start)
        others = X[~held], targets[~held], weights[~held]
        return others, ReservedRows(own[0], own[1], checksum)


@dataclass(frozen=True, eq=False)
class ReservedRows:
    """Reserved rows in the order of their numbers.

    Attributes
    ----------
    X : real array, shape (m, d). As given, not scaled.
    targets : array. Class codes (m,), or numbers (m, t) in the units of y.
    checksum : int. Of the rows, their targets and weights.
    """

    X: Reals
    targets: Targets
    checksum: int


@dataclass(frozen=True, eq=False)
class BlockKeys:
    """The keys of one block's candidates for reserved rows, and their class codes."""

    keys: Keys
    codes: Codes


def reserve_rows(
    spec: ReserveSpec,
    rows: BlockRows,
    scan: TargetScan,
    seed: int,
    client: Any = None,
) -> tuple[Reserve, BlockRows, TargetScan]:
    """Reserve rows of each class, or of all numbers.

    Parameters
    ----------
    rows : BlockRows. In the blocks that the fit reads.
    seed : int. The fit's.

    Returns
    -------
    reserve : Reserve
    rows : BlockRows. The same, in which reserved rows have weight 0.
    scan : TargetScan. Of the remaining rows.

    Raises
    ------
    ParameterError, MemoryPlanError : as `rows_wanted`
    DataError : y gave fewer rows of a class than the scan counted
    """
    wanted = rows_wanted(spec, rows, scan)
    limits = [key_limit(int(n), int(m)) for n, m in zip(scan.counts, wanted, strict=True)]
    given = {"target": scan.target, "first_kept": scan.first_kept, "limits": limits, "seed": seed}
    blocks = map_rows(find_keys, rows, rows.y, rows.weights, client=client, **given)
    last_keys = _last_keys(blocks, wanted)
    reserve = Reserve(last_keys, wanted, scan.first_kept, seed)
    taken = [int((b.keys <= last_keys[b.codes]).sum()) for b in blocks]
    first_kept = scan.first_kept - np.cumsum([0, *taken])
    left = replace(scan, counts=scan.counts - wanted, first_kept=first_kept)
    return reserve, _without(rows, scan.target, reserve), left


def find_keys(
    y: Labels,
    weights: Reals | None,
    *,
    target: Target,
    first_kept: Int64,
    limits: list[int | None],
    seed: int,
    block_info: Any = None,
) -> BlockKeys:
    """Return the keys of one block's rows that are below the limit of their class (None: all)."""
    block, _ = block_start(block_info)
    codes = _group_codes(target.encode(y[kept_rows(weights)]))
    numbers: RowNumbers = int(first_kept[block]) + np.arange(len(codes))
    keys = row_keys(numbers, THRESHOLD_ROWS(seed))
    below = np.zeros(len(codes), bool)
    for code, limit in enumerate(limits):
        below |= (codes == code) & (True if limit is None else keys < np.uint64(limit))
    return BlockKeys(keys[below], codes[below])


def _group_codes(targets: Targets) -> Codes:
    """Return the class code of each row, (m,); 0 for numbers, which are one group."""
    if targets.ndim > 1:
        return np.zeros(len(targets), np.int32)
    return targets.astype(np.int32, copy=False)


def _last_keys(blocks: list[BlockKeys], wanted: Int64) -> Keys:
    """Return the largest reserved key of each class; raise DataError if rows are missing."""
    keys, codes = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("keys", "codes"))
    last = np.zeros(len(wanted), np.uint64)
    for code, count in enumerate(wanted.tolist()):
        own = keys[codes == code]
        if len(own) < count:
            raise DataError(
                f"y had {len(own)} rows of a class at the second reading, but {count} of them "
                "were to be held out. A Dask array must compute the same values each time: seed "
                "it, or write it to Zarr."
            )
        if count:
            last[code] = np.partition(own, count - 1)[count - 1]
    return last


def _without(rows: BlockRows, target: Target, reserve: Reserve) -> BlockRows:
    """Return the rows with weight 0 for the reserved ones."""
    arrays = [rows.y] if rows.weights is None else [rows.y, rows.weights]
    weights = da.map_blocks(
        weigh_block,
        *arrays,
        target=target,
        reserve=reserve,
        chunks=(rows.X.chunks[0], (1,)),
        dtype=np.float64,
        # Without meta Dask would call the task on empty blocks to infer it.
        meta=np.empty((0, 0)),
    )
    # Without ``given``, which holds the old weights.
    return replace(rows, weights=weights, given=None)


def weigh_block(
    y: Labels,
    weights: Reals | None = None,
    *,
    target: Target,
    reserve: Reserve,
    block_info: Any = None,
) -> Float64:
    """Return the weights of one block, (m, 1), with 0 for reserved rows."""
    block, _ = block_start(block_info)
    found = np.ones((len(y), 1)) if weights is None else weights.astype(np.float64)
    kept = np.arange(len(y))[kept_rows(weights)]
    found[kept[reserve.holds(block, _group_codes(target.encode(y[kept])))]] = 0.0
    return found


def rows_wanted(spec: ReserveSpec, rows: BlockRows, scan: TargetScan) -> Int64:
    """Return how many rows to reserve, int64: of each class (k,), or of all numbers (1,).

    Raises
    ------
    ParameterError : not two classes, or too few rows
    MemoryPlanError : the client cannot hold the rows that are needed
    """
    row_nbytes = rows.n_features * rows.X.dtype.itemsize
    found: Int64 = WANTED[spec.name](spec, rows, scan, row_nbytes)
    return found


def _negatives_wanted(
    spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan, row_nbytes: int
) -> Int64:
    """Return how many rows of each class to reserve for a bound on false alarms, (2,)."""
    _check_classes(spec, rows, scan)
    negatives, positives = map(int, scan.counts)
    needed = rows_needed(spec.rate, spec.delta)
    if negatives // MOST_SHARE < needed:
        raise _too_few_negatives(spec, rows, scan, needed)
    asked = f"max_false_alarm={spec.rate:g} with delta={spec.delta:g}"
    _check_memory(asked, "Raise max_false_alarm or delta", needed, row_nbytes)
    return np.array(reserved_counts(spec, negatives, positives, row_nbytes), np.int64)


def _numbers_wanted(
    spec: IntervalSpec, rows: BlockRows, scan: TargetScan, row_nbytes: int
) -> Int64:
    """Return how many rows to reserve for intervals, (1,)."""
    n_rows, needed = scan.n_kept, rows_to_cover(spec.coverage)
    if n_rows // MOST_SHARE < needed:
        raise _too_few_numbers(spec, n_rows, needed)
    row_nbytes += scan.target.nbytes
    _check_memory(f"interval={spec.coverage:g}", "Lower interval", needed, row_nbytes)
    return np.array([reserved_numbers(spec, n_rows, row_nbytes)], np.int64)


# By the name of the spec, the function that `rows_wanted` calls.
WANTED: dict[str, Callable[[Any, BlockRows, TargetScan, int], Int64]] = {
    FalseAlarmSpec.name: _negatives_wanted,
    IntervalSpec.name: _numbers_wanted,
}


def rows_expected(spec: ReserveSpec, n_rows: int, row_nbytes: int) -> int:
    """Return the expected number of reserved rows, before y is read."""
    if isinstance(spec, IntervalSpec):
        return reserved_numbers(spec, n_rows, row_nbytes)
    # The sizes of the two classes are unknown, so they are taken as equal.
    return sum(reserved_counts(spec, n_rows - n_rows // 2, n_rows // 2, row_nbytes))


def reserved_counts(
    spec: FalseAlarmSpec, negatives: int, positives: int, row_nbytes: int
) -> tuple[int, int]:
    """Return how many negatives and positives to reserve.

    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), 45_000, 5_000, 176)
    (9000, 500)
    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), 1_000, 1_000_000, 176)
    (500, 5000)
    """
    needed = rows_needed(spec.rate, spec.delta)
    held = _most_rows(needed, row_nbytes)
    of_positives = min(positives // POSITIVE_SHARE, MOST_POSITIVES, held)
    return _reserved_of(negatives, needed, held), of_positives


def reserved_numbers(spec: IntervalSpec, n_rows: int, row_nbytes: int) -> int:
    """Return how many of ``n_rows`` to reserve for intervals.

    >>> reserved_numbers(IntervalSpec(0.9), 45_000, 176)
    9000
    >>> reserved_numbers(IntervalSpec(0.99), 250, 176)
    125
    """
    needed = rows_to_cover(spec.coverage)
    return _reserved_of(n_rows, needed, _most_rows(needed, row_nbytes))


def _most_rows(needed: int, row_nbytes: int) -> int:
    """Return how many rows may be reserved by their size; never fewer than are needed."""
    return max(min(MOST_RESERVED, RESERVED_NBYTES // row_nbytes), needed)


def _reserved_of(n_rows: int, needed: int, held: int) -> int:
    """Return how many of ``n_rows`` to reserve, at most ``held``, if a rank needs ``needed``."""
    return min(max(n_rows // SHARE, COMFORT * needed), n_rows // MOST_SHARE, held)


def _check_memory(asked: str, remedy: str, needed: int, row_nbytes: int) -> None:
    """Raise MemoryPlanError if the client cannot hold the rows that are needed."""
    if needed * row_nbytes > free_nbytes() // 2:
        raise MemoryPlanError(
            f"{asked} needs {needed} rows that the "
            f"client holds, {needed * row_nbytes >> 20} MiB, but {free_nbytes() >> 20} MiB are "
            f"free here, of which it takes half. {remedy}, or give the client "
            "more memory."
        )


def _check_classes(spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan) -> None:
    """Raise ParameterError unless there are two classes."""
    if len(scan.counts) == 2:
        return
    names = name_classes(rows, scan.target.labels).tolist()
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ParameterError(
        f"max_false_alarm={spec.rate:g} is for two classes, but y holds {len(names)}: {shown}. "
        "Leave max_false_alarm at None, or fit one class against the rest, as with "
        f"y == {names[0]!r}."
    )


def _too_few_negatives(
    spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan, needed: int
) -> ParameterError:
    """Return the error for too few negatives."""
    name = name_classes(rows, scan.target.labels).tolist()[0]
    negatives = int(scan.counts[0])
    most = negatives // MOST_SHARE
    remedy = ""
    if most:
        remedy = (
            f", or raise max_false_alarm to {_rounded_up(least_rate(most, spec.delta)):g} or delta "
            f"to {_rounded_up(least_delta(most, spec.rate)):g}"
        )
    return ParameterError(
        f"max_false_alarm={spec.rate:g} with delta={spec.delta:g} needs {needed} rows of class "
        f"{name!r} that no model is trained on, and may use at most half of the class; y holds "
        f"{negatives}, half of which is {most}. Fit on {MOST_SHARE * needed} or more of them"
        f"{remedy}."
    )


def _too_few_numbers(spec: IntervalSpec, n_rows: int, needed: int) -> ParameterError:
    """Return the error for too few rows."""
    most = n_rows // MOST_SHARE
    # Rounded down to three digits, as a lower coverage needs fewer rows.
    lower = np.floor(1000 * most_coverage(most)) / 1000
    remedy = f", or lower interval to {lower:g}" if most else ""
    return ParameterError(
        f"interval={spec.coverage:g} needs {needed} rows that no model is trained on, and may use "
        f"at most half of all; there are {n_rows} of positive weight, half of which is {most}. "
        f"Fit on {MOST_SHARE * needed} or more{remedy}."
    )


def _rounded_up(value: float) -> float:
    """Round a share up to two significant digits, so that it stays large enough."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.ceil(value / unit) * unit)
