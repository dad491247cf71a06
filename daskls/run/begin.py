"""The beginning of every fit: sample and partition (stage 1), rows regrouped by leaf (stage 2)."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from daskls.errors import ParameterError, StoreError
from daskls.kernels.kernel import find_kernel
from daskls.memory import TaskSizes
from daskls.partition.base import Partition
from daskls.partition.stored import read_partition, write_partition
from daskls.plan.bundles import Extent, Resources, SamplePlan, plan_sample
from daskls.plan.checks import check_sample
from daskls.plan.exchange import group_blocks
from daskls.records import LARGEST, SMALLEST, Float64, Int64, SolverSpec
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.blocks import BlockRows
from daskls.run.contract import FitRequest, FitState
from daskls.run.identity import find_seed, open_root, repair
from daskls.run.progress import StageClock
from daskls.run.regroup import regroup_rows
from daskls.run.reserve import plan_reserve
from daskls.run.sample import sample_rows
from daskls.run.scan import (
    TargetScan,
    name_classes,
    scan_targets,
    warn_of_classes,
    warn_of_thin_classes,
)
from daskls.run.workers import find_resources, free_nbytes
from daskls.solvers.registry import LOSSES, find_loss, find_solver, losses_of
from daskls.store.exchange import Exchange, stored_grids
from daskls.store.objects import Location
from daskls.targets import Target


def begin_fit(
    request: FitRequest,
    rows: BlockRows,
    store: Location,
    clock: StageClock,
    client: Any = None,
) -> FitState:
    resources = find_resources(client)
    rows = rows.planned(resources.task_nbytes, stored_grids(store))
    scan = scan_targets(rows, client, request.spec.target)
    _check_columns(request.spec, scan.target)
    scan = replace(scan, target=replace(scan.target, quantile=request.spec.quantile))
    reserve, left = None, scan
    if request.reserved_for is not None:
        seed = find_seed(request, store)
        reserve = plan_reserve(request.reserved_for, rows, scan, seed)
        left = reserve.expected(scan)
    if not request.is_nested and scan.target.kind == "classes":
        warn_of_classes(left)
    if request.n_folds is not None:
        _check_folds(request.n_folds, rows, left)
    settled = _settled(request, rows, left, resources)
    _, sizes, sampling, _ = settled
    check_sample(sampling, sizes, free_nbytes(), request.sample_remedy)
    # Only from here on is X read, and then a store created: what is refused above costs neither.
    seed = find_seed(request, store) if reserve is None else seed
    with clock.stage("sample", rows.n_blocks, None):
        drawn = sampling.n_sample, seed, client, reserve
        read = sample_rows(rows, scan, *drawn, request.feature_names)
    scan, reserve = read.scan, read.reserve
    if reserve is not None:
        # The number of rows that are left is known only now.
        settled = _settled(request, rows, scan, resources)
    request, sizes, sampling, class_weight = settled
    sample = read.sample(class_weight, sampling.n_sample, seed)
    # It holds more rows than the sample.
    del read
    is_robust = find_loss(request.spec).is_robust
    target = scan.target.measured(sample.targets, sample.weights, robustly=is_robust)
    scan = replace(scan, target=target)
    sample = replace(sample, targets=target.enter(sample.targets))
    # After the sample, as its pass takes the checksum of all rows, which is part of the identity.
    root = open_root(request, rows, scan, seed, sample.checksum, store)
    # Each kill may leave a block or more on the disk.
    root.store.sweep()
    repair(root, request.method, client)
    if find_loss(request.spec).costs_by_cell:
        # After open_root, as the identity of the fit is that of the given spec.
        spec = replace(request.spec, unit=float(target.scale[0]))
        spec = find_solver(spec).settle(spec, sample.targets, sample.weights)
        request, sizes = replace(request, spec=spec), replace(sizes, spec=spec)
    return FitState(
        request, rows, scan, resources, sizes, sampling, sample, seed, class_weight, root,
        clock, client, reserve=reserve,
    )  # fmt: skip


def _settled(
    request: FitRequest, rows: BlockRows, scan: TargetScan, resources: Resources
) -> tuple[FitRequest, TaskSizes, SamplePlan, Float64]:
    """Return what follows from the counts of rows: request, sizes, sample and class weights."""
    request = request.for_data(scan.n_kept, rows.n_features, scan.target.n_aims)
    sizes = sizes_of(request, rows, scan.target)
    class_weight = _class_weight(request, rows, scan)
    _check_costs(request.spec, scan, class_weight)
    sampling = plan_sample(scan.n_kept, rows.n_features, request.cell_size)
    leaf_bound = min(sampling.largest_rows, scan.n_kept)
    request.method.check(Extent(sizes, scan.n_kept, leaf_bound, rows.block_rows), resources)
    return request, sizes, sampling, class_weight


def sizes_of(request: FitRequest, rows: BlockRows, target: Target) -> TaskSizes:
    return TaskSizes(
        rows.n_features,
        rows.X.dtype.itemsize,
        target.n_functions,
        request.cell_size,
        request.spec,
        target_nbytes=target.width * target.dtype.itemsize,
        # Rows are copied only where some may be left out.
        n_block_copies=2 if rows.weights is None and request.reserved_for is None else 3,
        source_nbytes=rows.source_nbytes,
        unpack_nbytes=rows.unpack_nbytes,
    )


def _class_weight(request: FitRequest, rows: BlockRows, scan: TargetScan) -> Float64:
    """Return the weight of each class, by code; "balanced" uses the counts of the whole data."""
    k = scan.target.n_classes
    if request.class_weight is None:
        # Numbers get a single weight of 1.
        return np.ones(max(k, 1))
    if request.class_weight == "balanced":
        return scan.n_kept / (k * scan.counts)
    assert isinstance(request.class_weight, dict)
    classes = name_classes(rows, scan.target.labels).tolist()
    for label in request.class_weight:
        if label not in classes:
            raise ParameterError(
                f"class_weight names the class {label!r}, which y does not hold; "
                f"its classes are {classes}."
            )
    return np.array([float(request.class_weight.get(label, 1.0)) for label in classes])


def _check_folds(n_folds: int, rows: BlockRows, scan: TargetScan) -> None:
    most = int(scan.counts.max())
    if n_folds > most and scan.target.kind == "numbers":
        raise ParameterError(
            f"cv={n_folds} is more than the {most} rows. Lower cv, or fit on more rows."
        )
    if n_folds > most:
        raise ParameterError(
            f"cv={n_folds} cannot be greater than the number of members in each class; the largest "
            f"class has {most} rows. Lower cv, or fit on more rows of each class."
        )
    if scan.target.kind == "classes":
        warn_of_thin_classes(n_folds, rows, scan)


def _check_columns(spec: SolverSpec, target: Target) -> None:
    loss = find_loss(spec)
    if target.width == 1 or loss.takes_columns:
        return
    names = losses_of(spec.target, of_levels=loss.of_levels)
    able = [name for name in names if LOSSES[spec.target, name].takes_columns]
    other = f', or loss="{able[0]}", which takes several' if able else " for each fit"
    raise ParameterError(
        f"y has {target.width} columns, and loss={spec.loss!r} takes one. Pass one column{other}."
    )


def _check_costs(spec: SolverSpec, scan: TargetScan, class_weight: Float64) -> None:
    """Raise if products of C and weights, summed in float32, leave `SMALLEST` to `LARGEST`."""
    costs = spec.C or (1.0,)
    least, most = scan.weight_range
    least *= min(costs) * class_weight.min()
    most *= max(costs) * class_weight.max()
    if least < SMALLEST or most > LARGEST:
        raise ParameterError(
            f"C x sample_weight x class_weight ranges from {least:g} to {most:g}; solvers compute "
            f"in float32 and take {SMALLEST:g} to {LARGEST:g}. Bring C and the weights nearer to 1."
        )


def regroup_all(state: FitState) -> tuple[Partition, Exchange, Int64]:
    """Cut space and write every row to its leaf; return partition, exchange, and rows by leaf."""
    rows, scan = state.rows, state.scan
    method = state.request.method
    partition = _partition(state)
    state.clock.report_cut(partition, state.sample.X, state.feature_names)
    exchange = _exchange(state, partition)
    # Merging writes every row a second time.
    n_written = partition.n_partitions * (2 if exchange.is_merged else 1)
    _check_disk(state, n_written + method.n_copies, exchange)
    leaf_rows = regroup_rows(state, exchange)
    # The plan was projected from the sample; leaves of all rows may be larger.
    largest = int(leaf_rows.max())
    found = Extent(state.sizes, scan.n_kept, largest, rows.block_rows, at="found")
    method.check(found, state.resources)
    return partition, exchange, leaf_rows


@undisturbed
def _partition(state: FitState) -> Partition:
    root = state.root
    part = root.find("partition")
    if part is not None:
        return read_partition(part)
    with one_blas_thread():
        partition = state.request.method.cut(state)
    # After the limit has held to its end: a disturbed cut is repeated, never stored.
    write_partition(root, partition)
    return partition


def _exchange(state: FitState, partition: Partition) -> Exchange:
    """Return the handle of this fit's exchange, whose name includes a hash of the blocks."""
    rows = state.rows
    # A resumed fit may use other blocks: block 3 of the old ones must not pass for the new block 3.
    blocks = hashlib.sha256(str(rows.X.chunks[0]).encode()).hexdigest()[:12]
    return Exchange(
        state.root.where(f"exchange-{state.fingerprint[:12]}-{blocks}"),
        rows.n_blocks,
        partition.n_leaves,
        state.sizes.n_features,
        state.dtype.str,
        partition.n_partitions,
        state.scan.target.dtype.str,
        state.scan.target.width,
        group_blocks(rows.n_blocks, partition.n_leaves),
    )


def _check_disk(state: FitState, n_copies: int, exchange: Exchange) -> None:
    store = state.root.store
    needed = n_copies * state.scan.n_kept * state.sizes.row_nbytes
    # What an earlier fit has written needs no more room.
    needed -= exchange.nbytes() + store.nbytes("rows")
    free = store.free_nbytes()
    n_partitions = state.request.n_partitions
    fewer = f"lower n_partitions below {n_partitions}, " if n_partitions > 1 else ""
    if needed > free:
        raise StoreError(
            f"Regrouping {state.scan.n_kept} rows writes {needed >> 20} MiB more to "
            f"{store.where()} ({n_copies} x {state.sizes.row_nbytes} bytes a row), but "
            f"{free >> 20} MiB are free there. Free some space, {fewer}or give store= (for "
            "temporary stores: Dask's temporary-directory) on a larger disk."
        )


def resolved_spec(state: FitState) -> SolverSpec:
    """Return the spec, with scikit-learn's gamma "scale" if the kernel needs one and has none."""
    spec = state.request.spec
    if spec.gamma is not None or not find_kernel(spec.kernel).has_gamma:
        return spec
    return replace(spec, gamma=(scale_gamma(state),))


def scale_gamma(state: FitState) -> float:
    """Return 1 / (d x variance of the sampled values); the sample is all rows up to some 65,000."""
    variance = float(state.sample.X.var(dtype=np.float64))
    # As in scikit-learn, 1 where all values are equal.
    return 1.0 / (state.sizes.n_features * variance) if variance else 1.0
