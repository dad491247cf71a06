"""Random chunks against cells on covtype, as figure 3 and table 3 of the 2017 paper.

RandomChunkSVC and VoronoiSVC at the same sizes and numbers of training rows: error, CPU seconds of
training, and what a predicted row costs. One process, one thread, the first 100,000 test rows;
where chunks would need longer than `PREDICT_LIMIT_S` for these, the first 30,000 or 10,000. Rows
that are done are kept in ``benchmarks/results/chunks.jsonl``, from which ``chunks.md`` and ``.png``
are drawn. Cheap ones come first; chunks of 10,000 on all rows take the better part of an hour.

    python benchmarks/chunks.py [--rows 10000 30000] [--sizes 2000] [--methods cells]
    python benchmarks/chunks.py --draw    # measure nothing
"""

import argparse
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import dask
import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from journal import Column, Journal, Record, table
from measure import machine
from real_sets import scaled

from daskls import RandomChunkSVC, VoronoiSVC

RESULTS = Path(__file__).parent / "results"
METHODS: dict[str, Any] = {"cells": VoronoiSVC, "chunks": RandomChunkSVC}
SIZES = (2000, 5000, 10_000)
ROWS = (10_000, 30_000, 100_000, 464_429)
TEST_ROWS = (100_000, 30_000, 10_000)
PREDICT_LIMIT_S = 30
# Table 3: time to predict with chunks by that with cells, COVTYPE, 100,000 rows of either kind.
PAPER = {2000: 153, 5000: 61, 10_000: 26}


def points() -> Iterator[tuple[int, int]]:
    """Yield (rows, size), cheap ones first."""
    yield from sorted(product(ROWS, SIZES), key=lambda pair: pair[0] * pair[1])


def measure(method: str, n: int, size: int, data: tuple[np.ndarray, ...]) -> Record:
    X, y, X_test, y_test = data
    with dask.config.set(scheduler="sync"):
        started = time.process_time()
        model = METHODS[method](size, random_state=0).fit(X[:n], y[:n])
        fit_s = time.process_time() - started
        n_test = test_rows(model, X_test)
        started = time.process_time()
        predicted = model.predict(X_test[:n_test])
        predict_s = time.process_time() - started
    return {
        "method": method,
        "rows": n,
        "size": size,
        "error": float(np.mean(predicted != y_test[:n_test])),
        "test_rows": n_test,
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
        "cells": model.n_cells_,
        "support": int(model.fit_report_.n_support.sum()),
        "at_limit": int(model.fit_report_.n_at_limit.sum()),
        "machine": machine(),
    }


def test_rows(model: Any, X_test: np.ndarray) -> int:
    """Return how many rows to predict, by the time that a few take."""
    # A model of cells costs next to nothing a row: its seconds are those of opening it.
    if not isinstance(model, RandomChunkSVC):
        return TEST_ROWS[0]
    few = 1000
    started = time.process_time()
    model.predict(X_test[:few])
    a_row = (time.process_time() - started) / few
    return next((n for n in TEST_ROWS if n * a_row <= PREDICT_LIMIT_S), TEST_ROWS[-1])


def microseconds(r: Record) -> float:
    return 1e6 * r["predict_cpu_s"] / r["test_rows"]


def columns() -> list[Column]:
    return [
        ("rows", lambda r: f"{r['rows']:,}"),
        ("size", lambda r: f"{r['size']:,}"),
        ("method", lambda r: r["method"]),
        ("cells or chunks", lambda r: r["cells"]),
        ("error %", lambda r: f"{100 * r['error']:.2f}"),
        ("train CPU s", lambda r: f"{r['fit_cpu_s']:.1f}"),
        ("support rows", lambda r: f"{r['support']:,}"),
        ("predict CPU s", lambda r: f"{r['predict_cpu_s']:.2f}"),
        ("test rows", lambda r: f"{r['test_rows']:,}"),
        ("predict us a row", lambda r: f"{microseconds(r):,.1f}"),
    ]


def ratios(journal: Journal) -> list[Record]:
    """Return table 3: a record for each size measured with both methods on 100,000 rows."""
    found = []
    for size in SIZES:
        cells, chunks = (journal.find(method=m, rows=100_000, size=size) for m in METHODS)
        if cells and chunks:
            found.append(
                {
                    "size": size,
                    "cells": microseconds(cells),
                    "chunks": microseconds(chunks),
                    "paper": PAPER[size],
                }
            )
    return found


def ratio_columns() -> list[Column]:
    return [
        ("size", lambda r: f"{r['size']:,}"),
        ("cells, us a row", lambda r: f"{r['cells']:.1f}"),
        ("chunks, us a row", lambda r: f"{r['chunks']:,.0f}"),
        ("chunks / cells", lambda r: f"{r['chunks'] / r['cells']:.0f}"),
        ("the paper's", lambda r: r["paper"]),
    ]


def draw(journal: Journal, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7.5, 5))
    for color, size in zip(("C0", "C1", "C2"), SIZES, strict=True):
        for method, style in (("chunks", "s--"), ("cells", "o-")):
            line = latest(journal, method=method, size=size)
            axes.plot(
                [r["rows"] for r in line],
                [100 * r["error"] for r in line],
                style,
                color=color,
                label=f"{method} of {size:,}",
            )
    axes.set(xscale="log", xlabel="training rows", ylabel="test error %", ylim=(0, None))
    axes.set_xlim(8500, 600_000)
    axes.set_xticks(ROWS, [f"{n:,}" for n in ROWS])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.set_title("covtype: random chunks saturate, cells do not")
    axes.legend(ncols=3, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def latest(journal: Journal, **key: Any) -> list[Record]:
    """Return the last record of each number of rows, by rows."""
    own = {r["rows"]: r for r in journal.records if key.items() <= r.items()}
    return [own[n] for n in sorted(own)]


def find(journal: Journal, n: int, size: int, method: str) -> Record | None:
    return journal.find(rows=n, size=size, method=method)


def write(journal: Journal) -> None:
    found = {key: find(journal, *key) for key in product(ROWS, SIZES, METHODS)}
    records = [r for r in found.values() if r]
    missing = [f"{m} of {s:,} on {n:,}" for (n, s, m), r in found.items() if r is None]
    (RESULTS / "chunks.md").write_text(
        "# Random chunks against cells\n\n"
        f"{records[-1]['machine']}; one process, one thread, beside other work.\n\n"
        "covtype, class 2 against the rest, features in [0, 1]; the method's own grid of C and "
        "gamma, 5 folds, one seed. Errors and times are those of the first 100,000 test rows, or "
        "of the first 30,000 or 10,000 where chunks would take more than "
        f"{PREDICT_LIMIT_S} s for more.\n\n"
        + table(columns(), records)
        + (f"\nNot measured: {'; '.join(missing)} rows.\n" if missing else "")
        + "\n## Time to predict, chunks by cells\n\n100,000 rows of training, as table 3 of the "
        "paper (COVTYPE).\n\n"
        + table(ratio_columns(), ratios(journal))
        + "\n![Error against training rows](chunks.png)\n"
    )
    draw(journal, RESULTS / "chunks.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS, choices=ROWS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, choices=SIZES)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    args = parser.parse_args()
    journal = Journal(RESULTS / "chunks.jsonl")
    if not args.draw:
        warm_up()
        data = scaled("covtype")
        for n, size in points():
            for method in args.methods if n in args.rows and size in args.sizes else ():
                if not journal.is_done(method=method, rows=n, size=size):
                    found = journal.add(measure(method, n, size, data))
                    print({k: v for k, v in found.items() if k != "machine"}, flush=True)
    write(journal)


def warm_up() -> None:
    """Fill the cache of compiled kernels."""
    X = np.random.default_rng(0).random((2000, 54))
    for make in METHODS.values():
        make(1000, random_state=0).fit(X, X[:, 0] > 0.5).predict(X)


if __name__ == "__main__":
    main()
