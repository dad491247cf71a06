"""What all displays share: matplotlib, colors, names of features, grids of points, boundaries.

matplotlib is imported only when something is drawn.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskls.errors import ParameterError
from daskls.records import Float64, Ints, Labels, Reals
from daskls.run.contract import default_names

REMEDY = "Drawing needs matplotlib, which is not installed; run `pip install daskls[plots]`."
# Pale, so that rows and the boundary stand out.
CELL_COLORS = ("#dbe7f4", "#fbe3cf", "#dcefd9", "#efe0f0", "#fbf3c9", "#e8e4dc", "#d5efee")
# Of six lightnesses, for print in gray, and distinct for red-blind and green-blind readers: their
# distances in CIE Lab are at least 37 with full color vision, 23 without red, 18 without green, 11
# in gray.
CLASS_COLORS = ("#17518f", "#d96a00", "#56b4e9", "#1b1b1b", "#5b1a4b", "#6a5acd")
# Shapes tell classes apart too, where dots are large enough.
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P")
# The share of a range that is left free on either side.
AXES_MARGIN = 0.03
# Points of the grid inside a circle; its last radius is the circle itself.
N_RADII, N_ANGLES = 40, 120
# Decision values of two classes, or the numbers of the winning classes.
Decisions = NDArray[np.float64 | np.int64]


# Figures and axes


def import_matplotlib(name: str) -> Any:
    """Return a module of matplotlib: "pyplot" shows figures, "figure" needs no screen.

    Raises
    ------
    ImportError : matplotlib is not installed; the message says what to install
    """
    try:
        return import_module(f"matplotlib.{name}")
    except ImportError as error:
        raise ImportError(REMEDY) from error


def new_axes(n_axes: int = 1, size: tuple[float, float] = (6.0, 5.0)) -> tuple[Any, Any]:
    """Return a new figure of pyplot and an array of its axes, side by side.

    ``size`` is the width and height of one of the axes, in inches.
    """
    figure, axes = import_matplotlib("pyplot").subplots(
        1, n_axes, figsize=(size[0] * n_axes, size[1]), layout="constrained", squeeze=False
    )
    return figure, axes[0]


def whole_numbers() -> Any:
    """Return a locator of ticks at whole numbers, for counts."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, integer=True, min_n_ticks=1)


def draw_frame(ax: Any, limits: Float64, names: tuple[str, ...]) -> None:
    """Set the axes' labels and ranges."""
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.set_xlim(*limits[0])
    ax.set_ylim(*limits[1])
    spans = np.diff(limits, axis=1).ravel()
    # Squares stay square, and circles round, where both features have a similar range.
    if 1 / 3 < spans[0] / spans[1] < 3:
        ax.set_aspect("equal")


# Arguments of displays


def check_least(name: str, value: int, least: int) -> None:
    """Refuse a number below its least value."""
    if value < least:
        raise ParameterError(f"{name} is {value}; it must be at least {least}.")


def name_features(feature_names: Any, estimator: Any) -> list[str]:
    """Return a name for each feature: the given one, else that of the column trained on."""
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    if feature_names is None:
        feature_names = default_names(estimator.n_features_in_)
    return list(map(str, feature_names))


# Classes


def class_colors(numbers: Iterable[int]) -> list[str]:
    """Return the colors of classes, given their numbers."""
    return [CLASS_COLORS[number % len(CLASS_COLORS)] for number in numbers]


def class_entries(classes: Labels) -> list[Any]:
    """Return the entries of a legend: each class's dot and label."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linestyle": "none", "ms": 5}
    colors = class_colors(range(len(classes)))
    looks = zip(classes.tolist(), colors, cycle(CLASS_MARKERS), strict=False)
    return [
        Line2D([], [], marker=marker, color=color, label=str(label), **style)
        for label, color, marker in looks
    ]


def draw_dots(ax: Any, rows: Reals, classes: Ints, **style: Any) -> Any:
    """Draw rows in their classes' colors and shapes."""
    from matplotlib.markers import MarkerStyle

    dots = ax.scatter(*rows.T, c=class_colors(classes), **style)
    shapes = [MarkerStyle(marker) for marker in CLASS_MARKERS]
    paths = [shape.get_path().transformed(shape.get_transform()) for shape in shapes]
    dots.set_paths([paths[number % len(paths)] for number in classes])
    return dots


# Grids of points, and what is predicted there


def pad_limits(low: Float64, high: Float64) -> Float64:
    """Return the range of each axis, (k, 2), from least and greatest values, with a margin."""
    # Features with a single value get a range as well.
    pad = AXES_MARGIN * (high - low) + 1e-9
    return np.stack([low - pad, high + pad], axis=1)


def pixel_grid(limits: Float64, resolution: int) -> Float64:
    """Return the points of the pixels: array (2, resolution, resolution)."""
    x, y = (np.linspace(low, high, resolution) for low, high in limits)
    return np.stack(np.meshgrid(x, y))


def polar_grid(center: Reals, radius: float) -> Float64:
    """Return the points of a grid that fills a circle: array (2, radii, angles)."""
    angles = np.linspace(0, 2 * np.pi, N_ANGLES + 1)
    steps = np.linspace(0, radius, N_RADII)[:, None]
    return np.stack([center[0] + steps * np.cos(angles), center[1] + steps * np.sin(angles)])


def find_decisions(scores: Any) -> Decisions:
    """Return what boundaries are drawn from: decision values of two classes, else the winners."""
    scores = np.asarray(scores)
    decisions: Decisions = scores if scores.ndim == 1 else scores.argmax(axis=1)
    return decisions


def draw_boundary(
    ax: Any, grid: Float64, decisions: Decisions, n_classes: int, **style: Any
) -> Any:
    """Draw the lines across which the decisions at a grid's points change; None if there are none.

    Parameters
    ----------
    grid : float64 array, shape (2, p, q)
    decisions : array, shape (p, q)
    """
    # Not scikit-learn's DecisionBoundaryDisplay: of more than two classes it draws lines at whole
    # numbers, which lie beside the boundary, and ignores the color.
    # Decision values change sign; the numbers of classes pass between two whole numbers.
    levels = [0.0] if decisions.dtype.kind == "f" else [i + 0.5 for i in range(n_classes - 1)]
    # matplotlib warns about a contour without lines.
    if not any(decisions.min() < level < decisions.max() for level in levels):
        return None
    return ax.contour(*grid, decisions, levels, **style)


def fill_pixels(ax: Any, numbers: Ints, limits: Float64, colors: Sequence[Any]) -> Any:
    """Fill each pixel with the color of its number, which indexes the colors."""
    from matplotlib.colors import ListedColormap

    return ax.imshow(
        numbers,
        extent=limits.ravel(),
        origin="lower",
        cmap=ListedColormap(colors),
        vmin=-0.5,
        vmax=len(colors) - 0.5,
        interpolation="nearest",
        aspect="auto",
    )


def write_in_square(ax: Any, x: float, y: float, text: str, *, light: bool) -> Any:
    """Write a number into a square of a heat map, light on dark."""
    color = "white" if light else "#333333"
    return ax.text(x, y, text, ha="center", va="center", fontsize=8, color=color)
