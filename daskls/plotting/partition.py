"""The partition of space in a plane, with the decision boundary or the predicted numbers."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from daskls.errors import ParameterError
from daskls.live.record import MEASURES
from daskls.partition.polygons import color_cells
from daskls.plotting.cuts import find_cut, line_intervals
from daskls.plotting.plane import (
    CELL_COLORS,
    class_colors,
    class_entries,
    draw_boundary,
    draw_dots,
    draw_frame,
    fill_pixels,
    new_axes,
    pixel_grid,
)
from daskls.plotting.surface import (
    Slice,
    Surface,
    axis_names,
    check_drawn_rows,
    find_slice,
    find_surface,
)
from daskls.records import Float64, Int32, Int64, Ints, Labels, Reals

# A legend of more classes would hide the picture.
MOST_IN_LEGEND = 10


@dataclass(repr=False)
class PartitionDisplay:
    """Cells as polygons, their borders, rows, and the decision boundary.

    For a regressor the numbers that it predicts: colors over two features, or a curve over one.

    Make it with `from_estimator`.

    Parameters
    ----------
    polygons : dict cell -> array (corners, 2); along one feature the cell's two ends (2, 1)
    limits : array (2, 2), along one feature (1, 2). The drawn range of each axis.
    decided : array (resolution, resolution). The index of the winning class at each pixel; None for
        a regressor.
    scores : array (resolution, resolution). Decision values of two classes; otherwise None.
    cells : int array (resolution, resolution), or (resolution,). The cell of each pixel.
    classes : array (n_classes,) of labels; empty for a regressor
    names : the axes' labels
    report : the rows of the estimator's `fit_report_` that describe these cells
    rows : array (m, 2) of rows to draw, or (m, 1), or None
    row_classes : int array (m,). Indices of their classes, or None
    note : str. Which slice of a space of more features is drawn; written on the picture.
    surface : Surface. What a regressor predicts, and the rows' numbers; None for a classifier.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    regions_ : PolyCollection, one polygon per visible cell
    boundary_ : ContourSet. The decision boundary; for a regressor lines of equal numbers, unless
        colors or a curve show the numbers.
    numbers_ : AxesImage, or along one feature Line2D. The predicted numbers; None for a classifier.
    rows_ : PathCollection, or None
    note_ : Text, or None if all features are drawn

    Examples
    --------
    >>> from daskls import VoronoiSVC
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1200)
    >>> model = VoronoiSVC(cell_size=300, C=1, gamma=30, random_state=0).fit(X, y)
    >>> display = PartitionDisplay.from_estimator(model, X=X[:200], y=y[:200]).plot()
    >>> len(display.polygons) == model.n_cells_
    True
    """

    polygons: dict[int, Float64]
    limits: Float64
    decided: Int64 | None
    scores: Float64 | None
    cells: Int32
    classes: Labels
    names: tuple[str, ...]
    report: Any
    rows: Reals | None = None
    row_classes: Ints | None = None
    note: str = ""
    surface: Surface | None = None
    ax_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)
    regions_: Any = field(default=None, init=False)
    boundary_: Any = field(default=None, init=False)
    numbers_: Any = field(default=None, init=False)
    rows_: Any = field(default=None, init=False)
    note_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        X: Any = None,
        y: Any = None,
        features: tuple[int, ...] | None = None,
        limits: Any = None,
        resolution: int = 400,
        feature_names: Any = None,
        partition: int = 0,
        column: int = 0,
    ) -> Self:
        """Compute what `plot` draws.

        Parameters
        ----------
        estimator : fitted estimator that predicts a row by the model of its cell
        X : array (m, d) of rows to draw, or None. Also sets the range of the axes, and the values
            of features that are not drawn: their means.
        y : array (m,) of their labels, or for a regressor of their numbers, or None
        features : the two features to draw, for a regressor also a single one; None: the first two
        limits : array (2, 2), the range of each axis, or None: that of X, or of the cells
        resolution : int, >= 2. Pixels along a side, for the boundary or the numbers.
        feature_names : sequence of str, or None: those of the columns trained on, if any
        partition : int. The partition whose cells to draw; the whole model predicts.
        column : int. Which number to draw, for a regressor that predicts several per row.

        Returns
        -------
        display : PartitionDisplay, not drawn yet

        Raises
        ------
        ParameterError : features, a partition or a column that the estimator does not have
        DataError : X or y of another shape; no X for a model of more features than are drawn
        """
        cut = find_cut(estimator, partition)
        report = estimator.fit_report_[estimator.fit_report_.partition == partition]
        X = None if X is None else check_drawn_rows(X, estimator.n_features_in_)
        own = find_slice(
            estimator, X, features, limits, resolution, lambda drawn: cut.reach(drawn, report)
        )
        pixels = own.pixels()
        cells = cut.find(pixels).reshape(own.shape)
        return cls(
            polygons=(
                line_intervals(cut, own.point, own.features[0], own.limits[0], cells)
                if own.is_line
                else cut.polygons((own.features[0], own.features[1]), own.point, own.limits)
            ),
            limits=own.limits,
            cells=cells,
            names=axis_names(own.features, feature_names, estimator),
            report=report,
            rows=None if X is None else X[:, own.features],
            note=own.note,
            **_predict(estimator, own, pixels, y, 0 if X is None else len(X), column),
        )

    @classmethod
    def of_predictions(cls, estimator: Any, X: Any, *, resolution: int = 400) -> Self:
        """Compute the picture of an estimator without cells: its predictions only.

        Draw it with ``fill="class"``; for a regressor, without ``fill``.

        Parameters
        ----------
        estimator : fitted estimator of two features; a regressor may have one
        X : array (m, 2) of rows, which set the range of the axes
        resolution : int, >= 2. Pixels along a side.

        Returns
        -------
        display : PartitionDisplay, not drawn yet

        Raises
        ------
        DataError : rows, or an estimator, of another width
        """
        rows = check_drawn_rows(X, estimator.n_features_in_)
        features = tuple(range(estimator.n_features_in_))
        own = find_slice(estimator, rows, features, None, resolution)
        return cls(
            polygons={},
            limits=own.limits,
            cells=np.zeros(own.shape, np.int32),
            names=axis_names(own.features, None, estimator),
            report=estimator.fit_report_[:0],
            **_predict(estimator, own, own.pixels(), None, len(rows), 0),
        )

    def plot(
        self,
        ax: Any = None,
        *,
        fill: str | None = None,
        show_rows: bool = True,
        border_width: float = 0.7,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or None for a new figure
        fill : "cell", "class", "number", or a numeric field of the report such as
            "validation_error" or "n_rows"; or None. What colors a cell: the cell itself, the
            predicted classes or numbers, or the field, with a color bar. None: the cell, for a
            regressor the predicted numbers. Along one feature these are always a curve.
        show_rows : bool. Whether to draw the rows, if there are any.
        border_width : float, points. Width of the cells' borders; 0: none.

        Returns
        -------
        self

        Raises
        ------
        ParameterError : a ``fill`` that is no numeric field of the report; "class" for a regressor,
            or "number" for a classifier
        """
        if ax is None:
            _, (ax,) = new_axes()
        self.ax_, self.figure_ = ax, ax.figure
        if fill is None:
            fill = "cell" if self.surface is None else "number"
        self._check_fill(fill)
        self.numbers_ = self._draw_numbers(fill)
        self.regions_ = self._draw_regions(fill, border_width)
        self.rows_ = self._draw_rows() if show_rows and self.rows is not None else None
        self.boundary_ = self._draw_boundary(fill)
        self._draw_frame()
        self.note_ = self._draw_note() if self.note else None
        return self

    def _draw_note(self) -> Any:
        """Write which slice is drawn; inside the axes, as the title is left to the caller."""
        note = self.note
        if self.rows_ is not None:
            note += ";\nrows are projected onto it"
        box = {"facecolor": "white", "edgecolor": "#8a8f96", "linewidth": 0.5, "pad": 2.5}
        place = {"transform": self.ax_.transAxes, "zorder": 6, "bbox": box}
        return self.ax_.text(0.015, 0.015, note, fontsize=7, va="bottom", **place)

    def _check_fill(self, fill: str) -> None:
        """Raise a `ParameterError` if cells would be colored by what they do not have."""
        own, other = ("class", "numbers") if self.surface is None else ("number", "classes")
        names = self.report.dtype.names or ()
        is_field = fill in names and self.report.dtype[fill].kind in "if"
        if fill not in ("cell", own) and not is_field:
            raise ParameterError(
                f"fill is {fill!r}; it must be 'cell', {own!r}, or a number in fit_report_, as "
                f"'validation_error': the model predicts no {other}."
            )

    def _draw_numbers(self, fill: str) -> Any:
        """Draw the numbers that a regressor predicts, unless something else colors the plane."""
        if self.surface is None:
            return None
        if len(self.limits) == 1:
            return self.surface.draw_curve(self.ax_, self.limits)
        return self.surface.draw_colors(self.ax_, self.limits) if fill == "number" else None

    def _draw_regions(self, fill: str, border_width: float) -> Any:
        """Fill the cells and draw their borders."""
        from matplotlib.collections import PolyCollection

        style: dict[str, Any] = {"linewidth": border_width, "edgecolor": "#7f8790"}
        if fill == "class":
            self._draw_classes()
        if fill in ("class", "number"):
            style["facecolor"] = "none"
        elif fill == "cell":
            # Along one feature the pixels are a single row.
            colors = color_cells(np.atleast_2d(self.cells), len(self.report), len(CELL_COLORS))
            style["facecolor"] = [CELL_COLORS[colors[cell]] for cell in self.polygons]
        else:
            style.update(array=self.report[fill][list(self.polygons)], cmap="viridis_r")
        if len(self.limits) == 1:
            # Strips of full height behind the rows; pale, so that the rows stand out.
            style |= {"transform": self.ax_.get_xaxis_transform(), "zorder": 0.5}
            style |= {"alpha": 0.4} if "array" in style else {}
        regions = PolyCollection([_outline(own) for own in self.polygons.values()], **style)
        self.ax_.add_collection(regions, autolim=False)
        if regions.get_array() is not None:
            self.figure_.colorbar(regions, ax=self.ax_, label=self._field_label(fill), shrink=0.8)
        return regions

    def _field_label(self, fill: str) -> str:
        """Return the label of the color bar of a field of the report."""
        if fill != "validation_error":
            return fill.replace("_", " ")
        measured_as = "classes" if self.surface is None else self.surface.measured_as
        return MEASURES[measured_as].axis_label

    def _draw_classes(self) -> None:
        """Tint every pixel by the class that wins there."""
        from matplotlib.patches import Patch

        assert self.decided is not None
        colors = [_tint(color) for color in class_colors(range(len(self.classes)))]
        fill_pixels(self.ax_, self.decided, self.limits, colors)
        if len(colors) > MOST_IN_LEGEND:
            return
        edge: dict[str, Any] = {"edgecolor": "#8a8f96", "linewidth": 0.5}
        pairs = zip(colors, self.classes.tolist(), strict=True)
        entries = [Patch(facecolor=color, label=str(label), **edge) for color, label in pairs]
        self.ax_.legend(handles=entries, title="class", loc="upper right", framealpha=0.9)

    def _draw_rows(self) -> Any:
        """Draw rows as dots in their classes' colors, with a legend of the classes."""
        assert self.rows is not None
        if self.surface is not None:
            return self.surface.draw_rows(self.ax_, self.rows)
        style = {"s": 5, "linewidths": 0, "alpha": 0.75, "zorder": 2}
        if self.row_classes is None:
            return self.ax_.scatter(*self.rows.T, c="#333333", **style)
        entries = class_entries(self.classes)
        self.ax_.legend(handles=entries, title="class", loc="upper right", framealpha=0.9)
        return draw_dots(self.ax_, self.rows, self.row_classes, **style)

    def _draw_frame(self) -> None:
        """Set the axes' labels and ranges."""
        if len(self.limits) == 2:
            draw_frame(self.ax_, self.limits, self.names)
            return
        assert self.surface is not None
        self.ax_.set(xlabel=self.names[0], ylabel=self.surface.label, xlim=self.limits[0])

    def _draw_boundary(self, fill: str) -> Any:
        """Draw where the predicted class changes; for a regressor, lines of equal numbers."""
        if self.surface is not None:
            # Colors or a curve show the numbers already.
            is_shown = fill == "number" or len(self.limits) == 1
            return None if is_shown else self.surface.draw_levels(self.ax_, self.limits)
        assert self.decided is not None
        grid = pixel_grid(self.limits, len(self.decided))
        decisions = self.decided if self.scores is None else self.scores
        style = {"colors": "black", "linewidths": 1.3, "zorder": 3}
        boundary = draw_boundary(self.ax_, grid, decisions, len(self.classes), **style)
        if boundary is not None:
            from matplotlib.patheffects import withStroke

            # A white edge, so that the line is visible on dark cells, too.
            boundary.set(path_effects=[withStroke(linewidth=2.6, foreground="white")])
        return boundary


def _predict(
    estimator: Any, own: Slice, pixels: Float64, y: Any, n_rows: int, column: int
) -> dict[str, Any]:
    """Return predictions at the pixels, and the rows' classes or numbers, as fields of the display.

    Parameters
    ----------
    pixels : float64 array, shape (p, d). Those of the slice.
    y : array (n_rows,) of the rows' labels or numbers, or None
    column : int. For a regressor, which number to take.
    """
    if estimator._kind == "numbers":
        found = find_surface(estimator, pixels, y, n_rows, column)
        surface = replace(found, values=found.values.reshape(own.shape))
        return {"decided": None, "scores": None, "classes": np.empty(0), "surface": surface}
    classes = estimator.classes_
    scores: Float64 = np.asarray(estimator._predict_in_kind(pixels, "scores"))
    is_binary = len(classes) == 2
    decided = (scores > 0).astype(int) if is_binary else scores.argmax(axis=1)
    return {
        "decided": decided.reshape(own.shape),
        "scores": scores.reshape(own.shape) if is_binary else None,
        "classes": classes,
        "row_classes": None if y is None else np.searchsorted(classes, np.asarray(y)),
    }


def _outline(polygon: Float64) -> Float64:
    """Return the corners of a cell; along one feature, of a strip that fills the axes' height."""
    if polygon.shape[1] == 2:
        return polygon
    (left,), (right,) = polygon.tolist()
    # Beyond the frame, so that the strip's upper and lower border are not visible.
    return np.array([[left, -0.1], [right, -0.1], [right, 1.1], [left, 1.1]])


def _tint(color: str) -> tuple[float, ...]:
    """Return a pale version of a color."""
    from matplotlib.colors import to_rgb

    return tuple(0.35 * part + 0.65 for part in to_rgb(color))
