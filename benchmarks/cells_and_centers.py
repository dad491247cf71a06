"""VoronoiSVC and FalkSVC with local selection on all of covtype, in one process and one thread.

Features are scaled by the minimum and maximum of the training rows.
"""

from typing import Any

import numpy as np

from benchmarks.suite import Experiment, Record, Run, fit_predict, grid, page
from benchmarks.suite.data import on_disk
from benchmarks.suite.measure import nbytes_of
from benchmarks.suite.papers import PaperSVC
from daskls import FalkSVC

METHODS: dict[str, Any] = {
    "VoronoiSVC(cell_size=2000)": lambda: PaperSVC(cell_size=2000, random_state=0),
    'FalkSVC(n_neighbors=1000, selection="local")': lambda: FalkSVC(
        n_neighbors=1000, selection="local", random_state=0
    ),
}
COLUMNS = """
method = method | error % = 100 * error:.2f | fit CPU s = fit_cpu_s:.0f
predict CPU s = predict_cpu_s:.1f | microseconds a row = 1e6 * predict_cpu_s / n_test:.0f
model MB = model_nbytes / 1e6:.0f
"""
TEXT = (
    "{machine}; one process, one thread. Features by the minimum and maximum of the training rows."
)


def measure(run: Run, method: str) -> Record:
    train, test, y_test = on_disk(run.folder, "covtype")
    model = METHODS[method]()
    store = run.folder / f"{type(model).__name__}.model"
    predicted, cost = fit_predict(model.set_params(store=store), train, test / "X")
    error = float(np.mean(predicted != y_test))
    return {"error": error, "n_test": len(y_test), "model_nbytes": nbytes_of(store), **cost}


EXPERIMENT = Experiment(
    grid(method=METHODS),
    measure,
    page("Cells and centers on all of covtype", TEXT, COLUMNS, "method"),
    warm=lambda: [make() for make in METHODS.values()],
)
