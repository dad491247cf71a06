"""Stage 2: every row to its leaf in each partition, rows regrouped by leaf on disk.

Stage 3 of neighborhood methods: each leaf's rows together, sorted by region, in the store.
"""

import logging
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskls.errors import DamageError, StoreError
from daskls.kernels.frame import scaled
from daskls.memory import gather_nbytes
from daskls.neighbors.balls import measure_regions
from daskls.partition.base import Partition
from daskls.partition.grow import cut_into_cells
from daskls.partition.shuffle import row_keys
from daskls.partition.stored import read_partition
from daskls.plan import BUNDLE_S, CUT, Outlook, StageDemand, Work, group_open
from daskls.records import (
    FeatureScale,
    Float64,
    Int64,
    Ints,
    Keys,
    Labels,
    LeafRows,
    Reals,
    Regions,
    RowNumbers,
)
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.blocks import block_start, map_rows
from daskls.run.compute import compute_each, run_each
from daskls.run.contract import Beginning
from daskls.run.progress import StageClock
from daskls.run.scan import block_checksum, take_kept
from daskls.seeds import ROW_FOLDS
from daskls.store.caches import kept
from daskls.store.exchange import Exchange
from daskls.store.layout import Root, root_stamp
from daskls.store.leaves import (
    CACHE_NBYTES,
    LeafReader,
    open_leaves,
    stored_dtype,
    write_leaf_index,
    write_leaves,
)
from daskls.store.models import done_mask, drop_others, find_tiles, finished_bundles, has_bundle
from daskls.store.sorted_rows import Rows
from daskls.targets import Target

log = logging.getLogger("daskls")


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


# Leaves are gathered until a task holds about this much.
BUNDLE_NBYTES = 32 << 20
# Rows are gathered in at least so many tasks, regardless of the slots, as workers may join: enough
# that some dozens of slots end together. Large data is cut into more, by `BUNDLE_NBYTES`. A leaf's
# rows are the same in any grouping.
N_GATHERS = 64


@dataclass(frozen=True)
class RowsHandle:
    """A handle on a model's rows, and the bytes of them that a process keeps.

    ``fold`` leaves rows out of all searches: (seed, number of folds, the fold held out).
    """

    root: str
    fingerprint: str
    cache_nbytes: int = CACHE_NBYTES
    fold: tuple[int, int, int] | None = None

    def open(self) -> LeafReader:
        """Return the reader of the rows."""
        return open_leaves(self.root, self.fingerprint, self.cache_nbytes)

    def source(self, reader: LeafReader) -> Callable[[int], LeafRows]:
        """Return what searches read leaves by."""
        if self.fold is None:
            return reader.read_leaf
        seed, n_folds, held_out = self.fold

        def read_training(leaf: int) -> LeafRows:
            rows = reader.read_leaf(leaf)
            return rows.only(folds_of(rows.numbers, seed, n_folds) != held_out)

        return read_training


def folds_of(numbers: RowNumbers, seed: int, n_folds: int) -> Keys:
    """Return the fold of each row, by its global number."""
    folds: Keys = row_keys(numbers, ROW_FOLDS(seed)) % np.uint64(n_folds)
    return folds


@dataclass(frozen=True)
class GatherJob:
    """Arguments of every `gather_bundle`."""

    root: str
    fingerprint: str
    exchange: Exchange
    region_rows: int


@undisturbed
def gather_bundle(leaves: tuple[int, int], job: GatherJob) -> int:
    """Write the rows of some leaves; return their number.

    A retry after a worker's death finds the rows and returns 0.
    """
    if has_bundle(job.root, *leaves, "rows"):
        return 0
    partition = load_partition(job.root, job.fingerprint)
    dtype = stored_dtype(np.dtype(job.exchange.dtype))
    rows, ptrs, regions = [], [], []
    with one_blas_thread():
        for leaf, own in enumerate(job.exchange.read_leaves(*leaves), leaves[0]):
            tree, of_region = cut_into_cells(partition, own.X, leaf, job.region_rows)
            # Stable: rows of a region stay in the order of their numbers, whatever the blocks were.
            own = own.take(np.argsort(of_region, kind="stable"))
            ptrs.append(np.r_[0, np.cumsum(np.bincount(of_region, minlength=tree.n_leaves))])
            rows.append(replace(own, X=own.X.astype(dtype, copy=False)))
            regions.append(measure_regions(own.X, ptrs[-1]))
    # Outside the limit: nothing is written before it has held to the end.
    write_leaves(job.root, leaves[0], rows, ptrs, regions, _join(rows))
    return sum(len(own.X) for own in rows)


def _join(leaves: list[Rows]) -> Regions:
    """Return the region of each leaf."""
    parts = [measure_regions(own.X, np.array([0, len(own.X)])) for own in leaves]
    names = ("centers", "r_min", "r_max", "low", "high")
    return Regions(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def has_rows(begun: Beginning) -> bool:
    """Whether the store holds all rows, gathered."""
    if begun.root.find_group("leaves") is None:
        return False
    # A finished model may have had no use for them.
    return rows_handle(begun).open().has_bundles()


def rows_handle(begun: Beginning) -> RowsHandle:
    """Return the handle by which tasks open the gathered rows."""
    cache = min(CACHE_NBYTES, begun.resources.task_nbytes // 4)
    return RowsHandle(begun.root.where(), begun.fingerprint, cache)


def gather_rows(
    begun: Beginning,
    exchange: Exchange,
    leaf_rows: Int64,
    clock: StageClock,
    client: Any = None,
) -> None:
    """Write all rows, leaf by leaf, and the index of the leaves; then remove the exchange."""
    root = begun.root
    job = GatherJob(root.where(), begun.fingerprint, exchange, begun.request.cell_size)
    wanted = _bundles(begun, leaf_rows)
    finished = _finished_rows(begun, leaf_rows)
    with clock.stage("gather", int(leaf_rows.sum()), finished):
        run_each(gather_bundle, wanted, job, client)
    tiles = find_tiles(root.store, exchange.n_leaves, "rows")
    write_leaf_index(root, tiles)
    drop_others(root.store, tiles, "rows")
    # Last: until the index of the leaves stands, a fit that is called again reads it.
    exchange.delete()


def _bundles(begun: Beginning, leaf_rows: Int64) -> list[tuple[int, int]]:
    """Group neighboring leaves that are not done, of about equal rows a task."""
    share = int(leaf_rows.sum()) // N_GATHERS
    most = min(BUNDLE_NBYTES, begun.resources.task_nbytes // 4) // begun.sizes.row_nbytes
    done = done_mask(begun.root.store, len(leaf_rows), "rows")
    return group_open(leaf_rows.tolist(), done, min(share, most))


def gather_stage(outlook: Outlook) -> StageDemand:
    """Return the stage of `gather_rows` before rows are read: as of leaves of equal size."""
    extent, n_leaves = outlook.extent, outlook.n_leaves
    of_leaf = max(extent.n_rows // n_leaves, 1)
    row_nbytes = extent.sizes.row_nbytes
    most = min(BUNDLE_NBYTES, outlook.resources.task_nbytes // 4) // row_nbytes
    together = max(min(extent.n_rows // N_GATHERS, most) // of_leaf, 1)
    nbytes = gather_nbytes(extent.sizes, extent.leaf_rows) + 2 * together * of_leaf * row_nbytes
    works = outlook.reading, Work(CUT, of_leaf, n_leaves)
    return StageDemand("gather", -(-n_leaves // together), nbytes, works, task_s=BUNDLE_S / 2)


def _finished_rows(begun: Beginning, leaf_rows: Int64) -> Callable[[], int]:
    """Return a function that counts the rows gathered."""
    positions = np.r_[0, np.cumsum(leaf_rows)]

    def count() -> int:
        found = finished_bundles(begun.root.store, "rows")
        return sum(int(positions[last + 1] - positions[first]) for first, last in found)

    return count
