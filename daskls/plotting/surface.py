"""The slice of space that a picture shows, and the numbers that a regressor predicts there.

A slice is a plane of two features or a line of one; the other features keep their means. On a plane
numbers are drawn as colors, on a line as a curve.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.errors import DataError, ParameterError
from daskls.plotting.plane import check_least, name_features, pad_limits, pixel_grid
from daskls.records import Float64, MeasuredAs, Reals

# Returns the least and the greatest value of each of some features that a picture needs.
Reach = Callable[[tuple[int, ...]], tuple[Float64, Float64]]
# Not the colors of errors; light where numbers are large.
NUMBER_COLORS = "plasma"
CURVE, DOT = "#17518f", "#8a8f96"
# The share of pixels, and of rows, at each end whose numbers share the last color: a few outliers
# would leave a single color to all others.
BEYOND = 0.005
N_LEVELS = 6


# Slices


@dataclass(frozen=True, eq=False)
class Slice:
    """A slice of space: its points differ in the drawn features only.

    Attributes
    ----------
    features : tuple of one or two int. The drawn features.
    point : float64 array, shape (d,). The values of the other features.
    limits : float64 array, shape (1 or 2, 2). The drawn range of each axis.
    resolution : int. Pixels along a side.
    """

    features: tuple[int, ...]
    point: Float64
    limits: Float64
    resolution: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array of pixels."""
        return (self.resolution,) * len(self.features)

    @property
    def is_line(self) -> bool:
        """Whether one feature is drawn."""
        return len(self.features) == 1

    def pixels(self) -> Float64:
        """Return the points of the pixels as rows of all features: (p, d)."""
        pixels = np.tile(self.point, (self.resolution ** len(self.features), 1))
        if self.is_line:
            low, high = self.limits[0].tolist()
            pixels[:, self.features[0]] = np.linspace(low, high, self.resolution)
        else:
            grid = pixel_grid(self.limits, self.resolution)
            pixels[:, self.features] = grid.reshape(2, -1).T
        return pixels

    @property
    def note(self) -> str:
        """Where the slice lies; nothing if all features are drawn."""
        n_drawn = len(self.features)
        n_fixed = len(self.point) - n_drawn
        if not n_fixed:
            return ""
        fixed = "the third feature" if n_drawn == 2 else "the other feature"
        if n_fixed > 1:
            fixed = f"the other {n_fixed} features"
        return f"slice: {fixed} at the mean{'s' if n_fixed > 1 else ''} of X"


def find_slice(
    estimator: Any,
    X: Reals | None,
    features: tuple[int, ...] | None,
    limits: Any,
    resolution: int,
    reach: Reach | None = None,
) -> Slice:
    """Return the slice to draw of an estimator's space.

    Parameters
    ----------
    estimator : fitted estimator
    X : array (m, d), or None. Sets the range of the axes, and the values of the other features.
    features : one or two int, or None: the first two, or the only one
    limits : array (k, 2), or None: the range of X, else that of ``reach``
    resolution : int, >= 2
    reach : needed where neither X nor limits are given

    Raises
    ------
    ParameterError : features or limits that do not fit the estimator, or too few pixels
    DataError : a classifier of one feature; or features that are not drawn, without X
    """
    n_features = estimator.n_features_in_
    drawn = _check_features(features, estimator)
    check_least("resolution", resolution, 2)
    point = _find_point(X, n_features, len(drawn))
    if limits is not None:
        return Slice(drawn, point, _check_limits(limits, len(drawn)), resolution)
    if X is None:
        assert reach is not None
        low, high = reach(drawn)
    else:
        own = X[:, drawn]
        low, high = own.min(axis=0).astype(float), own.max(axis=0).astype(float)
    if len(drawn) == 1:
        # No margin: beyond the rows a curve may go anywhere, and would flatten all the rest.
        ends = np.stack([low, high + (high == low)], axis=1)
    else:
        ends = pad_limits(low, high)
    return Slice(drawn, point, ends, resolution)


def _check_features(features: tuple[int, ...] | None, estimator: Any) -> tuple[int, ...]:
    """Return the features to draw: two, or for a regressor one or two.

    Raises
    ------
    ParameterError : any others
    DataError : a classifier of one feature
    """
    n_features, of_classes = estimator.n_features_in_, estimator._kind == "classes"
    if n_features < 2 and of_classes:
        raise DataError("The model has 1 feature, but a picture of its cells needs two.")
    if features is None:
        return tuple(range(min(n_features, 2)))
    features = tuple(features)
    wanted = "two different numbers" if of_classes else "one or two different numbers"
    counts = (2,) if of_classes else (1, 2)
    is_valid = len(features) in counts and len(set(features)) == len(features)
    if not is_valid or not all(0 <= f < n_features for f in features):
        raise ParameterError(
            f"features is {features}; it must be {wanted} from 0 to {n_features - 1}: the model "
            f"has {n_features} features."
        )
    return features


def _check_limits(limits: Any, n_drawn: int) -> Float64:
    """Return the range of each axis, (n_drawn, 2).

    Raises
    ------
    ParameterError : limits of another size
    """
    given = np.asarray(limits, np.float64)
    if given.size != 2 * n_drawn:
        raise ParameterError(
            f"limits has shape {given.shape}; {n_drawn} feature(s) are drawn, and each needs "
            f"a minimum and a maximum: pass an array ({n_drawn}, 2)."
        )
    return given.reshape(n_drawn, 2)


def check_drawn_rows(X: Any, n_features: int) -> Reals:
    """Return the rows to draw, in memory.

    Raises
    ------
    DataError : no rows, or rows of another number of features
    """
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != n_features or not len(rows):
        raise DataError(
            f"X has shape {rows.shape}, but rows of {n_features} features are needed to draw it."
        )
    return rows


def _find_point(X: Reals | None, n_features: int, n_drawn: int) -> Float64:
    """Return a point of the slice, (d,): the mean of X, or 0 where all features are drawn.

    Raises
    ------
    DataError : not all features are drawn, and X is None
    """
    if X is not None:
        point: Float64 = X.mean(axis=0, dtype=np.float64)
        return point
    if n_features > n_drawn:
        raise DataError(
            f"The model has {n_features} features and the picture {n_drawn}: pass X, some rows, so "
            "that the others can be held at their means."
        )
    return np.zeros(n_features)


def axis_names(features: tuple[int, ...], feature_names: Any, estimator: Any) -> tuple[str, ...]:
    """Return the axes' labels: the names of the drawn features."""
    names = name_features(feature_names, estimator)
    return tuple(names[feature] for feature in features)


# Surfaces


@dataclass(frozen=True, eq=False)
class Surface:
    """Predicted numbers at the pixels, and true numbers of some rows.

    Attributes
    ----------
    values : float64 array, shape (resolution, resolution), or of one feature (resolution,)
    of_rows : float64 array, shape (m,), or None. The rows' true numbers.
    label : str. The name of the numbers.
    measured_as : MeasuredAs. How the cells' errors are measured: a key of `MEASURES`.
    """

    values: Float64
    of_rows: Float64 | None
    label: str
    measured_as: MeasuredAs = "numbers"

    @property
    def ends(self) -> tuple[float, float]:
        """The numbers of the first and the last color."""
        sets = [self.values.ravel()]
        if self.of_rows is not None and len(self.of_rows):
            sets.append(self.of_rows)
        found = [np.quantile(own, [BEYOND, 1 - BEYOND]) for own in sets]
        return float(min(low for low, _ in found)), float(max(high for _, high in found))

    def _colors(self) -> dict[str, Any]:
        """Return the arguments of matplotlib that color pixels and rows alike."""
        low, high = self.ends
        return {"cmap": NUMBER_COLORS, "vmin": low, "vmax": high}

    def draw_colors(self, ax: Any, limits: Float64) -> Any:
        """Fill each pixel with the color of its number, and add a color bar."""
        place: dict[str, Any] = {"extent": limits.ravel(), "origin": "lower", "aspect": "auto"}
        image = ax.imshow(self.values, **place, **self._colors(), interpolation="nearest")
        low, high = self.ends
        numbers = self.values if self.of_rows is None else np.append(self.values, self.of_rows)
        # Arrows at the ends of the bar where there are numbers beyond its colors.
        sides = {(False, False): "neither", (True, False): "min", (False, True): "max"}
        extend = sides.get((bool(numbers.min() < low), bool(numbers.max() > high)), "both")
        ax.figure.colorbar(image, ax=ax, label=self.label, shrink=0.8, extend=extend)
        return image

    def draw_levels(self, ax: Any, limits: Float64) -> Any:
        """Draw labelled lines of equal numbers; None if there are none."""
        from matplotlib.patheffects import withStroke
        from matplotlib.ticker import MaxNLocator

        low, high = self.values.min(), self.values.max()
        levels = [v for v in MaxNLocator(N_LEVELS).tick_values(*self.ends) if low < v < high]
        # matplotlib warns about a contour without lines.
        if not levels:
            return None
        style: dict[str, Any] = {"colors": "#1b1b1b", "linewidths": 0.9, "zorder": 3}
        grid = pixel_grid(limits, len(self.values))
        lines = ax.contour(*grid, self.values, levels, **style, negative_linestyles="solid")
        stroke = {"path_effects": [withStroke(linewidth=2.2, foreground="white")]}
        lines.set(**stroke)
        for text in ax.clabel(lines, fontsize=7, fmt="%g"):
            text.set(**stroke)
        return lines

    def draw_curve(self, ax: Any, limits: Float64) -> Any:
        """Draw the predicted numbers along one feature; the axis shows the range between `ends`."""
        x = np.linspace(limits[0, 0], limits[0, 1], len(self.values))
        (curve,) = ax.plot(x, self.values, color=CURVE, linewidth=1.6, zorder=3)
        low, high = self.ends
        pad = 0.06 * (high - low) or 1.0
        ax.set_ylim(low - pad, high + pad)
        return curve

    def draw_rows(self, ax: Any, rows: Reals) -> Any:
        """Draw rows: on a plane in the colors of their numbers, over a line at their numbers.

        Rows without numbers are dark dots on a plane, and ticks at the lower side over a line.
        """
        if rows.shape[1] == 2:
            style: dict[str, Any] = {"s": 11, "linewidths": 0.35, "zorder": 2}
            if self.of_rows is None:
                return ax.scatter(*rows.T, c="#1b1b1b", **style)
            return ax.scatter(
                *rows.T, c=self.of_rows, edgecolors="white", **style, **self._colors()
            )
        style = {"c": DOT, "linewidths": 0, "alpha": 0.6, "zorder": 2}
        if self.of_rows is not None:
            return ax.scatter(rows[:, 0], self.of_rows, s=7, **style)
        style |= {"transform": ax.get_xaxis_transform(), "linewidths": 0.6, "marker": "|"}
        return ax.scatter(rows[:, 0], np.full(len(rows), 0.015), s=30, **style)


def find_surface(estimator: Any, pixels: Float64, y: Any, n_rows: int, column: int) -> Surface:
    """Predict numbers at pixels; keep them with those of the drawn rows.

    Parameters
    ----------
    estimator : fitted regressor
    pixels : float64 array, shape (p, d)
    y : array (m,) or (m, t), or None. The rows' true numbers.
    n_rows : int, m
    column : int. Which of several columns, or of several levels.

    Returns
    -------
    surface : Surface. Its values have the shape (p,).

    Raises
    ------
    ParameterError : a column that the model does not predict
    DataError : y of another shape, or not numeric
    """
    target = estimator._reader.target
    n_columns = target.n_functions
    if column not in range(n_columns):
        raise ParameterError(
            f"column is {column}; it must be a number from 0 to {n_columns - 1}: the model "
            f"predicts {n_columns} number(s) per row."
        )
    values: Float64 = np.asarray(estimator.predict(pixels)).reshape(len(pixels), -1)[:, column]
    # All levels are of the same true number: y has one column.
    of_rows = _numbers_of_rows(y, n_rows, target.width, min(column, target.width - 1))
    return Surface(values, of_rows, _label(estimator, column), target.measured_as)


def _numbers_of_rows(y: Any, n_rows: int, n_columns: int, column: int) -> Float64 | None:
    """Return one column of the rows' true numbers, (n_rows,); None if y is None.

    Raises
    ------
    DataError : y of another shape, or not numeric
    """
    if y is None:
        return None
    numbers = np.asarray(y)
    if numbers.shape not in {(n_rows, n_columns), (n_rows,) if n_columns == 1 else ()}:
        raise DataError(
            f"y has shape {numbers.shape}, but X has {n_rows} rows and the model predicts "
            f"{n_columns} number(s) of each; pass one y for each row."
        )
    if numbers.dtype.kind not in "fiu":
        raise DataError(f"y holds {numbers.dtype}, but the model predicts numbers; pass numbers.")
    found: Float64 = numbers.reshape(n_rows, -1)[:, column].astype(np.float64)
    return found


def _label(estimator: Any, column: int) -> str:
    """Return the name of the numbers: that of the column trained on, else y; and which they are."""
    table = getattr(estimator, "table_", None)
    name = "y" if table is None or table.label is None else str(table.label)
    target = estimator._reader.target
    if isinstance(target.quantile, tuple):
        return f"{name}, level {target.quantile[column]:g}"
    return name if target.width == 1 else f"{name}, column {column}"
