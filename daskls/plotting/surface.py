"""The numbers that a regressor predicts: as colors of a plane, or as a curve over a line.

The plane, or the line, of a space that a picture shows: its features, limits and pixels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.errors import DataError, ParameterError
from daskls.plotting.plane import check_least, pad_limits, pixel_grid
from daskls.records import Float64, MeasuredAs, Reals

Reach = Callable[[tuple[int, ...]], tuple[Float64, Float64]]


@dataclass(frozen=True, eq=False)
class Slice:
    """Points of a space that differ in the drawn features alone.

    Attributes
    ----------
    features : tuple of one or two int. Those that are drawn.
    point : float64 array, shape (d,). The values of the others.
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
        """Return the pixels' centers as rows of all features."""
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
        """What is drawn of a space of more features; nothing where all are drawn."""
        n_drawn = len(self.features)
        n_held = len(self.point) - n_drawn
        if not n_held:
            return ""
        held = "the third feature" if n_drawn == 2 else "the other feature"
        if n_held > 1:
            held = f"the other {n_held} features"
        return f"slice: {held} at the mean{'s' if n_held > 1 else ''} of X"


def find_slice(
    estimator: Any,
    X: Reals | None,
    features: tuple[int, ...] | None,
    limits: Any,
    resolution: int,
    reach: Reach | None = None,
) -> Slice:
    """Return what is drawn of an estimator's space.

    Parameters
    ----------
    estimator : fitted estimator
    X : array (m, d), or None. What gives the range of the axes, and the point of the others.
    features : one or two int, or None: the first two, or the only one
    limits : array (k, 2), or None
    resolution : int
    reach : returns the least and greatest values of features that are worth showing; of use, and
        needed, without X

    Raises
    ------
    ParameterError : features that the space does not have, or too few pixels
    DataError : classes of one feature; or features that are not drawn, and no X
    """
    n_features = estimator.n_features_in_
    drawn = _check_features(features, estimator)
    check_least("resolution", resolution, 2)
    point = _point(X, n_features, len(drawn))
    if limits is not None:
        return Slice(drawn, point, _check_limits(limits, len(drawn)), resolution)
    if X is None:
        assert reach is not None
        low, high = reach(drawn)
    else:
        own = X[:, drawn]
        low, high = own.min(axis=0).astype(float), own.max(axis=0).astype(float)
    # Beyond the rows a curve may go anywhere, and would leave no room to where they are.
    ends = np.stack([low, high + (high == low)], axis=1) if len(drawn) == 1 else None
    return Slice(drawn, point, pad_limits(low, high) if ends is None else ends, resolution)


def _check_features(features: tuple[int, ...] | None, estimator: Any) -> tuple[int, ...]:
    """Refuse what the estimator's space does not have; numbers may be drawn along one feature."""
    n_features, is_of_classes = estimator.n_features_in_, hasattr(estimator, "classes_")
    if n_features < 2 and is_of_classes:
        raise DataError("The model has 1 feature, but a picture of its cells needs two.")
    if features is None:
        return tuple(range(min(n_features, 2)))
    features = tuple(features)
    wanted = "two different numbers" if is_of_classes else "one or two different numbers"
    counts = (2,) if is_of_classes else (1, 2)
    is_sound = len(features) in counts and len(set(features)) == len(features)
    if not is_sound or not all(0 <= f < n_features for f in features):
        raise ParameterError(
            f"features is {features}; it must be {wanted} from 0 to {n_features - 1}: the model "
            f"has {n_features} features."
        )
    return features


def _check_limits(limits: Any, n_drawn: int) -> Float64:
    """Return the range of each axis."""
    given = np.asarray(limits, np.float64)
    if given.size != 2 * n_drawn:
        raise ParameterError(
            f"limits has shape {given.shape}; {n_drawn} feature(s) are drawn, and each has a "
            f"least and a greatest value: pass an array ({n_drawn}, 2)."
        )
    return given.reshape(n_drawn, 2)


def check_drawn_rows(X: Any, n_features: int) -> Reals:
    """Return the rows to draw in memory.

    Raises
    ------
    DataError : none, or of another width
    """
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != n_features or not len(rows):
        raise DataError(
            f"X has shape {rows.shape}, but rows of {n_features} features are needed to draw it."
        )
    return rows


def _point(X: Reals | None, n_features: int, n_drawn: int) -> Float64:
    """Return the point that gives the features which are not drawn their values."""
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
    """Return the axes' labels: the given ones, else the names of the columns trained on."""
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    if feature_names is None:
        return tuple(f"feature {feature}" for feature in features)
    return tuple(str(feature_names[feature]) for feature in features)


# Not that of errors: light where they are large.
NUMBER_COLORS = "plasma"
CURVE, DOT = "#17518f", "#8a8f96"
# Shares of the pixels, and of the rows, whose numbers lie beyond the colors: a few outliers would
# leave one color to all others.
BEYOND = 0.005
N_LEVELS = 6


@dataclass(frozen=True, eq=False)
class Surface:
    """What is predicted at the pixels, and the numbers of some rows.

    Attributes
    ----------
    values : float64 array, shape (resolution, resolution), or of one feature (resolution,)
    of_rows : float64 array, shape (m,), or None. What the rows have.
    label : str. What the numbers are.
    measured_as : MeasuredAs. How errors of cells are told.
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
        """Return the colors of numbers, the same for pixels and rows."""
        low, high = self.ends
        return {"cmap": NUMBER_COLORS, "vmin": low, "vmax": high}

    def draw_colors(self, ax: Any, limits: Float64) -> Any:
        """Fill each pixel with the color of its number, beside a bar of the colors."""
        place: dict[str, Any] = {"extent": limits.ravel(), "origin": "lower", "aspect": "auto"}
        image = ax.imshow(self.values, **place, **self._colors(), interpolation="nearest")
        low, high = self.ends
        every = self.values if self.of_rows is None else np.append(self.values, self.of_rows)
        beyond = {(False, False): "neither", (True, False): "min", (False, True): "max"}
        extend = beyond.get((bool(every.min() < low), bool(every.max() > high)), "both")
        ax.figure.colorbar(image, ax=ax, label=self.label, shrink=0.8, extend=extend)
        return image

    def draw_levels(self, ax: Any, limits: Float64) -> Any:
        """Draw lines of equal numbers, or nothing where all are equal."""
        from matplotlib.patheffects import withStroke
        from matplotlib.ticker import MaxNLocator

        low, high = self.values.min(), self.values.max()
        levels = [v for v in MaxNLocator(N_LEVELS).tick_values(*self.ends) if low < v < high]
        # matplotlib would warn of a contour without lines.
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
        """Draw what is predicted along one feature.

        The axes show the range of the rows, or most of that of the curve.
        """
        x = np.linspace(limits[0, 0], limits[0, 1], len(self.values))
        (curve,) = ax.plot(x, self.values, color=CURVE, linewidth=1.6, zorder=3)
        low, high = self.ends
        pad = 0.06 * (high - low) or 1.0
        ax.set_ylim(low - pad, high + pad)
        return curve

    def draw_rows(self, ax: Any, rows: Reals) -> Any:
        """Draw rows: of a plane in the colors of their numbers, of a line at them.

        Rows without numbers are dark dots, or marks at the lower side.
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
    """Predict numbers at pixels, and take those of rows.

    Parameters
    ----------
    estimator : fitted regressor
    pixels : float64 array, shape (p, d)
    y : array (m,) or (m, t), or None. Numbers of the rows that are drawn.
    n_rows : int, m
    column : int. Which of several numbers of a row, or of levels.

    Returns
    -------
    surface : Surface. Its values have the shape (p,).

    Raises
    ------
    ParameterError : a column that y did not have in training
    DataError : y of another shape than the rows have
    """
    target = estimator._reader.target
    n_columns = target.n_functions
    if column not in range(n_columns):
        raise ParameterError(
            f"column is {column}; it must be a number from 0 to {n_columns - 1}: the model "
            f"predicts {n_columns} number(s) of a row."
        )
    values: Float64 = np.asarray(estimator.predict(pixels)).reshape(len(pixels), -1)[:, column]
    # Of one number all levels are.
    of_rows = _numbers_of_rows(y, n_rows, target.width, min(column, target.width - 1))
    return Surface(values, of_rows, _label(estimator, column), target.measured_as)


def _numbers_of_rows(y: Any, n_rows: int, n_columns: int, column: int) -> Float64 | None:
    """Return the numbers of the rows that are drawn."""
    if y is None:
        return None
    numbers = np.asarray(y)
    if numbers.shape not in {(n_rows, n_columns), (n_rows,) if n_columns == 1 else ()}:
        raise DataError(
            f"y has shape {numbers.shape}, but X has {n_rows} rows and the model predicts "
            f"{n_columns} number(s) of each; pass one y for each row."
        )
    if numbers.dtype.kind not in "fiu":
        raise DataError(f"y holds {numbers.dtype}, but the model predicts numbers; pass these.")
    found: Float64 = numbers.reshape(n_rows, -1)[:, column].astype(np.float64)
    return found


def _label(estimator: Any, column: int) -> str:
    """Return what the numbers are: the name of the column trained on, if it had one."""
    table = getattr(estimator, "table_", None)
    name = "y" if table is None or table.label is None else str(table.label)
    target = estimator._reader.target
    if isinstance(target.quantile, tuple):
        return f"{name}, level {target.quantile[column]:g}"
    return name if target.width == 1 else f"{name}, column {column}"
