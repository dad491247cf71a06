"""CPU seconds by stage of a fit of cells, as table 4 of the 2017 paper: COVTYPE, cells of 2000.

One process, one thread, the paper's grid of 10 x 10 candidates and 5 folds. The kernel matrices,
the solves and the decisions of held-out rows are timed where cells call them; the rest of the
training is the choice and what surrounds it.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, page
from benchmarks.suite.data import scaled
from benchmarks.suite.papers import PaperSVC
from daskls.solvers.hinge.width import HingePairSolver

# What the paper's machine took with one thread a cell, and its memory in GB.
PAPER = {
    **{"partition_s": 3, "kernel_s": 138, "solver_s": 206, "validation_s": 44, "rest_s": 47},
    **{"test_s": 13},
}
PARTS = {"move": "kernel_s", "solve": "solver_s", "finish": "solver_s", "decide": "validation_s"}
COLUMNS = """
search = search | partition = partition_s:.1f | kernel matrices = kernel_s:.1f
solver = solver_s:.1f | validation = validation_s:.1f | choice and the rest = rest_s:.1f
100,000 test rows = test_s:.1f | error, % = 100 * error:.2f
"""
TEXT = (
    "{machine}; one process, one thread. CPU seconds; 464,429 training rows, features in [0, 1]. "
    'The paper\'s are of its machine, their choice is its column "sel".'
)


def timed(function: Callable[..., Any], name: str, spent: dict[str, float]) -> Callable[..., Any]:
    """Return a function that adds its CPU seconds to those of a stage."""

    def call(*args: Any) -> Any:
        started = time.thread_time()
        found = function(*args)
        spent[name] += time.thread_time() - started
        return found

    return call


def measure(run: Run, search: str) -> Record:
    data = scaled("covtype")
    spent = dict.fromkeys(PARTS.values(), 0.0)
    model = PaperSVC(2000, search=search, random_state=0)
    with ExitStack() as stack:
        for method, name in PARTS.items():
            own = timed(getattr(HingePairSolver, method), name, spent)
            stack.enter_context(mock.patch.object(HingePairSolver, method, own))
        _, fit_s = cpu_of(lambda: model.fit(data.X, data.y))
    stages = dict(model.stage_s_)
    partition_s = sum(seconds for name, seconds in stages.items() if name != "train")
    predicted, test_s = cpu_of(lambda: model.predict(data.X_test[:100_000]))
    return {
        **spent,
        "partition_s": partition_s,
        "rest_s": fit_s - partition_s - sum(spent.values()),
        "test_s": test_s,
        "fit_s": fit_s,
        "error": float(np.mean(predicted != data.y_test[:100_000])),
        "stages": stages,
    }


def rows(journal: Journal) -> list[Record]:
    paper = {"search": "the paper, full", **PAPER}
    ours = journal.find(search="full")
    times = {name: s / ours[name] for name, s in PAPER.items()} if ours else {}
    return [*journal.latest("search"), paper, {"search": "the paper's / ours, full", **times}]


EXPERIMENT = Experiment(
    [{"search": "refine"}, {"search": "full"}],
    measure,
    page("Stages of a fit of cells", TEXT, COLUMNS, rows),
    warm=lambda: [PaperSVC()],
)
