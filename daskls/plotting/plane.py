"""Shared by all displays: matplotlib, colors, names of features, columns."""

from collections.abc import Iterable
from importlib import import_module
from itertools import cycle
from typing import Any, Self

import numpy as np

from daskls.errors import ParameterError
from daskls.gaps import names_of
from daskls.records import Int64, Ints, Labels, Reals
from daskls.store.reader import ModelReader

REMEDY = "Drawing needs matplotlib, which is not installed; run `pip install daskls[plots]`."
# Of six lightnesses, for print in gray, and distinct for red-blind and green-blind readers: their
# distances in CIE Lab are at least 37 with full color vision, 23 without red, 18 without green, 11
# in gray.
CLASS_COLORS = ("#17518f", "#d96a00", "#56b4e9", "#1b1b1b", "#5b1a4b", "#6a5acd")
# Shapes tell classes apart too, where dots are large enough.
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P")


def import_matplotlib(name: str) -> Any:
    """Return a module of matplotlib: "pyplot" shows figures, "figure" needs no screen."""
    try:
        return import_module(f"matplotlib.{name}")
    except ImportError as error:
        raise ImportError(REMEDY) from error


def without_math(**sizes: Any) -> Any:
    """Return a context in which text with two dollar signs, as of names, is no formula."""
    from matplotlib import rc_context

    return rc_context({"text.parse_math": False, **sizes})


def new_axes(n_axes: int = 1, size: tuple[float, float] = (6.0, 5.0)) -> Any:
    """Return the axes of a new figure of pyplot, side by side; the size is of each, in inches."""
    pyplot = import_matplotlib("pyplot")
    with without_math():
        size = (size[0] * n_axes, size[1])
        return pyplot.subplots(1, n_axes, figsize=size, layout="constrained", squeeze=False)[1][0]


class SingleAxesDisplay:
    """A display that is drawn on one Axes, or on several side by side, by `_draw`."""

    @property
    def _layout(self) -> tuple[int, tuple[float, float]]:
        """The number of axes, and the size of each in inches."""
        return 1, (6.0, 5.0)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, a sequence of them where several are drawn, or None for a new figure

        Returns
        -------
        self

        Raises
        ------
        ImportError : no ``ax``, and matplotlib is not installed
        ParameterError : another number of axes than is drawn
        """
        n_axes, size = self._layout
        axes = new_axes(n_axes, size) if ax is None else np.atleast_1d(ax)
        if len(axes) != n_axes:
            raise ParameterError(
                f"ax holds {len(axes)} axes, but {n_axes} are drawn on: pass one for each."
            )
        self.axes_, self.ax_, self.figure_ = axes, axes[0], axes[0].figure
        self._draw(*axes)
        return self

    def _draw(self, *axes: Any) -> None:
        raise NotImplementedError


def check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ParameterError(f"{name} is {value}; it must be at least {least}.")


def name_features(reader: ModelReader) -> list[str]:
    """Return a name for each feature: that of the column trained on, else its number."""
    return list(map(str, reader.feature_names or names_of(reader.n_columns, reader.gaps)))


def columns_of(estimator: Any) -> tuple[list[str], Int64]:
    """Return the names of what was given as columns, and the number of each feature's column."""
    table = getattr(estimator, "table_", None)
    if table is not None:
        widths = [len(column.feature_names) for column in table.columns]
        return table.column_names, np.repeat(np.arange(len(widths)), widths)
    # Marks of missing values are no columns.
    names = name_features(estimator._reader)[: estimator._reader.n_columns]
    return names, np.arange(len(names))


def class_colors(numbers: Iterable[int]) -> list[str]:
    return [CLASS_COLORS[number % len(CLASS_COLORS)] for number in numbers]


def tints(n_classes: int) -> list[tuple[float, ...]]:
    from matplotlib.colors import to_rgb

    colors = map(to_rgb, class_colors(range(n_classes)))
    return [tuple(0.35 * part + 0.65 for part in color) for color in colors]


def class_entries(classes: Labels) -> list[Any]:
    from matplotlib.lines import Line2D

    looks = zip(classes.tolist(), cycle(CLASS_COLORS), cycle(CLASS_MARKERS), strict=False)
    return [
        Line2D([], [], linestyle="", ms=5, marker=marker, color=color, label=str(label))
        for label, color, marker in looks
    ]


def draw_dots(ax: Any, rows: Reals, classes: Ints, **style: Any) -> Any:
    from matplotlib.markers import MarkerStyle

    dots = ax.scatter(*rows.T, c=class_colors(classes), **style)
    shapes = [MarkerStyle(marker) for marker in CLASS_MARKERS]
    paths = [shape.get_path().transformed(shape.get_transform()) for shape in shapes]
    dots.set_paths([paths[number % len(paths)] for number in classes])
    return dots
