"""The three stages of a fit, one after the other, on whatever is in the store already."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import ParameterError, StoreError
from daskls.graph.cluster import find_resources, free_nbytes, one_blas_thread, probe_store
from daskls.graph.identity import FitRequest, find_seed, name_classes, open_root
from daskls.graph.progress import Progress, StageClock
from daskls.graph.regroup import regroup_rows
from daskls.graph.rows import BlockRows
from daskls.graph.sample import Sample, sample_rows
from daskls.graph.scan import LabelScan, scan_labels
from daskls.graph.train import FitJob, train_bundles
from daskls.memory import TaskSizes
from daskls.partition.grow import grow_tree
from daskls.partition.tree import graft
from daskls.plan import SamplePlan, check_memory, check_sample, plan_bundles, plan_sample
from daskls.records import FloatArray, Forest, IntArray, SolverSpec
from daskls.store.exchange import Exchange
from daskls.store.files import no_space_is_store_error
from daskls.store.layout import Root, read_forest, write_forest
from daskls.store.models import (
    BundleModels,
    bundle_path,
    disjoint_bundles,
    finished_bundles,
    tile_leaves,
)
from daskls.store.reader import write_index

__all__ = ["FitResult", "run_fit"]

# What only an unfinished fit needs, relative to the store.
LEFTOVERS = ("exchange-*", "bundles/.*", "input-*", ".probe-*")


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
    probe_store(store, client)
    clock = StageClock(on_progress)
    resources = find_resources(client)
    scan = scan_labels(rows, client)
    sizes = TaskSizes(
        rows.n_features,
        rows.X.dtype.itemsize,
        len(scan.labels),
        request.cell_size,
        request.spec,
        n_block_copies=2 if rows.weights is None else 3,
    )
    class_weight = _class_weight(request, rows, scan)
    sampling = plan_sample(scan.n_kept, rows.n_features, request.cell_size)
    check_sample(sampling, sizes, free_nbytes())
    leaf_bound = min(sampling.leaf_rows, scan.n_kept)
    check_memory(sizes, scan.n_kept, leaf_bound, rows.block_rows, resources, at="expected")
    seed = find_seed(request, store)
    with clock.stage("sample", rows.n_blocks, None):
        sample = sample_rows(rows, scan, sampling.n_sample, seed, client)
    root = open_root(request, rows, scan, seed, sample.checksum, store)
    fingerprint = str(root.attributes["fingerprint"])
    if root.is_complete:
        _remove_leftovers(root)
        return FitResult(fingerprint, clock.seconds)
    trunks = _trunks(root, sample, sampling, request.n_partitions, seed)
    exchange = _exchange(root, rows, trunks)
    with clock.stage("regroup", rows.n_blocks, exchange.count_blocks):
        leaf_rows = regroup_rows(rows, scan, exchange, class_weight, root, sample.checksum, client)
    check_memory(sizes, scan.n_kept, int(leaf_rows.max()), rows.block_rows, resources, at="found")
    plan = plan_bundles(sizes, leaf_rows.tolist(), _done(root, trunks), resources)
    job = FitJob(str(root.path), fingerprint, exchange, request.spec, request.cell_size, seed)
    finished = _finished_cells(root, leaf_rows, request.cell_size)
    with clock.stage("train", _n_cells(leaf_rows, request.cell_size), finished):
        train_bundles(plan.bundles, job, client)
    _finish(root, trunks)
    return FitResult(fingerprint, clock.seconds)


def trunk_seed(seed: int, partition: int) -> tuple[int, ...]:
    """Name a further partition; the last number keeps it apart from any cell's seed."""
    return seed, partition, 0, 1


def _trunks(
    root: Root, sample: Sample, sampling: SamplePlan, n_partitions: int, seed: int
) -> Forest:
    """Grow the sampled trees and store them, or read those stored."""
    group = root.find_group("partition")
    if group is not None and group.attrs.get("complete", False):
        return read_forest(group)
    center = sample.X.mean(axis=0, dtype=np.float64)
    with one_blas_thread():
        seeds = [None, *(trunk_seed(seed, number) for number in range(1, n_partitions))]
        trunks = [grow_tree(sample.X, sampling.max_sampled_rows, center, s) for s in seeds]
    forest = Forest(tuple(trunks))
    group = root.replace_group("partition")
    with no_space_is_store_error(root.path):
        write_forest(group, forest)
        group.attrs["complete"] = True
    return forest


def _exchange(root: Root, rows: BlockRows, trunks: Forest) -> Exchange:
    """Return the handle of this fit's exchange; its name holds the blocks, which may change."""
    blocks = hashlib.sha256(str(rows.X.chunks[0]).encode()).hexdigest()[:12]
    return Exchange(
        str(root.path / f"exchange-{root.attributes['fingerprint'][:12]}-{blocks}"),
        rows.n_blocks,
        trunks.n_leaves,
        rows.n_features,
        rows.X.dtype.str,
        len(trunks.trees),
    )


def _class_weight(request: FitRequest, rows: BlockRows, scan: LabelScan) -> FloatArray:
    """Return the weight of each class, by code; "balanced" uses the counts of the whole data."""
    k = len(scan.labels)
    if request.class_weight is None:
        return np.ones(k)
    if request.class_weight == "balanced":
        return scan.n_kept / (k * scan.counts)
    assert isinstance(request.class_weight, dict)
    classes = name_classes(rows, scan).tolist()
    for label, value in request.class_weight.items():
        if label not in classes:
            raise ParameterError(
                f"class_weight names the class {label!r}, which y does not hold; "
                f"its classes are {classes}."
            )
        if not (np.isfinite(value) and value > 0):
            raise ParameterError(
                f"class_weight of {label!r} is {value!r}; it must be positive and finite. "
                "Leave rows that should not count out, or give them sample_weight 0."
            )
    return np.array([float(request.class_weight.get(label, 1.0)) for label in classes])


def _done(root: Root, trunks: Forest) -> list[bool]:
    """Return which leaves have models in the store."""
    done = np.zeros(trunks.n_leaves, bool)
    for first, last in disjoint_bundles(finished_bundles(root.path)):
        done[first : last + 1] = True
    return list(done)


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


def _finish(root: Root, trunks: Forest) -> None:
    """Write the whole partitions and set the marker."""
    found = finished_bundles(root.path)
    tiles = tile_leaves(found, trunks.n_leaves)
    if tiles is None:
        raise StoreError(
            f"{root.path} lacks bundles that were trained: something removed them. Call fit again "
            "on the same store: only what is missing is trained."
        )
    spec = SolverSpec()
    bundles = [BundleModels(root.path, a, b, spec) for a, b in tiles]
    branches = [branch for bundle in bundles for branch in bundle.branches(trunks.center)]
    trees = [
        graft(trunk, branches[first : first + trunk.n_leaves])
        for trunk, first in zip(trunks.trees, trunks.first_leaves, strict=False)
    ]
    first_cells = np.cumsum([0, *(bundle.n_cells for bundle in bundles)])[:-1]
    write_index(root, Forest(tuple(trees)), tiles, first_cells.tolist())
    for bundle in set(found) - set(tiles):
        shutil.rmtree(bundle_path(root.path, *bundle), ignore_errors=True)
    _remove_leftovers(root)


def _remove_leftovers(root: Root) -> None:
    """Remove exchanges, of earlier tries too, and what killed tasks and clients left."""
    for kind in LEFTOVERS:
        for path in root.path.glob(kind):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
