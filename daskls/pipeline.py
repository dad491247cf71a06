"""A fit, from the first look at y to the finished model.

    scan -> check -> sample -> search -> partition -> regroup -> train -> index

Each stage writes parts of the store (`store/contents.py`), and runs for those that do not exist; so
a fit that was killed goes on where it stopped. What a method does beside the others is its own:
how it cuts space, and what it trains on the rows of a leaf.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from daskls.blas import one_blas_thread, undisturbed
from daskls.errors import StoreError
from daskls.gaps import Gaps
from daskls.methods.calibrate import NestedFit, calibrate
from daskls.methods.held_out import maps_held_out
from daskls.methods.reserved import has_used_reserved, use_reserved
from daskls.partition.base import Partition, Shrinkage, measure_shrinkage
from daskls.partition.stored import model_partition, read_partition, write_partition
from daskls.plan.checks import check_sample
from daskls.plan.exchange import group_blocks
from daskls.run.blocks import BlockRows
from daskls.run.contract import EACH, FitRequest, FitState, RegroupedRows, ScannedRows
from daskls.run.identity import find_seed, open_root, removed_if_refused, repair
from daskls.run.progress import OnCut, Progress, StageClock
from daskls.run.regroup import gather_rows, has_rows, regroup_rows
from daskls.run.reserve import Reserve, plan_reserve
from daskls.run.resources import find_resources, free_nbytes
from daskls.run.sample import DrawnRows, Sample, sample_rows
from daskls.run.scan import check_costs, check_folds, scan_targets, warn_of_chunks, warn_of_classes
from daskls.scaling.coding import widest_and_narrowest
from daskls.scaling.fit import plan_choice, resolve
from daskls.solvers.registry import check_columns, find_loss, find_solver
from daskls.store.exchange import Exchange, stored_grids
from daskls.store.layout import Root, find_root
from daskls.store.objects import BaseStore, Location
from daskls.store.reader import ModelReader

# With fewer features, cells shrink as their number grows, and nothing is measured.
LEAST_FEATURES = 50


@dataclass(frozen=True)
class FitResult:
    """The result of a fit, beside its store.

    `units` are the features with the largest and the smallest spread, and the ratio of the spreads;
    None where it is at most 1000.
    """

    fingerprint: str
    stage_s: dict[str, float]
    units: tuple[int, int, float] | None = None
    shrinkage: Shrinkage | None = None


def run_fit(
    request: FitRequest,
    rows: BlockRows,
    store: Location,
    client: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_cut: OnCut | None = None,
) -> FitResult:
    """Run the stages that the store does not hold yet, until the model is complete.

    `on_progress` is called from a thread; `on_cut` with the partition once it is known.
    """
    clock = StageClock(on_progress, on_cut)
    state = begin(request, rows, store, clock, client)
    units = None
    if request.checks_units:
        units = widest_and_narrowest(state.sample.X, with_rare=False)
    shrinkage = None
    # A fit may have been killed after its model was complete and before it used the reserved rows.
    if not (state.root.is_complete and has_used_reserved(state)):
        warn_of_chunks(rows, state.resources)
        with removed_if_refused(state.root, request.method):
            # Drops the unscaled sample: training need not run beside two copies.
            state = search(state)
            train(state)
            use_reserved(state)
        shrinkage = _measured(state) if request.measures_shrinkage else None
        # Opened again, as `complete` was set since. A fit that is killed before this has no times.
        Root.open(state.root.store).update(stage_s=clock.seconds)
        # Nothing else reads bundles that an earlier fit finished. While the rows are still there:
        # a damaged one is made again from them.
        _ = ModelReader(state.root.store).report
    # Also of a complete model: its fit may have been killed before it cleaned up.
    request.method.clean_up(state.root)
    return FitResult(state.fingerprint, clock.seconds, units, shrinkage)


def begin(
    request: FitRequest, rows: BlockRows, store: Location, clock: StageClock, client: Any = None
) -> FitState:
    """Read y, then X once: what is refused before X is read costs neither time nor a store."""
    seed = find_seed(request, store)
    resources = find_resources(client)
    rows = rows.planned(resources.task_nbytes, stored_grids(store))
    scan = scan_targets(rows, client, request.spec.target)
    check_columns(request.spec, scan.target.width)
    scan = replace(scan, target=replace(scan.target, quantile=request.spec.quantile))
    reserve, left = None, scan
    if request.reserved_for is not None:
        reserve = plan_reserve(request.reserved_for, rows, scan, seed)
        left = reserve.expected(scan)
    scanned = ScannedRows(request, rows, left, resources)
    advise(scanned)
    planned = with_defaults(scanned)
    check_sample(planned.sampling, planned.sizes, free_nbytes(), request.sample_remedy)
    if not find_root(store):
        # A fit that is resumed may have chosen already.
        n_sample = planned.sampling.n_sample
        for check in plan_choice(planned.request, planned.sizes, n_sample, resources)[1]:
            check()
    with clock.stage("sample", rows.n_blocks, None):
        drawn = planned.sampling.n_sample, seed, client, reserve
        takes_nan, names = request.takes_nan, request.feature_names
        read = sample_rows(rows, scan, *drawn, names, takes_nan=takes_nan)
    if reserve is not None:
        # The number of rows that are left is known only now.
        planned = with_defaults(replace(scanned, scan=read.scan))
    sample = read.sample(planned.class_weight, planned.sampling.n_sample, seed)
    if request.takes_nan and not request.is_nested:
        planned, sample = without_gaps(planned, sample, read, seed)
    reserve = read.reserve
    # It holds more rows than the sample.
    del read
    return identify(planned, sample, reserve, seed, store, clock, client)


def without_gaps(
    scanned: ScannedRows, sample: Sample, read: DrawnRows, seed: int
) -> tuple[ScannedRows, Sample]:
    """Return the fit, which now knows what fills gaps, and its sample, in which they are filled."""
    gaps, request = Gaps.of(sample.X, read.gaps), scanned.request
    scanned = replace(scanned, rows=replace(scanned.rows, gaps=gaps))
    if not gaps.marked:
        return scanned, sample
    names = None if request.feature_names is None else gaps.names(request.feature_names)
    # More features may mean other cells, and another sample.
    scanned = with_defaults(replace(scanned, request=replace(request, feature_names=names)))
    sample = read.sample(scanned.class_weight, scanned.sampling.n_sample, seed)
    return scanned, replace(sample, X=gaps.fill(sample.X))


def advise(scanned: ScannedRows) -> None:
    """Warn of too many classes, or of small ones; refuse more folds than rows."""
    request, scan = scanned.request, scanned.scan
    if not request.is_nested and scan.target.kind == "classes":
        warn_of_classes(scan)
    if request.n_folds is not None:
        check_folds(request.n_folds, scanned.rows, scan)


def with_defaults(scanned: ScannedRows) -> ScannedRows:
    """Return it with the cells for its number of rows; refuse what would not fit in memory."""
    scan, n_features = scanned.scan, scanned.rows.n_features
    request = scanned.request.for_data(scan.n_kept, n_features, scan.target.n_targets)
    resolved = replace(scanned, request=request)
    check_costs(request.spec.C or (1.0,), scan, resolved.class_weight)
    resolved.check_memory()
    return resolved


def identify(
    scanned: ScannedRows,
    sample: Sample,
    reserve: Reserve | None,
    seed: int,
    store: Location,
    clock: StageClock,
    client: Any = None,
) -> FitState:
    """Open the store, whose fit the sample and the checksum of all rows identify."""
    request, rows, spec = scanned.request, scanned.rows, scanned.request.spec
    loss = find_loss(spec)
    target = scanned.scan.target.measured(sample.targets, sample.weights, robustly=loss.is_robust)
    scan = replace(scanned.scan, target=target)
    sample = replace(sample, targets=target.standardize(sample.targets))
    root = open_root(request, rows, scan, seed, sample.checksum, store)
    # Each kill may leave a block or more on the disk.
    root.store.sweep()
    repair(root, request.method, client)
    if loss.costs_by_cell:
        # After open_root, as the identity of the fit is that of the given spec.
        spec = replace(spec, unit=float(target.scale[0]))
        spec = find_solver(spec).completed(spec, sample.targets, sample.weights)
    return FitState(
        replace(request, spec=spec), rows, scan, scanned.resources, sample, seed, root, clock,
        client, reserve=reserve,
    )  # fmt: skip


def search(state: FitState) -> FitState:
    """Return the state in the scale, and with the parameters, that all cells share."""
    resolved = resolve(state)
    if state.request.probability not in (None, EACH) and not maps_held_out(state.request):
        calibrate(state, resolved, _nested(state.client))
    return resolved


def _nested(client: Any) -> NestedFit:
    """Return the function that fits models on some of the rows, in stores inside the fit's own."""

    def fit(request: FitRequest, rows: BlockRows, store: BaseStore) -> str:
        return run_fit(request, rows, store, client).fingerprint

    return fit


def train(state: FitState) -> None:
    """Train on the rows of each leaf, or among them; write the index last."""
    method, regrouped = state.request.method, None
    if method.keeps_rows:
        if not has_rows(state):
            gather_rows(state, regroup(state))
    elif not method.is_trained(state.root):
        regrouped = regroup(state)
    method.train(state, regrouped)


def regroup(state: FitState) -> RegroupedRows:
    """Cut space, and write every row to its leaf."""
    method = state.request.method
    partition = _partition(state)
    state.clock.report_cut(partition, state.sample.X, state.feature_names)
    exchange = _exchange(state, partition)
    # Merging, and gathering, writes every row a second time.
    n_written = partition.n_partitions * (2 if exchange.is_merged else 1) + method.keeps_rows
    _check_disk(state, n_written, exchange)
    leaf_rows = regroup_rows(state, exchange)
    # The plan was projected from the sample; leaves of all rows may be larger.
    state.check_memory(int(leaf_rows.max()))
    return RegroupedRows(partition, exchange, leaf_rows)


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
    # Files that an earlier fit has written need no more room.
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


def _measured(state: FitState) -> Shrinkage | None:
    if state.sample.X.shape[1] < LEAST_FEATURES:
        return None
    reader = ModelReader(state.root.store)
    with one_blas_thread():
        return measure_shrinkage(model_partition(reader), state.sample.X)
