"""VoronoiSVC beside its peers on two real and two synthetic sets: error, CPU seconds, memory.

Each row of the table is one process (`suite/apart.py`). ``--with rows=20000`` takes the first rows
of each part of a set, for a look: give another ``--results``, which it does not mix with.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

from benchmarks.peers import Data
from benchmarks.suite import PEAK, Experiment, Journal, Record, Run, table
from benchmarks.suite.apart import run_peer
from benchmarks.suite.data import scaled, to_unit
from benchmarks.suite.figures import Figure, plain_log, plt
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.sets import TwoGaussians
from benchmarks.suite.tables import versions
from daskls.datasets._base import Generator
from daskls.datasets.sets import Checkerboard

CELL_SIZE = 2000
N_SYNTHETIC = 20_000
REFERENCE = "liquidSVM"
# Candidates for features in [0, 1].
SVC_GRID = {"C": [1, 10, 100, 1000], "gamma": [0.1, 1, 10, 100]}
NYSTROEM_GRID = {"nystroem__gamma": [0.1, 1, 10], "sgdclassifier__alpha": [1e-4, 1e-5, 1e-6]}
SUBSAMPLE = {"grid": SVC_GRID, "n_train": 20_000}
FULL = {"cell_size": CELL_SIZE, "search": "full"}
OVERLAPPING = "liquidSVM, overlapping"
# The peer and its parameters. liquidSVM's partition_choice: 6 is its fastest, 4 plain Voronoi
# cells, 5 overlapping ones, of which it makes several times as many (`--with overlapping=true`).
# "matched" is resolved to a number when its turn comes.
METHODS: dict[str, tuple[str, Record]] = {
    REFERENCE: ("liquidSVM", {"voronoi": f"6 {CELL_SIZE}"}),
    "liquidSVM, Voronoi": ("liquidSVM", {"voronoi": f"4 {CELL_SIZE}"}),
    OVERLAPPING: ("liquidSVM", {"voronoi": f"5 {CELL_SIZE}"}),
    "daskls, full search": ("daskls", FULL),
    "daskls": ("daskls", {"cell_size": CELL_SIZE}),
    "daskls, full search, no more cells than liquidSVM": (
        "daskls",
        {**FULL, "cell_size": "matched"},
    ),
    "daskls, 4 partitions": ("daskls", {"cell_size": CELL_SIZE, "n_partitions": 4}),
    "HistGradientBoosting, 1000 x 255": (
        "gradient boosting",
        {"max_iter": 1000, "max_leaf_nodes": 255},
    ),
    "LightGBM, 1000 x 255": ("lightgbm", {"n_estimators": 1000, "num_leaves": 255}),
    "Nystroem 1000 + SGD": ("nystroem", {"n_components": 1000, "grid": NYSTROEM_GRID}),
    "SVC, 20,000 rows": ("svc", {"library": "scikit-learn", **SUBSAMPLE}),
    "sklearnex SVC, 20,000 rows": ("svc", {"library": "sklearnex", **SUBSAMPLE}),
    "ThunderSVM, 20,000 rows": ("svc", {"library": "thundersvm", **SUBSAMPLE}),
}
COLUMNS = f"""
method = method | train CPU s = r.get('failure') or '%.1f' % train_cpu_s
predict CPU s = predict_cpu_s:.2f | train wall s = train_wall_s:.1f | {PEAK}
error % = 100 * error:.2f | cells = cells | cell_size = params['cell_size']
sum m^2 / (n cell_size) = sum_m2 / (n_train * params['cell_size']):.2f
liquidSVM / this, train = reference['train_cpu_s'] / train_cpu_s:.2f
liquidSVM / this, predict = reference['predict_cpu_s'] / predict_cpu_s:.2f
"""


def synthetic(made: Generator) -> Data:
    (X, y), (X_test, y_test) = (made.rows(0, N_SYNTHETIC, seed) for seed in (0, 1))
    X, X_test = to_unit(X, X_test)
    return Data(X, y, X_test, y_test)


MADE: dict[str, Generator] = {"two_gaussians": TwoGaussians(8), "checkerboard": Checkerboard()}
SETS: dict[str, Callable[[], Data]] = {
    "covtype": lambda: scaled("covtype"),
    "ijcnn1": lambda: scaled("ijcnn1"),
    **{name: partial(synthetic, made) for name, made in MADE.items()},
}
BAYES = {name: 1 - made.bayes_accuracy() for name, made in MADE.items()}


@lru_cache(maxsize=1)
def rows_of(name: str, n: int | None) -> Data:
    return Data(*(part[:n] for part in SETS[name]()))


def matched_cell_size(data: Data, n_cells: int) -> int:
    """Return nearly the smallest ``cell_size`` with which a fit has at most ``n_cells`` cells."""
    size = -(-len(data.X) // n_cells)
    while (found := count_cells(data, size)) > n_cells:
        size = max(size * found // n_cells, size + size // 50)
    return size


def count_cells(data: Data, cell_size: int) -> int:
    # The partition is that of any other fit with the seed; solvers that are content with their
    # start make it cheap.
    model = PaperSVC(cell_size, kernel="linear", C=1, cv=2, tol=1e6, random_state=0)
    return model.fit(data.X, data.y).n_cells_


def resolved(params: Record, name: str, data: Data, journal: Journal) -> Record:
    """Return the parameters with a number where they say "matched"."""
    if params.get("cell_size") != "matched":
        return params
    reference = journal.find(set=name, method=REFERENCE) or {}
    if "cells" not in reference:
        raise SystemExit(f"Run {REFERENCE} on {name} first: its cells are to be matched.")
    return {**params, "cell_size": matched_cell_size(data, reference["cells"])}


def keys(run: Run) -> Iterator[Record]:
    wanted = [m for m in METHODS if m != OVERLAPPING or run.settings["overlapping"]]
    for name in SETS:
        yield from ({"set": name, "method": method} for method in wanted)


def measure(run: Run, set: str, method: str) -> Record:
    data, folder = rows_of(set, run.settings["rows"]), run.folder / set
    data.save(folder)
    peer, params = METHODS[method]
    params = resolved(params, set, data, run.journal)
    return {"params": params, **run_peer(peer, folder, params, run.settings["limit_s"])}


def by_set(journal: Journal) -> dict[str, list[Record]]:
    """Return each set's records in the order of the methods."""
    found = {s: [journal.find(set=s, method=m) for m in METHODS] for s in SETS}
    return {name: own for name, records in found.items() if (own := list(filter(None, records)))}


def sizes(records: list[Record]) -> str:
    done = [r for r in records if "n_train" in r]
    return f"{done[0]['n_train']:,} / {done[0]['n_test']:,} rows" if done else "no rows"


def report(journal: Journal) -> str:
    found = by_set(journal)
    parts = [
        "# VoronoiSVC beside its peers\n",
        f"{journal.machine}; peers: {versions(r for own in found.values() for r in own)}\n",
        "Features in [0, 1]. Peers have one thread and one process; daskls reads Zarr and has two "
        "workers of one thread and 2 GiB, whose CPU seconds and memory (PSS) are added to the "
        "client's. liquidSVM and daskls select from 10 x 10 candidates with 5 folds in each cell. "
        "The SVCs select C and gamma, and Nystroem its gamma and penalty, on 5000 rows with 3 "
        "folds; that is part of their seconds. The other libraries run untuned.\n",
    ]
    for name, records in found.items():
        bayes = f"; Bayes error {100 * BAYES[name]:.2f} %" if name in BAYES else ""
        reference = next((r for r in records if r["method"] == REFERENCE), {})
        shown = table(COLUMNS, records, reference=reference)
        parts += [f"## {name}, {sizes(records)}{bayes}\n", shown]
    return "\n".join(parts)


def draw(journal: Journal) -> Figure:
    found = by_set(journal)
    figure, grid = plt.subplots(1, len(found), figsize=(7 * len(found), 5), squeeze=False)
    for axes, (name, records) in zip(grid[0], found.items(), strict=True):
        if name in BAYES:
            axes.axhline(100 * BAYES[name], ls="--", color="C2", label="Bayes error")
            axes.legend(fontsize=7)
        draw_points(axes, [r for r in records if "error" in r])
        axes.set(xscale="log", title=f"{name}, {sizes(records)}")
        axes.set(xlabel="training, CPU seconds", ylabel="error %")
        plain_log(axes.xaxis)
    figure.tight_layout()
    return figure


def draw_points(axes: Any, records: list[Record]) -> None:
    """Draw a point a record, with the names in a column beside them: many lie close together."""
    ordered = sorted(records, key=lambda r: r["error"])
    for i, record in enumerate(ordered):
        point = record["train_cpu_s"], 100 * record["error"]
        color = "C0" if record["method"].startswith("daskls") else "C7"
        axes.plot(*point, "o", color=color)
        axes.annotate(
            record["method"],
            point,
            (1.03, (i + 0.5) / len(ordered)),
            textcoords="axes fraction",
            fontsize=8,
            color="C0" if color == "C0" else "black",
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": color, "relpos": (0, 0.5)},
        )


EXPERIMENT = Experiment(
    keys, measure, report, draw, settings={"rows": None, "limit_s": 7200, "overlapping": False}
)
