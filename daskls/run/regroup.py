"""Regroups rows by leaf in the exchange (stage 2), and gathers them in the store where needed."""

import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from daskls.blas import one_blas_thread
from daskls.cluster import compute_each, run_each
from daskls.errors import DamageError, StoreError
from daskls.gaps import Gaps
from daskls.kernels.frame import scaled
from daskls.neighbors.balls import measure_regions
from daskls.partition.base import Partition
from daskls.partition.grow import cut_into_cells
from daskls.partition.stored import read_partition
from daskls.plan.bundles import group_neighbors
from daskls.plan.checks import most_gathered
from daskls.records import FeatureScale, Float64, Int64, Ints, Labels, Reals, Regions
from daskls.run.blocks import block_start, map_rows
from daskls.run.contract import Fit, FitState, RegroupedRows
from daskls.run.reserve import Reserve
from daskls.run.scan import block_checksum, take_kept
from daskls.store.artifact import open_artifact
from daskls.store.caches import cached
from daskls.store.exchange import Exchange, Rows
from daskls.store.layout import check_fit, root_stamp
from daskls.store.leaves import stored_dtype, write_leaf_index, write_leaves
from daskls.store.models import all_bundles, finished_bundles, has_bundle, missing_bundles
from daskls.targets import Target

log = logging.getLogger("daskls")


def regroup_rows(state: FitState, exchange: Exchange) -> Int64:
    rows, scan = state.rows, state.scan
    exchange.create(rows.X.chunks[0])
    with state.clock.stage("regroup", rows.n_blocks, exchange.count_blocks):
        sums = map_rows(
            assign_block,
            rows,
            rows.X,
            rows.y,
            rows.weights,
            client=state.client,
            fit=state.fit,
            exchange=exchange,
            target=scan.target,
            class_weight=state.class_weight,
            block_offsets=scan.block_offsets,
            scale=state.scale,
            reserve=state.reserve,
            gaps=rows.filling,
        )
    # The checksums of rows are added, so blocks may finish in any order, or in an earlier fit.
    if sum(sums) % 2**64 != state.sample.checksum:
        # Removed, as the next fit would take the same wrong rows.
        exchange.delete()
        raise StoreError(
            "X or y had other values at the second reading than at the first, so no model was "
            "trained. A Dask array must compute the same values each time: seed it, or write it "
            "to Zarr and fit on that."
        )
    windows = range(exchange.n_windows)
    if exchange.is_merged:
        pieces = [(group, window) for group in range(exchange.n_groups) for window in windows]
        with state.clock.stage("merge", len(pieces), exchange.count_merged):
            run_each(merge_blocks, pieces, exchange, client=state.client)
    # As tasks, since the client may not see what the workers write.
    calls = [(exchange, window) for window in windows]
    counts = compute_each(Exchange.write_manifest, calls, state.client)
    leaf_rows: Int64 = np.concatenate(counts)
    return leaf_rows


def assign_block(
    X: Reals,
    y: Labels,
    weights: Reals | None,
    *,
    fit: Fit,
    exchange: Exchange,
    target: Target,
    class_weight: Float64,
    block_offsets: Int64,
    scale: FeatureScale | None,
    reserve: Reserve | None = None,
    gaps: Gaps | None = None,
    block_info: Any = None,
) -> int:
    """Write one block's rows, sorted by leaf in each partition; return the checksum of its rows."""
    block, _ = block_start(block_info)
    done = _find_block(exchange, block)
    if done is not None:
        return done
    X, targets, row_weights = take_kept(X, y, weights, target)
    start = int(block_offsets[block])
    # The identity of the data is that of the given rows, before some are left out and all scaled.
    first_read = start if reserve is None else int(reserve.block_offsets[block])
    checksum = block_checksum(X, targets, row_weights, first_read)
    if reserve is not None:
        (X, targets, row_weights), _ = reserve.split(block, X, targets, row_weights)
    X = X if gaps is None else gaps.fill(X)
    X = X if scale is None else scaled(X, scale)
    weighed = target.weigh(targets, row_weights, class_weight)
    rows = Rows(X, target.standardize(targets), weighed, start + np.arange(len(X)))
    # Read from the store: as a keyword it would be pickled into every task, and scattered it would
    # be lost with its worker.
    leaves = _on_one_thread(load_partition(fit).assign(X, rows.numbers))
    exchange.write_block(block, rows, leaves, checksum)
    return checksum


def load_partition(fit: Fit) -> Partition:
    """Return the partition by which a fit's rows are regrouped; each process reads it once."""
    check_fit(fit.root, fit.fingerprint)
    return _load_partition(fit.root, root_stamp(fit.root))


@cached(maxsize=4)
def _load_partition(root: str, stamp: Hashable) -> Partition:
    return read_partition(open_artifact(root, "partition"))


def _on_one_thread(leaves: Iterator[Ints]) -> Iterator[Ints]:
    """Yield items computed on one BLAS thread, each after the limit has held to its end."""
    while True:
        with one_blas_thread():
            item = next(leaves, None)
        if item is None:
            return
        yield item


def _find_block(exchange: Exchange, block: int) -> int | None:
    """Return the checksum of a finished block, or None; a damaged one is removed, to be redone."""
    try:
        return exchange.find_block(block)
    except DamageError as error:
        log.warning("%s", error)
        exchange.drop_block(block)
        return None


def merge_blocks(piece: tuple[int, int], exchange: Exchange) -> None:
    """Write the rows of a piece (group, window)."""
    exchange.merge(*piece)


def gather_rows(state: FitState, regrouped: RegroupedRows) -> None:
    root, exchange, leaf_rows = state.root, regrouped.exchange, regrouped.leaf_rows
    most = most_gathered(int(leaf_rows.sum()), state.sizes)
    bundles = group_neighbors(leaf_rows.tolist(), most)
    wanted = missing_bundles(root.store, bundles, "rows")
    finished = _finished_rows(state, leaf_rows)
    with state.clock.stage("gather", int(leaf_rows.sum()), finished):
        run_each(gather_bundle, wanted, state.fit, exchange, client=state.client)
    write_leaf_index(root, all_bundles(root.store, exchange.n_leaves, "rows"))
    # Last, as a resumed fit reads the exchange until the index of the leaves is written.
    exchange.delete()


def gather_bundle(leaves: tuple[int, int], fit: Fit, exchange: Exchange) -> int:
    """Write the rows of leaves first .. last, sorted by region; 0 where they had been written."""
    if has_bundle(fit.root, *leaves, "rows"):
        return 0
    partition = load_partition(fit)
    dtype = stored_dtype(np.dtype(exchange.dtype))
    rows, ptrs, regions = [], [], []
    with one_blas_thread():
        for leaf, leaf_rows in enumerate(exchange.read_leaves(*leaves), leaves[0]):
            tree, of_region = cut_into_cells(partition, leaf_rows.X, leaf, fit.cell_size)
            # Stable: rows of a region keep the order of their numbers, whatever the blocks were.
            leaf_rows = leaf_rows.take(np.argsort(of_region, kind="stable"))
            ptrs.append(np.r_[0, np.cumsum(np.bincount(of_region, minlength=tree.n_leaves))])
            rows.append(replace(leaf_rows, X=leaf_rows.X.astype(dtype, copy=False)))
            regions.append(measure_regions(leaf_rows.X, ptrs[-1]))
    # Written after the limit has held to its end: a disturbed result is never written.
    check_fit(fit.root, fit.fingerprint)
    write_leaves(fit.root, leaves[0], rows, ptrs, regions, _leaf_regions(rows))
    return sum(len(part.X) for part in rows)


def _leaf_regions(leaves: list[Rows]) -> Regions:
    parts = [measure_regions(rows.X, np.array([0, len(rows.X)])) for rows in leaves]
    names = ("centers", "r_min", "r_max", "low", "high")
    return Regions(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _finished_rows(state: FitState, leaf_rows: Int64) -> Callable[[], int]:
    positions = np.r_[0, np.cumsum(leaf_rows)]

    def count() -> int:
        bundles = finished_bundles(state.root.store, "rows")
        return sum(int(positions[last + 1] - positions[first]) for first, last in bundles)

    return count


def has_rows(state: FitState) -> bool:
    if state.root.find("leaves") is None:
        return False
    reader = state.fit.open_rows()
    # A finished model that does not need its rows has removed them.
    with suppress(DamageError):
        reader.check_bundles()
        return True
    return False
