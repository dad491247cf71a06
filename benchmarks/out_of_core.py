"""Ten million rows x 28 features through all stages on two workers of 2 GiB, stage by stage.

The grid is a single point, so that the time of sampling, regrouping and predicting is seen beside
that of training.
"""

from contextlib import nullcontext

import dask.array as da

from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite.data import written
from benchmarks.suite.measure import MIB, Cost, measured
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.places import TaskCounter, cluster
from daskls.datasets import bayes_accuracy

CELL_SIZE = 1000
STAGES = {
    "sample": "sample and check (X read once)",
    "regroup": "regroup (X read again)",
    "train": "train",
    "predict": "predict all rows",
}
COLUMNS = """
= what | wall s = wall_s:.1f | CPU s = cpu_s:.1f
peak MiB of all processes (before) = f'{peak_mib} ({before_mib})' | tasks = tasks
"""


def measure(run: Run, rows: int) -> Record:
    data = written("noisy28", run.folder, rows)
    model = PaperSVC(CELL_SIZE, C=1.0, gamma=0.02, refit="cell", random_state=0)
    model.set_params(store=run.folder / f"model-{rows}.zarr")
    with cluster() as workers:
        counter = TaskCounter()
        workers.scheduler.add_plugin(counter)
        with measured() as fit:
            model.fit(data)
        n_fit = counter.n_done
        with measured() as predict:
            labels = model.predict(data / "X")
            codes = da.from_zarr(str(data / "y"), chunks=labels.chunks)
            # The stored labels are codes of the classes -1 and 1.
            accuracy = float((labels == 2 * codes - 1).mean().compute())
    return {
        "cells": len(model.fit_report_),
        "support": int(model.fit_report_.n_support.sum()),
        "stages": {**model.stage_s_, "predict": predict.wall_s},
        "costs": [told("fit", fit, n_fit), told("predict", predict, counter.n_done - n_fit)],
        "accuracy": accuracy,
    }


def told(what: str, cost: Cost, n_tasks: int) -> Record:
    return {
        "what": what,
        "wall_s": cost.wall_s,
        "cpu_s": cost.cpu_s,
        "peak_mib": cost.peak_nbytes // MIB,
        "before_mib": cost.baseline_nbytes // MIB,
        "tasks": n_tasks,
    }


def report(journal: Journal) -> str:
    r = journal.records[-1]
    stages = [{"stage": text, "wall_s": r["stages"][name]} for name, text in STAGES.items()]
    return (
        f"# Rows out of core, stage by stage\n\n{journal.machine}\n\n"
        f"noisy28, {r['rows']} rows x 28 float32 features; two workers of one thread and 2 GiB; "
        f"cell_size {CELL_SIZE}, one (C, gamma), refit='cell': {r['cells']} cells, "
        f"{r['support']} support rows.\n\n"
        + table("stage = stage | wall s = wall_s:.1f", stages)
        + "\n"
        + table(COLUMNS, r["costs"])
        + f"\nTraining accuracy {r['accuracy']:.2%} (Bayes {bayes_accuracy('noisy28') or 0:.2%}).\n"
    )


EXPERIMENT = Experiment(
    lambda run: [dict(run.settings)],
    measure,
    report,
    place=nullcontext,
    settings={"rows": 10_000_000},
)
