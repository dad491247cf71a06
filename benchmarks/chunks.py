"""Random chunks against cells on covtype, as figure 3 and table 3 of the 2017 paper.

RandomChunkSVC and VoronoiSVC at the same sizes and numbers of training rows: error, CPU seconds of
training, and what a predicted row costs. One process, one thread, the first 100,000 test rows;
where chunks would need longer than `PREDICT_LIMIT_S` for these, the first 30,000 or 10,000. Cheap
ones come first. Of ijcnn1 and higgs-11k there is table 3 alone, with all their training rows.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from benchmarks.cell_size import rows_of as of_cells
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, grid, table
from benchmarks.suite.data import Data, scaled
from benchmarks.suite.estimators import timed_predict
from benchmarks.suite.figures import Figure, plt, ticks_at
from benchmarks.suite.papers import PaperSVC
from daskls import RandomChunkSVC

METHODS: dict[str, Any] = {"cells": PaperSVC, "chunks": RandomChunkSVC}
SIZES = (2000, 5000, 10_000)
ROWS = (10_000, 30_000, 100_000, 464_429)
TEST_ROWS = (100_000, 30_000, 10_000)
PREDICT_LIMIT_S = 30
# Table 3: sets, training rows, sizes, and the paper's time to predict with chunks by that with
# cells, of COVTYPE and of (100,000 rows of) HIGGS.
TABLE_3: dict[str, tuple[int, dict[int, Any]]] = {
    "covtype": (100_000, {2000: 153, 5000: 61, 10_000: 26, 15_000: 19}),
    "ijcnn1": (49_990, dict.fromkeys((2000, 5000, 10_000, 15_000), "")),
    "higgs-11k": (9000, {2000: 74, 5000: 34}),
}
GRID = grid(set=["covtype"], method=METHODS, rows=ROWS, size=SIZES)
OTHERS = [
    key
    for name, (rows, sizes) in TABLE_3.items()
    for key in grid(set=[name], method=METHODS, rows=[rows], size=sizes)
    if key not in GRID
]
KEYS = sorted([*GRID, *OTHERS], key=lambda k: k["rows"] * k["size"])
COLUMNS = """
set = set | rows = rows:, | size = size:, | method = method | cells or chunks = cells
error % = 100 * error:.2f | train CPU s = fit_cpu_s:.1f | support rows = support:,
predict CPU s = predict_cpu_s:.2f | test rows = test_rows:,
predict us a row = 1e6 * predict_cpu_s / test_rows:,.1f
"""
RATIO_COLUMNS = """
set = set | training rows = rows:, | size = size:,
cells, us a row = cells:.1f | chunks, us a row = chunks:,.0f
chunks / cells = chunks / cells:.0f | the paper's = paper
ours / the paper's = over:.1f
"""


@cache
def rows_of(name: str) -> Data:
    return of_cells(name) if name == "higgs-11k" else scaled(name)


def measure(run: Run, set: str, method: str, rows: int, size: int) -> Record:
    X, y, X_test, y_test = rows_of(set).first(rows)
    model = METHODS[method](size, random_state=0)
    _, fit_s = cpu_of(lambda: model.fit(X, y))
    n_test = test_rows(model, X_test)
    predicted, predict_s = timed_predict(model, X_test[:n_test])
    return {
        "error": float(np.mean(predicted != y_test[:n_test])),
        "test_rows": n_test,
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
        "cells": model.n_cells_,
        "support": int(model.fit_report_.n_support.sum()),
        "at_limit": int(model.fit_report_.n_at_limit.sum()),
    }


def test_rows(model: Any, X_test: np.ndarray) -> int:
    """Return how many rows to predict, by the time that a few take."""
    # A model of cells costs next to nothing a row: its seconds are those of opening it.
    if not isinstance(model, RandomChunkSVC):
        return min(TEST_ROWS[0], len(X_test))
    few = 1000
    _, seconds = cpu_of(lambda: model.predict(X_test[:few]))
    counts = (min(n, len(X_test)) for n in TEST_ROWS)
    return next((n for n in counts if n * seconds / few <= PREDICT_LIMIT_S), TEST_ROWS[-1])


def ratios(journal: Journal) -> Iterator[Record]:
    """Yield table 3: a record for each set and size measured with both methods."""
    for name, (rows, sizes) in TABLE_3.items():
        for size, paper in sizes.items():
            key = {"set": name, "rows": rows, "size": size}
            found = {m: journal.find(method=m, **key) for m in METHODS}
            if all(found.values()):
                times = {m: 1e6 * r["predict_cpu_s"] / r["test_rows"] for m, r in found.items()}
                over = {"over": times["chunks"] / times["cells"] / paper} if paper else {}
                yield {**key, "paper": paper, **times, **over}


def told(key: Record) -> str:
    return f"{key['method']} of {key['size']:,} on {key['rows']:,} rows of {key['set']}"


def report(journal: Journal) -> str:
    wanted = sorted(KEYS, key=lambda k: (k["set"] != "covtype", k["set"], k["rows"], k["size"]))
    found = [journal.find(**key) for key in wanted]
    missing = [told(key) for key, record in zip(wanted, found, strict=True) if record is None]
    # Records of the first journal each have their machine.
    older = [told(record) for record in found if record and "machine" in record]
    return (
        "# Random chunks against cells\n\n"
        f"{journal.machine}; one process, one thread, beside other work.\n\n"
        "Features in [0, 1], of covtype class 2 against the rest; the method's own grid of C and "
        "gamma, 5 folds, one seed. Errors and times are those of the first 100,000 test rows, or "
        "of the first 30,000 or 10,000 where chunks would take more than "
        f"{PREDICT_LIMIT_S} s for more.\n\n"
        + table(COLUMNS, filter(None, found))
        + (f"\nNot measured: {'; '.join(missing)}.\n" if missing else "")
        + (f"\nBy an earlier version, on two cores: {'; '.join(older)}.\n" if older else "")
        + "\n## Time to predict, chunks by cells\n\nAs table 3 of the paper, which has 100,000 "
        "rows of training and of test of COVTYPE and HIGGS; ijcnn1 is not among its sets. Fewer "
        "rows are fewer chunks, each of which answers every query.\n\n"
        + table(RATIO_COLUMNS, ratios(journal))
        + "\n![Error against training rows](chunks.png)\n"
    )


def draw(journal: Journal) -> Figure:
    figure, axes = plt.subplots(figsize=(7.5, 5))
    for color, size in zip(("C0", "C1", "C2"), SIZES, strict=True):
        for method, style in (("chunks", "s--"), ("cells", "o-")):
            line = journal.ordered("rows", set="covtype", method=method, size=size)
            rows, errors = [r["rows"] for r in line], [100 * r["error"] for r in line]
            axes.plot(rows, errors, style, color=color, label=f"{method} of {size:,}")
    axes.set(xscale="log", xlabel="training rows", ylabel="test error %", ylim=(0, None))
    axes.set_xlim(8500, 600_000)
    ticks_at(axes, ROWS)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.set_title("covtype: random chunks saturate, cells do not")
    axes.legend(ncols=3, fontsize=9)
    figure.tight_layout()
    return figure


EXPERIMENT = Experiment(
    KEYS, measure, report, draw,
    warm=lambda: [make(1000, random_state=0) for make in METHODS.values()],
)  # fmt: skip
