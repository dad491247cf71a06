"""Training on covtype with one worker, two workers, and one worker of two threads: wall seconds.

Each run of each kind has a cluster of its own, with the kernels compiled and the workers warm; the
kinds take turns, so that a busy minute of the machine does not favor one. Runs are kept in
``benchmarks/results/workers.jsonl``, from which ``workers.md`` is drawn. The rows are read from the
folder in DASKLS_DATA.

    python benchmarks/workers.py [--runs 3] [--rows 464429]
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from distributed import Client, LocalCluster
from journal import Column, Journal, Record, table
from measure import cpu_seconds, machine
from real_sets import scaled, write_set

from daskls import VoronoiSVC

RESULTS = Path(__file__).parent / "results"
CELL_SIZE = 2000
# (workers, threads of each)
KINDS = ((1, 1), (2, 1), (1, 2))


def measure(train: Path, run: int, n_rows: int, n_workers: int, n_threads: int) -> Record:
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=n_threads,
            memory_limit="6GiB",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster),
        tempfile.TemporaryDirectory() as folder,
    ):
        X = np.random.default_rng(0).random((1000, 3))
        VoronoiSVC(cell_size=100).fit(X, X[:, 0] > 0.5)
        model = VoronoiSVC(CELL_SIZE, random_state=0, store=Path(folder) / "model.zarr")
        # Not `measured`: to watch the memory takes a share of a core, which two workers need.
        wall, cpu = time.perf_counter(), cpu_seconds()
        model.fit(train)
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return {
        "run": run,
        "rows": n_rows,
        "workers": n_workers,
        "threads": n_threads,
        "wall_s": wall,
        "cpu_s": cpu,
        "cells": model.n_cells_,
        "machine": machine(),
    }


def columns(journal: Journal) -> list[Column]:
    def speedup(record: Record) -> str:
        alone = journal.find(run=record["run"], rows=record["rows"], workers=1, threads=1)
        return f"{alone['wall_s'] / record['wall_s']:.2f}" if alone else ""

    return [
        ("run", lambda r: r["run"]),
        ("rows", lambda r: f"{r['rows']:,}"),
        ("workers", lambda r: r["workers"]),
        ("threads of each", lambda r: r["threads"]),
        ("wall s", lambda r: f"{r['wall_s']:.1f}"),
        ("times faster", speedup),
        ("CPU s", lambda r: f"{r['cpu_s']:.1f}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int)
    args = parser.parse_args()
    journal = Journal(RESULTS / "workers.jsonl")
    X, y, *_ = scaled("covtype")
    X, y = X[: args.rows], y[: args.rows]
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder) / "train.zarr"
        write_set(train, X, y)
        for run in range(args.runs):
            for kind in KINDS:
                if journal.find(run=run, rows=len(X), workers=kind[0], threads=kind[1]) is None:
                    print(journal.add(measure(train, run, len(X), *kind)), flush=True)
    write_table(journal)


def write_table(journal: Journal) -> None:
    lines = [f"# One worker and two on covtype\n\n{journal.records[-1]['machine']}\n\n"]
    lines.append(table(columns(journal), journal.records))
    for n_workers, n_threads in KINDS[1:]:
        ratios = [
            alone["wall_s"] / r["wall_s"]
            for r in journal.records
            if (r["workers"], r["threads"]) == (n_workers, n_threads)
            and (alone := journal.find(run=r["run"], rows=r["rows"], workers=1, threads=1))
        ]
        lines.append(
            f"\n{n_workers} worker(s) of {n_threads} thread(s): {median(ratios):.2f} times faster "
            f"than one of one, the median of {len(ratios)} runs.\n"
        )
    (RESULTS / "workers.md").write_text("".join(lines))


if __name__ == "__main__":
    main()
