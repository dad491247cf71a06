"""Error against the size of the cells and the number of rows, as figure 3 of the 2017 paper.

covtype (class 2 against the rest) and higgs-11k, features in [0, 1]; the method's own grid; five
seeds where a fit is short. Larger cells see more rows, smaller ones cost less: the picture shows
both. ``--with seconds=60`` leaves out what is expected to take longer.
"""

from collections.abc import Iterator
from functools import lru_cache, partial

import numpy as np

from benchmarks.suite import Experiment, Journal, Record, Run, fit_predict, page
from benchmarks.suite.data import Data, scaled, to_unit, write_set
from benchmarks.suite.figures import Figure, lines, plain_log, plt, ticks_at
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.places import cluster
from benchmarks.suite.real import load_real

CELL_SIZES = (500, 1000, 2000, 5000, 10_000, 15_000)
ROWS = {"covtype": (10_000, 30_000, 100_000, 464_429), "higgs-11k": (3000, 9000)}
# CPU seconds a row and row of a cell, for the setting alone.
SECONDS_A_ROW = 1.7e-7
# Products of rows and cell size up to which more seeds are measured.
SEEDED, MORE_SEEDS = 150_000_000, (1, 2, 3, 4)
# The seconds of table 6 for COVTYPE, by cell size.
TABLE_6 = {2000: 10, 5000: 9, 10_000: 9, 15_000: 9}
COLUMNS = """
set = set | rows = rows:, | cell_size = cell_size:, | cells = cells
error % = mean_of([100 * error for error in errors], 2)
fit CPU s = fit_cpu_s:.1f | fit CPU ms a row = 1000 * fit_cpu_s / rows:.3f
1e9 s / (rows, cell_size, features) = 1e9 * fit_cpu_s / (rows * cell_size * n_features):.2f
table 6 = table_6
predict CPU s = predict_cpu_s:.2f | peak MiB = peak_mib:.0f
"""


@lru_cache(maxsize=1)
def rows_of(name: str) -> Data:
    """Return training and test rows; a set without test rows gives up a share of its own."""
    if name == "covtype":
        return scaled(name)
    data = load_real(name)
    order = np.random.default_rng(2017).permutation(len(data.X))
    train, test = order[: ROWS[name][-1]], order[ROWS[name][-1] :]
    X, X_test = to_unit(data.X[train], data.X[test])
    return Data(X, data.y[train], X_test, data.y[test])


def keys(run: Run) -> Iterator[Record]:
    """Yield cells that are not larger than the rows, small ones first."""
    for name, counts in ROWS.items():
        for n in counts:
            # One cell of all rows is drawn once, at the first size that holds them.
            whole = [s for s in CELL_SIZES if s >= n][1:]
            for size in CELL_SIZES:
                seconds = n * min(size, n) * SECONDS_A_ROW
                if size not in whole and seconds <= run.settings["seconds"]:
                    key = {"set": name, "rows": n, "cell_size": size}
                    yield key
                    more = MORE_SEEDS if n * size <= SEEDED else ()
                    yield from ({**key, "seed": seed} for seed in more)


def measure(run: Run, set: str, rows: int, cell_size: int, seed: int = 0) -> Record:
    data = rows_of(set).first(rows)
    train = run.folder / f"{set}-{rows}.zarr"
    if not train.exists():
        write_set(train, data.X, data.y)
    store = train.with_suffix(f".{cell_size}.{seed}")
    model = PaperSVC(cell_size, random_state=seed, store=store)
    labels, cost = fit_predict(model, train, data.X_test, peak_of_fit=True)
    return {"error": float(np.mean(labels != data.y_test)), "cells": model.n_cells_, **cost}


def ordered(journal: Journal) -> list[Record]:
    """Return the record of the first seed of each row of the table, with the errors of all."""
    found = []
    for key in journal.ordered("set", "rows", "cell_size"):
        about = {name: key[name] for name in ("set", "rows", "cell_size")}
        seeds = journal.latest("seed", **about)
        covtype = key["set"] == "covtype"
        found.append(
            {
                **next(r for r in seeds if "seed" not in r),
                "errors": [r["error"] for r in seeds],
                "n_features": 54 if covtype else 28,
                "table_6": TABLE_6.get(key["cell_size"], "") if covtype else "",
            }
        )
    return found


def mean_error(record: Record) -> float:
    return 100 * float(np.mean(record["errors"]))


def draw(journal: Journal) -> Figure:
    figure, axes = plt.subplots(2, 2, figsize=(11, 8))
    for (by_size, by_cost), name in zip(axes, ROWS, strict=True):
        own = [r for r in ordered(journal) if r["set"] == name]
        for ax, x in ((by_size, "cell_size"), (by_cost, "fit_cpu_s")):
            lines(ax, own, "rows", x, mean_error, "{:,} rows")
        by_size.set(xlabel="cell_size", ylabel="error %", title=f"{name}: by cell")
        by_cost.set(xscale="log", xlabel="training, CPU seconds", title=f"{name}: by cost")
        plain_log(by_cost.xaxis)
        ticks_at(by_size, CELL_SIZES, fontsize=8)
        by_size.minorticks_off()
        by_size.legend(fontsize=8)
    figure.tight_layout()
    return figure


report = page("Error against cell size and rows", "{machine}; two workers.", COLUMNS, ordered)
EXPERIMENT = Experiment(
    keys, measure, report, draw,
    place=partial(cluster, memory="6GiB"),
    warm=lambda: [PaperSVC(cell_size=100)],
    settings={"seconds": 1e9},
)  # fmt: skip
