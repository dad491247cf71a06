"""A fit of any method, and its bill: what the fit will cost, before any row is read.

A fit begins, chooses what all cells share, runs the method's own stages and cleans up. The bill
goes through the same steps with expected sizes.
"""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from daskls.errors import MemoryPlanError
from daskls.memory import TaskSizes, assign_nbytes
from daskls.methods.calibrate import NestedFit, calibrate, count_folds
from daskls.methods.held_out import maps_held_out, rows_drawn
from daskls.methods.reserved import ASKED_AT_ONCE, has_used_reserved, stage_of, use_reserved
from daskls.partition.base import Shrinkage, measure_shrinkage
from daskls.partition.stored import model_partition
from daskls.plan import (
    READ,
    Bill,
    Demand,
    Extent,
    Outlook,
    Resources,
    SamplePlan,
    StageDemand,
    Work,
    bill_stages,
    check_sample,
    growing_nbytes,
    plan_exchange,
    plan_sample,
)
from daskls.records import F4
from daskls.run.begin import begin_fit, sizes_of
from daskls.run.blas import one_blas_thread
from daskls.run.blocks import BlockRows
from daskls.run.contract import FitRequest, FitState
from daskls.run.pace import Setting, measure_paces
from daskls.run.progress import OnCut, Progress, StageClock
from daskls.run.reserve import rows_expected
from daskls.run.scan import warn_of_chunks
from daskls.run.workers import find_resources, free_nbytes
from daskls.scaling.coding import widest_and_narrowest
from daskls.scaling.demand import OpenChoice, expected_spec, race_parts, scaling_stages
from daskls.scaling.fit import resolve
from daskls.scaling.grid import check_race, check_regions
from daskls.scaling.regions import HELD_SHARE, WANTED_ROWS
from daskls.solvers.registry import find_loss
from daskls.store.artifacts import Location
from daskls.store.backend import Backend
from daskls.store.caches import BASELINE_NBYTES
from daskls.store.layout import Root
from daskls.store.reader import ModelReader
from daskls.targets import Target

log = logging.getLogger("daskls")
CHECK, REGROUP = "run.pace:check_block", "run.pace:regroup_block"
MERGE = "run.pace:merge_rows"
# Rows of a block that are timed; the time of a pass over blocks is proportional to its rows.
TIMED_ROWS = 16_000
# With fewer features, cells shrink as their number grows, and nothing is measured.
LEAST_FEATURES = 50
# A fit of this many rows takes a minute or more, beside which three seconds for a bill are little.
LONG_ROWS = 2_000_000


@dataclass(frozen=True)
class FitResult:
    """The result of a fit, beside its store.

    Attributes
    ----------
    fingerprint : str. Identifies the finished model.
    stage_s : dict. Seconds of each stage that ran.
    units : (int, int, float), or None. The features with the largest and the smallest spread, and
        the ratio of the spreads. None where the ratio is at most 1000 or was not asked for.
    shrinkage : Shrinkage, or None. How much nearer to each other the rows of a cell are than those
        of the whole sample. None where it was not asked for, with fewer than `LEAST_FEATURES`
        features, or if the model was complete before.
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

    Parameters
    ----------
    store : path, URL or Backend. The model's store; created if it does not exist.
    on_progress : called from a thread as work advances
    on_cut : called with the partition once it is known, unless the model is already complete
    """
    clock = StageClock(on_progress, on_cut)
    state = begin_fit(request, rows, store, clock, client)
    units = None
    if request.checks_units:
        units = widest_and_narrowest(state.sample.X, with_rare=False)
    shrinkage = None
    # A fit may have been killed after its model was complete and before it used the reserved rows.
    if not (state.root.is_complete and has_used_reserved(state)):
        warn_of_chunks(rows, state.resources)
        if clock.is_watched and state.scan.n_kept >= LONG_ROWS:
            expected = _expected(state)
            if expected:
                clock.expect(expected)
        resolved = resolve(state)
        if request.probability is not None and not maps_held_out(request):
            calibrate(state, resolved, _nested(client))
        # Drops the unscaled sample: training need not run beside two copies.
        state = resolved
        request.method.fit(state)
        use_reserved(state)
        shrinkage = _measured(state) if request.measures_shrinkage else None
        # Opened again, as the marker was set since. A fit that is killed before this has no times.
        Root.open(state.root.store).update(stage_s=clock.seconds)
    # Also of a complete model: its fit may have been killed before it cleaned up.
    request.method.clean_up(state.root)
    return FitResult(state.fingerprint, clock.seconds, units, shrinkage)


def _expected(state: FitState) -> list[tuple[str, float]]:
    """Return the stages after the first with their expected seconds; none if the bill fails."""
    try:
        bill = plan_fit(state.request, state.rows, state.scan.target, state.resources, state.client)
    except Exception:
        # Whatever the error: a fit must not fail because its progress cannot be estimated.
        log.debug("no bill could be made", exc_info=True)
        return []
    n_slots = state.resources.n_slots
    # Slots may share cores with other work, which `busy` accounts for.
    return [(stage.name, bill.busy * stage.wall_s(n_slots)) for stage in bill.stages[1:]]


def _measured(state: FitState) -> Shrinkage | None:
    """Return how far the finished model's cells shrink the scatter of the sampled rows."""
    if state.sample.X.shape[1] < LEAST_FEATURES:
        return None
    reader = ModelReader(state.root.store)
    with one_blas_thread():
        return measure_shrinkage(model_partition(reader), state.sample.X)


def _nested(client: Any) -> NestedFit:
    """Return the function that fits models on some of the rows, in stores inside the fit's own."""

    def fit(request: FitRequest, rows: BlockRows, store: Backend) -> str:
        return run_fit(request, rows, store, client).fingerprint

    return fit


def plan_fit(
    request: FitRequest,
    rows: BlockRows,
    target: Target,
    resources: Resources | None = None,
    client: Any = None,
    *,
    timed: bool = True,
    notes: tuple[str, ...] = (),
) -> Bill:
    """Return the bill of a fit; no row is read.

    Parameters
    ----------
    rows : BlockRows. Only the shape, dtype and blocks of X are used.
    target : Target. With the expected number of classes or outputs.
    resources : Resources, or None for those of the current scheduler
    timed : bool. Whether to time pieces of the work on a worker, which takes some seconds.
    notes : tuple of str. Assumptions that the bill lists.
    """
    resources = find_resources(client) if resources is None else resources
    n_kept = rows.n_rows - _n_reserved(request, rows)
    request = request.for_data(n_kept, rows.n_features, target.n_aims)
    own = _ExpectedFit(request, rows, target, resources)
    demand, common = own.demand(), own.common()
    stages = (*common, *demand.stages)
    works = [work for stage in stages for work in stage.works]
    paces, busy = measure_paces(works, own.setting(), client) if timed else (None, 1.0)
    billed = bill_stages(common, demand, paces)
    task_nbytes = max((stage.nbytes for stage in billed), default=0)
    return Bill(
        estimator=request.estimator,
        n_rows=rows.n_rows,
        n_features=rows.n_features,
        stages=billed,
        n_bundles=demand.n_bundles,
        n_models=demand.n_models,
        resources=resources,
        client_nbytes=growing_nbytes(own.sampling, own.raw) + demand.client_nbytes,
        worker_nbytes=BASELINE_NBYTES + task_nbytes,
        exchange=own.outlook.exchange,
        model_nbytes=demand.model_nbytes,
        refusals=tuple(dict.fromkeys(own.refusals())),
        notes=notes,
        busy=busy,
    )


def _n_reserved(request: FitRequest, rows: BlockRows) -> int:
    """Return how many rows a fit is expected to reserve."""
    spec, row_nbytes = request.reserved_for, rows.n_features * rows.X.dtype.itemsize
    return 0 if spec is None else rows_expected(spec, rows.n_rows, row_nbytes)


class _ExpectedFit:
    """The sizes that `begin_fit` and `resolve` are expected to find."""

    def __init__(
        self, request: FitRequest, rows: BlockRows, target: Target, resources: Resources
    ) -> None:
        target = replace(target, quantile=request.spec.quantile)
        self.request, self.target, self.resources = request, target, resources
        self.rows = rows = rows.planned(resources.task_nbytes)
        n_rows = rows.n_rows
        self.raw = sizes_of(request, rows, target)
        self.sampling = plan_sample(n_rows, rows.n_features, request.cell_size)
        self.sizes = self._scaled_sizes()
        self.choice: OpenChoice | None = None
        if request.scaling is not None:
            self.choice = OpenChoice(
                scaling=request.scaling,
                spec=request.spec,
                n_rows=n_rows,
                n_sample=self.sampling.n_sample,
                cell_size=request.cell_size,
            )
        self.outlook = self._outlook(n_rows, self.sampling)

    @property
    def is_scaled(self) -> bool:
        """Whether leaves are expected to hold scaled rows."""
        scaling = self.request.scaling
        return scaling is not None and scaling.feature_scale is not None

    def _scaled_sizes(self) -> TaskSizes:
        """Return the sizes of tasks with the scale and the parameters that are usually chosen."""
        spec = expected_spec(self.request.spec, self.request.scaling)
        sizes = replace(self.raw, spec=spec)
        if not self.is_scaled:
            return sizes
        return replace(sizes, itemsize=F4, raw_nbytes=sizes.n_features * sizes.itemsize)

    def _outlook(self, n_rows: int, sampling: SamplePlan) -> Outlook:
        request, resources = self.request, self.resources
        of_one = request.method.expected_leaves(n_rows, sampling, request.cell_size)
        n_partitions = request.n_partitions
        n_leaves = of_one * n_partitions
        exchange = plan_exchange(self.sizes, n_rows, n_leaves, n_partitions, resources.task_nbytes)
        leaf_rows = min(sampling.largest_rows, n_rows)
        extent = Extent(self.sizes, n_rows, leaf_rows, self.rows.block_rows)
        n_runs = exchange.n_groups * n_leaves
        reading = Work(READ, max(n_rows * n_partitions // n_runs, 1), n_runs)
        return Outlook(
            extent=extent,
            resources=resources,
            exchange=exchange,
            n_sample=sampling.n_sample,
            n_leaves=n_leaves,
            n_partitions=n_partitions,
            reading=reading,
        )

    def setting(self) -> Setting:
        """Return the setting in which pieces of work are timed."""
        outlook = self.outlook
        return Setting(
            method=self.request.method,
            spec=self.sizes.spec,
            n_features=self.sizes.n_features,
            dtype="<f4" if self.is_scaled else self.rows.X.dtype.str,
            n_classes=self.target.n_aims,
            n_leaves=outlook.n_leaves // outlook.n_partitions,
            cell_size=self.request.cell_size,
            leaf_rows=outlook.extent.leaf_rows,
            n_asked=self._n_asked(),
        )

    def _n_asked(self) -> int:
        """Return how many rows of a cell need held-out values, see `draw_of`."""
        if not find_loss(self.request.spec).knows_held_out:
            return 0
        n, size = self.rows.n_rows, min(self.request.cell_size, self.rows.n_rows)
        return math.ceil(size * rows_drawn(n, self.target.n_aims, size) / n)

    def common(self) -> tuple[StageDemand, ...]:
        """Return the stages before the method's own."""
        blocks, block_rows = self.rows.n_blocks, self.rows.block_rows
        nbytes = assign_nbytes(self.raw, block_rows)
        size = min(block_rows, TIMED_ROWS)
        n_pieces = self.rows.n_rows / size
        checked = Work(CHECK, size, n_pieces)
        # Two tasks per block: the first counts labels.
        sample = StageDemand("sample", 2 * blocks, nbytes, (checked,))
        exchange, n_written = self.outlook.exchange, n_pieces * self.outlook.n_partitions
        regroup = StageDemand(
            "regroup",
            blocks + exchange.n_windows,
            max(assign_nbytes(self.sizes, block_rows), exchange.manifest_nbytes),
            (Work(REGROUP, size, n_written),),
        )
        merge: tuple[StageDemand, ...] = ()
        if exchange.n_windows > 1:
            n_files, merged = exchange.n_groups * exchange.n_windows, Work(MERGE, size, n_written)
            merge = (StageDemand("merge", n_files, regroup.nbytes, (merged,)),)
        chosen = () if self.choice is None else scaling_stages(self.choice, self.outlook)
        return sample, *chosen, *self._calibration(), regroup, *merge

    def demand(self) -> Demand:
        """Return the demand of the method, and of the stage that uses reserved rows."""
        own, spec = self.request.method.demand(self.outlook), self.request.reserved_for
        if spec is None:
            return own
        n_reserved = _n_reserved(self.request, self.rows)
        row_nbytes = self.rows.n_features * self.raw.itemsize
        n_tasks = -(-n_reserved // ASKED_AT_ONCE)
        nbytes = min(n_reserved, ASKED_AT_ONCE) * row_nbytes
        return replace(
            own,
            stages=(*own.stages, StageDemand(stage_of(spec), n_tasks, nbytes)),
            client_nbytes=own.client_nbytes + n_reserved * row_nbytes,
        )

    def _calibration(self) -> tuple[StageDemand, ...]:
        """Return the stage of calibration, where it fits models of its own."""
        if self.request.probability is None or maps_held_out(self.request):
            return ()
        taken = min(self.rows.n_rows, WANTED_ROWS)
        n_folds = count_folds(taken)
        n_rows = max(taken - taken // HELD_SHARE, 2)
        sizes = self.sizes
        sampling = plan_sample(n_rows, sizes.n_features, self.request.cell_size)
        stages = self.request.method.demand(self._outlook(n_rows, sampling)).stages
        works = tuple(
            replace(work, count=n_folds * work.count) for own in stages for work in own.works
        )
        n_tasks = n_folds * sum(own.n_tasks for own in stages)
        nbytes = max(own.nbytes for own in stages)
        return (StageDemand("calibrate", n_tasks, nbytes, works, n_folds),)

    def refusals(self) -> Iterator[str]:
        """Yield the messages of the memory errors that `fit` would raise."""
        extent, method, resources = self.outlook.extent, self.request.method, self.resources
        before = replace(extent, sizes=self.raw)
        remedy = self.request.sample_remedy
        checks: list[Callable[[], None]] = [
            lambda: check_sample(self.sampling, self.raw, free_nbytes(), remedy)
        ]
        # A method reports only the first task that does not fit. Where that is a block's, checking
        # again with blocks of one row finds the next.
        extents = before, _without_blocks(before), extent, _without_blocks(extent)
        checks += [partial(method.check, own, resources) for own in extents]
        checks += self._choice_checks()
        for check in checks:
            try:
                check()
            except MemoryPlanError as error:
                yield str(error)

    def _choice_checks(self) -> Iterator[Callable[[], None]]:
        choice, sizes, resources = self.choice, self.raw, self.resources
        if choice is None or not choice.is_open:
            return
        parts = race_parts(choice)
        yield lambda: check_race(parts, sizes.n_features, sizes, resources)
        if choice.is_dense:
            rows = choice.cell_rows
            yield lambda: check_regions(sizes, self.rows.block_rows, rows, resources)


def _without_blocks(extent: Extent) -> Extent:
    """Return an extent whose blocks need almost no memory."""
    sizes = replace(extent.sizes, source_nbytes=0, unpack_nbytes=0)
    return replace(extent, sizes=sizes, block_rows=1)
