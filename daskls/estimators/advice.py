"""Advice that a finished fit gives: edges of a grid, cells of one class, dimensions.

Each piece says what was found, how much of it, and what to do.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from daskls.errors import AdviceWarning, GridEdgeWarning
from daskls.partition.base import Shrinkage
from daskls.records import Float64, Ints
from daskls.solvers.grid import count_gammas, grid_ends
from daskls.solvers.registry import find_loss
from daskls.store.checks import spec_from_json
from daskls.store.reader import ModelReader, Report

Advice = tuple[type[AdviceWarning], str]

# Of the cells that had a choice: from here on a crowd on an edge is told. On ten sets the own grid
# has up to 53 % (covtype), where a wider one gains nothing, and a given one that ends a step early
# 68 % at no loss. Fewer cells are no crowd.
EDGE_SHARE = 0.75
LEAST_CELLS = 4
# Of the cells: with fewer of one class the others decide.
ONE_CLASS_SHARE = 0.75
# An axis of two values has nothing but edges.
LEAST_VALUES = 3
# Of more cells some are looked at: a share is then known to a percent.
MOST_CELLS = 20_000
# Dimensions of a space whose cells would shrink as little: up to 22 on sets where cells do well or
# as well as random chunks (usps 12, mnist 18, spambase 22), 86 on splice, where they lose.
MOST_DIMENSIONS = 50.0


def advise_on_cells(
    reader: ModelReader, size_param: str, shrinkage: Shrinkage | None
) -> Iterator[Advice]:
    """Yield what the cells of a finished model call for.

    Parameters
    ----------
    reader : ModelReader
    size_param : str. What bounds the rows of a cell.
    shrinkage : Shrinkage, or None where it was not measured
    """
    is_global = find_loss(reader.spec).is_global
    yield from _edges_of_all(reader) if is_global else _edges_of_cells(reader)
    yield from _one_class(reader.report_of_some(MOST_CELLS), size_param)
    if shrinkage is not None and shrinkage.dimensions > MOST_DIMENSIONS:
        # Where a scale was learned, and perhaps not taken, there is nothing to ask for.
        is_learned = "decision" in reader.resolved.summary
        chunks = "RandomChunkSVR" if reader.target.kind == "numbers" else "RandomChunkSVC"
        yield AdviceWarning, _dimensions(shrinkage, size_param, chunks, is_learned=is_learned)


# Edges


def _edges_of_cells(reader: ModelReader) -> Iterator[Advice]:
    """Yield a sentence for each edge of the grid that many cells chose."""
    report, spec = reader.report_of_some(MOST_CELLS), reader.spec
    told = report[(report.n_trained > 0) & (report.validation_error > 0)]
    ends = grid_ends(spec, told.radius, told.n_rows, reader.width)
    sides = {name: _sides(told, name, *ends[name]) for name in ends}
    # Where all combinations err alike, as in cells that one class nearly fills, ties go to the
    # widest kernel and the smallest C: three cells of four in the demo, at the Bayes error.
    tied = (sides["C"] < 0) & (sides["gamma"] < 0)
    n_free = int((~tied).sum())
    for name, given, n_values in (
        ("C", spec.C, spec.n_costs),
        ("gamma", spec.gamma, count_gammas(spec)),
    ):
        for side in (-1, 1):
            crowd = int(((sides[name] == side) & ~tied).sum())
            if n_values >= LEAST_VALUES and crowd >= max(EDGE_SHARE * n_free, LEAST_CELLS):
                who = f"{crowd} of {n_free} cells that had a choice of C and gamma"
                yield GridEdgeWarning, _edge(name, given, is_last=side > 0, who=who)


def _sides(told: Report, name: str, first: Float64, last: Float64) -> Ints:
    """Return -1 for cells that took the first candidate of an axis, 1 for the last, else 0."""
    on_edge = np.array([name in edge.split() for edge in told.edge.tolist()], bool)
    is_last = told[name] ** 2 > first * last
    return np.where(on_edge, np.where(is_last, 1, -1), 0)


def _edges_of_all(reader: ModelReader) -> Iterator[Advice]:
    """Yield a sentence for each edge that the one choice for all cells lies on."""
    chosen = reader.resolved.summary.get("chosen")
    if chosen is None:
        return
    asked = spec_from_json(reader.meta["spec"])
    # A cost that went through its ridge may have lost its last digit.
    selected = {"C": 1 / (2 * chosen["ridge"]), "gamma": chosen["width"]}
    given = {"C": asked.C, "gamma": asked.gamma}
    yield from advise_on_selected(selected, given, "The one choice for all cells")


def advise_on_selected(
    selected: Mapping[str, Any], given: Mapping[str, Sequence[float] | None], who: str
) -> Iterator[Advice]:
    """Yield a sentence for each end of given candidates that was selected.

    Parameters
    ----------
    selected : mapping. As ``selected_``.
    given : mapping of a name to its increasing candidates, None where none were given
    who : str. Whom the choice is for.
    """
    for name, values in given.items():
        if values is None or len(values) < LEAST_VALUES or selected[name] is None:
            continue
        for is_last, end in ((False, values[0]), (True, values[-1])):
            at_end = np.isclose(selected[name], end, rtol=1e-6)
            if at_end and _falls_toward(selected, name, is_last=is_last):
                yield GridEdgeWarning, _edge(name, values, is_last=is_last, who=who)


def _falls_toward(selected: Mapping[str, Any], name: str, *, is_last: bool) -> bool:
    """Return whether the least error at an end is below that beside it, where both are known."""
    if "errors" not in selected:
        return True
    # (n_k, n_gammas, n_costs)
    by_value = np.moveaxis(np.array(selected["errors"]), 2 if name == "C" else 1, 0)
    least = by_value.reshape(len(by_value), -1).min(axis=1)
    return bool(least[-1] < least[-2] if is_last else least[0] < least[1])


def _edge(name: str, given: Sequence[float] | None, *, is_last: bool, who: str) -> str:
    """Say that a choice is at the end of candidates, and how to go on beyond it."""
    if given is None:
        side = "largest" if is_last else "smallest"
        return f"{who} took the {side} {name} of their own grid. {OWN_GRID[name, is_last]}"
    wider = f"{name}={_widened(given, is_last=is_last)}"
    if is_last:
        return (
            f"{who} took the largest {name} that was given, {given[-1]:g}: a better one may lie "
            f"beyond. Give larger ones too, as {wider}."
        )
    return (
        f"{who} took the smallest {name} that was given, {given[0]:g}: a better one may lie "
        "beyond, or all err alike, as where all are too small. Give smaller and larger ones too, "
        f"as {wider}."
    )


OWN_GRID = {
    ("C", True): "They want to fit their rows more closely: scale the features "
    '(feature_scale="spread"), or give larger values, as C=[100, 1000, 10000].',
    ("C", False): "They find little to learn, or noisy labels: check the labels, or give smaller "
    "values, as C=[1e-5, 1e-4, 1e-3, 1e-2].",
    # On the one table of 37 where this was told neither made fewer errors (docs/report.md).
    ("gamma", True): "The boundary bends more than their narrowest kernels, features of no use "
    "widen the distances, or it is chance: try larger values of gamma than those in fit_report_, "
    'or a learned scale (feature_scale="learned"), and keep what errs less on rows that no fit '
    "has seen.",
    ("gamma", False): "The boundary is smoother than their widest kernels: give smaller values of "
    'gamma than those in fit_report_, or try kernel="linear".',
}


def _widened(given: Sequence[float], *, is_last: bool) -> str:
    """Return candidates with two more above them; of a smallest one, with one more below too.

    >>> _widened((1.0, 10.0, 100.0), is_last=True)
    '[1, 10, 100, 1000, 10000]'
    >>> _widened((1.0, 2.0, 4.0), is_last=False)
    '[0.5, 1, 2, 4, 8, 16]'
    """
    # A coarser step would pass over the best value.
    up = min(given[-1] / given[-2], 10.0)
    down = min(given[1] / given[0], 10.0)
    below = [] if is_last else [given[0] / down]
    wider = [*below, *given, given[-1] * up, given[-1] * up**2]
    return f"[{', '.join(f'{value:g}' for value in wider)}]"


# Cells


def _one_class(report: Report, size_param: str) -> Iterator[Advice]:
    """Yield a sentence where nearly all cells hold one class and so predict it for every query."""
    alone = report.n_classes == 1
    if alone.sum() < LEAST_CELLS or alone.mean() < ONE_CLASS_SHARE:
        return
    share = report.n_rows[alone].sum() / report.n_rows.sum()
    message = (
        f"{int(alone.sum())} of {len(report)} cells ({share:.0%} of the rows) hold one class alone "
        "and predict it for every query: space is cut finer than the classes need, or one class is "
        f"very rare. Raise {size_param} above {int(report.n_rows.max())}: cells of one class cost "
        "nothing, and the others see more of the boundary. Of a rare class look at the recall, as "
        "`daskls score` prints it, before the accuracy."
    )
    yield AdviceWarning, message


def _dimensions(shrinkage: Shrinkage, size_param: str, chunks: str, *, is_learned: bool) -> str:
    """Say that the rows of a cell are hardly nearer to each other than to all others."""
    remedy = f"Raise {size_param} or"
    if not is_learned:
        remedy = f'Let a scale be learned (feature_scale="learned"), raise {size_param}, or'
    return (
        f"{shrinkage.n_cells} cells leave {shrinkage.share:.0%} of the squared distances of rows "
        f"to their mean, as in a space of {shrinkage.dimensions:.0f} dimensions: the rows of a "
        "cell are hardly nearer to each other than to all others, and cells lose what larger ones "
        f"would see. {remedy} take {chunks}."
    )
