"""Figures of records: a backend that needs no screen, and axes that many of them have."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.suite.journal import Record

Show = str | Callable[[Record], float]
__all__ = ["Figure", "lines", "plain_log", "plt", "save", "ticks_at"]


def save(figure: Figure, path: Path, dpi: int) -> None:
    figure.savefig(path, dpi=dpi)
    plt.close(figure)


def lines(
    axes: Any, records: Sequence[Record], by: str, x: Show, y: Show, label: str = "{}"
) -> None:
    """Draw a line for each value of ``by``; x and y are fields, or functions of a record."""
    x, y = (itemgetter(show) if isinstance(show, str) else show for show in (x, y))
    for value in dict.fromkeys(r[by] for r in records):
        own = [r for r in records if r[by] == value]
        axes.plot([x(r) for r in own], [y(r) for r in own], "o-", label=label.format(value))


def plain_log(axis: Any, subs: Sequence[float] = (1, 2, 5)) -> None:
    """Name the ticks of a logarithmic axis by plain numbers."""
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def ticks_at(axes: Any, counts: Sequence[int], **style: Any) -> None:
    """Name the counts that were measured, and no others, along a logarithmic x axis."""
    axes.set_xscale("log")
    axes.set_xticks(counts, [f"{n:,}" for n in counts], **style)
    axes.xaxis.set_minor_formatter(NullFormatter())
