"""Draw the layers of the package, and which package imports which, from the code as it is.

`python docs/draw_layers.py` writes docs/layers.png; the levels are those of pyproject.toml, which
import-linter holds the code to.
"""

import tomllib
from collections import Counter
from pathlib import Path

import grimp
import matplotlib as mpl

mpl.use("agg")
from matplotlib import pyplot as plt
from matplotlib.patches import FancyArrowPatch

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
LAYERS, FAMILIES = CONTRACTS[0]["layers"], CONTRACTS[1]["modules"]
LEVELS = {room: -i for i, layer in enumerate(LAYERS) for room in layer.split(" | ")}
WIDTH, HEIGHT = 1.5, 0.52
COLORS = mpl.colormaps["viridis"]
# Names that stand beside the package rather than in it.
UNDRAWN = {"_version"}


def room_of(module):
    """Return the box of a module: its package, its family in methods/, or itself."""
    parts = module.split(".")
    if len(parts) < 2:
        return None
    is_of_family = ".".join(parts[:3]) in FAMILIES
    return f"methods/{parts[2]}" if is_of_family else parts[1]


def place_rooms(rooms):
    """Return the center of each box: a row a level, families above what they share."""
    rows = {}
    for room in sorted(rooms):
        level = LEVELS["methods"] + 0.5 if "/" in room else LEVELS.get(room, 1)
        rows.setdefault(level, []).append(room)
    order = {level: i for i, level in enumerate(sorted(rows))}
    return {
        room: ((i - (len(row) - 1) / 2) * 1.75, 1.15 * order[level])
        for level, row in rows.items()
        for i, room in enumerate(row)
    }


def main():
    """Draw."""
    graph = grimp.build_graph("daskls", cache_dir=None)
    arrows, sizes = Counter(), Counter()
    for module in graph.modules:
        room = room_of(module)
        sizes[room] += 1
        imported = map(room_of, graph.find_modules_directly_imported_by(module))
        arrows.update((room, other) for other in imported if other not in (room, None))
    rooms = {room for room in sizes if room} - UNDRAWN
    places = place_rooms(rooms)
    figure, axes = plt.subplots(figsize=(11, 9))
    for (start, stop), count in arrows.items():
        if {start, stop} <= rooms:
            arrow = FancyArrowPatch(
                (places[start][0], places[start][1] - HEIGHT / 2),
                (places[stop][0], places[stop][1] + HEIGHT / 2),
                arrowstyle="-|>", mutation_scale=7, linewidth=0.4 + 0.07 * min(count, 20),
                color="0.55", alpha=0.55, zorder=1,
            )  # fmt: skip
            axes.add_patch(arrow)
    top = max(y for _, y in places.values())
    for room, (x, y) in places.items():
        color = COLORS(0.25 + 0.6 * y / top)
        axes.add_patch(
            plt.Rectangle((x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, color=color, zorder=2)
        )
        label = "a family of methods" if "/" in room else f"{sizes[room]} file(s)"
        style = {"ha": "center", "va": "center", "zorder": 3}
        style["color"] = "black" if y > 0.4 * top else "white"
        axes.text(x, y + 0.06, room.split("/")[-1], fontsize=11, **style)
        axes.text(x, y - 0.15, label, fontsize=7, **style)
    axes.set_xlim(min(x for x, _ in places.values()) - 1, max(x for x, _ in places.values()) + 1)
    axes.set_ylim(-0.6, top + 0.6)
    axes.set_title("An arrow points at what is imported: always down, never back")
    axes.axis("off")
    figure.savefig(ROOT / "docs" / "layers.png", dpi=80, bbox_inches="tight")


if __name__ == "__main__":
    main()
