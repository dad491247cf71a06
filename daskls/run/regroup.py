"""Stage 2: every row to its leaf in each partition, rows regrouped by leaf on disk."""

import logging
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from daskls.errors import DamageError, StoreError
from daskls.kernels.frame import scaled
from daskls.partition.base import Partition
from daskls.partition.stored import read_partition
from daskls.records import FeatureScale, Float64, Int64, Ints, Labels, Reals
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.blocks import block_start, map_rows
from daskls.run.compute import compute_each, run_each
from daskls.run.contract import Beginning
from daskls.run.progress import StageClock
from daskls.run.scan import block_checksum, take_kept
from daskls.store.caches import kept
from daskls.store.exchange import Exchange, Rows
from daskls.store.layout import Root, root_stamp
from daskls.targets import Target

log = logging.getLogger("daskls")

__all__ = ["assign_block", "load_partition", "regroup_rows"]


def load_partition(root: str, fingerprint: str) -> Partition:
    """Return the partition by which a store's rows are regrouped; read once a process.

    Raises
    ------
    StoreError : when the store was replaced under a running fit
    """
    return _load_partition(root, fingerprint, root_stamp(root))


@kept(maxsize=4)
def _load_partition(root: str, fingerprint: str, stamp: Hashable) -> Partition:
    """Read the partition; the stamp keeps that of a replaced store from being used again."""
    opened = Root.open(root)
    group = opened.find_group("partition")
    if group is None or opened.attributes["fingerprint"] != fingerprint:
        raise StoreError(f"The store {root} was changed while a fit used it. Fit again.")
    return read_partition(group)


@undisturbed
def assign_block(
    X: Reals,
    y: Labels,
    weights: Reals | None,
    *,
    root: str,
    fingerprint: str,
    exchange: Exchange,
    target: Target,
    class_weight: Float64,
    first_kept: Int64,
    scale: FeatureScale | None,
    block_info: Any = None,
) -> int:
    """Write one block's rows, sorted by leaf in each partition; return the checksum of its rows.

    A retry after a worker's death finds the marker and returns.
    Peak memory: `memory.assign_nbytes`.
    """
    block, _ = block_start(block_info)
    done = _find_block(exchange, block)
    if done is not None:
        return done
    X, targets, given = take_kept(X, y, weights, target)
    start = int(first_kept[block])
    # The identity of the data is that of the given rows, before a model scales them.
    checksum = block_checksum(X, targets, given, start)
    X = X if scale is None else scaled(X, scale)
    weighed = target.weigh(targets, given, class_weight)
    rows = Rows(X, target.enter(targets), weighed, start + np.arange(len(X)))
    # Opened from the store: as a keyword it would be serialized into every task, and scattered it
    # would be lost with its worker.
    leaves = _held(load_partition(root, fingerprint).assign(X, rows.numbers))
    exchange.write_block(block, rows, leaves, checksum)
    return checksum


def _held(leaves: Iterator[Ints]) -> Iterator[Ints]:
    """Yield what an iterator computes on one BLAS thread: nothing is written that was disturbed."""
    while True:
        with one_blas_thread():
            found = next(leaves, None)
        if found is None:
            return
        yield found


def _find_block(exchange: Exchange, block: int) -> int | None:
    """Return the checksum of a block that is done; a damaged one is removed, to be done again."""
    try:
        return exchange.find_block(block)
    except DamageError as error:
        log.warning("%s", error)
        exchange.drop_block(block)
        return None


def regroup_rows(
    begun: Beginning, exchange: Exchange, clock: StageClock, client: Any = None
) -> Int64:
    """Write the exchange and its manifest; return the rows of each leaf.

    Raises
    ------
    StoreError : when X or y gave other values than in stage 1
    """
    rows, scan = begun.rows, begun.scan
    exchange.create(rows.X.chunks[0])
    with clock.stage("regroup", rows.n_blocks, exchange.count_blocks):
        sums = map_rows(
            assign_block,
            rows,
            rows.X,
            rows.y,
            rows.weights,
            client=client,
            root=begun.root.where(),
            fingerprint=begun.fingerprint,
            exchange=exchange,
            target=scan.target,
            class_weight=begun.class_weight,
            first_kept=scan.first_kept,
            scale=begun.scale,
        )
    # Row checksums add up, so that blocks may end in any order, or be those of an earlier try.
    if sum(sums) % 2**64 != begun.sample.checksum:
        # Its markers would give the next fit the same wrong rows.
        exchange.delete()
        raise StoreError(
            "X or y gave other values at the second reading than at the first, so no model of "
            "them exists. A Dask array must compute the same values each time: seed it, or write "
            "it to Zarr and fit on that."
        )
    windows = range(exchange.n_windows)
    if exchange.is_merged:
        pieces = [(group, window) for group in range(exchange.n_groups) for window in windows]
        with clock.stage("merge", len(pieces), exchange.count_merged):
            run_each(merge_blocks, pieces, exchange, client)
    # Small tasks, so that the client need not see what the workers write.
    counts = compute_each(write_manifest, [(exchange, window) for window in windows], client)
    leaf_rows: Int64 = np.concatenate(counts)
    return leaf_rows


def merge_blocks(piece: tuple[int, int], exchange: Exchange) -> None:
    """Write a group's rows of a window; a damaged file is removed, to be written again."""
    try:
        exchange.merge(*piece)
    except DamageError as error:
        if not exchange.drop_merged(*piece):
            raise
        log.warning("%s", error)
        exchange.merge(*piece)


def write_manifest(exchange: Exchange, window: int) -> Int64:
    """Write the manifest of a window; return the rows of each of its leaves."""
    return exchange.write_manifest(window)
