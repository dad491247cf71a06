"""The partition of space in a plane, with the decision boundary."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from daskls.errors import DataError, ParameterError
from daskls.partition.polygons import color_cells
from daskls.plotting.cuts import find_cut
from daskls.plotting.lazy import new_axes
from daskls.plotting.plane import (
    CELL_COLORS,
    check_least,
    class_colors,
    class_entries,
    draw_boundary,
    draw_dots,
    draw_frame,
    draw_numbers,
    pad_limits,
    pixel_grid,
)
from daskls.records import Float64, Int32, Int64, Ints, Labels, Reals

__all__ = ["PartitionDisplay"]

# Classes beyond these would hide the picture.
MOST_IN_LEGEND = 10


@dataclass
class PartitionDisplay:
    """Cells as polygons, their borders, the decision boundary and rows.

    Make it with `from_estimator`.

    Parameters
    ----------
    polygons : dict cell -> array (corners, 2)
    limits : array (2, 2). The drawn range of each axis.
    decided : array (resolution, resolution). The number of the winning class at each pixel.
    scores : array (resolution, resolution). Decision values of two classes; else None.
    cells : int array (resolution, resolution). The cell of each pixel.
    classes : array (n_classes,) of labels
    names : the axes' labels
    report : the rows of the estimator's `fit_report_` that describe these cells
    rows : array (m, 2) of rows to draw, or None
    row_classes : int array (m,). Their classes' numbers, or None
    note : str. Which slice of a space of more than two features is drawn; written on the picture.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    regions_ : PolyCollection, one polygon a visible cell
    boundary_ : ContourSet. The decision boundary.
    rows_ : PathCollection, or None
    note_ : Text, or None of a model of two features

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
    decided: Int64
    scores: Float64 | None
    cells: Int32
    classes: Labels
    names: tuple[str, str]
    report: Any
    rows: Reals | None = None
    row_classes: Ints | None = None
    note: str = ""
    ax_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)
    regions_: Any = field(default=None, init=False)
    boundary_: Any = field(default=None, init=False)
    rows_: Any = field(default=None, init=False)
    note_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        X: Any = None,
        y: Any = None,
        features: tuple[int, int] = (0, 1),
        limits: Any = None,
        resolution: int = 400,
        feature_names: Any = None,
        partition: int = 0,
    ) -> Self:
        """Compute what `plot` draws.

        Parameters
        ----------
        estimator : fitted estimator that predicts a row by the model of its cell
        X : array (m, d) of rows to draw, or None. Also gives the range of the axes, and the values
            of the features that are not drawn: their means.
        y : array (m,) of their labels, or None
        features : the two features to draw
        limits : array (2, 2), the range of each axis, or None: that of X, or of the cells
        resolution : int, >= 2. Pixels along a side, for the boundary.
        feature_names : sequence of str, or None: those of the columns trained on, if any
        partition : int. Whose cells to draw; the boundary is that of all partitions together.

        Returns
        -------
        display : PartitionDisplay, not drawn yet

        Raises
        ------
        ParameterError : features, or a partition, that the estimator does not have
        DataError : rows of another width; or a model of more than two features and no X
        """
        cut = find_cut(estimator, partition)
        report = estimator.fit_report_[estimator.fit_report_.partition == partition]
        n_features = estimator.n_features_in_
        _check_features(features, n_features)
        check_least("resolution", resolution, 2)
        X = None if X is None else _check_rows(X, n_features)
        point = _plane_point(X, n_features)
        shown = None if X is None else X[:, features]
        limits = _find_limits(limits, shown, cut.reach(features, report))
        pixels = _pixels(limits, resolution, point, features)
        decided, scores = _decide(estimator, pixels)
        shape = (resolution, resolution)
        return cls(
            polygons=cut.polygons(features, point, limits),
            limits=limits,
            decided=decided.reshape(shape),
            scores=None if scores is None else scores.reshape(shape),
            cells=cut.find(pixels).reshape(shape),
            classes=estimator.classes_,
            names=_names(features, feature_names, estimator),
            report=report,
            rows=shown,
            row_classes=None if y is None else np.searchsorted(estimator.classes_, np.asarray(y)),
            note=_slice_note(n_features),
        )

    @classmethod
    def of_predictions(cls, estimator: Any, X: Any, *, resolution: int = 400) -> Self:
        """Compute the picture of an estimator without cells: its classes alone, ``fill="class"``.

        Parameters
        ----------
        estimator : fitted estimator of two features
        X : array (m, 2) of rows, which give the range of the axes
        resolution : int, >= 2. Pixels along a side.

        Returns
        -------
        display : PartitionDisplay, not drawn yet

        Raises
        ------
        DataError : rows, or an estimator, of another width
        """
        _check_features((0, 1), estimator.n_features_in_)
        rows = _check_rows(X, 2)
        limits = pad_limits(rows.min(axis=0).astype(float), rows.max(axis=0).astype(float))
        decided, scores = _decide(estimator, _pixels(limits, resolution, np.zeros(2), (0, 1)))
        shape = (resolution, resolution)
        return cls(
            polygons={},
            limits=limits,
            decided=decided.reshape(shape),
            scores=None if scores is None else scores.reshape(shape),
            cells=np.zeros(shape, np.int32),
            classes=estimator.classes_,
            names=_names((0, 1), None, estimator),
            report=estimator.fit_report_[:0],
        )

    def plot(
        self,
        ax: Any = None,
        *,
        fill: str = "cell",
        show_rows: bool = True,
        border_width: float = 0.7,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or None for a new figure
        fill : "cell", "class", or a field of the report, as "validation_error" or "n_rows". What
            colors a cell: the cell itself, its predicted class, or a number, with a color bar.
        show_rows : bool
        border_width : float, points. Of the cells' borders; 0: none.

        Returns
        -------
        self

        Raises
        ------
        ParameterError : a ``fill`` that is no number of the report
        """
        if ax is None:
            _, (ax,) = new_axes()
        self.ax_, self.figure_ = ax, ax.figure
        self.regions_ = self._draw_regions(fill, border_width)
        self.rows_ = self._draw_rows() if show_rows and self.rows is not None else None
        self.boundary_ = self._draw_boundary()
        draw_frame(ax, self.limits, self.names)
        self.note_ = self._draw_note() if self.note else None
        return self

    def _draw_note(self) -> Any:
        """Write which slice is drawn, inside of the axes: a title is the caller's."""
        note = self.note
        if self.rows_ is not None:
            note += ";\nrows are projected onto it"
        box = {"facecolor": "white", "edgecolor": "#8a8f96", "linewidth": 0.5, "pad": 2.5}
        place = {"transform": self.ax_.transAxes, "zorder": 6, "bbox": box}
        return self.ax_.text(0.015, 0.015, note, fontsize=7, va="bottom", **place)

    def _draw_regions(self, fill: str, border_width: float) -> Any:
        """Fill the cells and draw their borders."""
        from matplotlib.collections import PolyCollection

        style: dict[str, Any] = {"linewidth": border_width, "edgecolor": "#7f8790"}
        if fill == "class":
            self._draw_classes()
            style["facecolor"] = "none"
        elif fill == "cell":
            n_cells = len(self.report)
            colors = color_cells(self.cells, n_cells, len(CELL_COLORS))
            style["facecolor"] = [CELL_COLORS[colors[cell]] for cell in self.polygons]
        elif fill in (self.report.dtype.names or ()) and self.report.dtype[fill].kind in "if":
            style.update(array=self.report[fill][list(self.polygons)], cmap="viridis_r")
        else:
            raise ParameterError(
                f"fill is {fill!r}; it must be 'cell', 'class', or a number in fit_report_, as "
                "'validation_error'."
            )
        regions = self.ax_.add_collection(PolyCollection(list(self.polygons.values()), **style))
        if regions.get_array() is not None:
            self.figure_.colorbar(regions, ax=self.ax_, label=fill.replace("_", " "), shrink=0.8)
        return regions

    def _draw_classes(self) -> None:
        """Tint every pixel by the class that wins there."""
        from matplotlib.patches import Patch

        colors = [_tint(color) for color in class_colors(range(len(self.classes)))]
        draw_numbers(self.ax_, self.decided, self.limits, colors)
        if len(colors) > MOST_IN_LEGEND:
            return
        edge: dict[str, Any] = {"edgecolor": "#8a8f96", "linewidth": 0.5}
        pairs = zip(colors, self.classes.tolist(), strict=True)
        entries = [Patch(facecolor=color, label=str(label), **edge) for color, label in pairs]
        self.ax_.legend(handles=entries, title="class", loc="upper right", framealpha=0.9)

    def _draw_rows(self) -> Any:
        """Draw rows as dots in their classes' colors, with a legend of the classes."""
        if self.rows is None:
            raise AssertionError("checked by plot")
        style = {"s": 5, "linewidths": 0, "alpha": 0.75, "zorder": 2}
        if self.row_classes is None:
            return self.ax_.scatter(*self.rows.T, c="#333333", **style)
        entries = class_entries(self.classes)
        self.ax_.legend(handles=entries, title="class", loc="upper right", framealpha=0.9)
        return draw_dots(self.ax_, self.rows, self.row_classes, **style)

    def _draw_boundary(self) -> Any:
        """Draw where the answer changes."""
        grid = pixel_grid(self.limits, len(self.decided))
        decisions = self.decided if self.scores is None else self.scores
        style = {"colors": "black", "linewidths": 1.3, "zorder": 3}
        boundary = draw_boundary(self.ax_, grid, decisions, len(self.classes), **style)
        if boundary is not None:
            from matplotlib.patheffects import withStroke

            # Seen on dark cells too.
            boundary.set(path_effects=[withStroke(linewidth=2.6, foreground="white")])
        return boundary


def _check_features(features: tuple[int, int], n_features: int) -> None:
    """Refuse a plane that the estimator's space does not have."""
    if n_features < 2:
        raise DataError("The model has 1 feature, but a picture of its cells needs two.")
    if len(set(features)) != 2 or not all(0 <= f < n_features for f in features):
        raise ParameterError(
            f"features is {tuple(features)}; it must be two different numbers from 0 to "
            f"{n_features - 1}: the model has {n_features} features."
        )


def _check_rows(X: Any, n_features: int) -> Reals:
    """Return the rows to draw in memory."""
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != n_features or not len(rows):
        raise DataError(
            f"X has shape {rows.shape}, but rows of {n_features} features are needed to draw it."
        )
    return rows


def _plane_point(X: Reals | None, n_features: int) -> Float64:
    """Return the point that gives the features which are not drawn their values."""
    if X is not None:
        point: Float64 = X.mean(axis=0, dtype=np.float64)
        return point
    if n_features > 2:
        raise DataError(
            f"The model has {n_features} features and a picture two: pass X, some rows, so that "
            "the others can be held at their means."
        )
    return np.zeros(n_features)


def _find_limits(limits: Any, rows: Reals | None, reach: tuple[Float64, Float64]) -> Float64:
    """Return the range of each axis."""
    if limits is not None:
        return np.asarray(limits, np.float64)
    if rows is not None:
        reach = rows.min(axis=0).astype(float), rows.max(axis=0).astype(float)
    return pad_limits(*reach)


def _pixels(limits: Float64, resolution: int, point: Float64, features: tuple[int, int]) -> Float64:
    """Return the pixels' centers as rows of all features."""
    pixels = np.tile(point, (resolution**2, 1))
    pixels[:, features] = pixel_grid(limits, resolution).reshape(2, -1).T
    return pixels


def _decide(estimator: Any, pixels: Float64) -> tuple[Int64, Float64 | None]:
    """Return the winning class at each pixel, and for two classes the decision values."""
    scores: Float64 = np.asarray(estimator._predict_in_kind(pixels, "scores"))
    if len(estimator.classes_) == 2:
        return (scores > 0).astype(int), scores
    return scores.argmax(axis=1), None


def _slice_note(n_features: int) -> str:
    """Return what is drawn of a space of more than two features."""
    n_held = n_features - 2
    if not n_held:
        return ""
    held = "the third feature" if n_held == 1 else f"the other {n_held} features"
    return f"slice: {held} at the mean{'s' if n_held > 1 else ''} of X"


def _names(features: tuple[int, int], feature_names: Any, estimator: Any) -> tuple[str, str]:
    """Return the axes' labels: the given ones, else the names of the columns trained on."""
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    if feature_names is None:
        return f"feature {features[0]}", f"feature {features[1]}"
    return str(feature_names[features[0]]), str(feature_names[features[1]])


def _tint(color: str) -> tuple[float, ...]:
    """Return a pale version of a color."""
    from matplotlib.colors import to_rgb

    return tuple(0.35 * part + 0.65 for part in to_rgb(color))
