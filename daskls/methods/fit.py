"""One fit, of any method: begin, do the method's part, clean up."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daskls.methods.bill import plan_fit
from daskls.methods.calibrate import NestedFit, calibrate
from daskls.methods.reserved import has_used_reserved, use_reserved
from daskls.partition.shrink import Shrinkage, measure_shrinkage
from daskls.partition.stored import model_partition
from daskls.run.advice import warn_of_chunks
from daskls.run.begin import begin_fit
from daskls.run.blas import one_blas_thread
from daskls.run.blocks import BlockRows
from daskls.run.contract import HELD_OUT, Beginning, FitRequest
from daskls.run.progress import OnCut, Progress, StageClock
from daskls.scaling.fit import resolve
from daskls.scaling.spread import widest_and_narrowest
from daskls.store.artifacts import Location
from daskls.store.backend import Backend
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

log = logging.getLogger("daskls")

__all__ = ["FitResult", "run_fit"]

# Cells of fewer features shrink as they are more.
LEAST_FEATURES = 50
# Of so many rows a fit takes a minute and more: three seconds for its bill are few.
LONG_ROWS = 2_000_000


@dataclass(frozen=True)
class FitResult:
    """The result of a fit, beside its store.

    Attributes
    ----------
    fingerprint : str. Names the finished model.
    stage_s : dict. Seconds of each stage that ran.
    units : (int, int, float), or None. The features of the largest and the smallest spread, and
        their ratio, where rows stay as they are and it is beyond 1000.
    shrinkage : Shrinkage, or None. What the cells leave of the distances of rows.
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
    request : FitRequest
    rows : BlockRows
    store : path, URL or Backend. The model's; made if it does not exist.
    client : distributed client, or None for the current scheduler
    on_progress : called from a thread as work advances
    on_cut : called with the partition once it is known, unless the model is complete

    Returns
    -------
    result : FitResult
    """
    clock = StageClock(on_progress, on_cut)
    begun = begin_fit(request, rows, store, clock, client)
    units = None
    if request.minds_units:
        units = widest_and_narrowest(begun.sample.X, with_rare=False)
    shrinkage = None
    # A fit may have been killed between its model and what rows are reserved for.
    if not (begun.root.is_complete and has_used_reserved(begun)):
        warn_of_chunks(rows, begun.resources)
        if clock.is_watched and begun.scan.n_kept >= LONG_ROWS:
            expected = _expected(begun, client)
            if expected:
                clock.expect(expected)
        raw, begun = begun, resolve(begun, clock, client)
        if request.probability not in (None, HELD_OUT):
            calibrate(raw, begun, _nested(client), clock, client)
        request.method.fit(begun, clock, client)
        use_reserved(begun, clock, client)
        shrinkage = _measured(begun) if request.minds_space else None
        # Read anew: the marker was set since. A model that is killed before this lacks its times.
        Root.open(begun.root.store).update(stage_s=clock.seconds)
    # Also after a fit that was killed between its end and here.
    request.method.clean_up(begun.root)
    return FitResult(begun.fingerprint, clock.seconds, units, shrinkage)


def _expected(begun: Beginning, client: Any) -> list[tuple[str, float]]:
    """Return the stages that follow the first with their expected seconds; none if it fails."""
    try:
        bill = plan_fit(begun.request, begun.rows, begun.scan.target, begun.resources, client)
    except Exception:
        # Any error: no fit should fail because of what is told of it.
        log.debug("no bill could be made", exc_info=True)
        return []
    n_slots = begun.resources.n_slots
    # Slots may have no core of their own: others work beside them.
    return [(stage.name, bill.busy * stage.wall_s(n_slots)) for stage in bill.stages[1:]]


def _measured(begun: Beginning) -> Shrinkage | None:
    """Return what the cells of the finished model leave of the scatter of the sampled rows."""
    if begun.sample.X.shape[1] < LEAST_FEATURES:
        return None
    reader = ModelReader(begun.root.store)
    with one_blas_thread():
        return measure_shrinkage(model_partition(reader), begun.sample.X)


def _nested(client: Any) -> NestedFit:
    """Return what fits a model of some of the rows, below the store of the whole."""

    def fit(request: FitRequest, rows: BlockRows, store: Backend) -> str:
        return run_fit(request, rows, store, client).fingerprint

    return fit
