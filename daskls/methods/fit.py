"""One fit, of any method: begin, do the method's part, clean up."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daskls.methods.calibrate import NestedFit, calibrate
from daskls.partition.shrink import Shrinkage, measure_shrinkage
from daskls.partition.stored import model_partition
from daskls.run.advice import warn_of_chunks
from daskls.run.begin import begin_fit
from daskls.run.blas import one_blas_thread
from daskls.run.contract import HELD_OUT, Beginning, FitRequest
from daskls.run.progress import OnCut, Progress, StageClock
from daskls.run.rows import BlockRows
from daskls.scaling.fit import resolve
from daskls.scaling.spread import widest_and_narrowest
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

__all__ = ["FitResult", "run_fit"]

# Cells of fewer features shrink as they are more.
LEAST_FEATURES = 50


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
    store: Path,
    client: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_cut: OnCut | None = None,
) -> FitResult:
    """Run the stages that the store does not hold yet, until the model is complete.

    Parameters
    ----------
    request : FitRequest
    rows : BlockRows
    store : Path. The model's folder; made if it does not exist.
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
    if not begun.root.is_complete:
        warn_of_chunks(rows, begun.resources)
        raw, begun = begun, resolve(begun, clock, client)
        if request.probability not in (None, HELD_OUT):
            calibrate(raw, begun, _nested(client), clock, client)
        request.method.fit(begun, clock, client)
        shrinkage = _measured(begun) if request.minds_space else None
        # Read anew: the marker was set since. A model that is killed before this lacks its times.
        Root.open(begun.root.store).update(stage_s=clock.seconds)
    # Also after a fit that was killed between its end and here.
    request.method.clean_up(begun.root)
    return FitResult(begun.fingerprint, clock.seconds, units, shrinkage)


def _measured(begun: Beginning) -> Shrinkage | None:
    """Return what the cells of the finished model leave of the scatter of the sampled rows."""
    if begun.sample.X.shape[1] < LEAST_FEATURES:
        return None
    reader = ModelReader(begun.root.path)
    with one_blas_thread():
        return measure_shrinkage(model_partition(reader), begun.sample.X)


def _nested(client: Any) -> NestedFit:
    """Return what fits a model of some of the rows, below the store of the whole."""

    def fit(request: FitRequest, rows: BlockRows, store: Path) -> str:
        return run_fit(request, rows, store, client).fingerprint

    return fit
