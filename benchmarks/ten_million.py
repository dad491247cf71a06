"""One, three and ten million rows out of core: what a row costs, and what the memory does.

noisy28, cells of 2000, the method's own grid, two workers of one thread and 2 GiB.
"""

from contextlib import nullcontext

import numpy as np

from benchmarks.suite import Experiment, Journal, Record, Run, fit_predict, page
from benchmarks.suite.data import labels, written
from benchmarks.suite.figures import Figure, plt, ticks_at
from benchmarks.suite.measure import MIB
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.places import cluster
from daskls.datasets import bayes_accuracy

CELL_SIZE = 2000
N_TEST = 200_000
BEST = 100 * (1 - bayes_accuracy("noisy28"))
COLUMNS = f"""
rows = rows:, | cells = cells | sum m^2 / (n cell_size) = sum_m2 / (rows * cell_size):.2f
fit wall s = fit_wall_s:.0f | fit CPU s = fit_cpu_s:.0f
CPU ms a row = 1000 * fit_cpu_s / rows:.3f
fit peak MiB (before) = f'{{fit_peak_mib:.0f}} ({{before_mib:.0f}})' | attempts = attempts
predict {N_TEST:,} rows, CPU s = predict_cpu_s:.1f | predict peak MiB = predict_peak_mib:.0f
error % = 100 * error:.2f | at step limit = at_limit
"""
TEXT = (
    "{machine}\n\nnoisy28, 28 float32 features; cells of 2000, 10 x 10 candidates, 5 folds; two "
    "workers of one thread and 2 GiB. Memory is the PSS of all processes. The error is that on "
    f"{N_TEST:,} other rows; the best possible one is {BEST:.2f} %."
)


def measure(run: Run, rows: int) -> Record:
    """Fit, and predict rows that were held out."""
    train, test = written("noisy28", run.folder, rows), written("noisy28", run.folder, N_TEST, 1)
    model = PaperSVC(CELL_SIZE, random_state=0, store=run.folder / f"{rows}.model")
    with cluster():
        predicted, cost = fit_predict(model, train, test / "X", peak_of_fit=True)
    report = model.fit_report_
    return {
        "cell_size": CELL_SIZE,
        "attempts": 1,
        **cost,
        "fit_peak_mib": cost["peak_mib"],
        "error": float(np.mean(predicted != labels(test))),
        "cells": len(report),
        "sum_m2": float((report.n_rows.astype(float) ** 2).sum()),
        "at_limit": int(report.n_at_limit.sum()),
    }


def draw(journal: Journal) -> Figure:
    records = journal.ordered("rows")
    rows = [r["rows"] for r in records]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for kind, label in (("cpu", "CPU"), ("wall", "wall")):
        cost = [1000 * r[f"fit_{kind}_s"] / r["rows"] for r in records]
        left.plot(rows, cost, "o-", label=f"{label} ms")
    right.plot(rows, [r["fit_peak_mib"] for r in records], "o-", label="peak")
    right.plot(rows, [r["before_mib"] for r in records], "o--", label="before")
    own = [n * 28 * 4 / MIB for n in rows]
    right.plot(rows, own, ":", color="C7", label="the rows themselves")
    left.set(title="Training: time of a row", ylabel="milliseconds")
    right.set(title="Training: memory of all processes", ylabel="MiB")
    for axes in (left, right):
        axes.set(xlabel="rows")
        ticks_at(axes, rows, fontsize=8)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
    figure.tight_layout()
    return figure


EXPERIMENT = Experiment(
    lambda run: [{"rows": n} for n in run.settings["rows"]],
    measure,
    page("Rows out of core, the whole grid", TEXT, COLUMNS, lambda j: j.ordered("rows")),
    draw,
    place=nullcontext,
    settings={"rows": [1_000_000, 3_000_000, 10_000_000]},
)
