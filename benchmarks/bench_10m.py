"""One, three and ten million rows out of core: what a row costs, and what the memory does.

noisy28, cells of 2000, the method's own grid, two workers of one thread and 2 GiB. What is written
stays in the folder: a run that was stopped goes on where it was, and the cost of all its attempts
is added up. Rows that are done are kept in ``benchmarks/results/ten_million.jsonl``, from which
``ten_million.md`` and ``ten_million.png`` are drawn.

    python benchmarks/bench_10m.py [--rows 1000000 3000000 10000000] [--folder FOLDER]
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import zarr
from distributed import Client, LocalCluster
from journal import Column, Journal, Record, table
from matplotlib.ticker import NullFormatter
from measure import MIB, cpu_seconds, machine, measured
from out_of_core import written

from daskls import VoronoiSVC
from daskls.cli.memory import PeakMemory
from daskls.datasets import bayes_accuracy

RESULTS = Path(__file__).parent / "results"
ROWS = (1_000_000, 3_000_000, 10_000_000)
CELL_SIZE = 2000
N_TEST = 200_000
NOTE_S = 5.0


@contextmanager
def noted(folder: Path) -> Iterator[None]:
    """Keep this attempt's cost so far in a file: one that is killed has cost something too."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{time.time_ns()}.json"
    done = threading.Event()
    wall, cpu = time.perf_counter(), cpu_seconds()

    def note(memory: PeakMemory) -> None:
        found = {
            "wall_s": time.perf_counter() - wall,
            "cpu_s": cpu_seconds() - cpu - memory.sampling_cpu_s,
            "peak_mib": memory.peak_nbytes / MIB,
            "before_mib": memory.start_nbytes / MIB,
        }
        path.with_suffix(".part").write_text(json.dumps(found))
        path.with_suffix(".part").replace(path)

    def repeat(memory: PeakMemory) -> None:
        while not done.wait(NOTE_S):
            note(memory)

    with PeakMemory() as memory:
        thread = threading.Thread(target=repeat, args=(memory,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            note(memory)


def attempts(folder: Path) -> Record:
    """Return the cost of all attempts: seconds added up, the first baseline, the highest peak."""
    notes = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return {
        "attempts": len(notes),
        "fit_wall_s": sum(note["wall_s"] for note in notes),
        "fit_cpu_s": sum(note["cpu_s"] for note in notes),
        "fit_peak_mib": max(note["peak_mib"] for note in notes),
        "before_mib": notes[0]["before_mib"],
    }


def run(n: int, folder: Path, cell_size: int) -> Record:
    """Fit, predict rows that were held out, and return what is to be told."""
    train, test = written(folder, n), written(folder, N_TEST, random_state=1)
    model = VoronoiSVC(cell_size, random_state=0, verbose=int(sys.stderr.isatty()))
    model.set_params(store=folder / f"model-{n}-{cell_size}.zarr")
    costs = folder / f"costs-{n}-{cell_size}"
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="2GiB") as cluster,
        Client(cluster),
    ):
        with noted(costs):
            model.fit(train)
        with measured() as predict:
            labels = model.predict(test / "X").compute()
    # The stored labels are codes of the classes -1 and 1.
    wrong = labels != 2 * zarr.open_array(test / "y")[:].astype(int) - 1
    report = model.fit_report_
    return {
        "rows": n,
        "cell_size": cell_size,
        "machine": machine(),
        **attempts(costs),
        "predict_cpu_s": predict.cpu_s,
        "predict_peak_mib": predict.peak_nbytes / MIB,
        "error": float(np.mean(wrong)),
        "cells": len(report),
        "sum_m2": float((report.n_rows.astype(float) ** 2).sum()),
        "at_limit": int(report.n_at_limit.sum()),
    }


COLUMNS: list[Column] = [
    ("rows", lambda r: f"{r['rows']:,}"),
    ("cells", lambda r: r["cells"]),
    ("sum m^2 / (n cell_size)", lambda r: f"{r['sum_m2'] / (r['rows'] * r['cell_size']):.2f}"),
    ("fit wall s", lambda r: f"{r['fit_wall_s']:.0f}"),
    ("fit CPU s", lambda r: f"{r['fit_cpu_s']:.0f}"),
    ("CPU ms a row", lambda r: f"{1000 * r['fit_cpu_s'] / r['rows']:.3f}"),
    ("fit peak MiB (before)", lambda r: f"{r['fit_peak_mib']:.0f} ({r['before_mib']:.0f})"),
    ("attempts", lambda r: r["attempts"]),
    (f"predict {N_TEST:,} rows, CPU s", lambda r: f"{r['predict_cpu_s']:.1f}"),
    ("predict peak MiB", lambda r: f"{r['predict_peak_mib']:.0f}"),
    ("error %", lambda r: f"{100 * r['error']:.2f}"),
    ("at step limit", lambda r: r["at_limit"]),
]


def write_table(records: list[Record], path: Path) -> None:
    best = 1 - (bayes_accuracy("noisy28") or 0)
    path.write_text(
        "# Rows out of core, the whole grid\n\n"
        f"{records[-1]['machine']}\n\n"
        f"noisy28, 28 float32 features; cells of {records[-1]['cell_size']}, 10 x 10 candidates, "
        "5 folds; two workers of one thread and 2 GiB. Memory is the PSS of all processes. The "
        f"error is that on {N_TEST:,} other rows; the best possible one is {100 * best:.2f} %.\n\n"
        + table(COLUMNS, records)
    )


def draw(records: list[Record], path: Path) -> None:
    rows = [r["rows"] for r in records]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for kind, label in (("cpu", "CPU"), ("wall", "wall")):
        cost = [1000 * r[f"fit_{kind}_s"] / r["rows"] for r in records]
        left.plot(rows, cost, "o-", label=f"{label} ms")
    right.plot(rows, [r["fit_peak_mib"] for r in records], "o-", label="peak")
    right.plot(rows, [r["before_mib"] for r in records], "o--", label="before")
    own = [r["rows"] * 28 * 4 / MIB for r in records]
    right.plot(rows, own, ":", color="C7", label="the rows themselves")
    left.set(title="Training: time of a row", ylabel="milliseconds")
    right.set(title="Training: memory of all processes", ylabel="MiB")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="rows")
        axes.set_xticks(rows, [f"{n:,}" for n in rows], fontsize=8)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--cell-size", type=int, default=CELL_SIZE)
    folder = Path(tempfile.gettempdir()) / "daskls-bench-10m"
    parser.add_argument("--folder", type=Path, default=folder, help="data, models and costs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    args = options()
    args.folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(args.results / "ten_million.jsonl")
    for n in args.rows:
        if journal.find(rows=n, cell_size=args.cell_size) is None:
            print(journal.add(run(n, args.folder, args.cell_size)), flush=True)
    every = {r["rows"]: r for r in journal.records if r["cell_size"] == args.cell_size}
    records = [every[n] for n in sorted(every)]
    write_table(records, args.results / "ten_million.md")
    draw(records, args.results / "ten_million.png")


if __name__ == "__main__":
    main()
