"""Training on covtype with one worker, two workers, and one worker of two threads: wall seconds.

Each run of each kind has a cluster of its own, with the kernels compiled and the workers warm; the
kinds take turns, so that a busy minute of the machine does not favor one.
"""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from statistics import median

from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite.data import scaled, write_set
from benchmarks.suite.measure import cpu_seconds
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.places import cluster, warm_up

CELL_SIZE = 2000
# (workers, threads of each)
KINDS = ((1, 1), (2, 1), (1, 2))
COLUMNS = """
run = run | rows = rows:, | workers = workers | threads of each = threads | wall s = wall_s:.1f
times faster = faster(r):.2f | CPU s = cpu_s:.1f
"""


def keys(run: Run) -> Iterator[Record]:
    for i in range(run.settings["runs"]):
        for workers, threads in KINDS:
            yield {"run": i, "rows": run.settings["rows"], "workers": workers, "threads": threads}


def measure(this: Run, run: int, rows: int, workers: int, threads: int) -> Record:
    train = this.folder / f"{rows}.zarr"
    if not train.exists():
        data = scaled("covtype").first(rows)
        write_set(train, data.X, data.y)
    with cluster(workers, "6GiB", threads):
        warm_up(PaperSVC(cell_size=100))
        store = this.folder / f"{run}-{rows}-{workers}-{threads}.model"
        model = PaperSVC(CELL_SIZE, random_state=0, store=store)
        # Not `measured`: to watch the memory takes a share of a core, which two workers need.
        wall, cpu = time.perf_counter(), cpu_seconds()
        model.fit(train)
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return {"wall_s": wall, "cpu_s": cpu, "cells": model.n_cells_}


def report(journal: Journal) -> str:
    def faster(record: Record) -> float:
        """Return how many times less wall seconds than with one worker; KeyError without that."""
        alone = journal.find(run=record["run"], rows=record["rows"], workers=1, threads=1)
        return (alone or {})["wall_s"] / record["wall_s"]

    records = journal.latest("run", "rows", "workers", "threads")
    text = f"# One worker and two on covtype\n\n{journal.machine}\n\n"
    text += table(COLUMNS, records, faster=faster)
    for kind in KINDS[1:]:
        times = [faster(r) for r in records if (r["workers"], r["threads"]) == kind]
        if times:
            text += (
                f"\n{kind[0]} worker(s) of {kind[1]} thread(s): {median(times):.2f} times faster "
                f"than one of one, the median of {len(times)} runs.\n"
            )
    return text


EXPERIMENT = Experiment(
    keys, measure, report, place=nullcontext, settings={"runs": 3, "rows": 464_429}
)
