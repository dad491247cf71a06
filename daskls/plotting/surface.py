"""The numbers that a regressor predicts: as colors of a plane, or as a curve over a line."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.errors import DataError, ParameterError
from daskls.plotting.plane import pixel_grid
from daskls.records import Float64, MeasuredAs, Reals

__all__ = ["Surface", "find_surface"]

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
