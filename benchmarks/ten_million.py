"""One, three and ten million rows out of core: what a row costs, and what the memory does.

noisy28, cells of 2000, by the paper and by the defaults; and numbers, Friedman's first function of
28 features. Two workers of one thread and 2 GiB.
"""

import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import zarr
from sklearn.metrics import r2_score

from benchmarks.suite import Experiment, Journal, Record, Run, fit_predict, page
from benchmarks.suite.data import labels, written
from benchmarks.suite.figures import Figure, plt, ticks_at
from benchmarks.suite.measure import MIB, nbytes_of
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.places import cluster
from daskls import VoronoiSVC, VoronoiSVR
from daskls.datasets import bayes_accuracy

CELL_SIZE = 2000
HOW = {"paper": PaperSVC, "defaults": VoronoiSVC, "numbers": VoronoiSVR}
# Of what is learned.
SETS = {"numbers": ("friedman1", {"d": 28})}
N_TEST = 200_000
BEST = 100 * (1 - bayes_accuracy("noisy28"))
BEST_R2 = bayes_accuracy("friedman1", d=28)
COLUMNS = f"""
rows = rows:, | parameters = how | cells = cells
sum m^2 / (n cell_size) = sum_m2 / (rows * cell_size):.2f
fit wall s = fit_wall_s:.0f | fit CPU s = fit_cpu_s:.0f
CPU ms a row = 1000 * fit_cpu_s / rows:.3f
fit peak MiB (before) = f'{{fit_peak_mib:.0f}} ({{before_mib:.0f}})' | attempts = attempts
predict {N_TEST:,} rows, CPU s = predict_cpu_s:.1f | predict peak MiB = predict_peak_mib:.0f
error % or R2 = goal | at step limit = at_limit
model, MiB = model_mib:,.0f | scale of features = scale | measured by = measured_by(r)
"""
TEXT = (
    "{machine}\n\nnoisy28, 28 float32 features; cells of 2000. The paper's parameters: 10 x 10 "
    "candidates, 5 folds in each cell; the defaults: least squares in a scale that may be learned, "
    "one width and ridge for all cells, the better of two kernels. Two workers of one thread and "
    "2 GiB. Memory is the PSS of all processes. The error is that on "
    f"{N_TEST:,} other rows; the best possible one is {BEST:.2f} %. Numbers: Friedman's first "
    f"function of 28 features with noise, by the defaults; the best possible R2 is {BEST_R2:.4f}."
)


def measured_by(record: Record) -> str:
    """Return the machine and the version of records that hold their own: older ones do."""
    machine = record.get("machine", "")
    found = re.match(r"(?P<cores>\d+ cores \(.*?\)).*(?P<version>daskls [\d.]+)", machine)
    return f"{found['version']}, {found['cores']}" if found else "as above"


def measure(run: Run, rows: int, how: str) -> Record:
    """Fit, and predict rows that were held out."""
    name, params = SETS.get(how, ("noisy28", {}))
    train, test = (written(name, run.folder, n, i, **params) for i, n in enumerate((rows, N_TEST)))
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
        **quality(how, predicted, test),
        "stages": model.stage_s_,
        "cells": len(report),
        "sum_m2": float((report.n_rows.astype(float) ** 2).sum()),
        "at_limit": int(report.n_at_limit.sum()),
        "model_mib": nbytes_of(store) / MIB,
        "scale": str(model._reader.resolved.summary.get("decision", "")),
    }


def quality(how: str, predicted: np.ndarray, test: Path) -> Record:
    """Return the share of wrong labels; of numbers R2."""
    if how not in SETS:
        return {"error": float(np.mean(predicted != labels(test)))}
    return {"r2": float(r2_score(zarr.open_array(test / "y")[:], predicted))}


def shown(journal: Journal) -> list[Record]:
    """Return the records with what came of the answers, in words."""
    return [
        {**r, "goal": f"R2 {r['r2']:.4f}" if "r2" in r else f"{100 * r['error']:.2f}"}
        for r in journal.ordered("rows", "how")
    ]


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
    records = journal.ordered("rows", how="defaults")
    rows = [r["rows"] for r in records]
    right.plot(rows, [r["before_mib"] for r in records], "o--", color="C3", label="before")
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
    page("Rows out of core", TEXT, COLUMNS, shown, measured_by=measured_by),
    draw,
    place=nullcontext,
    settings={"rows": [1_000_000, 3_000_000, 10_000_000]},
)
