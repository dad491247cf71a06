"""A fit of any method."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daskls.methods.calibrate import NestedFit, calibrate
from daskls.methods.held_out import maps_held_out
from daskls.methods.reserved import has_used_reserved, use_reserved
from daskls.partition.base import Shrinkage, measure_shrinkage
from daskls.partition.stored import model_partition
from daskls.run.begin import begin_fit
from daskls.run.blas import one_blas_thread
from daskls.run.blocks import BlockRows
from daskls.run.contract import FitRequest, FitState
from daskls.run.progress import OnCut, Progress, StageClock
from daskls.run.scan import warn_of_chunks
from daskls.scaling.coding import widest_and_narrowest
from daskls.scaling.fit import resolve
from daskls.store.layout import Root
from daskls.store.objects import Location, Objects
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
    state = begin_fit(request, rows, store, clock, client)
    units = None
    if request.checks_units:
        units = widest_and_narrowest(state.sample.X, with_rare=False)
    shrinkage = None
    # A fit may have been killed after its model was complete and before it used the reserved rows.
    if not (state.root.is_complete and has_used_reserved(state)):
        warn_of_chunks(rows, state.resources)
        resolved = resolve(state)
        if request.probability is not None and not maps_held_out(request):
            calibrate(state, resolved, _nested(client))
        # Drops the unscaled sample: training need not run beside two copies.
        state = resolved
        request.method.fit(state)
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


def _measured(state: FitState) -> Shrinkage | None:
    if state.sample.X.shape[1] < LEAST_FEATURES:
        return None
    reader = ModelReader(state.root.store)
    with one_blas_thread():
        return measure_shrinkage(model_partition(reader), state.sample.X)


def _nested(client: Any) -> NestedFit:
    """Return the function that fits models on some of the rows, in stores inside the fit's own."""

    def fit(request: FitRequest, rows: BlockRows, store: Objects) -> str:
        return run_fit(request, rows, store, client).fingerprint

    return fit
