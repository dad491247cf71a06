"""One, three and ten million rows out of core: what a row costs, and what the memory does.

noisy28, cells of 2000, by the paper and by the defaults; two workers of one thread and 2 GiB.
"""

import re
from contextlib import nullcontext

import numpy as np

from benchmarks.suite import Experiment, Journal, Record, Run, fit_predict, page
from benchmarks.suite.data import labels, written
from benchmarks.suite.figures import Figure, plt, ticks_at
from benchmarks.suite.measure import MIB, nbytes_of
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.places import cluster
from daskls import VoronoiSVC
from daskls.datasets import bayes_accuracy

CELL_SIZE = 2000
HOW = {"paper": PaperSVC, "defaults": VoronoiSVC}
N_TEST = 200_000
BEST = 100 * (1 - bayes_accuracy("noisy28"))
COLUMNS = f"""
rows = rows:, | parameters = how | cells = cells
sum m^2 / (n cell_size) = sum_m2 / (rows * cell_size):.2f
fit wall s = fit_wall_s:.0f | fit CPU s = fit_cpu_s:.0f
CPU ms a row = 1000 * fit_cpu_s / rows:.3f
fit peak MiB (before) = f'{{fit_peak_mib:.0f}} ({{before_mib:.0f}})' | attempts = attempts
predict {N_TEST:,} rows, CPU s = predict_cpu_s:.1f | predict peak MiB = predict_peak_mib:.0f
error % = 100 * error:.2f | at step limit = at_limit
model, MiB = model_mib:,.0f | scale of features = scale | measured by = measured_by(r)
"""
TEXT = (
    "{machine}\n\nnoisy28, 28 float32 features; cells of 2000. The paper's parameters: 10 x 10 "
    "candidates, 5 folds in each cell; the defaults: least squares in a scale that may be learned, "
    "one width and ridge for all cells, the better of two kernels. Two workers of one thread and "
    "2 GiB. Memory is the PSS of all processes. The error is that on "
    f"{N_TEST:,} other rows; the best possible one is {BEST:.2f} %."
)


def measured_by(record: Record) -> str:
    """Return the machine and the version of records that hold their own: older ones do."""
    found = re.match(r"(?P<cores>\d+ cores).*(?P<version>daskls [\d.]+)", record.get("machine", ""))
    return f"{found['version']}, {found['cores']}" if found else "as above"


def measure(run: Run, rows: int, how: str) -> Record:
    """Fit, and predict rows that were held out."""
    train, test = written("noisy28", run.folder, rows), written("noisy28", run.folder, N_TEST, 1)
    store = run.folder / f"{rows}-{how}.model"
    model = HOW[how](CELL_SIZE, random_state=0, store=store)
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
        "model_mib": nbytes_of(store) / MIB,
        "scale": str(model._reader.resolved.summary.get("decision", "")),
    }


def draw(journal: Journal) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for number, how in enumerate(HOW):
        records = journal.ordered("rows", how=how)
        rows = [r["rows"] for r in records]
        for kind, line in (("cpu", "o-"), ("wall", "o--")):
            cost = [1000 * r[f"fit_{kind}_s"] / r["rows"] for r in records]
            left.plot(rows, cost, line, color=f"C{number}", label=f"{how}, {kind}")
        peak = [r["fit_peak_mib"] for r in records]
        right.plot(rows, peak, "o-", color=f"C{number}", label=f"{how}, peak")
    right.plot(rows, [r["before_mib"] for r in records], "o--", color="C2", label="before")
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
    lambda run: [{"rows": n, "how": how} for how in HOW for n in run.settings["rows"]],
    measure,
    page(
        "Rows out of core",
        TEXT,
        COLUMNS,
        lambda j: j.ordered("rows", "how"),
        measured_by=measured_by,
    ),
    draw,
    place=nullcontext,
    settings={"rows": [1_000_000, 3_000_000, 10_000_000]},
)
