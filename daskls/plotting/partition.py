"""Cells as a label image over two features, or along one, with what a model predicts there."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from daskls.errors import ParameterError
from daskls.live.record import MEASURES
from daskls.methods.predict import OF_NUMBERS, predict_array
from daskls.plotting.evaluation import BLUE, GRAY
from daskls.plotting.plane import class_entries, draw_dots, name_features, new_axes, tints
from daskls.plotting.slices import (
    check_drawn_rows,
    find_cells,
    find_slice,
    name_numbers,
    numbers_of,
    pixel_middles,
)
from daskls.records import Float64, Int64, Ints, MeasuredAs, Reals

# Pale, so that rows and the boundary stand out.
CELL_COLORS = ("#dbe7f4", "#fbe3cf", "#dcefd9", "#efe0f0", "#fbf3c9", "#e8e4dc", "#d5efee")
BORDER = "#7f8790"
# Of numbers, not the colors of errors; light where they are large.
NUMBER_COLORS = "plasma"
# The share of points at each end whose numbers share the last color: a few outliers would leave a
# single color to all others.
BEYOND = 0.005
N_LEVELS = 6
# A legend of more classes would hide the picture.
MOST_IN_LEGEND = 10


@dataclass(repr=False)
class PartitionDisplay:
    """The cells of a model, rows, and the decision boundary or the predicted numbers.

    Points of a grid are predicted, and find their cells, as rows do: colors, borders and lines are
    as exact as a pixel. A model without cells of space is drawn by its predictions alone. Of a
    regressor the numbers are colors over two features, or a curve along one.

    Make it with `from_estimator`.

    Parameters
    ----------
    limits : array (2, 2), along one feature (1, 2). The drawn range of each axis.
    values : array (resolution, resolution), or along one feature (resolution,). Decision values of
        two classes; of more classes the index of the winner; the numbers of a regressor.
    cells : int array of the shape of values (resolution, ...). The cell of each pixel; None for a
        model without cells.
    classes : array (n_classes,) of labels; None for a regressor
    names : the axes' labels
    report : the estimator's `fit_report_`
    measured_as : str. How the errors in the report are measured.
    rows : array (m, 2) of rows to draw, or (m, 1), or None
    y : array (m,). The index of each row's class, or its number; or None.
    note : str. Which slice of a space of more features is drawn; written on the picture.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : AxesImage, which colors cells, classes or numbers; along one feature the curve, Line2D
    borders_ : LineCollection. The borders of cells; None without cells.
    boundary_ : ContourSet. The decision boundary, or where colors do not show a regressor's
        numbers, lines of equal numbers; None if there are none.
    rows_ : PathCollection, or None

    Examples
    --------
    >>> from daskls import VoronoiSVC
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1200)
    >>> model = VoronoiSVC(cell_size=300, C=1, gamma=30, random_state=0).fit(X, y)
    >>> display = PartitionDisplay.from_estimator(model, X=X[:200], y=y[:200]).plot()
    >>> len(np.unique(display.cells)) == model.n_cells_
    True
    """

    limits: Float64
    values: Reals
    cells: Any
    classes: Any
    names: tuple[str, ...]
    report: Any
    measured_as: MeasuredAs = "classes"
    rows: Any = None
    y: Any = None
    note: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        X: Any = None,
        y: Any = None,
        features: tuple[int, ...] | None = None,
        limits: Any = None,
        resolution: int = 600,
    ) -> Self:
        """Compute what `plot` draws.

        Of several partitions the cells of the first are drawn, of several columns or levels the
        first; the whole model predicts.

        Parameters
        ----------
        estimator : fitted estimator of two features; a regressor may have one
        X : array (m, d) of rows to draw, or None. Also sets the range of the axes, and the values
            of features that are not drawn: their means.
        y : array (m,) of their labels, or for a regressor of their numbers, or None
        features : the two features to draw, for a regressor also a single one; None: the first two
        limits : array (2, 2), the range of each axis, or None: that of X, or of the cells
        resolution : int, >= 2. Pixels along a side.

        Returns
        -------
        display : PartitionDisplay, not drawn yet

        Raises
        ------
        ParameterError : features or limits that do not fit the estimator, or too few pixels
        DataError : X or y of another shape; no X where more features, or the scale, need it
        """
        reader = estimator._reader
        rows = None if X is None else check_drawn_rows(X, reader)
        drawn, ends, points = find_slice(estimator, rows, features, limits, resolution)
        shape, n_fixed = (resolution,) * len(drawn), points.shape[1] - len(drawn)
        classes, label = getattr(estimator, "classes_", None), ""
        wanted: Any = OF_NUMBERS if classes is None else "scores"
        values = np.asarray(predict_array(points, estimator._handle, wanted))
        if classes is None:
            values = values.reshape(len(points), -1)[:, 0]
            y = None if y is None else numbers_of(y, rows, reader.target.width)
            label = name_numbers(estimator)
        else:
            values = values if values.ndim == 1 else values.argmax(axis=1)
            y = None if y is None else np.searchsorted(classes, np.asarray(y))
        cells = find_cells(reader, points)
        names = name_features(reader)
        return cls(
            limits=ends,
            values=values.reshape(shape),
            cells=None if cells is None else cells.reshape(shape),
            classes=classes,
            names=(*(names[feature] for feature in drawn), label),
            report=estimator.fit_report_,
            measured_as=reader.target.measured_as,
            rows=None if rows is None else rows[:, drawn],
            y=y,
            note=f"slice: {n_fixed} other feature(s) at the mean of X" if n_fixed else "",
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
            "validation_error" or "n_rows"; or None. What colors a pixel: its cell, the predicted
            class or number, or the field of its cell. None: the cell, where there are cells; for a
            regressor the number. Along one feature it is always a curve.
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
        fill = self._check_fill(fill)
        self.ax_ = ax = new_axes()[0] if ax is None else ax
        self.figure_, is_line = ax.figure, len(self.limits) == 1
        self.borders_ = self.boundary_ = None
        if is_line:
            self._draw_curve()
        else:
            self.image_ = self._draw_image(fill)
            self.boundary_ = None if fill == "number" else self._draw_lines()
            ax.set(xlabel=self.names[0], ylabel=self.names[1])
            # Squares stay square where both features have a similar range.
            across, up = np.diff(self.limits, axis=1).ravel()
            if 1 / 3 < across / up < 3:
                ax.set_aspect("equal")
        if self.cells is not None:
            self._draw_borders(border_width)
        self.rows_ = self._draw_rows() if show_rows and self.rows is not None else None
        shows_classes = fill == "class" or (self.rows_ is not None and self.y is not None)
        if self.classes is not None and shows_classes and len(self.classes) <= MOST_IN_LEGEND:
            entries = class_entries(self.classes)
            ax.legend(handles=entries, title="class", loc="upper right", framealpha=0.9)
        if self.note:
            box = {"facecolor": "white", "edgecolor": BORDER, "linewidth": 0.5, "pad": 2.5}
            place = {"xycoords": "axes fraction", "va": "bottom", "zorder": 6}
            ax.annotate(self.note, (0.015, 0.015), fontsize=7, bbox=box, **place)
        return self

    def _check_fill(self, fill: str | None) -> str:
        """Return what colors a pixel; refuse what the model does not have."""
        usual, other = ("number", "classes") if self.classes is None else ("class", "numbers")
        if fill is None:
            return usual if self.cells is None or self.classes is None else "cell"
        names = self.report.dtype.names or ()
        of_cell = fill == "cell" or (fill in names and self.report.dtype[fill].kind in "if")
        if fill != usual and not (of_cell and self.cells is not None):
            raise ParameterError(
                f"fill is {fill!r}; it must be {usual!r}, or for a model with cells 'cell' or a "
                f"number in fit_report_, as 'validation_error': the model predicts no {other}."
            )
        return fill

    def _draw_image(self, fill: str) -> Any:
        if fill == "cell":
            return self._show(color_cells(self.cells, len(CELL_COLORS)), colors=CELL_COLORS)
        if fill == "class":
            winners = self.values > 0 if self.values.dtype.kind == "f" else self.values
            return self._show(winners, colors=tints(len(self.classes)))
        if fill == "number":
            image, label = self._show(self.values, **self._number_colors()), self.names[-1]
        else:
            of_cell = np.ma.masked_invalid(self.report[fill])
            image, label = self._show(of_cell[self.cells], cmap="viridis_r"), fill.replace("_", " ")
        if fill == "validation_error":
            label = MEASURES[self.measured_as].axis_label
        self.figure_.colorbar(image, ax=self.ax_, label=label, shrink=0.8)
        return image

    def _number_colors(self) -> dict[str, Any]:
        """Return the arguments of matplotlib that color pixels and rows alike."""
        low, high = np.quantile(self.values, [BEYOND, 1 - BEYOND])
        return {"cmap": NUMBER_COLORS, "vmin": low, "vmax": high}

    def _show(self, pixels: Any, colors: Any = None, **style: Any) -> Any:
        """Draw numbers as an image over the drawn ranges; those of given colors are whole."""
        from matplotlib.colors import ListedColormap

        if colors is not None:
            style = {"cmap": ListedColormap(colors), "vmin": -0.5, "vmax": len(colors) - 0.5}
        place = {"extent": self.limits.ravel(), "origin": "lower", "aspect": "auto"}
        return self.ax_.imshow(pixels, **place, interpolation="nearest", **style)

    def _draw_borders(self, width: float) -> None:
        """Draw the edges between pixels of different cells."""
        from matplotlib.collections import LineCollection

        if len(self.limits) == 1:
            (x,) = pixel_middles(self.limits, len(self.cells))
            places = ((x[1:] + x[:-1]) / 2)[self.cells[1:] != self.cells[:-1]]
            across = self.ax_.get_xaxis_transform()
            self.borders_ = self.ax_.vlines(places, 0, 1, BORDER, lw=width, transform=across)
            return
        low, high = self.limits.T
        x, y = np.linspace(low, high, len(self.cells) + 1).T
        i, j = np.nonzero(self.cells[:, 1:] != self.cells[:, :-1])
        upright = np.stack([x[j + 1], y[i], x[j + 1], y[i + 1]], axis=1)
        i, j = np.nonzero(self.cells[1:] != self.cells[:-1])
        level = np.stack([x[j], y[i + 1], x[j + 1], y[i + 1]], axis=1)
        edges: Any = np.concatenate([upright, level]).reshape(-1, 2, 2)
        # Caps close the gaps between edges that follow each other; not snapped to the screen's
        # pixels, steps of slanted borders are smooth.
        style: Any = {"color": BORDER, "capstyle": "projecting", "snap": False}
        lines = LineCollection(edges, linewidth=width, **style)
        self.borders_ = self.ax_.add_collection(lines, autolim=False)

    def _draw_lines(self) -> Any:
        """Draw where the predicted class changes, or lines of equal numbers; None without any."""
        from matplotlib.patheffects import withStroke
        from matplotlib.ticker import MaxNLocator

        is_numbers, low, high = self.classes is None, self.values.min(), self.values.max()
        levels: Any = [0.0] if self.values.dtype.kind == "f" else np.arange(low, high) + 0.5
        levels = MaxNLocator(N_LEVELS).tick_values(low, high) if is_numbers else levels
        # matplotlib warns about a contour without lines.
        levels = [level for level in levels if low < level < high]
        if not levels:
            return None
        style = {"colors": "black", "negative_linestyles": "solid", "zorder": 3}
        style["linewidths"] = 0.9 if is_numbers else 1.3
        middles = pixel_middles(self.limits, len(self.values))
        lines = self.ax_.contour(*middles, self.values, levels, **style)
        for drawn in (lines, *(self.ax_.clabel(lines, fontsize=7, fmt="%g") if is_numbers else ())):
            # A white edge, so that lines are visible on dark cells, too.
            drawn.set(path_effects=[withStroke(linewidth=2.6, foreground="white")])
        return lines

    def _draw_curve(self) -> None:
        """Draw the numbers along one feature; the axis shows most of them."""
        (x,) = pixel_middles(self.limits, len(self.values))
        (self.image_,) = self.ax_.plot(x, self.values, color=BLUE, linewidth=1.6, zorder=3)
        shown = self.values if self.y is None else np.append(self.values, self.y)
        low, high = np.quantile(shown, [BEYOND, 1 - BEYOND])
        pad = 0.06 * (high - low) or 1.0
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[-1], xlim=self.limits[0])
        self.ax_.set_ylim(low - pad, high + pad)

    def _draw_rows(self) -> Any:
        """Draw rows in the colors of their classes or numbers, or over a line at their numbers."""
        draw, x = self.ax_.scatter, self.rows.T
        if len(x) == 1:
            style = {"s": 7, "c": GRAY, "linewidths": 0, "alpha": 0.6, "zorder": 2}
            return None if self.y is None else draw(x[0], self.y, **style)
        style = {"s": 5, "linewidths": 0, "alpha": 0.75, "zorder": 2}
        if self.y is None:
            return draw(*x, c="#333333", **style)
        if self.classes is not None:
            return draw_dots(self.ax_, self.rows, self.y, **style)
        style = {"s": 11, "linewidths": 0.35, "edgecolors": "white", "zorder": 2}
        return draw(*x, c=self.y, **style, **self._number_colors())


def color_cells(labels: Ints, n_colors: int) -> Int64:
    """Return a color number for each pixel (h, w): neighboring cells differ, as far as possible."""
    cells, inverse = np.unique(labels, return_inverse=True)
    labels = inverse.reshape(labels.shape)
    sides = [(labels[:, 1:], labels[:, :-1]), (labels[1:], labels[:-1])]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in sides])
    earlier: list[list[int]] = [[] for _ in cells]
    for a, b in np.unique(np.sort(pairs, axis=1), axis=0).tolist():
        if a != b:
            earlier[b].append(a)
    colors = np.zeros(len(cells), np.int64)
    for cell, neighbors in enumerate(earlier):
        used = np.bincount(colors[neighbors], minlength=n_colors)
        # Ties start from a different color for each cell, which spreads the colors evenly.
        order = (np.arange(n_colors) + cell) % n_colors
        colors[cell] = order[used[order].argmin()]
    return colors[labels]
