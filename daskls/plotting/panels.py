"""The panels of a report: each draws one aspect of a fit, or says why there is nothing to draw."""

from functools import partial
from typing import Any

import numpy as np

from daskls.kernels.frame import encoded_names
from daskls.live.map import draw_map
from daskls.live.record import MEASURES, SIDE, Map, Measure
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
from daskls.plotting.held_out import calibration, confusion, predictions, residuals, roc
from daskls.plotting.partition import PartitionDisplay
from daskls.plotting.plane import name_features
from daskls.records import Float64
from daskls.run.client import find_single_class
from daskls.run.progress import STAGE_LABELS
from daskls.store.scale import candidates_of

# How a small picture of a partition is drawn.
PLAIN: dict[str, Any] = {"show_rows": False, "border_width": 0.3}


def find_panels(subject: Subject) -> list[Panel]:
    """Return the panels of a report, in their order on the page."""
    held_out = (predictions, residuals) if subject.is_regressor else (confusion, calibration)
    panels = [panel(subject) for panel in (_partition, _errors, _choice, _times, *held_out)]
    # Only models of two classes that held rows out have one.
    curve = roc(subject)
    return panels if curve is None else [*panels, curve]


# The partition, and what is predicted


def _partition(subject: Subject) -> Panel:
    """Return the panel of the cells, on a map for more than two features, or of the boundary."""
    panel = "partition", "Partition"
    reader, method, rows = subject.reader, subject.method, subject.rows
    if not method.has_space(reader):
        return _boundary(subject)
    space = method.space(reader)
    if subject.is_regressor and _has_outlines(subject, (1, 2)):
        return _surface(subject)
    if _has_outlines(subject, (2,)):
        display = PartitionDisplay.from_estimator(subject.estimator, X=rows, resolution=300)
        fill = "validation_error" if _has_errors(reader.report) else "cell"
        color = "darker: more held-out rows are wrong; white: cells of one class"
        if fill == "cell":
            color = "neighbors have different tints"
        note = f"Cells and the decision boundary (black); {color}."
        return Panel(*panel, note, partial(display.plot, fill=fill, **PLAIN))
    seen = np.zeros((1, reader.width)) if rows is None else reader.enter(rows)
    if rows is None and space.find(seen) is not None:
        reason = f"The model has {subject.estimator.n_features_in_} features: the map of its cells"
        return Panel(*panel, f"{reason} needs rows, as an array or a data set.")
    drawn = draw_map(space, seen, _column_names(subject))
    # The map's note explains the colors of a running fit, which a report does not use.
    note = drawn.note.partition(". White")[0].replace("of the sample", "of the rows given")
    errors, label = _region_errors(drawn, reader.report), subject.measure.axis_label
    note = f"{note[:1].upper()}{note[1:]}."
    return Panel(*panel, note, lambda ax: _draw_map(drawn, errors, label, ax))


def _has_outlines(subject: Subject, n_features: tuple[int, ...]) -> bool:
    """Whether a model has one of these numbers of features, and cells with outlines in them."""
    reader, n_own = subject.reader, subject.estimator.n_features_in_
    if n_own not in n_features or whole(subject.method.space(reader)).kind not in CUTS:
        return False
    scale = reader.resolved.scale
    if n_own == 1 or scale is None:
        return True
    # Along ranks or indicators cells have ends, but no straight edges.
    is_coded = scale.coding is not None and len(scale.coding.points) > 0
    return reader.width == 2 and not is_coded


def _surface(subject: Subject) -> Panel:
    """Return the panel of what a regressor of one or two features predicts, and its cells."""
    found = subject.evaluation
    of_rows = found.of_rows if isinstance(found, HeldOutNumbers) else None
    if of_rows is not None and subject.rows is None:
        of_rows = None
    is_line = subject.estimator.n_features_in_ == 1
    display = PartitionDisplay.from_estimator(
        subject.estimator, X=subject.rows, y=of_rows, resolution=600 if is_line else 300
    )
    what = _drawn_column(subject)
    note = f"Predicted {what} as colors, and the borders of the cells."
    if is_line:
        dots = "" if subject.rows is None else ", over the rows of the test set"
        note = f"Predicted {what} as a curve{dots}; borders of the cells as lines."
    draw = partial(display.plot, fill="number", **{**PLAIN, "show_rows": is_line})
    return Panel("partition", "Partition", note, draw)


def _boundary(subject: Subject) -> Panel:
    """Return the panel of what a model without cells predicts."""
    panel = "partition", "Predictions"
    n_own, name = subject.estimator.n_features_in_, type(subject.estimator).__name__
    if n_own != 2 and not (subject.is_regressor and n_own == 1):
        which = "one or two features" if subject.is_regressor else "two features"
        note = f"A {name} has no cells of space; without them, only {which} are drawn, not {n_own}."
        return Panel(*panel, note)
    if subject.rows is None:
        return Panel(*panel, "The model has no cells of space; pass rows to draw what it predicts.")
    display = PartitionDisplay.of_predictions(subject.estimator, subject.rows, resolution=200)
    if subject.is_regressor:
        how = "as a curve" if n_own == 1 else "as colors"
        return Panel(
            *panel,
            f"Predicted {_drawn_column(subject)} {how}; there are no cells.",
            partial(display.plot, **PLAIN),
        )
    note = "Predicted classes (tints) and the decision boundary (black); there are no cells."
    return Panel(*panel, note, partial(display.plot, fill="class", **PLAIN))


def _drawn_column(subject: Subject) -> str:
    """Return what a regressor predicts, of which the first column or level is drawn."""
    target = subject.reader.target
    if isinstance(target.quantile, tuple):
        return f"level {target.quantile[0]:g}"
    return "column 0" if target.width > 1 else "numbers"


def _draw_map(drawn: Map, errors: Float64 | None, label: str, ax: Any) -> None:
    """Draw the regions of a map, colored by their errors if there are any."""
    from matplotlib.collections import PolyCollection

    regions = PolyCollection(drawn.polygons, edgecolor="#7f8790", linewidth=0.3)
    if errors is None:
        regions.set_facecolor("#dbe7f4")
    else:
        regions.set(array=np.ma.masked_invalid(errors), cmap="viridis_r")
        ax.figure.colorbar(regions, ax=ax, label=label, shrink=0.8)
    ax.add_collection(regions)
    ax.set(xlim=(0, SIDE), ylim=(0, SIDE), xticks=[], yticks=[])
    # The name of a component has a second line, which says what it is made of.
    across, up = (name.replace(" (", "\n(") for name in drawn.names)
    ax.set_xlabel(across, fontsize=8)
    ax.set_ylabel(up, fontsize=8)


def _region_errors(drawn: Map, report: Any) -> Float64 | None:
    """Return the mean error over the rows of each region; NaN where no cell's is known."""
    if not _has_errors(report):
        return None
    region_of = np.array(drawn.region_of)[report.cell]
    known = (region_of >= 0) & (np.isfinite(report.validation_error) | find_single_class(report))
    own, rows = region_of[known], report.n_rows[known].astype(float)
    wrong = rows * np.nan_to_num(report.validation_error[known])
    n = len(drawn.polygons)
    with np.errstate(invalid="ignore"):
        found: Float64 = np.bincount(own, wrong, n) / np.bincount(own, rows, n)
    return found


def _column_names(subject: Subject) -> list[str]:
    """Return the names of the features that cells see: coded, and without those left out."""
    scale = subject.reader.resolved.scale
    coded = encoded_names(name_features(None, subject.estimator), scale)
    return coded if scale is None else [coded[j] for j in scale.columns]


def _has_errors(report: Any) -> bool:
    """Whether the cells of a report have validation errors."""
    return bool(np.isfinite(report.validation_error).any())


# Validation errors


def _errors(subject: Subject) -> Panel:
    """Return the panel of errors: of cells, or of the models tried; without errors, of sizes."""
    report, title = subject.reader.report, f"{subject.measure.name.capitalize()} by cell"
    if subject.method.step is not None:
        return _path(subject)
    if not len(report):
        note = "The model has no cells: it trains when it is queried, and measures no error."
        return Panel("errors", title, note)
    if len(report) == 1:
        error = report.validation_error[0]
        value = f": {subject.measure.format(error)}" if _has_errors(report) else ""
        return Panel("errors", title, f"The model has one cell{value}.")
    if _has_errors(report):
        display = CellDisplay.from_estimator(subject.estimator, fields=["validation_error"])
        note = f"Cells by {subject.measure.of_cells}; line: the median."
        return Panel("errors", title, note, display.plot)
    sizes = CellDisplay.from_estimator(subject.estimator, fields=["n_support"])
    note = "No errors are measured, as cells have one candidate each. Drawn: the rows they keep."
    return Panel("errors", "Support rows by cell", note, sizes.plot)


def _path(subject: Subject) -> Panel:
    """Return the panel of the error of each model that was tried."""
    summary, step = subject.reader.summary, str(subject.method.step)
    tried = [(row["value"], row["validation_error"]) for row in summary["path"]]

    def draw(ax: Any) -> None:
        values, errors = np.array(tried, float).T
        ax.plot(values, errors, "o-", color=BLUE)
        best = values == summary["best"]
        ax.plot(values[best], errors[best], "s", ms=11, mfc="none", mec=ORANGE, mew=2)
        ax.set(xlabel=step.replace("_", " "), ylabel="validation error")

    note = f"Models tried one after the other, by {step.replace('_', ' ')}; square: the one kept."
    return Panel("errors", "Validation error by model", note, draw)


# What was chosen


def _choice(subject: Subject) -> Panel:
    """Return the panel of the candidates of C and gamma, and of what was chosen."""
    panel, estimator = ("grid", "Grid"), subject.estimator
    if has_grid(estimator):
        grid = GridDisplay.from_estimator(estimator)
        note = (
            "Numbers: cells that chose it. Color: mean error above that of the choice. "
            "Hatched: tried in none; x: dropped early."
        )
        return Panel(*panel, note, grid.plot)
    if has_selection(estimator):
        selection = SelectionDisplay.from_estimator(estimator).of_chosen()
        note = f"Errors of candidates, k = {selection.n_neighbors[0]}; framed: the chosen one."
        return Panel(*panel, note, lambda ax: selection.plot([ax]))
    selected = getattr(estimator, "selected_", None) or {}
    if "candidates" in selected:
        note = "Cross-validation error of each candidate of C; square: the chosen one."
        return Panel(*panel, note, lambda ax: _draw_costs(selected, ax))
    candidates = candidates_of(subject.reader.resolved.summary)
    if candidates:
        # Also for quantiles, kernel and width are chosen by squared errors.
        return _one_for_all(candidates, MEASURES[subject.reader.target.kind])
    if "C" in selected:
        width = "" if selected.get("gamma") is None else f", gamma = {selected['gamma']:.3g}"
        return Panel(*panel, f"One choice for the whole model: C = {selected['C']:.3g}{width}.")
    return Panel(*panel, "Nothing was selected: C and gamma are the given ones.")


def _draw_costs(selected: dict[str, Any], ax: Any) -> None:
    """Draw the error of each candidate of C."""
    costs, errors = np.array(selected["candidates"]), np.array(selected["errors"])
    ax.semilogx(costs, errors, "o-", color=BLUE)
    best = costs == selected["C"]
    ax.plot(costs[best], errors[best], "s", ms=11, mfc="none", mec=ORANGE, mew=2)
    ax.set(xlabel="C", ylabel="cross-validation error")


def _one_for_all(candidates: list[dict[str, Any]], measure: Measure) -> Panel:
    """Return the panel of a choice for all cells; the first candidate is the chosen one."""
    chosen = candidates[0]
    names = [
        f"{CODING_WORDS[own['coding']]}{_scale_name(own)}\n{own['kernel']}" for own in candidates
    ]
    errors = [measure.factor * own["error"] for own in candidates]
    cost = 1 / (2 * chosen["ridge"])
    note = (
        f"One choice for all cells: {chosen['kernel']}, width {chosen['width']:.3g}, C {cost:.3g}"
    )
    error = "error" if measure.is_share else measure.name
    if len(candidates) == 1:
        return Panel("grid", "Choice", f"{note}; {error} {measure.format(chosen['error'])}.")

    def draw(ax: Any) -> None:
        bars = ax.barh(range(len(names)), errors, color="#9db7cf", edgecolor=BLUE)
        bars[0].set_facecolor(BLUE)
        ax.bar_label(bars, fmt="%.2f" if measure.is_share else "%.3g", padding=3, fontsize=8)
        ax.set_yticks(range(len(names)), names, fontsize=8)
        ax.invert_yaxis()
        ax.margins(x=0.2)
        ax.set(xlabel=f"{error} of unseen rows{', %' if measure.is_share else ''}")

    note = f"{note}. Bars: the error of the choice, on top, and of the other last candidates."
    return Panel("grid", "Choice", note, draw)


def _scale_name(own: dict[str, Any]) -> str:
    """Return the name of a candidate's scale."""
    name = str(own["scale"])
    return SCALES.get(name, name)


# Times


def _times(subject: Subject) -> Panel:
    """Return the panel of the seconds of each stage."""
    seconds = getattr(subject.estimator, "stage_s_", None)
    if not seconds:
        note = "The fit was interrupted before it stored the times of its stages."
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
