"""The three stages of a fit on cells or chunks, on whatever is in the store already."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskls.methods.cells.train import FitJob, train_bundles
from daskls.partition.tree import graft
from daskls.plan import check_chunks, check_memory, plan_bundles
from daskls.records import Chunks, Forest, IntArray, Partition, SolverSpec
from daskls.run.begin import Beginning, begin_fit, grow_trunks, regroup_all
from daskls.run.identity import FitRequest
from daskls.run.progress import Progress, StageClock
from daskls.run.rows import BlockRows
from daskls.store.layout import Root, read_partition
from daskls.store.models import (
    BundleModels,
    done_mask,
    drop_others,
    find_tiles,
    finished_bundles,
)
from daskls.store.reader import write_index

__all__ = ["FitResult", "run_fit"]


@dataclass(frozen=True)
class FitResult:
    """The fingerprint that names the finished model, and the seconds of each stage that ran."""

    fingerprint: str
    stage_s: dict[str, float]


def run_fit(
    request: FitRequest,
    rows: BlockRows,
    store: Path,
    client: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> FitResult:
    """Sample and partition, regroup, train; only what the store does not hold yet.

    Parameters
    ----------
    request : FitRequest
    rows : BlockRows
    store : Path. The model's folder; made if it does not exist.
    client : distributed client, or None for the current scheduler
    on_progress : called from a thread as work advances

    Returns
    -------
    result : FitResult
    """
    clock = StageClock(on_progress)
    by_chunks = request.method.get("name") == "chunks"
    check = check_chunks if by_chunks else check_memory
    begun = begin_fit(request, rows, store, check, clock, client)
    root, fingerprint = begun.root, begun.fingerprint
    if root.is_complete:
        root.remove_leftovers()
        return FitResult(fingerprint, clock.seconds)
    trained = _trained(root)
    if trained is not None:
        _finish(root, trained)
        return FitResult(fingerprint, clock.seconds)
    cut = deal_chunks if by_chunks else grow_trunks
    partition, exchange, leaf_rows = regroup_all(begun, check, clock, client, cut)
    plan = plan_bundles(
        begun.sizes, leaf_rows.tolist(), done_mask(root.path, partition.n_leaves), begun.resources
    )
    job = FitJob(str(root.path), fingerprint, exchange, request.spec, request.cell_size, begun.seed)
    finished = _finished_cells(root, leaf_rows, request.cell_size)
    with clock.stage("train", _n_cells(leaf_rows, request.cell_size), finished):
        train_bundles(plan.bundles, job, client)
    _finish(root, partition)
    return FitResult(fingerprint, clock.seconds)


def _trained(root: Root) -> Partition | None:
    """Return the partition of a model that lacks nothing but its index; else None."""
    group = root.find_group("partition")
    partition = None if group is None else read_partition(group)
    is_done = partition is not None and all(done_mask(root.path, partition.n_leaves))
    return partition if is_done else None


def _n_cells(leaf_rows: IntArray, cell_size: int) -> int:
    """Return the expected number of cells."""
    return int((-(-leaf_rows // cell_size)).sum())


def _finished_cells(root: Root, leaf_rows: IntArray, cell_size: int) -> Callable[[], int]:
    """Return a function that counts the cells of the bundles on disk."""

    def count() -> int:
        return sum(
            _n_cells(leaf_rows[first : last + 1], cell_size)
            for first, last in finished_bundles(root.path)
        )

    return count


def deal_chunks(begun: Beginning) -> Chunks:
    """Deal all rows to as few chunks as their size allows."""
    n_rows = begun.scan.n_kept
    return Chunks(n_rows, -(-n_rows // begun.request.cell_size), begun.seed)


def _finish(root: Root, partition: Partition) -> None:
    """Write the whole partitions and set the marker."""
    tiles = find_tiles(root.path, partition.n_leaves)
    spec = SolverSpec()
    bundles = [BundleModels(root.path, a, b, spec) for a, b in tiles]
    first_cells = np.cumsum([0, *(bundle.count_cells() for bundle in bundles)]).tolist()
    whole = _graft_all(partition, bundles) if isinstance(partition, Forest) else partition
    write_index(root, whole, tiles, first_cells)
    drop_others(root.path, tiles)
    root.remove_leftovers()


def _graft_all(trunks: Forest, bundles: list[BundleModels]) -> Forest:
    """Return the trees down to the cells."""
    branches = [branch for bundle in bundles for branch in bundle.branches(trunks.center)]
    trees = [
        graft(trunk, branches[first : first + trunk.n_leaves])
        for trunk, first in zip(trunks.trees, trunks.first_leaves, strict=False)
    ]
    return Forest(tuple(trees))
