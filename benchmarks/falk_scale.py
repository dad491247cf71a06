"""FaLK-SVM from 100,000 to 3 million rows, as figures 4, 5, 7 and 8 of the 2009 paper.

Two workers of one thread and 2 GiB; k = 1000, k' = 500, C and the width given. Today's peers train
on as many rows as they can in reasonable time. Rows that are done are kept in
``benchmarks/results/falk_scale.jsonl``, from which ``falk_scale.md`` and ``.png`` are drawn.

    python benchmarks/falk_scale.py [--rows 100000 300000 1000000 3000000]
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import zarr
from distributed import Client, LocalCluster
from journal import Column, Journal, Record, table
from measure import MIB, machine, measured
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC

from daskls import FalkSVC
from daskls.datasets import bayes_accuracy, write

RESULTS = Path(__file__).parent / "results"
SETS = ("two_spirals", "checkerboard")
N_TEST = 100_000
FALK = {"C": 4.0, "percentile": 50}
# Rows that scikit-learn's SVC is asked to train on, at the most.
SVC_ROWS = 100_000


def falk(train: Path, test: Path, n: int) -> Record:
    model = FalkSVC(
        1000,
        selection="each",
        C=FALK["C"],
        percentiles=[FALK["percentile"]],
        random_state=0,
    )
    with measured() as fit:
        model.fit(train)
    with measured() as predict:
        labels = model.predict(test / "X").compute()
    return {
        "method": "FalkSVC",
        "rows": n,
        **costs(fit, predict),
        "peak_mib": max(fit.peak_nbytes, predict.peak_nbytes) / MIB,
        "before_mib": fit.baseline_nbytes / MIB,
        "accuracy": agreement(labels, test),
        "centers": model.n_cells_,
        **model.cover_,
        "leaves_read": float(model.fit_report_.n_read.mean()),
        **{f"{name}_s": seconds for name, seconds in model.stage_s_.items()},
    }


def costs(fit: object, predict: object) -> Record:
    return {"fit_cpu_s": fit.cpu_s, "fit_wall_s": fit.wall_s, "predict_cpu_s": predict.cpu_s}


def agreement(labels: np.ndarray, test: Path) -> float:
    return float(np.mean(labels == classes(test)[zarr.open_array(test / "y")[:]]))


def classes(path: Path) -> np.ndarray:
    return np.array(zarr.open_group(path).attrs["classes"])


def peer(name: str, train: Path, test: Path, n: int) -> Record:
    X, y = (zarr.open_array(train / part)[:] for part in "Xy")
    X_test = zarr.open_array(test / "X")[:]
    model = {
        "SVC": lambda: SVC(C=FALK["C"], gamma=peer_gamma(X), cache_size=2000),
        "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
    }[name]()
    started = time.process_time()
    model.fit(X, classes(train)[y])
    fitted = time.process_time()
    labels = model.predict(X_test)
    return {
        "method": name,
        "rows": n,
        "fit_cpu_s": fitted - started,
        "predict_cpu_s": time.process_time() - fitted,
        "accuracy": agreement(labels, test),
    }


def peer_gamma(X: np.ndarray) -> float:
    """Return gamma for the width that neighborhoods of 1000 of 100,000 rows have."""
    rows = X[:2000].astype(float)
    distances = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(-1))
    return float(np.percentile(distances[distances > 0], 2) ** -2)


def measure(name: str, method: str, n: int, folder: Path) -> Record:
    train = folder / f"{name}-{n}.zarr"
    test = folder / f"{name}-test.zarr"
    for path, rows, seed in ((train, n, 0), (test, N_TEST, 1)):
        if not path.exists():
            write(name, path, rows, random_state=seed)
    found = falk(train, test, n) if method == "FalkSVC" else peer(method, train, test, n)
    return {"set": name, **found}


def wanted(rows: list[int]) -> Iterator[tuple[str, str, int]]:
    """Yield (set, method, rows); the peers last, for this process keeps what they hold."""
    for method in ("FalkSVC", "SVC", "HistGradientBoosting"):
        for n in rows if method != "SVC" else [r for r in rows if r <= SVC_ROWS]:
            for name in SETS:
                yield name, method, n


COLUMNS: list[Column] = [
    ("set", lambda r: r["set"]),
    ("method", lambda r: r["method"]),
    ("rows", lambda r: f"{r['rows']:,}"),
    ("accuracy %", lambda r: f"{100 * r['accuracy']:.2f}"),
    ("fit CPU s", lambda r: f"{r['fit_cpu_s']:.1f}"),
    ("fit wall s", lambda r: f"{r['fit_wall_s']:.1f}"),
    ("CPU us a row", lambda r: f"{1e6 * r['fit_cpu_s'] / r['rows']:.0f}"),
    ("predict CPU us a query", lambda r: f"{1e6 * r['predict_cpu_s'] / N_TEST:.1f}"),
    ("centers", lambda r: f"{r['centers']:,}"),
    ("rounds", lambda r: r["n_rounds"]),
    ("rows searched", lambda r: f"{r['n_searched']:,}"),
    ("cover wall s", lambda r: f"{r['cover_s']:.1f}"),
    ("train wall s", lambda r: f"{r['train_s']:.1f}"),
    ("peak MiB (before)", lambda r: f"{r['peak_mib']:.0f} ({r['before_mib']:.0f})"),
]


def draw(records: list[Record], path: Path) -> None:
    figure, grid = plt.subplots(len(SETS), 3, figsize=(14, 8))
    for row, name in zip(grid, SETS, strict=True):
        own = [r for r in records if r["set"] == name]
        for method in dict.fromkeys(r["method"] for r in own):
            line = sorted((r for r in own if r["method"] == method), key=lambda r: r["rows"])
            rows = [r["rows"] for r in line]
            row[0].plot(rows, [r["fit_cpu_s"] for r in line], "o-", label=method)
            micro = [1e6 * r["predict_cpu_s"] / N_TEST for r in line]
            row[1].plot(rows, micro, "o-", label=method)
            row[2].plot(rows, [100 * r["accuracy"] for r in line], "o-", label=method)
        rows = np.array(sorted({r["rows"] for r in own}))
        first = next(r for r in own if r["method"] == "FalkSVC" and r["rows"] == rows[0])
        growth = rows * np.log(rows) / (rows[0] * np.log(rows[0]))
        row[0].plot(rows, first["fit_cpu_s"] * growth, ":", color="gray", label="n log n")
        best = bayes_accuracy(name)
        if best:
            row[2].axhline(100 * best, ls=":", color="gray", label="best possible")
        row[0].set(yscale="log", ylabel="CPU seconds", title=f"{name}: training")
        row[1].set(yscale="log", ylabel="CPU microseconds", title=f"{name}: a query")
        row[2].set(ylabel="%", title=f"{name}: accuracy on {N_TEST:,} rows")
        for axes in row:
            axes.set(xscale="log", xlabel="training rows")
            axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 3 * 10**5, 10**6, 3 * 10**6])
    args = parser.parse_args()
    journal = Journal(RESULTS / "falk_scale.jsonl")
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="2GiB", dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        X = np.random.default_rng(0).random((2000, 2))
        FalkSVC(100).fit(X, X[:, 0] > 0.5).predict(X)
        for name, method, n in wanted(args.rows):
            if journal.find(set=name, method=method, rows=n) is None:
                print(journal.add(measure(name, method, n, Path(folder))), flush=True)
    records = sorted(journal.records, key=lambda r: (r["set"], r["method"], r["rows"]))
    text = (
        f"# FaLK-SVM against the number of rows\n\n{machine()}\n\n"
        f"k = 1000, k' = 500, C = {FALK['C']:g}, width: the median distance of each neighborhood; "
        f"two workers of one thread and 2 GiB; {N_TEST:,} queries.\n\n"
    )
    (RESULTS / "falk_scale.md").write_text(text + table(COLUMNS, records))
    draw(records, RESULTS / "falk_scale.png")


if __name__ == "__main__":
    main()
