"""Error, cells, CPU seconds and peak memory of VoronoiSVC on four real sets, as one table.

Two workers of one thread; features scaled by the minimum and maximum of the training rows. The
small sets are measured with five seeds, as mean and deviation.
"""

import numpy as np

from benchmarks.suite import Experiment, Journal, Record, Run, fit_predict, page
from benchmarks.suite.data import on_disk
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.places import cluster
from benchmarks.suite.tables import mean_of

CELL_SIZE = 2000
# What the peers of the 2017 paper's engine reached on the same rows, where it is known.
LIQUIDSVM = {"covtype": 4.27, "ijcnn1": 2.05}
SEEDS = {"ijcnn1": 5, "usps": 5, "letter": 1, "covtype": 1}
COLUMNS = f"""
set = set | train / test rows = f'{{rows}} / {{test_rows}}' | seeds = seeds
error % = spread(all_error, 2) | liquidSVM % = liquid | cells = cells
cells / (n / cell_size) = cells / (rows / {CELL_SIZE}):.2f
sum m^2 / (n cell_size) = sum_m2 / (rows * {CELL_SIZE}):.2f | at step limit = sum(all_at_limit)
fit CPU s = spread(all_fit_cpu_s, 1) | fit wall s = spread(all_fit_wall_s, 1)
predict CPU s = spread(all_predict_cpu_s, 1)
peak MiB (before) = f'{{max(all_peak_mib):.0f}} ({{before_mib:.0f}})'
"""


def measure(run: Run, set: str, seed: int) -> Record:
    train, test, y_test = on_disk(run.folder, set)
    store = run.folder / f"{set}-{seed}.model"
    model = PaperSVC(cell_size=CELL_SIZE, random_state=seed, store=store)
    predicted, cost = fit_predict(model, train, test / "X", peak_of_fit=True)
    cells = model.fit_report_
    return {
        "error": 100 * float(np.mean(predicted != y_test)),
        "rows": int(cells.n_rows.sum()),
        "test_rows": len(y_test),
        "cells": len(cells),
        "sum_m2": float((cells.n_rows.astype(float) ** 2).sum()),
        "at_limit": int(cells.n_at_limit.sum()),
        **cost,
    }


def rows(journal: Journal) -> list[Record]:
    """Return a row of the table a set: the first seed's record, and the values of all."""
    fields = ("error", "at_limit", "fit_cpu_s", "fit_wall_s", "predict_cpu_s", "peak_mib")
    return [
        {**own[0], "seeds": len(own), "liquid": LIQUIDSVM.get(name, "")}
        | {f"all_{field}": [r[field] for r in own] for field in fields}
        for name in SEEDS
        if (own := journal.latest("seed", set=name))
    ]


def spread(values: list[float], digits: int) -> str:
    return mean_of(values, digits, "+-", ddof=1)


EXPERIMENT = Experiment(
    [{"set": name, "seed": seed} for name, n in SEEDS.items() for seed in range(n)],
    measure,
    page("VoronoiSVC on real sets", "{machine}", COLUMNS, rows, spread=spread),
    place=cluster,
    warm=lambda: [PaperSVC(cell_size=100)],
)
