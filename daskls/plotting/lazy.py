"""matplotlib, imported when something is drawn."""

from typing import Any

__all__ = ["import_figure", "import_pyplot", "new_axes", "whole_numbers"]

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
