"""Rows that a fit reserves for a threshold or for intervals: nothing else of it ever sees them.

They are those of the least keys, hashes of global row numbers, so many of each class, or of all
numbers. To all later stages a reserved row is one of weight 0, as if it were not there. Its
features are taken while X is read for the sample, so that X is not read once more.
"""

from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np

from daskls.errors import DataError
from daskls.partition.shuffle import key_limit, row_keys
from daskls.records import (
    Codes,
    Float64,
    Int64,
    Keys,
    Labels,
    Mask,
    Reals,
    ReserveSpec,
    RowNumbers,
    Targets,
)
from daskls.run.blocks import BlockRows, block_start, map_rows
from daskls.run.reserve_size import rows_wanted
from daskls.run.scan import TargetScan, block_checksum, kept_rows
from daskls.seeds import THRESHOLD_ROWS
from daskls.targets import Target

__all__ = ["Reserve", "ReservedRows", "reserve_rows"]


@dataclass(frozen=True, eq=False)
class Reserve:
    """Which rows are reserved.

    Attributes
    ----------
    last_keys : uint64 array, shape (k,). Of each class, by code: the largest key; of numbers (1,).
    counts : int64 array, shape (k,). Of each class: reserved rows; of numbers (1,).
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
        held = self.holds(block, _codes(targets))
        own = X[held], targets[held], weights[held]
        checksum = block_checksum(*own, int(self.first_kept[block]) - start)
        others = X[~held], targets[~held], weights[~held]
        return others, ReservedRows(own[0], own[1], checksum)


@dataclass(frozen=True, eq=False)
class ReservedRows:
    """Reserved rows in the order of their numbers.

    Attributes
    ----------
    X : real array, shape (m, d). As they are given.
    targets : array. Codes of their classes (m,), or numbers (m, t) in the units of y.
    checksum : int
    """

    X: Reals
    targets: Targets
    checksum: int


@dataclass(frozen=True, eq=False)
class BlockKeys:
    """The keys of one block's rows that may be reserved, and the codes of their classes."""

    keys: Keys
    codes: Codes


def reserve_rows(
    spec: ReserveSpec,
    rows: BlockRows,
    scan: TargetScan,
    seed: int,
    client: Any = None,
) -> tuple[Reserve, BlockRows, TargetScan]:
    """Reserve rows of each class, or of all numbers, for what is asked.

    Parameters
    ----------
    spec : ReserveSpec
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
    ParameterError, MemoryPlanError : as `rows_wanted`
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
    """Return the keys of one block's rows below the limit of their class."""
    block, _ = block_start(block_info)
    codes = _codes(target.encode(y[kept_rows(y, weights)]))
    numbers: RowNumbers = int(first_kept[block]) + np.arange(len(codes))
    keys = row_keys(numbers, THRESHOLD_ROWS(seed))
    below = np.zeros(len(codes), bool)
    for code, limit in enumerate(limits):
        below |= (codes == code) & (True if limit is None else keys < np.uint64(limit))
    return BlockKeys(keys[below], codes[below])


def _codes(targets: Targets) -> Codes:
    """Return what rows are counted by: the code of each one's class, 0 of numbers."""
    if targets.ndim > 1:
        return np.zeros(len(targets), np.int32)
    return targets.astype(np.int32, copy=False)


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
    found[kept[reserve.holds(block, _codes(target.encode(y[kept])))]] = 0.0
    return found
