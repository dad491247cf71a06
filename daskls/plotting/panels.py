"""The panels of a report: each draws one aspect of a fit, where there is something to see."""

from functools import partial
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.kernels.frame import encoded_names
from daskls.live.map import draw_map
from daskls.live.record import SIDE, Map, region_errors
from daskls.plotting.bars import CellDisplay, FeatureDisplay
from daskls.plotting.evaluation import BLUE, ORANGE, FittedModel, Panel, importances_by_shuffling
from daskls.plotting.grid import GridDisplay, SelectionDisplay, has_grid
from daskls.plotting.held_out import OF_TEST_NUMBERS, calibration, confusion, predictions, roc
from daskls.plotting.partition import PartitionDisplay
from daskls.plotting.plane import columns_of, name_features
from daskls.plotting.slices import space_of
from daskls.records import Float64

MOST_BARS = 12


def find_panels(fitted: FittedModel) -> list[Panel]:
    """Return the panels of a report, in their order on the page."""
    held_out: Any = (confusion, roc, calibration)
    if fitted.is_regressor:
        held_out = [partial(predictions, kind=kind) for kind in OF_TEST_NUMBERS]
    panels = [panel(fitted) for panel in (*held_out, _features, _partition, _errors, _choice)]
    return [panel for panel in panels if panel is not None]


def _features(fitted: FittedModel) -> Panel | None:
    """Return the panel of shuffled test rows; without them, of a scale that is learned or given."""
    estimator, scores, panel = fitted.estimator, fitted.evaluation, ("features", "Importances")
    names, owner = columns_of(estimator)
    shuffled = None if scores is None else importances_by_shuffling(estimator, scores, owner)
    if shuffled is not None and shuffled[0].max() > 0:
        what = fitted.measure.score_name
        shown = FeatureDisplay._of(shuffled[0], names, MOST_BARS, "", label=f"{what} lost")
        note = f"By how much the {what} of {shuffled[1]:,} rows of the test set falls if the values"
        return Panel(*panel, f"{note} of one column are shuffled.", shown.plot)
    # By spread alone all features weigh alike.
    resolved = fitted.reader.resolved
    if resolved.scale is None or resolved.summary["decision"] == "spread":
        return None
    note = "How much each column counts in distances, summed over the features that it became."
    return Panel(*panel, note, FeatureDisplay.from_estimator(estimator, n_shown=MOST_BARS).plot)


def _partition(fitted: FittedModel) -> Panel | None:
    """Return the panel of the cells and what is predicted; of more than two features, of a map."""
    reader, rows = fitted.reader, fitted.rows
    if reader.n_columns == 2 or (reader.n_columns == 1 and fitted.is_regressor):
        return _predictions(fitted)
    space = space_of(reader)
    seen = np.zeros((1, reader.width)) if rows is None else reader.transform(rows)
    # Only chunks, which have no place in space, are drawn without rows.
    if space is None or (rows is None and space.find(seen) is not None):
        return None
    # The features that cells see: coded, and without those left out.
    scale = reader.resolved.scale
    names = encoded_names(name_features(reader), scale)
    names = names if scale is None else [names[j] for j in scale.columns]
    drawn = draw_map(space, seen, names)
    if len(drawn.polygons) == 1:
        return None
    note = drawn.note.replace("of the sample", "of the rows given")
    errors = region_errors(drawn.region_of, reader.report, len(drawn.polygons))
    draw = partial(_draw_map, drawn, errors, fitted.measure.axis_label)
    return Panel("partition", "Partition", f"{note[:1].upper()}{note[1:]}.", draw)


def _predictions(fitted: FittedModel) -> Panel | None:
    """Return the panel of one or two features: what is predicted there, and the cells."""
    scores, rows = fitted.evaluation, fitted.rows
    y = scores.true if scores and fitted.is_regressor else None
    try:
        display = PartitionDisplay.from_estimator(fitted.estimator, X=rows, y=y, resolution=400)
    except DataError:
        return None
    is_line, has_cells = len(display.limits) == 1, display.cells is not None
    fill, note = "class", "Predicted classes (tints) and the decision boundary (black)."
    if fitted.is_regressor:
        borders = "; lines: borders of cells" if has_cells else ""
        how = "a curve" if is_line else "colors"
        fill, note = "number", f"Predicted {display.names[-1]} as {how}{borders}."
    elif has_cells and fitted.has_errors:
        fill = "validation_error"
        note = "Cells and the decision boundary (black); darker: more held-out rows are wrong."
    draw = partial(display.plot, fill=fill, show_rows=is_line, border_width=0.3)
    return Panel("partition", "Partition" if has_cells else "Predictions", note, draw)


def _draw_map(drawn: Map, errors: Float64, label: str, ax: Any) -> None:
    from matplotlib.collections import PolyCollection

    regions = PolyCollection(drawn.polygons, edgecolor="#7f8790", linewidth=0.3)
    if np.isnan(errors).all():
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


def _errors(fitted: FittedModel) -> Panel | None:
    """Return the panel of errors: of cells, or of the models tried; without errors, of sizes."""
    if fitted.method.step is not None:
        summary, step = fitted.reader.summary, str(fitted.method.step).replace("_", " ")
        path, tried = summary["path"], ("value", "validation_error")
        values, errors = (np.array([row[name] for row in path], float) for name in tried)
        names = {"xlabel": step, "ylabel": "validation error"}
        draw = partial(_draw_tried, values, errors, summary["best"], names)
        note = f"Models tried one after the other, by {step}; square: the one kept."
        return Panel("errors", "Validation error by model", note, draw)
    if len(fitted.reader.report) < 2:
        return None
    name, title = "validation_error", f"{fitted.measure.name.capitalize()} by cell"
    note = f"Cells by {fitted.measure.of_cells}; line: the median."
    if not fitted.has_errors:
        name, title = "n_support", "Support rows by cell"
        note = (
            "No errors are measured, as cells have one candidate each. Drawn: the rows they keep."
        )
    display = CellDisplay.from_estimator(fitted.estimator, fields=[name])
    return Panel("errors", title, note, display.plot)


def _choice(fitted: FittedModel) -> Panel | None:
    panel, estimator = ("grid", "Grid"), fitted.estimator
    selected = getattr(estimator, "selected_", None) or {}
    if has_grid(estimator):
        note = (
            "Numbers: cells that chose it. Color: mean error above that of the choice. "
            "White: tried to the end in none."
        )
        return Panel(*panel, note, GridDisplay.from_estimator(estimator).plot)
    if {"errors", "percentile"} <= selected.keys():
        shown = SelectionDisplay.from_estimator(estimator).of_chosen()
        note = f"Errors of candidates, k = {shown.n_neighbors[0]}; framed: the chosen one."
        return Panel(*panel, note, shown.plot)
    if "candidates" in selected:
        note = "Cross-validation error of each candidate of C; square: the chosen one."
        tried = np.array(selected["candidates"]), np.array(selected["errors"]), selected["C"]
        names = {"xlabel": "C", "ylabel": "cross-validation error", "xscale": "log"}
        return Panel(*panel, note, partial(_draw_tried, *tried, names))
    return None


def _draw_tried(values: Float64, errors: Float64, best: float, axis: Any, ax: Any) -> None:
    """Draw the error of each value that was tried, and a square around the best."""
    ax.plot(values, errors, "o-", color=BLUE)
    is_best = values == best
    ax.plot(values[is_best], errors[is_best], "s", ms=11, mfc="none", mec=ORANGE, mew=2)
    ax.set(**axis)
