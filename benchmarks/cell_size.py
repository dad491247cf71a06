"""Error against the size of the cells and the number of rows, as figure 3 of the 2017 paper.

covtype (class 2 against the rest) and higgs-11k, features in [0, 1]; the method's own grid. Larger
cells see more rows, smaller ones cost less: the picture shows both. Rows that are done are kept in
``benchmarks/results/cell_size.jsonl``, from which ``cell_size.md`` and ``.png`` are drawn.

    python benchmarks/cell_size.py [--seconds 60]    # leave out what is expected to take longer
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster
from journal import Column, Journal, Record, table
from matplotlib.ticker import LogLocator, NullFormatter
from measure import machine, measured
from real_sets import scaled, to_unit, write_set

from daskls import VoronoiSVC
from daskls.datasets import load_real

RESULTS = Path(__file__).parent / "results"
CELL_SIZES = (500, 1000, 2000, 5000, 10_000, 15_000)
ROWS = {"covtype": (10_000, 30_000, 100_000, 464_429), "higgs-11k": (3000, 9000)}
# CPU seconds a row and row of a cell, for --seconds alone.
SECONDS_A_ROW = 1.7e-7


def rows_of(name: str) -> tuple[np.ndarray, ...]:
    """Return training and test rows; a set without test rows gives up a share of its own."""
    if name == "covtype":
        return scaled(name)
    data = load_real(name)
    order = np.random.default_rng(2017).permutation(len(data.X))
    train, test = order[: ROWS[name][-1]], order[ROWS[name][-1] :]
    X, X_test = to_unit(data.X[train], data.X[test])
    return X, data.y[train], X_test, data.y[test]


def points(name: str, n_train: int, limit: float) -> Iterator[tuple[int, int]]:
    """Yield (rows, cell_size) where a cell is not larger than the rows, small ones first."""
    for n in sorted({min(n, n_train) for n in ROWS[name]}):
        for size in CELL_SIZES:
            # One cell of all rows is drawn once, at the first size that holds them.
            whole = [s for s in CELL_SIZES if s >= n][1:]
            if size not in whole and n * min(size, n) * SECONDS_A_ROW <= limit:
                yield n, size


def measure(name: str, n: int, size: int, data: tuple[np.ndarray, ...]) -> Record:
    X, y, X_test, y_test = data
    with tempfile.TemporaryDirectory() as folder:
        write_set(Path(folder) / "train.zarr", X[:n], y[:n])
        model = VoronoiSVC(size, random_state=0, store=Path(folder) / "model.zarr")
        with measured() as fit:
            model.fit(Path(folder) / "train.zarr")
        with measured() as predict:
            wrong = model.predict(X_test) != y_test
    return {
        "set": name,
        "rows": n,
        "cell_size": size,
        "error": float(np.mean(wrong)),
        "cells": model.n_cells_,
        "fit_cpu_s": fit.cpu_s,
        "predict_cpu_s": predict.cpu_s,
        "peak_mib": fit.peak_nbytes / 2**20,
        "machine": machine(),
    }


def columns() -> list[Column]:
    return [
        ("set", lambda r: r["set"]),
        ("rows", lambda r: f"{r['rows']:,}"),
        ("cell_size", lambda r: f"{r['cell_size']:,}"),
        ("cells", lambda r: r["cells"]),
        ("error %", lambda r: f"{100 * r['error']:.2f}"),
        ("fit CPU s", lambda r: f"{r['fit_cpu_s']:.1f}"),
        ("fit CPU ms a row", lambda r: f"{1000 * r['fit_cpu_s'] / r['rows']:.3f}"),
        ("predict CPU s", lambda r: f"{r['predict_cpu_s']:.2f}"),
        ("peak MiB", lambda r: f"{r['peak_mib']:.0f}"),
    ]


def draw(records: list[Record], path: Path) -> None:
    figure, grid = plt.subplots(2, 2, figsize=(11, 8))
    for row, name in zip(grid, ROWS, strict=True):
        own = [r for r in records if r["set"] == name]
        for n in sorted({r["rows"] for r in own}):
            line = sorted((r for r in own if r["rows"] == n), key=lambda r: r["cell_size"])
            draw_line(row, line, f"{n:,} rows")
        row[0].set(xscale="log", xlabel="cell_size", ylabel="error %", title=f"{name}: by cell")
        row[1].set(xscale="log", xlabel="training, CPU seconds", title=f"{name}: by cost")
        row[1].xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        row[1].xaxis.set_major_formatter("{x:g}")
        row[1].xaxis.set_minor_formatter(NullFormatter())
        row[0].set_xticks(CELL_SIZES, [f"{s:,}" for s in CELL_SIZES], fontsize=8)
        row[0].minorticks_off()
        row[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def draw_line(axes: Any, line: list[Record], label: str) -> None:
    errors = [100 * r["error"] for r in line]
    axes[0].plot([r["cell_size"] for r in line], errors, "o-", label=label)
    axes[1].plot([r["fit_cpu_s"] for r in line], errors, "o-", label=label)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1e9, help="CPU seconds of a fit")
    args = parser.parse_args()
    journal = Journal(RESULTS / "cell_size.jsonl")
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="6GiB", dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        X = np.random.default_rng(0).random((500, 3))
        VoronoiSVC(cell_size=100).fit(X, X[:, 0] > 0.5).predict(X)
        for name in ROWS:
            data = rows_of(name)
            for n, size in points(name, len(data[0]), args.seconds):
                if not journal.is_done(set=name, rows=n, cell_size=size):
                    found = journal.add(measure(name, n, size, data))
                    print({k: v for k, v in found.items() if k != "machine"}, flush=True)
    records = sorted(journal.records, key=lambda r: (r["set"], r["rows"], r["cell_size"]))
    text = f"# Error against cell size and rows\n\n{records[-1]['machine']}; two workers.\n\n"
    (RESULTS / "cell_size.md").write_text(text + table(columns(), records))
    draw(records, RESULTS / "cell_size.png")


if __name__ == "__main__":
    main()
