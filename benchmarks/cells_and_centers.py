"""VoronoiSVC and FalkSVC with local selection on all of covtype, in one process and one thread.

Features are scaled by the minimum and maximum of the training rows; four seeds.
"""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.suite import Experiment, Journal, Record, Run, fit_predict, grid, page
from benchmarks.suite.data import by_training, write_set
from benchmarks.suite.measure import nbytes_of
from benchmarks.suite.papers import PaperSVC
from daskls import FalkSVC

METHODS: dict[str, Any] = {
    "VoronoiSVC(cell_size=2000)": partial(PaperSVC, cell_size=2000),
    'FalkSVC(n_neighbors=1000, selection="local")': partial(
        FalkSVC, n_neighbors=1000, selection="local"
    ),
}
COLUMNS = """
method = method | seeds = len(error) | error % = mean_of([100 * e for e in error], 2)
fit CPU s = mean_of(fit_cpu_s, 0) | predict CPU s = mean_of(predict_cpu_s, 1)
microseconds a row = mean_of(predict_us, 0)
model MB = mean_of([n / 1e6 for n in model_nbytes], 0)
"""
TEXT = (
    "{machine}; one process, one thread, beside other work. Features by the minimum and maximum "
    "of the training rows. Means and deviations of the seeds."
)


@cache
def on_disk(folder: Path) -> tuple[Path, Path, np.ndarray]:
    """Write covtype, once a run; return its training rows, its test rows and their labels."""
    data = by_training("covtype")
    train, test = folder / "train.zarr", folder / "test.zarr"
    write_set(train, data.X, data.y)
    write_set(test, data.X_test, data.y_test)
    return train, test, data.y_test


def measure(run: Run, method: str, seed: int) -> Record:
    train, test, y_test = on_disk(run.folder)
    model = METHODS[method](random_state=seed)
    store = run.folder / f"{type(model).__name__}-{seed}.model"
    predicted, cost = fit_predict(model.set_params(store=store), train, test / "X")
    error = float(np.mean(predicted != y_test))
    return {"error": error, "n_test": len(y_test), "model_nbytes": nbytes_of(store), **cost}


def rows(journal: Journal) -> Iterator[Record]:
    """Yield a record a method, with lists of what the seeds have."""
    for method in METHODS:
        own = journal.latest("seed", method=method)
        us = [1e6 * r["predict_cpu_s"] / r["n_test"] for r in own]
        fields = {name: [r[name] for r in own] for name in own[0]}
        yield {**fields, "predict_us": us, "method": method}


EXPERIMENT = Experiment(
    grid(seed=range(4), method=METHODS),
    measure,
    page("Cells and centers on all of covtype", TEXT, COLUMNS, rows),
    warm=lambda: [make(random_state=0) for make in METHODS.values()],
)
