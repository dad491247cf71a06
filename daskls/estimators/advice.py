"""Advice after a fit: choices at a grid's edge, cells of one class, too many dimensions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from daskls.errors import AdviceWarning, GridEdgeWarning
from daskls.partition.base import Shrinkage
from daskls.records import Float64, Ints
from daskls.solvers.grid import count_gammas, grid_ends
from daskls.solvers.registry import find_loss
from daskls.store.layout import spec_from_json
from daskls.store.reader import ModelReader, Report

Advice = tuple[type[AdviceWarning], str]

# Advise on an edge that this share of the cells with a choice took. On ten sets up to 53 % take an
# edge of the default grid (covtype), where a wider grid gains nothing, and 68 % that of a given
# grid that ends a step early, at no loss.
EDGE_SHARE = 0.75
# Fewer cells give no advice.
LEAST_CELLS = 4
# Share of cells of one class; below it the other cells matter.
ONE_CLASS_SHARE = 0.75
# An axis of two values has only edges.
LEAST_VALUES = 3
# If there are more cells, only this many are read: shares are then known to one percent.
MOST_CELLS = 20_000
# Cells shrink as if space had this many dimensions: up to 22 on sets where cells do as well as
# random chunks or better (usps 12, mnist 18, spambase 22), 86 on splice, where they lose.
MOST_DIMENSIONS = 50.0


def advise_on_cells(
    reader: ModelReader, size_param: str, shrinkage: Shrinkage | None
) -> Iterator[Advice]:
    """Yield advice on the cells of a model, whose rows the parameter `size_param` bounds."""
    is_global = find_loss(reader.spec).is_global
    yield from _edges_of_all(reader) if is_global else _edges_of_cells(reader)
    yield from _one_class(reader.report_of_some(MOST_CELLS), size_param)
    if shrinkage is not None and shrinkage.dimensions > MOST_DIMENSIONS:
        # Do not suggest a learned scale that was learned already, even if it was not taken.
        is_learned = "decision" in reader.resolved.summary
        chunks = "RandomChunkSVR" if reader.target.kind == "numbers" else "RandomChunkSVC"
        yield AdviceWarning, _dimensions(shrinkage, size_param, chunks, is_learned=is_learned)


# Edges


def _edges_of_cells(reader: ModelReader) -> Iterator[Advice]:
    report, spec = reader.report_of_some(MOST_CELLS), reader.spec
    selected = report[(report.n_trained > 0) & (report.validation_error > 0)]
    ends = grid_ends(spec, selected.radius, selected.n_rows, reader.width)
    sides = {name: _sides(selected, name, *ends[name]) for name in ends}
    # If all combinations have the same error, as in cells that one class nearly fills, ties go to
    # the widest kernel and the smallest C: in the demo three cells of four, at the Bayes error.
    tied = (sides["C"] < 0) & (sides["gamma"] < 0)
    n_free = int((~tied).sum())
    for name, values, n_values in (
        ("C", spec.C, spec.n_costs),
        ("gamma", spec.gamma, count_gammas(spec)),
    ):
        for side in (-1, 1):
            crowd = int(((sides[name] == side) & ~tied).sum())
            if n_values >= LEAST_VALUES and crowd >= max(EDGE_SHARE * n_free, LEAST_CELLS):
                who = f"{crowd} of {n_free} cells that had a choice of C and gamma"
                yield GridEdgeWarning, _edge(name, values, is_last=side > 0, who=who)


def _sides(report: Report, name: str, first: Float64, last: Float64) -> Ints:
    """Return -1 for cells that took the first candidate of an axis, 1 for the last, else 0."""
    on_edge = np.array([name in edge.split() for edge in report.edge.tolist()], bool)
    # The chosen end is the nearer one on the logarithmic axis.
    is_last = report[name] ** 2 > first * last
    return np.where(on_edge, np.where(is_last, 1, -1), 0)


def _edges_of_all(reader: ModelReader) -> Iterator[Advice]:
    chosen = reader.resolved.summary.get("chosen")
    if chosen is None:
        return
    spec = spec_from_json(reader.meta["spec"])
    # C is computed back from the ridge, so its last digit may differ from the given one.
    selected = {"C": 1 / (2 * chosen["ridge"]), "gamma": chosen["width"]}
    candidates = {"C": spec.C, "gamma": spec.gamma}
    yield from advise_on_selected(selected, candidates, "The one choice for all cells")


def advise_on_selected(
    selected: Mapping[str, Any], candidates: Mapping[str, Sequence[float] | None], who: str
) -> Iterator[Advice]:
    """Yield advice for each end of given, increasing candidates that was selected."""
    for name, values in candidates.items():
        if values is None or len(values) < LEAST_VALUES or selected[name] is None:
            continue
        for is_last, end in ((False, values[0]), (True, values[-1])):
            at_end = np.isclose(selected[name], end, rtol=1e-6)
            if at_end and _falls_toward(selected, name, is_last=is_last):
                yield GridEdgeWarning, _edge(name, values, is_last=is_last, who=who)


def _falls_toward(selected: Mapping[str, Any], name: str, *, is_last: bool) -> bool:
    """Whether the error still falls toward an end of the candidates; True if errors are unknown."""
    if "errors" not in selected:
        return True
    # From (n_k, n_gammas, n_costs).
    by_value = np.moveaxis(np.array(selected["errors"]), 2 if name == "C" else 1, 0)
    least = by_value.reshape(len(by_value), -1).min(axis=1)
    return bool(least[-1] < least[-2] if is_last else least[0] < least[1])


def _edge(name: str, values: Sequence[float] | None, *, is_last: bool, who: str) -> str:
    if values is None:
        side = "largest" if is_last else "smallest"
        return f"{who} took the {side} {name} of their own grid. {OWN_GRID[name, is_last]}"
    wider = f"{name}={_widened(values, is_last=is_last)}"
    if is_last:
        return (
            f"{who} took the largest {name} that was given, {values[-1]:g}: a better one may lie "
            f"beyond. Give larger ones too, as {wider}."
        )
    return (
        f"{who} took the smallest {name} that was given, {values[0]:g}: a better one may lie "
        "beyond, or all have the same error, as when all are too small. Give smaller and larger "
        f"ones too, as {wider}."
    )


OWN_GRID = {
    ("C", True): "They need to fit their rows more closely: scale the features "
    '(feature_scale="spread"), or give larger values, as C=[100, 1000, 10000].',
    ("C", False): "They find little to learn, or noisy labels: check the labels, or give smaller "
    "values, as C=[1e-5, 1e-4, 1e-3, 1e-2].",
    # On the one table of 37 that got this advice, neither remedy reduced the errors
    # (docs/report.md).
    ("gamma", True): "The boundary bends more than their narrowest kernels, useless features add "
    "to the distances, or it is chance: try larger values of gamma than those in fit_report_, "
    'or a learned scale (feature_scale="learned"), and keep what makes fewer errors on rows that '
    "no fit has seen.",
    ("gamma", False): "The boundary is smoother than their widest kernels: give smaller values of "
    'gamma than those in fit_report_, or try kernel="linear".',
}


def _widened(values: Sequence[float], *, is_last: bool) -> str:
    """Return candidates with two more above them and, unless the last was chosen, one below.

    >>> _widened((1.0, 10.0, 100.0), is_last=True)
    '[1, 10, 100, 1000, 10000]'
    >>> _widened((1.0, 2.0, 4.0), is_last=False)
    '[0.5, 1, 2, 4, 8, 16]'
    """
    # At most a factor of 10: a coarser step could skip the best value.
    up = min(values[-1] / values[-2], 10.0)
    down = min(values[1] / values[0], 10.0)
    below = [] if is_last else [values[0] / down]
    wider = [*below, *values, values[-1] * up, values[-1] * up**2]
    return f"[{', '.join(f'{value:g}' for value in wider)}]"


# Cells


def _one_class(report: Report, size_param: str) -> Iterator[Advice]:
    alone = report.n_classes == 1
    if alone.sum() < LEAST_CELLS or alone.mean() < ONE_CLASS_SHARE:
        return
    share = report.n_rows[alone].sum() / report.n_rows.sum()
    message = (
        f"{int(alone.sum())} of {len(report)} cells ({share:.0%} of the rows) hold one class alone "
        "and predict it for every query: space is cut finer than the classes need, or one class is "
        f"very rare. Raise {size_param} above {int(report.n_rows.max())}: cells of one class cost "
        "nothing, and the others see more of the boundary. For a rare class look at the recall, as "
        "`daskls score` prints it, before the accuracy."
    )
    yield AdviceWarning, message


def _dimensions(shrinkage: Shrinkage, size_param: str, chunks: str, *, is_learned: bool) -> str:
    """Return the advice that the rows of a cell are hardly nearer to each other than to others."""
    remedy = f"Raise {size_param} or"
    if not is_learned:
        remedy = f'Let a scale be learned (feature_scale="learned"), raise {size_param}, or'
    return (
        f"Within the {shrinkage.n_cells} cells, {shrinkage.share:.0%} of the variance of the "
        f"rows remains, as in a space of {shrinkage.dimensions:.0f} dimensions: the rows of a "
        "cell are hardly nearer to each other than to other rows, and larger cells would learn "
        f"more from them. {remedy} take {chunks}."
    )
