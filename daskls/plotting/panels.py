"""The panels of a report: each draws one thing of a fit, or says why there is nothing to draw."""

from typing import Any

import numpy as np

from daskls.kernels.frame import coded_names
from daskls.live.map import draw_map
from daskls.live.record import Map, Measure
from daskls.partition.stored import whole
from daskls.plotting.cells import CellDisplay
from daskls.plotting.choice import SelectionDisplay, has_selection
from daskls.plotting.cuts import CUTS
from daskls.plotting.evaluation import (
    BLUE,
    CODING_WORDS,
    ORANGE,
    SCALES,
    HeldOutNumbers,
    Panel,
    Subject,
)
from daskls.plotting.grid import GridDisplay, has_grid
from daskls.plotting.held_out import answers, calibration, confusion, residuals, roc
from daskls.plotting.partition import PartitionDisplay
from daskls.records import Float64
from daskls.run.client import find_pure
from daskls.run.progress import STAGE_LABELS
from daskls.store.scale import candidates_of


def find_panels(subject: Subject) -> list[Panel]:
    """Return the panels of a report, in their order on the page."""
    held_out = (answers, residuals) if subject.is_of_numbers else (confusion, calibration)
    parts = [part(subject) for part in (_place, _errors, _choice, _times, *held_out)]
    # Of two classes, where the fit held rows out.
    curve = roc(subject)
    return parts if curve is None else [*parts, curve]


# Where cells lie, and what is predicted there


def _place(subject: Subject) -> Panel:
    """Draw cells where there are some, else the boundary; of more than two features a map."""
    panel = "partition", "Partition"
    reader, method, rows = subject.reader, subject.method, subject.rows
    if not method.has_space(reader):
        return _boundary(subject)
    space = method.space(reader)
    if subject.is_of_numbers and _has_outlines(subject, (1, 2)):
        return _numbers(subject)
    if _has_outlines(subject, (2,)):
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
    errors, label = _region_errors(drawn, reader.report), subject.measure.axis_label
    return Panel(*panel, _sentence(note), lambda ax: _draw_map(drawn, errors, label, ax))


def _has_outlines(subject: Subject, n_features: tuple[int, ...]) -> bool:
    """Whether the cells of a model of so many features can be drawn as they are."""
    reader, n_own = subject.reader, subject.estimator.n_features_in_
    if n_own not in n_features or whole(subject.method.space(reader)).kind not in CUTS:
        return False
    scale = reader.resolved.scale
    if n_own == 1 or scale is None:
        return True
    # Along ranks or indicators there are ends of cells, but no straight edges.
    is_coded = scale.coding is not None and len(scale.coding.points) > 0
    return reader.width == 2 and not is_coded


def _numbers(subject: Subject) -> Panel:
    """Draw what a regressor of one or two features predicts, and its cells."""
    found = subject.evaluation
    of_rows = found.of_rows if isinstance(found, HeldOutNumbers) else None
    if of_rows is not None and subject.rows is None:
        of_rows = None
    is_line = subject.estimator.n_features_in_ == 1
    display = PartitionDisplay.from_estimator(
        subject.estimator, X=subject.rows, y=of_rows, resolution=600 if is_line else 300
    )
    target = subject.reader.target
    what = "column 0" if target.width > 1 else "numbers"
    if isinstance(target.quantile, tuple):
        what = f"level {target.quantile[0]:g}"
    note = f"Predicted {what} as colors, and the borders of the cells."
    if is_line:
        dots = "" if subject.rows is None else ", over the rows of the test set"
        note = f"Predicted {what} as a curve{dots}; borders of the cells as lines."
    return Panel(
        "partition", "Partition", note, lambda ax: _draw_partition(display, ax, "number", is_line)
    )


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


def _draw_partition(display: PartitionDisplay, ax: Any, fill: str, show_rows: bool = False) -> None:
    display.plot(ax, fill=fill, show_rows=show_rows, border_width=0.3)


def _draw_map(drawn: Map, errors: Float64 | None, label: str, ax: Any) -> None:
    """Draw the regions of a map, colored by error where one is measured."""
    from matplotlib.collections import PolyCollection

    regions = PolyCollection(drawn.polygons, edgecolor="#7f8790", linewidth=0.3)
    if errors is None:
        regions.set_facecolor("#dbe7f4")
    else:
        regions.set(array=np.ma.masked_invalid(errors), cmap="viridis_r")
        ax.figure.colorbar(regions, ax=ax, label=label, shrink=0.8)
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
    known = (region_of >= 0) & (np.isfinite(report.validation_error) | find_pure(report))
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
    report, title = subject.reader.report, f"{subject.measure.name.capitalize()} by cell"
    if subject.method.step is not None:
        return _path(subject)
    if not len(report):
        note = "The model has no cells: it trains when it is queried, and measures no error."
        return Panel("errors", title, note)
    if len(report) == 1:
        error = report.validation_error[0]
        told = f": {subject.measure.tell(error)}" if _measured(report) else ""
        return Panel("errors", title, f"The model has one cell{told}.")
    if _measured(report):
        display = CellDisplay.from_estimator(subject.estimator, fields=["validation_error"])
        what = "the share of their held-out rows that were wrong"
        if subject.is_of_numbers:
            what = "the mean square of what held-out rows miss, in units of the variance of y"
        note = f"Cells by {what}; the line: the median."
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
        return _one_for_all(candidates, subject.measure)
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


def _one_for_all(candidates: list[dict[str, Any]], measure: Measure) -> Panel:
    """Draw the errors of the choice for all cells, which comes first, and of what was left."""
    chosen = candidates[0]
    names = [f"{CODING_WORDS[own['coding']]}{_scale(own)}\n{own['kernel']}" for own in candidates]
    errors = [measure.factor * own["error"] for own in candidates]
    cost = 1 / (2 * chosen["ridge"])
    note = (
        f"One choice for all cells: {chosen['kernel']}, width {chosen['width']:.3g}, C {cost:.3g}"
    )
    told = "error" if measure.is_share else measure.name
    if len(candidates) == 1:
        return Panel("grid", "Choice", f"{note}; {told} {measure.tell(chosen['error'])}.")

    def draw(ax: Any) -> None:
        bars = ax.barh(range(len(names)), errors, color="#9db7cf", edgecolor=BLUE)
        bars[0].set_facecolor(BLUE)
        ax.bar_label(bars, fmt="%.2f" if measure.is_share else "%.3g", padding=3, fontsize=8)
        ax.set_yticks(range(len(names)), names, fontsize=8)
        ax.invert_yaxis()
        ax.margins(x=0.2)
        ax.set(xlabel=f"{told} of unseen rows{', %' if measure.is_share else ''}")

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


def _sentence(note: str) -> str:
    """Return a note with a capital and a full stop."""
    return f"{note[:1].upper()}{note[1:]}."
