"""VoronoiSVC beside its peers on two real and two synthetic sets: error, CPU seconds, memory.

Each row of the table is one process (`peers.py`). Rows that were measured are kept in
``benchmarks/results/covtype.jsonl``; a run does what is missing, then draws ``covtype.md`` and
``covtype.png``. The real sets are read from the folder in DASKLS_DATA.

    python benchmarks/bench_covtype.py
    python benchmarks/bench_covtype.py --sets ijcnn1 --methods daskls liquidSVM --again
    python benchmarks/bench_covtype.py --rows 20000 --results /tmp/few    # a quick look
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
from journal import Column, Journal, Record, table, versions
from matplotlib.ticker import LogLocator, NullFormatter
from measure import machine
from peers import Data, run_peer
from real_sets import scaled, to_unit

from daskls import VoronoiSVC
from daskls.datasets import bayes_accuracy, make_checkerboard, make_two_gaussians

RESULTS = Path(__file__).parent / "results"
CELL_SIZE = 2000
N_SYNTHETIC = 20_000
REFERENCE = "liquidSVM"
# (training rows, liquidSVM's cells): of earlier runs, where the journal has none.
KNOWN_CELLS = {"covtype": (464_429, 388), "ijcnn1": (49_990, 40)}
# Candidates for features in [0, 1].
SVC_GRID = {"C": [1, 10, 100, 1000], "gamma": [0.1, 1, 10, 100]}
NYSTROEM_GRID = {"nystroem__gamma": [0.1, 1, 10], "sgdclassifier__alpha": [1e-4, 1e-5, 1e-6]}
TREES = {"max_iter": 1000, "max_leaf_nodes": 255}
SUBSAMPLE = {"n_train": 20_000}


def method(name: str, peer: str, *, default: bool = True, **params: Any) -> dict[str, Any]:
    return {"name": name, "peer": peer, "params": params, "default": default}


# liquidSVM's partition_choice: 6 is its fastest, 4 plain Voronoi cells, 5 overlapping ones, of
# which it makes several times as many. "matched" is resolved to a number when its turn comes.
METHODS = [
    method(REFERENCE, "liquidSVM", voronoi=f"6 {CELL_SIZE}"),
    method("liquidSVM, Voronoi", "liquidSVM", voronoi=f"4 {CELL_SIZE}"),
    method("liquidSVM, overlapping", "liquidSVM", default=False, voronoi=f"5 {CELL_SIZE}"),
    method("daskls, full search", "daskls", cell_size=CELL_SIZE, search="full"),
    method("daskls", "daskls", cell_size=CELL_SIZE),
    method(
        "daskls, full search, no more cells than liquidSVM",
        "daskls",
        cell_size="matched",
        search="full",
    ),
    method("daskls, 4 partitions", "daskls", cell_size=CELL_SIZE, n_partitions=4),
    method("HistGradientBoosting, 1000 x 255", "gradient boosting", **TREES),
    method("LightGBM, 1000 x 255", "lightgbm", n_estimators=1000, num_leaves=255),
    method("Nystroem 1000 + SGD", "nystroem", n_components=1000, grid=NYSTROEM_GRID),
    method("SVC, 20,000 rows", "svc", library="scikit-learn", grid=SVC_GRID, **SUBSAMPLE),
    method("sklearnex SVC, 20,000 rows", "svc", library="sklearnex", grid=SVC_GRID, **SUBSAMPLE),
    method("ThunderSVM, 20,000 rows", "svc", library="thundersvm", grid=SVC_GRID, **SUBSAMPLE),
]


# The sets


def synthetic(make: Callable[..., Any], **params: Any) -> Data:
    X, y = make(N_SYNTHETIC, **params)
    X_test, y_test = make(N_SYNTHETIC, random_state=1, **params)
    X, X_test = to_unit(X, X_test)
    return Data(X, y, X_test, y_test)


SETS: dict[str, Callable[[], Data]] = {
    "covtype": lambda: Data(*scaled("covtype")),
    "ijcnn1": lambda: Data(*scaled("ijcnn1")),
    "two_gaussians": lambda: synthetic(make_two_gaussians, d=8),
    "checkerboard": lambda: synthetic(make_checkerboard),
}
BAYES = {
    "two_gaussians": 1 - bayes_accuracy("two_gaussians", d=8),
    "checkerboard": 1 - bayes_accuracy("checkerboard"),
}


def first_rows(data: Data, n: int | None) -> Data:
    return Data(data.X[:n], data.y[:n], data.X_test[:n], data.y_test[:n])


def matched_cell_size(data: Data, n_cells: int) -> int:
    """Return nearly the smallest ``cell_size`` with which a fit has at most ``n_cells`` cells."""
    size = -(-len(data.X) // n_cells)
    while (found := count_cells(data, size)) > n_cells:
        size = max(size * found // n_cells, size + size // 50)
    return size


def count_cells(data: Data, cell_size: int) -> int:
    # The partition is that of any other fit with the seed; solvers that are content with their
    # start make it cheap.
    model = VoronoiSVC(cell_size, kernel="linear", C=1, cv=2, tol=1e6, random_state=0)
    return model.fit(data.X, data.y).n_cells_


# One row


def resolved(params: dict[str, Any], name: str, data: Data, journal: Journal) -> dict[str, Any]:
    """Return the parameters with a number where they say "matched"."""
    if params.get("cell_size") != "matched":
        return params
    reference = journal.find(set=name, method=REFERENCE) or {}
    n_rows, known = KNOWN_CELLS.get(name, (0, 0))
    n_cells = reference.get("cells", known if n_rows == len(data.X) else None)
    if n_cells is None:
        raise SystemExit(
            f"Run the method {REFERENCE} on {name} first: its cells are to be matched."
        )
    return {**params, "cell_size": matched_cell_size(data, n_cells)}


def measure(
    name: str, row: dict[str, Any], data: Data, journal: Journal, args: argparse.Namespace
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data.save(Path(folder))
        params = resolved(row["params"], name, data, journal)
        python = sys.executable if row["peer"] == "daskls" else args.peer_python
        found = run_peer(row["peer"], Path(folder), params, args.limit, python)
    key = {"set": name, "method": row["name"]}
    journal.add({**key, "params": params, "machine": machine(), **found})
    print(key, found, flush=True)


# The report


def speedup(records: list[Record], part: str) -> Callable[[Record], str]:
    """Return how many times liquidSVM's CPU seconds are those of a record."""
    seconds = [r[part] for r in records if r["method"] == REFERENCE and part in r]

    def show(record: Record) -> str:
        return f"{seconds[0] / record[part]:.2f}" if seconds else ""

    return show


def columns(records: list[Record]) -> list[Column]:
    return [
        ("method", lambda r: r["method"]),
        ("train CPU s", lambda r: r.get("failure") or f"{r['train_cpu_s']:.1f}"),
        ("predict CPU s", lambda r: f"{r['predict_cpu_s']:.2f}"),
        ("train wall s", lambda r: f"{r['train_wall_s']:.1f}"),
        ("peak MiB (before)", lambda r: f"{r['peak_mib']:.0f} ({r['before_mib']:.0f})"),
        ("error %", lambda r: f"{100 * r['error']:.2f}"),
        ("cells", lambda r: r["cells"]),
        ("cell_size", lambda r: r["params"]["cell_size"]),
        (
            "sum m^2 / (n cell_size)",
            lambda r: f"{r['sum_m2'] / (r['n_train'] * r['params']['cell_size']):.2f}",
        ),
        ("liquidSVM / this, train", speedup(records, "train_cpu_s")),
        ("liquidSVM / this, predict", speedup(records, "predict_cpu_s")),
    ]


def latest(journal: Journal, name: str) -> list[Record]:
    """Return the set's records in the order of the methods."""
    found = (journal.find(set=name, method=row["name"]) for row in METHODS)
    return [record for record in found if record is not None]


def sizes(records: list[Record]) -> str:
    done = [r for r in records if "n_train" in r]
    return f"{done[0]['n_train']:,} / {done[0]['n_test']:,} rows" if done else "no rows"


def write_table(journal: Journal, path: Path) -> None:
    found = {name: records for name in SETS if (records := latest(journal, name))}
    every = [r for records in found.values() for r in records]
    parts = [
        "# VoronoiSVC beside its peers\n",
        f"{every[-1]['machine']}; peers: {versions(every)}\n",
        "Features in [0, 1]. Peers have one thread and one process; daskls reads Zarr and has two "
        "workers of one thread and 2 GiB, whose CPU seconds and memory (PSS) are added to the "
        "client's. liquidSVM and daskls select from 10 x 10 candidates with 5 folds in each cell. "
        "The SVCs select C and gamma, and Nystroem its gamma and penalty, on 5000 rows with 3 "
        "folds; that is part of their seconds. The other libraries run untuned.\n",
    ]
    for name, records in found.items():
        bayes = f"; Bayes error {100 * BAYES[name]:.2f} %" if name in BAYES else ""
        parts += [f"## {name}, {sizes(records)}{bayes}\n", table(columns(records), records)]
    path.write_text("\n".join(parts))


def draw(journal: Journal, path: Path) -> None:
    found = {name: records for name in SETS if (records := latest(journal, name))}
    figure, grid = plt.subplots(1, len(found), figsize=(7 * len(found), 5), squeeze=False)
    for axes, (name, records) in zip(grid[0], found.items(), strict=True):
        if name in BAYES:
            axes.axhline(100 * BAYES[name], ls="--", color="C2", label="Bayes error")
            axes.legend(fontsize=7)
        draw_points(axes, [r for r in records if "error" in r])
        axes.set(xscale="log", title=f"{name}, {sizes(records)}")
        axes.set(xlabel="training, CPU seconds", ylabel="error %")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    figure.tight_layout()
    figure.savefig(path, dpi=120)


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


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--methods", nargs="+", help="their names, or beginnings of them")
    parser.add_argument("--rows", type=int, help="the first so many rows of each part of a set")
    parser.add_argument("--limit", type=float, default=7200, help="seconds of one process")
    parser.add_argument("--again", action="store_true", help="measure what was measured, too")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--peer-python", default=os.environ.get("PEER_PYTHON", sys.executable))
    args = parser.parse_args()
    if args.rows and args.results == RESULTS:
        parser.error("--rows is for a look; give another --results, which it does not mix with")
    return args


def chosen(row: dict[str, Any], names: list[str] | None) -> bool:
    """Return whether a method is named: by its whole name, or by a beginning that is no name."""
    if not names:
        return row["default"]
    whole = {method["name"] for method in METHODS}
    return any(row["name"] == n or (n not in whole and row["name"].startswith(n)) for n in names)


def main() -> None:
    args = options()
    journal = Journal(args.results / "covtype.jsonl")
    for name in args.sets:
        data = first_rows(SETS[name](), args.rows)
        for row in METHODS:
            done = journal.is_done(set=name, method=row["name"])
            if chosen(row, args.methods) and (args.again or not done):
                measure(name, row, data, journal, args)
    write_table(journal, args.results / "covtype.md")
    draw(journal, args.results / "covtype.png")


if __name__ == "__main__":
    main()
