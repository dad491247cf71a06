"""Error against prediction, a panel a set; the area of a mark is the model's size."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from benchmarks.suite.figures import Figure, plain_log, plt
from benchmarks.suite.journal import Journal

# Squares are of other libraries; diamonds one function everywhere; circles local ones.
MARKERS = {
    **dict.fromkeys(("SVC", "LinearSVC", "LightGBM"), "s"),
    **dict.fromkeys(("RandomChunkSVC", "LocalSamplingSVC", "NeighborSamplingSVC"), "D"),
}
EDGE = {"markeredgecolor": "black", "markeredgewidth": 0.5, "linestyle": ""}


def draw(journal: Journal, sets: Sequence[str], methods: Sequence[str]) -> Figure:
    figure, grid = plt.subplots(2, 3, figsize=(12, 7.5))
    # Ten strong colors, black, then pale ones.
    tab = plt.get_cmap("tab20").colors
    colors = dict(zip(methods, (*tab[::2], (0, 0, 0), *tab[1::2]), strict=False))
    for axes, name in zip(grid.flat, sets, strict=False):
        for method in methods:
            r = journal.find(set=name, method=method)
            if r and "error" in r:
                axes.scatter(
                    r["predict_us"],
                    100 * r["error"],
                    s=area(r["model_nbytes"]),
                    color=colors[method],
                    marker=MARKERS.get(method, "o"),
                    alpha=0.75,
                    edgecolors="black",
                    linewidths=0.5,
                )
        axes.set(xscale="log", title=name, xlabel="prediction, CPU us a row", ylabel="error %")
        axes.set(xlim=(0.01, 10_000), yscale="log")
        axes.margins(y=0.12)
        plain_log(axes.yaxis, (1, 1.5, 2, 3, 4, 5, 6, 8))
        axes.grid(alpha=0.3)
    legend(grid.flat[-1], colors)
    figure.tight_layout()
    return figure


def area(nbytes: float) -> float:
    """Return the area of a mark: a tenth of a MB is 30, each factor of 10 doubles it."""
    return 30 * 2 ** max(np.log10(nbytes / 1e5), -1)


def legend(axes: Any, colors: dict[str, Any]) -> None:
    axes.axis("off")

    def mark(label: str, color: Any, size: float, marker: str = "o") -> Line2D:
        style = {"color": color, "markersize": size, "marker": marker, **EDGE}
        return Line2D([], [], label=label, **style)

    names = [mark(m, c, 8, MARKERS.get(m, "o")) for m, c in colors.items()]
    sizes = [mark(f"{mb:g} MB", "white", np.sqrt(area(mb * 1e6))) for mb in (0.01, 1, 100)]
    title = "circle: local\ndiamond: one function\nsquare: other libraries"
    methods = axes.legend(
        handles=names, loc="upper left", fontsize=9, title=title, title_fontsize=9
    )
    axes.add_artist(methods)
    axes.legend(handles=sizes, loc="upper right", title="model", fontsize=9, labelspacing=1)
