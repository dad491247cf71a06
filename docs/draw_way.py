"""Draw the way of a row through the package: the modules that a fit and a prediction enter.

`python docs/draw_way.py` runs both on a small table and writes docs/way.png.
"""

import sys
from pathlib import Path

import dask
import matplotlib as mpl
import numpy as np

mpl.use("agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from entered import modules_entered  # noqa: E402

import daskls  # noqa: E402

# From the hands of the user down to compiled code; what is left out stands beside the way.
FLOORS = ("estimators", "sources", "pipeline", "methods", "scaling", "run", "cluster", "plan",
          "partition", "store", "solvers", "kernels")  # fmt: skip


def ways():
    """Return the modules that a fit and a prediction enter, in their order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = X[:, 0] > 0
    with dask.config.set(scheduler="synchronous"):
        model = daskls.VoronoiSVC(random_state=0).fit(X, y)
        model.predict(X[:5])
        # Once more, now that all is compiled and loaded.
        return {
            "fit(X, y)": modules_entered(lambda: model.fit(X, y)),
            "predict(X)": modules_entered(lambda: model.predict(X[:5])),
        }


def first_entries(modules):
    """Return (floor, name) of each module at its first entry, in order."""
    found = {}
    for module in modules:
        floor, _, name = module.removesuffix(".py").partition("/")
        if floor in FLOORS and not name.endswith("__init__"):
            found.setdefault((floor, name or floor), None)
    return list(found)


def draw(axes, title, entries):
    """Draw one way: a step to the right for each module, on the floor where it is at home."""
    x = np.arange(len(entries))
    y = np.array([len(FLOORS) - 1 - FLOORS.index(floor) for floor, _ in entries])
    for floor in range(len(FLOORS)):
        axes.axhspan(floor - 0.5, floor + 0.5, color=f"C{floor}", alpha=0.08 + 0.06 * (floor % 2))
    axes.plot(x, y, color="0.6", linewidth=0.8, zorder=1)
    axes.scatter(x, y, c=[f"C{value}" for value in y], s=18, zorder=2)
    for at, floor, (_, name) in zip(x, y, entries, strict=True):
        axes.annotate(name, (at, floor), (0, 4), textcoords="offset points", rotation=60,
                      fontsize=6.5, ha="left", va="bottom")  # fmt: skip
    axes.set(yticks=range(len(FLOORS)), yticklabels=FLOORS[::-1], xticks=[], title=title)
    axes.set_ylim(-0.5, len(FLOORS) - 0.2)
    axes.set_xlim(-0.7, len(entries) + 0.8)


def main():
    """Draw."""
    found = {name: first_entries(way) for name, way in ways().items()}
    figure, axes = plt.subplots(len(found), 1, figsize=(13, 12))
    for own, (name, entries) in zip(axes, found.items(), strict=True):
        draw(own, f"{name}: {len(entries)} modules, each where it is first entered", entries)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "way.png", dpi=110)


if __name__ == "__main__":
    main()
