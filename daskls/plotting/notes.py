"""The words of a report: what a fit came to, its parameters, and what calls for a look."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from daskls.plotting.panels import CODING_WORDS, SCALES, Subject
from daskls.solvers.registry import find_loss
from daskls.store.reader import ModelReader
from daskls.store.scale import candidates_of

__all__ = ["Entries", "find_facts", "find_notes", "find_parameters"]

Entries = list[tuple[str, str]]
# Not of the model.
NOT_OF_MODEL = ("client", "store", "verbose")


def find_facts(subject: Subject) -> Entries:
    """Return what the fit came to, as names and values."""
    reader, report, evaluation = subject.reader, subject.reader.report, subject.evaluation
    labels = ", ".join(map(str, reader.meta["classes"]["values"][:8]))
    more = " ..." if reader.n_classes > 8 else ""
    found = [
        ("rows trained on", f"{reader.meta['n_rows']:,} of {reader.meta['n_features']} features"),
        ("classes", f"{reader.n_classes}: {labels}{more}"),
    ]
    if len(report):
        found.append(("cells", f"{len(report):,} with {int(report.n_support.sum()):,} rows kept"))
    error = mean_error(report)
    if error is not None:
        found.append(("mean validation error", f"{100 * error:.2f} %"))
    if reader.resolved.summary:
        decision = str(reader.resolved.summary["decision"])
        found.append(("scale of features", SCALES.get(decision, decision)))
    found += _chosen(reader)
    if reader.stage_s:
        found.append(("seconds of the fit", f"{sum(reader.stage_s.values()):,.1f}"))
    if evaluation is not None:
        n_rows = int(evaluation.confusion.counts.sum())
        found.append(("accuracy", f"{100 * evaluation.accuracy:.2f} % of {n_rows:,} other rows"))
    return found


def _chosen(reader: ModelReader) -> Entries:
    """Return what was chosen for all cells, if anything was."""
    candidates = candidates_of(reader.resolved.summary)
    if not candidates or not find_loss(reader.spec).is_global:
        return []
    chosen = candidates[0]
    coding = CODING_WORDS[chosen["coding"]].strip(", ")
    return [
        *([("coding of features", coding)] if coding else []),
        ("kernel of all cells", f"{chosen['kernel']}, width {chosen['width']:.3g}"),
        ("error of the choice", f"{100 * chosen['error']:.2f} % of rows held out"),
    ]


def mean_error(report: Any) -> float | None:
    """Return the validation error over all rows; a cell of one class has none and counts as 0."""
    if not np.isfinite(report.validation_error).any():
        return None
    return float(np.average(np.nan_to_num(report.validation_error), weights=report.n_rows))


def find_parameters(estimator: Any) -> Entries:
    """Return the parameters that are not the default."""
    given, default = estimator.get_params(deep=False), type(estimator)().get_params(deep=False)
    return [
        (name, _short(value))
        for name, value in given.items()
        if name not in NOT_OF_MODEL and repr(value) != repr(default[name])
    ]


def _short(value: Any) -> str:
    """Return a value with four figures at the most."""
    if isinstance(value, (list, tuple, np.ndarray)):
        shown = [_short(own) for own in list(value)[:6]]
        return f"[{', '.join(shown)}{', ...' if len(value) > 6 else ''}]"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def find_notes(subject: Subject) -> list[str]:
    """Return what calls for a look."""
    return [*_open_solves(subject), *_cells(subject), *_trust(subject)]


def _open_solves(subject: Subject) -> Iterator[str]:
    """Tell solves that stopped early."""
    if not len(subject.reader.report):
        return
    n_open = int(subject.method.count_open(subject.reader.report))
    if n_open:
        yield f"{n_open:,} solves ended before tol was reached: scale the features, or raise tol."


def _cells(subject: Subject) -> Iterator[str]:
    """Tell what the fit has warned of, as far as it is seen from the model."""
    for _, message in subject.estimator._advice():
        yield message


def _trust(subject: Subject) -> Iterator[str]:
    """Tell what the figures are not."""
    if subject.evaluation is None:
        yield (
            "No test set was given: validation errors are of rows that helped to choose, and a "
            "little too good."
        )
        return
    unseen = set(subject.evaluation.confusion.labels) - set(subject.estimator.classes_.tolist())
    if unseen:
        yield f"Classes of the test set that the model has not seen: {len(unseen)}."
