"""The stages of a fit that trains one SVM on a sample chosen around support rows."""

from dataclasses import replace
from typing import Any

from daskls.methods.sampling.balls import INITIAL
from daskls.methods.sampling.parts import has_part, read_part
from daskls.methods.sampling.plan import beside_svc
from daskls.methods.sampling.search import SampleSearch, Step
from daskls.methods.sampling.spec import SamplingSpec
from daskls.methods.sampling.train import KEPT, SamplingJob
from daskls.run.begin import regroup_all
from daskls.run.contract import Beginning
from daskls.run.gather import gather_rows, has_rows
from daskls.run.progress import StageClock
from daskls.store.layout import Root
from daskls.store.reader import write_index

__all__ = ["fit_samples"]


def fit_samples(
    spec: SamplingSpec,
    searcher: type[SampleSearch],
    begun: Beginning,
    clock: StageClock,
    client: Any = None,
) -> None:
    """Gather the rows by leaf, train on drawn rows, then on the rows near their support rows.

    Parameters
    ----------
    spec : SamplingSpec
    searcher : subclass of SampleSearch. Trains one model after the other.
    begun : Beginning
    clock : StageClock
    client : distributed client, or None for the current scheduler
    """
    # Workers may have loaded the SVC in an earlier fit.
    lighter = replace(begun, resources=beside_svc(begun.resources))
    if not has_rows(begun):
        _, exchange, leaf_rows = regroup_all(begun, clock, client)
        gather_rows(lighter, exchange, leaf_rows, clock, client)
    search = searcher(lighter, spec, clock, client)
    search.draw()
    search.select()
    _finish(begun.root, search.steps(), search.job)


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
    spec = job.spec
    selected = {"C": (spec.C or (1.0,))[0], "gamma": spec.gamma[0] if spec.gamma else None}
    summary = {"best": best.value, "n_initial_support": _n_initial(root), "path": path}
    kept = [(best.number, best.number)]
    write_index(root, {}, {**selected, "summary": summary}, kept, [0, 1])


def _n_initial(root: Root) -> int:
    """Return the number of support rows of the first subsamples; 0 of a constant."""
    for kind in (INITIAL, KEPT):
        if has_part(root.store, kind, 0, 0):
            return len(read_part(root.store, kind, 0, 0, ("numbers",))["numbers"])
    return 0
