"""Rows that a fit reserves for its threshold: nothing else of it ever sees them.

They are those of the least keys, hashes of global row numbers, so many of each class. To all later
stages a reserved row is one of weight 0, as if it were not there. Its features are taken while X is
read for the sample, so that X is not read once more.
"""

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
    Keys,
    Labels,
    Mask,
    Reals,
    RowNumbers,
    Targets,
)
from daskls.run.blocks import BlockRows, block_start, map_rows
from daskls.run.resources import free_nbytes
from daskls.run.scan import TargetScan, block_checksum, kept_rows, name_classes
from daskls.seeds import THRESHOLD_ROWS
from daskls.solvers.order_statistic import least_delta, least_rate, rows_needed
from daskls.targets import Target

__all__ = ["Reserve", "ReservedRows", "reserve_rows", "reserved_counts"]

# Of the negatives, as long as that is enough: else up to half of them.
SHARE = 5
MOST_SHARE = 2
# A threshold from twice as many as are needed lies well below the largest score.
COMFORT = 2
# Of negatives: of more, what the threshold loses to chance is little beside the bound.
MOST_RESERVED = 20_000
# Of positives, which are often few; no threshold is made of them, only the curve.
POSITIVE_SHARE = 10
MOST_POSITIVES = 5000
# Of their features, which the client holds.
RESERVED_NBYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Reserve:
    """Which rows are reserved.

    Attributes
    ----------
    last_keys : uint64 array, shape (2,). Of each class, by code: the largest key.
    counts : int64 array, shape (2,). Of each class: reserved rows.
    first_kept : int64 array, shape (n_blocks + 1,). Rows of positive weight before each block.
    seed : int. The fit's.
    """

    last_keys: Keys
    counts: Int64
    first_kept: Int64
    seed: int

    def holds(self, block: int, codes: Codes) -> Mask:
        """Return which of a block's rows are reserved, of those of positive weight."""
        numbers = int(self.first_kept[block]) + np.arange(len(codes))
        keys = row_keys(numbers, THRESHOLD_ROWS(self.seed))
        found: Mask = (keys <= self.last_keys[codes]) & (self.counts[codes] > 0)
        return found

    def split(
        self, block: int, start: int, X: Reals, targets: Targets, weights: Float64
    ) -> "tuple[tuple[Reals, Targets, Float64], ReservedRows]":
        """Return features, targets and weights of a block's other rows, and those reserved.

        Parameters
        ----------
        block : int
        start : int. The other rows before the block.
        X, targets, weights : arrays of m rows. Those of positive weight.
        """
        codes = targets.astype(np.int32, copy=False)
        held = self.holds(block, codes)
        own = X[held], targets[held], weights[held]
        checksum = block_checksum(*own, int(self.first_kept[block]) - start)
        others = X[~held], targets[~held], weights[~held]
        return others, ReservedRows(own[0], codes[held], checksum)


@dataclass(frozen=True, eq=False)
class ReservedRows:
    """Reserved rows in the order of their numbers.

    Attributes
    ----------
    X : real array, shape (m, d). As they are given.
    codes : int32 array, shape (m,). Their classes.
    checksum : int
    """

    X: Reals
    codes: Codes
    checksum: int


@dataclass(frozen=True, eq=False)
class BlockKeys:
    """The keys of one block's rows that may be reserved, and the codes of their classes."""

    keys: Keys
    codes: Codes


def reserve_rows(
    spec: FalseAlarmSpec,
    rows: BlockRows,
    scan: TargetScan,
    seed: int,
    client: Any = None,
) -> tuple[Reserve, BlockRows, TargetScan]:
    """Reserve rows of two classes for a threshold.

    Parameters
    ----------
    spec : FalseAlarmSpec
    rows : BlockRows. In the blocks that the fit reads.
    scan : TargetScan
    seed : int. The fit's.
    client : distributed client, or None for the current scheduler

    Returns
    -------
    reserve : Reserve
    rows : BlockRows. The same, in which reserved rows have weight 0.
    scan : TargetScan. Of the rows that are left.

    Raises
    ------
    ParameterError : more than two classes; or too few rows of the first, with the number needed
    MemoryPlanError : the client would not hold the rows that are needed
    """
    _check_classes(spec, rows, scan)
    row_nbytes = rows.n_features * rows.X.dtype.itemsize
    wanted = _wanted(spec, rows, scan, row_nbytes)
    limits = [key_limit(int(n), int(m)) for n, m in zip(scan.counts, wanted, strict=True)]
    given = {"target": scan.target, "first_kept": scan.first_kept, "limits": limits, "seed": seed}
    blocks = map_rows(find_keys, rows, rows.y, rows.weights, client=client, **given)
    last_keys = _last_keys(blocks, wanted)
    reserve = Reserve(last_keys, wanted, scan.first_kept, seed)
    taken = [int((b.keys <= last_keys[b.codes]).sum()) for b in blocks]
    first_kept = scan.first_kept - np.cumsum([0, *taken])
    left = replace(scan, counts=scan.counts - wanted, first_kept=first_kept)
    return reserve, _without(rows, scan.target, reserve), left


def _check_classes(spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan) -> None:
    """Refuse any number of classes but two."""
    if len(scan.counts) == 2:
        return
    names = name_classes(rows, scan.target.labels).tolist()
    told = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ParameterError(
        f"max_false_alarm={spec.rate:g} is for two classes, but y holds {len(names)}: {told}. "
        "Leave max_false_alarm at None, or fit one class against the rest, as with "
        f"y == {names[0]!r}."
    )


def _wanted(spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan, row_nbytes: int) -> Int64:
    """Return how many rows of each class are reserved."""
    negatives, positives = map(int, scan.counts)
    needed = rows_needed(spec.rate, spec.delta)
    most = negatives // MOST_SHARE
    if most < needed:
        raise _too_few(spec, rows, scan, needed)
    if needed * row_nbytes > free_nbytes() // 2:
        raise MemoryPlanError(
            f"max_false_alarm={spec.rate:g} with delta={spec.delta:g} needs {needed} rows that the "
            f"client holds, {needed * row_nbytes >> 20} MiB, but {free_nbytes() >> 20} MiB are "
            "free here, of which it takes half. Raise max_false_alarm or delta, or give the client "
            "more memory."
        )
    return np.array(reserved_counts(spec, negatives, positives, row_nbytes), np.int64)


def reserved_counts(
    spec: FalseAlarmSpec, negatives: int, positives: int, row_nbytes: int
) -> tuple[int, int]:
    """Return how many rows of each class are reserved, of so many.

    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), 45_000, 5_000, 176)
    (9000, 500)
    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), 1_000, 1_000_000, 176)
    (500, 5000)
    """
    needed = rows_needed(spec.rate, spec.delta)
    held = max(min(MOST_RESERVED, RESERVED_NBYTES // row_nbytes), needed)
    of_negatives = min(max(negatives // SHARE, COMFORT * needed), negatives // MOST_SHARE, held)
    return of_negatives, min(positives // POSITIVE_SHARE, MOST_POSITIVES, held)


def _too_few(
    spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan, needed: int
) -> ParameterError:
    """Return the error of too few negatives."""
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
        f"{name!r} that no model is trained on, and takes half of them at the most; y holds "
        f"{negatives}, of which that is {most}. Fit on {MOST_SHARE * needed} or more of them"
        f"{remedy}."
    )


def _rounded_up(value: float) -> float:
    """Return two figures of a share, which are enough and no less."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.ceil(value / unit) * unit)


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
    """Return the keys of one block's rows below the limit of their class."""
    block, _ = block_start(block_info)
    codes = _codes(target, y[kept_rows(y, weights)])
    numbers: RowNumbers = int(first_kept[block]) + np.arange(len(codes))
    keys = row_keys(numbers, THRESHOLD_ROWS(seed))
    below = np.zeros(len(codes), bool)
    for code, limit in enumerate(limits):
        below |= (codes == code) & (True if limit is None else keys < np.uint64(limit))
    return BlockKeys(keys[below], codes[below])


def _codes(target: Target, y: Labels) -> Codes:
    """Return the class of each row by its code."""
    return target.encode(y).astype(np.int32, copy=False)


def _last_keys(blocks: list[BlockKeys], wanted: Int64) -> Keys:
    """Return the largest reserved key of each class.

    Raises
    ------
    DataError : fewer rows of a class than were counted
    """
    keys, codes = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("keys", "codes"))
    last = np.zeros(len(wanted), np.uint64)
    for code, count in enumerate(wanted.tolist()):
        own = keys[codes == code]
        if len(own) < count:
            raise DataError(
                f"y gave {len(own)} rows of a class at the second reading, of which {count} were "
                "to be held out. A Dask array must compute the same values each time: seed it, or "
                "write it to Zarr."
            )
        if count:
            last[code] = np.partition(own, count - 1)[count - 1]
    return last


def _without(rows: BlockRows, target: Target, reserve: Reserve) -> BlockRows:
    """Return the rows with a weight of 0 for those that are reserved."""
    arrays = [rows.y] if rows.weights is None else [rows.y, rows.weights]
    weights = da.map_blocks(
        weigh_block,
        *arrays,
        target=target,
        reserve=reserve,
        chunks=(rows.X.chunks[0], (1,)),
        dtype=np.float64,
        # Without it Dask would call the task on empty blocks to find it out.
        meta=np.empty((0, 0)),
    )
    # What was given has the weights of before.
    return replace(rows, weights=weights, given=None)


def weigh_block(
    y: Labels,
    weights: Reals | None = None,
    *,
    target: Target,
    reserve: Reserve,
    block_info: Any = None,
) -> Float64:
    """Return the weights of one block, (m, 1): 0 of rows that are reserved."""
    block, _ = block_start(block_info)
    found = np.ones((len(y), 1)) if weights is None else weights.astype(np.float64)
    kept = np.arange(len(y))[kept_rows(y, weights)]
    found[kept[reserve.holds(block, _codes(target, y[kept]))]] = 0.0
    return found
