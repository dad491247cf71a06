"""The panels of a report: each draws one thing of a fit, or says why there is nothing to draw."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.kernels.frame import coded_names
from daskls.live.map import draw_map
from daskls.live.record import Map
from daskls.methods.base import Method
from daskls.plotting.cells import CellDisplay
from daskls.plotting.cuts import CUTS
from daskls.plotting.evaluation import HeldOutResult
from daskls.plotting.grid import GridDisplay, has_grid
from daskls.plotting.partition import PartitionDisplay
from daskls.plotting.plane import draw_number
from daskls.plotting.selection import SelectionDisplay, has_selection
from daskls.records import Float64, Reals
from daskls.run.progress import STAGE_LABELS
from daskls.store.reader import ModelReader
from daskls.store.scale import candidates_of

__all__ = ["SCALES", "Panel", "Subject", "find_panels"]

BLUE, ORANGE, GRAY = "#17518f", "#d96a00", "#8a8f96"
# More classes than these are shown by their recalls, the worst ones.
MOST_CLASSES = 12
# Of features, as the decision about them names them.
SCALES = {"given": "as they are", "spread": "by spread"}
CODING_WORDS = {"none": "", "ranks": "ranks, ", "indicators": "indicators, ", "both": "both, "}


@dataclass(frozen=True)
class Subject:
    """A model that is reported on.

    Attributes
    ----------
    estimator : fitted estimator
    reader : ModelReader. Its model.
    method : Method. Its method.
    evaluation : HeldOutResult, or None without rows of a test set
    """

    estimator: Any
    reader: ModelReader
    method: Method
    evaluation: HeldOutResult | None

    @property
    def rows(self) -> Reals | None:
        """Some rows of the test set, if it is an array."""
        return self.evaluation.rows if self.evaluation else None


@dataclass(frozen=True)
class Panel:
    """One picture of a report.

    Attributes
    ----------
    name : str
    title : str
    note : str. How to read it; where nothing is drawn, why.
    draw : draws into given axes; None where there is nothing to draw
    """

    name: str
    title: str
    note: str
    draw: Callable[[Any], None] | None = None


def find_panels(subject: Subject) -> list[Panel]:
    """Return the panels of a report, in their order on the page."""
    parts = (_place, _errors, _choice, _times, _confusion, _calibration)
    return [part(subject) for part in parts]


# Where cells lie, and what is predicted there


def _place(subject: Subject) -> Panel:
    """Draw cells where there are some, else the boundary; of more than two features a map."""
    panel = "partition", "Partition"
    reader, method, rows = subject.reader, subject.method, subject.rows
    if not method.has_space(reader):
        return _boundary(subject)
    space = method.space(reader)
    is_plane = subject.estimator.n_features_in_ == 2 and space.kind in CUTS
    if is_plane and reader.width == 2:
        display = PartitionDisplay.from_estimator(subject.estimator, X=rows, resolution=300)
        fill = "validation_error" if _measured(reader.report) else "cell"
        color = "darker: more held-out rows are wrong; white: cells of one class"
        if fill == "cell":
            color = "tints tell neighbors apart"
        note = f"Cells and the decision boundary (black); {color}."
        return Panel(*panel, note, lambda ax: _draw_partition(display, ax, fill))
    seen = np.zeros((1, reader.width)) if rows is None else reader.enter(rows)
    if rows is None and space.find(seen) is not None:
        reason = f"The model has {subject.estimator.n_features_in_} features: the map of its cells"
        return Panel(*panel, f"{reason} needs rows, as an array or a data set.")
    drawn = draw_map(space, seen, _column_names(subject))
    note = drawn.note.partition(". White")[0].replace("of the sample", "of the rows given")
    errors = _region_errors(drawn, reader.report)
    return Panel(*panel, _sentence(note), lambda ax: _draw_map(drawn, errors, ax))


def _boundary(subject: Subject) -> Panel:
    """Draw what is predicted, of a model that keeps no cells."""
    panel = "partition", "Predictions"
    if subject.estimator.n_features_in_ != 2:
        name = type(subject.estimator).__name__
        return Panel(
            *panel, f"A {name} cuts no cells of space, and the model has more features than two."
        )
    if subject.rows is None:
        return Panel(*panel, "The model cuts no cells of space; pass rows to draw its boundary.")
    display = PartitionDisplay.of_predictions(subject.estimator, subject.rows, resolution=200)
    note = "Predicted classes (tints) and the decision boundary (black); no cells are cut."
    return Panel(*panel, note, lambda ax: _draw_partition(display, ax, "class"))


def _draw_partition(display: PartitionDisplay, ax: Any, fill: str) -> None:
    display.plot(ax, fill=fill, show_rows=False, border_width=0.3)


def _draw_map(drawn: Map, errors: Float64 | None, ax: Any) -> None:
    """Draw the regions of a map, colored by error where one is measured."""
    from matplotlib.collections import PolyCollection

    regions = PolyCollection(drawn.polygons, edgecolor="#7f8790", linewidth=0.3)
    if errors is None:
        regions.set_facecolor("#dbe7f4")
    else:
        regions.set(array=np.ma.masked_invalid(errors), cmap="viridis_r")
        ax.figure.colorbar(regions, ax=ax, label="validation error", shrink=0.8)
    ax.add_collection(regions)
    ax.set(xlim=(0, 1000), ylim=(0, 1000), xticks=[], yticks=[])
    # Of components the second line says what they are made of.
    across, up = (name.replace(" (", "\n(") for name in drawn.names)
    ax.set_xlabel(across, fontsize=8)
    ax.set_ylabel(up, fontsize=8)


def _region_errors(drawn: Map, report: Any) -> Float64 | None:
    """Return the error of each region: the mean of its cells by rows; NaN where none is known."""
    if not _measured(report):
        return None
    region_of = np.array(drawn.region_of)[report.cell]
    known = (region_of >= 0) & (np.isfinite(report.validation_error) | (report.n_classes == 1))
    own, rows = region_of[known], report.n_rows[known].astype(float)
    wrong = rows * np.nan_to_num(report.validation_error[known])
    n = len(drawn.polygons)
    with np.errstate(invalid="ignore"):
        found: Float64 = np.bincount(own, wrong, n) / np.bincount(own, rows, n)
    return found


def _column_names(subject: Subject) -> list[str]:
    """Return the names of the features that cells see."""
    names = getattr(subject.estimator, "feature_names_in_", None)
    n_features = subject.estimator.n_features_in_
    named = [f"feature {j}" for j in range(n_features)] if names is None else list(map(str, names))
    scale = subject.reader.resolved.scale
    coded = coded_names(named, scale)
    return coded if scale is None else [coded[j] for j in scale.columns]


def _measured(report: Any) -> bool:
    """Whether the cells of a report have validation errors."""
    return bool(np.isfinite(report.validation_error).any())


# Validation errors


def _errors(subject: Subject) -> Panel:
    """Draw errors by cell, else by model tried, else the sizes of cells."""
    report, title = subject.reader.report, "Validation error by cell"
    if subject.method.step is not None:
        return _path(subject)
    if not len(report):
        note = "The model has no cells: it trains when it is queried, and measures no error."
        return Panel("errors", title, note)
    if len(report) == 1:
        error = f": {100 * report.validation_error[0]:.2f} %" if _measured(report) else ""
        return Panel("errors", title, f"The model has one cell{error}.")
    if _measured(report):
        display = CellDisplay.from_estimator(subject.estimator, fields=["validation_error"])
        note = "Cells by the share of their held-out rows that were wrong; the line: the median."
        return Panel("errors", title, note, lambda ax: _draw_cells(display, ax))
    sizes = CellDisplay.from_estimator(subject.estimator, fields=["n_support"])
    note = "No error of a cell is measured: one candidate each. Drawn: the rows that they keep."
    return Panel("errors", "Support rows by cell", note, lambda ax: _draw_cells(sizes, ax))


def _draw_cells(display: CellDisplay, ax: Any) -> None:
    display.plot(ax)


def _path(subject: Subject) -> Panel:
    """Draw the error of each model that was tried."""
    summary, step = subject.reader.summary, str(subject.method.step)
    tried = [(row["value"], row["validation_error"]) for row in summary["path"]]

    def draw(ax: Any) -> None:
        values, errors = np.array(tried, float).T
        ax.plot(values, errors, "o-", color=BLUE)
        best = values == summary["best"]
        ax.plot(values[best], errors[best], "s", ms=11, mfc="none", mec=ORANGE, mew=2)
        ax.set(xlabel=step.replace("_", " "), ylabel="validation error")

    note = f"Models tried one after the other, by {step.replace('_', ' ')}; the square: the kept."
    return Panel("errors", "Validation error by model", note, draw)


# What was chosen


def _choice(subject: Subject) -> Panel:
    """Draw the candidates of C and gamma, and what was chosen."""
    panel, estimator = ("grid", "Grid"), subject.estimator
    if has_grid(estimator):
        grid = GridDisplay.from_estimator(estimator)
        note = (
            "Numbers: cells that chose it. Color: error above that of the choice, in the mean. "
            "Hatched: tried in none; x: dropped early."
        )
        return Panel(*panel, note, lambda ax: _draw_grid(grid, ax))
    if has_selection(estimator):
        whole = SelectionDisplay.from_estimator(estimator)
        selection = whole.of_chosen()
        note = f"Errors of candidates, k = {selection.n_neighbors[0]}; framed: the chosen one."
        return Panel(*panel, note, lambda ax: _draw_selection(selection, ax))
    selected = getattr(estimator, "selected_", None) or {}
    if "candidates" in selected:
        note = "Cross-validation error of each candidate of C; the square: the chosen one."
        return Panel(*panel, note, lambda ax: _draw_costs(selected, ax))
    candidates = candidates_of(subject.reader.resolved.summary)
    if candidates:
        return _one_for_all(candidates)
    if "C" in selected:
        width = "" if selected.get("gamma") is None else f", gamma = {selected['gamma']:.3g}"
        return Panel(*panel, f"One choice for the whole model: C = {selected['C']:.3g}{width}.")
    return Panel(*panel, "Nothing was selected: C and gamma are as they were given.")


def _draw_grid(display: GridDisplay, ax: Any) -> None:
    display.plot(ax)


def _draw_selection(display: SelectionDisplay, ax: Any) -> None:
    display.plot([ax])


def _draw_costs(selected: dict[str, Any], ax: Any) -> None:
    """Draw the error of each C."""
    costs, errors = np.array(selected["candidates"]), np.array(selected["errors"])
    ax.semilogx(costs, errors, "o-", color=BLUE)
    best = costs == selected["C"]
    ax.plot(costs[best], errors[best], "s", ms=11, mfc="none", mec=ORANGE, mew=2)
    ax.set(xlabel="C", ylabel="cross-validation error")


def _one_for_all(candidates: list[dict[str, Any]]) -> Panel:
    """Draw the errors of the choice for all cells, which comes first, and of what was left."""
    chosen = candidates[0]
    names = [f"{CODING_WORDS[own['coding']]}{_scale(own)}\n{own['kernel']}" for own in candidates]
    errors = [100 * own["error"] for own in candidates]
    cost = 1 / (2 * chosen["ridge"])
    note = (
        f"One choice for all cells: {chosen['kernel']}, width {chosen['width']:.3g}, C {cost:.3g}"
    )
    if len(candidates) == 1:
        return Panel("grid", "Choice", f"{note}; error {errors[0]:.2f} %.")

    def draw(ax: Any) -> None:
        bars = ax.barh(range(len(names)), errors, color="#9db7cf", edgecolor=BLUE)
        bars[0].set_facecolor(BLUE)
        ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
        ax.set_yticks(range(len(names)), names, fontsize=8)
        ax.invert_yaxis()
        ax.margins(x=0.2)
        ax.set(xlabel="error of unseen rows, %")

    note = f"{note}. Bars: the error of the choice, on top, and of the candidates that were left."
    return Panel("grid", "Choice", note, draw)


def _scale(own: dict[str, Any]) -> str:
    """Return the name of a candidate's scale."""
    name = str(own["scale"])
    return SCALES.get(name, name)


# Times


def _times(subject: Subject) -> Panel:
    """Draw the seconds of each stage."""
    seconds = getattr(subject.estimator, "stage_s_", None)
    if not seconds:
        note = "The model was trained before times of stages were kept with it."
        return Panel("times", "Time by stage", note)
    names = [STAGE_LABELS.get(name, name) for name in seconds]

    def draw(ax: Any) -> None:
        bars = ax.barh(names, list(seconds.values()), color="#9db7cf", edgecolor=BLUE)
        ax.bar_label(bars, fmt="%.2g", padding=3, fontsize=8)
        ax.invert_yaxis()
        ax.margins(x=0.2)
        ax.set(xlabel="seconds")

    note = f"Seconds of each stage of the fit; {sum(seconds.values()):.3g} in all."
    return Panel("times", "Time by stage", note, draw)


# On a test set


def _confusion(subject: Subject) -> Panel:
    """Draw the confusion matrix, of many classes the worst recalls."""
    panel = "confusion", "Confusion"
    if subject.evaluation is None:
        return Panel(*panel, "Left out: rows and labels of a test set were not given.")
    found = subject.evaluation.confusion
    if len(found.labels) > MOST_CLASSES:
        note = f"Of {len(found.labels)} classes those of the lowest recall."
        return Panel(*panel, note, lambda ax: _draw_recalls(found, ax))
    note = "Rows of the test set: true class by row, predicted class by column."
    return Panel(*panel, note, lambda ax: _draw_confusion(found, ax))


def _draw_confusion(found: Any, ax: Any) -> None:
    """Draw shares of each true class as shades, counts as numbers."""
    shares = found.counts / np.maximum(found.counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (i, j), count in np.ndenumerate(found.counts):
        draw_number(ax, j, i, f"{count:,}", light=bool(shares[i, j] > 0.5))
    names = list(map(str, found.labels))
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="predicted", ylabel="true")


def _draw_recalls(found: Any, ax: Any) -> None:
    """Draw the classes that are found least."""
    totals = found.counts.sum(axis=1)
    recall = found.counts.diagonal() / np.maximum(totals, 1)
    order = [i for i in np.argsort(recall, kind="stable") if totals[i]][:MOST_CLASSES]
    names = [f"{found.labels[i]} ({totals[i]:,})" for i in order]
    bars = ax.barh(names, recall[order], color="#9db7cf", edgecolor=BLUE)
    ax.bar_label(bars, fmt="%.3f", padding=3, fontsize=8)
    ax.invert_yaxis()
    ax.set(xlabel="recall; in brackets: rows", xlim=(0, 1.15))


def _calibration(subject: Subject) -> Panel:
    """Draw probabilities beside shares."""
    panel = "calibration", "Calibration"
    if subject.evaluation is None:
        return Panel(*panel, "Left out: rows and labels of a test set were not given.")
    found = subject.evaluation.calibration
    if found is None:
        return Panel(*panel, "Left out: the model has no probabilities.")

    def draw(ax: Any) -> None:
        ax.plot([0, 1], [0, 1], "--", color=GRAY, lw=1)
        ax.plot(found.expected, found.observed, "o-", color=BLUE)
        ax.set(xlabel=f"probability of {found.of}", ylabel="share of rows", xlim=(0, 1))
        ax.set(ylim=(0, 1), aspect="equal")

    note = (
        f"Probabilities that are right lie on the dashed line; mean distance {found.error:.3f}. "
        "Bins without rows are left out."
    )
    return Panel(*panel, note, draw)


def _sentence(note: str) -> str:
    """Return a note with a capital and a full stop."""
    return f"{note[:1].upper()}{note[1:]}."
