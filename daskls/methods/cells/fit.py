"""The three stages of a fit on cells or chunks; finished parts of the store are kept."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskls.methods.cells.train import BRANCHES, FitJob, train_bundles
from daskls.methods.held_out import draw_of, map_held_out
from daskls.partition.base import Partition
from daskls.partition.chunks import Chunks
from daskls.partition.stored import read_partition, stored
from daskls.partition.tree import Tree, read_trees
from daskls.plan import plan_bundles
from daskls.records import Int64, SolverSpec
from daskls.run.begin import regroup_all
from daskls.run.contract import Beginning
from daskls.run.progress import StageClock
from daskls.store.layout import Root
from daskls.store.models import (
    BundleModels,
    done_mask,
    drop_others,
    find_tiles,
    finished_bundles,
)
from daskls.store.reader import write_index
from daskls.store.scale import width_of

__all__ = ["assign_chunks", "fit_cells"]


def fit_cells(begun: Beginning, clock: StageClock, client: Any = None) -> None:
    """Regroup the rows and train every cell that the store does not hold yet.

    Parameters
    ----------
    begun : Beginning
    clock : StageClock
    client : distributed client, or None for the current scheduler
    """
    root, request = begun.root, begun.request
    trained = _trained(root)
    if trained is not None:
        _finish(begun, trained)
        return
    partition, exchange, leaf_rows = regroup_all(begun, clock, client)
    plan = plan_bundles(
        begun.sizes, leaf_rows.tolist(), done_mask(root.path, partition.n_leaves), begun.resources
    )
    job = FitJob(
        str(root.path),
        begun.fingerprint,
        exchange,
        request.spec,
        request.cell_size,
        begun.seed,
        draw_of(begun),
    )
    finished = _finished_cells(root, leaf_rows, request.cell_size)
    with clock.stage("train", _n_cells(leaf_rows, request.cell_size), finished):
        train_bundles(plan.bundles, job, client)
    _finish(begun, partition)


def _trained(root: Root) -> Partition | None:
    """Return the partition of a model that lacks nothing but its index; else None."""
    group = root.find_group("partition")
    partition = None if group is None else read_partition(group)
    is_done = partition is not None and all(done_mask(root.path, partition.n_leaves))
    return partition if is_done else None


def _n_cells(leaf_rows: Int64, cell_size: int) -> int:
    """Return the expected number of cells."""
    return int((-(-leaf_rows // cell_size)).sum())


def _finished_cells(root: Root, leaf_rows: Int64, cell_size: int) -> Callable[[], int]:
    """Return a function that counts the cells of the bundles on disk."""

    def count() -> int:
        return sum(
            _n_cells(leaf_rows[first : last + 1], cell_size)
            for first, last in finished_bundles(root.path)
        )

    return count


def assign_chunks(begun: Beginning) -> Chunks:
    """Assign all rows to as few chunks as their size allows."""
    n_rows = begun.scan.n_kept
    return Chunks(n_rows, -(-n_rows // begun.request.cell_size), begun.seed)


def _finish(begun: Beginning, partition: Partition) -> None:
    """Write the maps to probabilities and the whole partitions, and set the marker."""
    root = begun.root
    tiles = find_tiles(root.path, partition.n_leaves)
    # Any spec will do: counts and trees are read, no models.
    spec = SolverSpec()
    bundles = [BundleModels(root.path, a, b, spec) for a, b in tiles]
    map_held_out(begun, bundles, partition.n_partitions)
    first_cells = np.cumsum([0, *(bundle.count_cells() for bundle in bundles)]).tolist()
    width = width_of(root)
    branches = [branch for own in bundles for branch in _branches(own, width)]
    write_index(root, *stored(partition.join(branches)), tiles, first_cells)
    # Only the index says which of overlapping bundles are the model's.
    drop_others(root.path, tiles)


def _branches(bundle: BundleModels, n_features: int) -> tuple[Tree, ...]:
    """Return the trees inside a bundle's leaves; their center is the partition's to know."""
    n_leaves = bundle.last_leaf - bundle.first_leaf + 1
    n_nodes = bundle.count_cells() - n_leaves
    return read_trees(bundle.group, np.zeros(n_features), BRANCHES, n_leaves, n_nodes)
