"""The stages of a fit that trains one SVM on a sample chosen around support rows."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from daskls.methods.cells.fit import FitResult
from daskls.methods.sampling.balls import INITIAL
from daskls.methods.sampling.radii import RadiusSearch
from daskls.methods.sampling.rounds import RoundSearch
from daskls.methods.sampling.search import Search, Step
from daskls.methods.sampling.train import KEPT, SamplingJob
from daskls.plan import beside_svc, check_sampling
from daskls.records import SamplingSpec
from daskls.run.begin import begin_fit, regroup_all
from daskls.run.gather import gather_rows, has_rows
from daskls.run.identity import FitRequest
from daskls.run.progress import Progress, StageClock
from daskls.run.rows import BlockRows
from daskls.store.layout import Root
from daskls.store.models import drop_others
from daskls.store.parts import has_part, read_part, remove_parts
from daskls.store.reader import ModelReader, write_single_index

__all__ = ["run_sampling_fit"]

SEARCHES: dict[str, type[Search]] = {"local-sampling": RadiusSearch, "cglq": RoundSearch}


def run_sampling_fit(
    sampling: SamplingSpec,
    request: FitRequest,
    rows: BlockRows,
    store: Path,
    client: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> FitResult:
    """Gather the rows by leaf, train on drawn rows, then on what is near their support rows.

    Parameters
    ----------
    sampling : SamplingSpec
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
    check = partial(check_sampling, sampling=sampling)
    begun = begin_fit(request, rows, store, check, clock, client)
    root = begun.root
    if not root.is_complete:
        # Workers may have loaded the SVC in an earlier fit.
        lighter = replace(begun, resources=beside_svc(begun.resources))
        if not has_rows(begun):
            _, exchange, leaf_rows = regroup_all(begun, check, clock, client, n_copies=1)
            gather_rows(lighter, exchange, leaf_rows, clock, client)
        search = SEARCHES[sampling.name](lighter, sampling, clock, client)
        search.draw()
        _finish(root, search.steps(), search.job)
    _clean_up(root)
    return FitResult(begun.fingerprint, clock.seconds)


def _finish(root: Root, steps: list[Step], job: SamplingJob) -> None:
    """Keep the model of the smallest validation error; of equal ones the first."""
    best = min(steps, key=lambda step: (step.report.validation_error, step.number))
    path = [
        {
            "value": step.value,
            "n_rows": step.report.n_rows,
            "n_support": step.report.n_support,
            "validation_error": step.report.validation_error,
            "seconds": step.report.seconds,
        }
        for step in steps
    ]
    gamma = job.spec.gamma[0] if job.spec.gamma else None
    summary = {"best": best.value, "n_initial_support": _n_initial(root), "path": path}
    write_single_index(root, (best.number, best.number), gamma, summary)


def _n_initial(root: Root) -> int:
    """Return the number of support rows of the first subsamples; 0 of a constant."""
    for kind in (INITIAL, KEPT):
        if has_part(root.path, kind, 0, 0):
            return len(read_part(root.path, kind, 0, 0, ("numbers",))["numbers"])
    return 0


def _clean_up(root: Root) -> None:
    """Remove what a finished model has no use for: other models, and its training rows.

    Also of a model that was finished by a fit which was killed before it came here.
    """
    drop_others(root.path, [(m.first_leaf, m.last_leaf) for m in ModelReader(root.path).bundles])
    root.remove_leftovers()
    remove_parts(root.path)
    for name in ("rows", "leaves", "partition"):
        shutil.rmtree(root.path / name, ignore_errors=True)
