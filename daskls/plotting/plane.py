"""Drawing on the plane of two features: colors, grids of points, boundaries, the frame.

matplotlib, imported when something is drawn.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskls.errors import ParameterError
from daskls.records import Float64, Ints, Labels, Reals

REMEDY = "Drawing needs matplotlib, which is not installed; run `pip install daskls[plots]`."


def import_figure() -> Any:
    """Return matplotlib's Figure class, which draws into files without a screen.

    Raises
    ------
    ImportError : that says what to install
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(REMEDY) from error
    return Figure


def import_pyplot() -> Any:
    """Return matplotlib's pyplot, which shows figures in notebooks and on screens.

    Raises
    ------
    ImportError : that says what to install
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(REMEDY) from error
    return pyplot


def new_axes(n_axes: int = 1, size: tuple[float, float] = (6.0, 5.0)) -> tuple[Any, Any]:
    """Return a figure of pyplot, as notebooks and scripts expect it, and an array of its axes."""
    figure, axes = import_pyplot().subplots(
        1, n_axes, figsize=(size[0] * n_axes, size[1]), layout="constrained", squeeze=False
    )
    return figure, axes[0]


def whole_numbers() -> Any:
    """Return a locator of ticks for counts."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, integer=True, min_n_ticks=1)


# Pale, so that rows and the boundary stand out.
CELL_COLORS = ("#dbe7f4", "#fbe3cf", "#dcefd9", "#efe0f0", "#fbf3c9", "#e8e4dc", "#d5efee")
# Of six lightnesses, for print in gray, and apart for who sees no red or no green: their distances
# in CIE Lab are at least 37 as they are, 23 without red, 18 without green, 11 in gray.
CLASS_COLORS = ("#17518f", "#d96a00", "#56b4e9", "#1b1b1b", "#5b1a4b", "#6a5acd")
# Beside the colors, where dots are large enough.
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P")
# The share of a range that is left free on either side.
AXES_MARGIN = 0.03
# Of the grid inside a circle, which ends on the circle exactly.
N_RADII, N_ANGLES = 40, 120
# What boundaries are drawn of: decision values of two classes, or the winners' numbers.
Decisions = NDArray[np.float64 | np.int64]


def check_least(name: str, value: int, least: int) -> None:
    """Refuse a number below its least value."""
    if value < least:
        raise ParameterError(f"{name} is {value}; it must be at least {least}.")


def class_colors(numbers: Iterable[int]) -> list[str]:
    """Return the colors of classes, given their numbers."""
    return [CLASS_COLORS[number % len(CLASS_COLORS)] for number in numbers]


def class_entries(classes: Labels) -> list[Any]:
    """Return each class's dot with its label, for a legend."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linestyle": "none", "ms": 5}
    colors = class_colors(range(len(classes)))
    return [
        Line2D([], [], marker=_marker(number), color=color, label=str(label), **style)
        for number, (label, color) in enumerate(zip(classes.tolist(), colors, strict=True))
    ]


def _marker(number: int) -> str:
    """Return the shape of a class's dots."""
    return CLASS_MARKERS[number % len(CLASS_MARKERS)]


def pad_limits(low: Float64, high: Float64) -> Float64:
    """Return the range of each axis from the least to the greatest values, with a margin."""
    pad = AXES_MARGIN * (high - low) + 1e-9
    return np.stack([low - pad, high + pad], axis=1)


def pixel_grid(limits: Float64, resolution: int) -> Float64:
    """Return the pixels' centers: array (2, resolution, resolution)."""
    x, y = (np.linspace(low, high, resolution) for low, high in limits)
    return np.stack(np.meshgrid(x, y))


def polar_grid(center: Reals, radius: float) -> Float64:
    """Return the points of a grid that fills a circle: array (2, radii, angles)."""
    angles = np.linspace(0, 2 * np.pi, N_ANGLES + 1)
    steps = np.linspace(0, radius, N_RADII)[:, None]
    return np.stack([center[0] + steps * np.cos(angles), center[1] + steps * np.sin(angles)])


def find_decisions(scores: Any) -> Decisions:
    """Return what boundaries are drawn of: values of two classes, or the winners' numbers."""
    scores = np.asarray(scores)
    decisions: Decisions = scores if scores.ndim == 1 else scores.argmax(axis=1)
    return decisions


def draw_boundary(
    ax: Any, grid: Float64, decisions: Decisions, n_classes: int, **style: Any
) -> Any:
    """Draw where the decisions at a grid's points change, or nothing where they never do."""
    # Decision values change their sign; winners' numbers change between whole ones.
    levels = [0.0] if decisions.dtype.kind == "f" else [i + 0.5 for i in range(n_classes - 1)]
    # matplotlib would warn of a contour without lines.
    if not any(decisions.min() < level < decisions.max() for level in levels):
        return None
    return ax.contour(*grid, decisions, levels, **style)


def draw_dots(ax: Any, rows: Reals, classes: Ints, **style: Any) -> Any:
    """Draw rows in their classes' colors and shapes."""
    from matplotlib.markers import MarkerStyle

    dots = ax.scatter(*rows.T, c=class_colors(classes), **style)
    shapes = [MarkerStyle(marker) for marker in CLASS_MARKERS]
    paths = [shape.get_path().transformed(shape.get_transform()) for shape in shapes]
    dots.set_paths([paths[number % len(paths)] for number in classes])
    return dots


def draw_numbers(ax: Any, numbers: Ints, limits: Float64, colors: Sequence[Any]) -> Any:
    """Fill each pixel with the color of its number."""
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


def draw_number(ax: Any, x: float, y: float, text: str, *, light: bool) -> Any:
    """Write a number into a square of a heat map, light on dark."""
    color = "white" if light else "#333333"
    return ax.text(x, y, text, ha="center", va="center", fontsize=8, color=color)


def draw_frame(ax: Any, limits: Float64, names: tuple[str, str]) -> None:
    """Set the axes' labels and ranges."""
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.set_xlim(*limits[0])
    ax.set_ylim(*limits[1])
    spans = np.diff(limits, axis=1).ravel()
    # Squares stay square, and circles round, where the features have a like range.
    if 1 / 3 < spans[0] / spans[1] < 3:
        ax.set_aspect("equal")
