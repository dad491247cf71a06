"""FaLK-SVM from 100,000 to 3 million rows, as figures 4, 5, 7 and 8 of the 2009 paper.

Two workers of one thread and 2 GiB; k = 1000, k' = 500, C and the width given. FaLK-SVMc answers by
the nearest center, FaLK-SVMl selects k, C and the width by ten neighborhoods; both up to a million
rows. Today's peers train on as many rows as they can in reasonable time.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC

from benchmarks.suite import PEAK, Experiment, Journal, Record, Run, cpu_of, fit_predict, page
from benchmarks.suite.data import labels, write_set, written
from benchmarks.suite.figures import Figure, lines, plt
from benchmarks.suite.places import cluster
from benchmarks.suite.sets import Ndcc
from daskls import FalkSVC
from daskls.datasets import bayes_accuracy

SETS = ("two_spirals", "checkerboard", "ndcc")
ROWS = (100_000, 300_000, 1_000_000, 3_000_000)
N_TEST = 100_000
FALK = {"C": 4.0, "percentile": 50}
GIVEN = {"selection": "each", "C": FALK["C"], "percentiles": [FALK["percentile"]]}
VARIANTS = {
    "FalkSVC": {"n_neighbors": 1000, **GIVEN},
    "FalkSVC, center": {"n_neighbors": 1000, "assign": "center", **GIVEN},
    "FalkSVC, local": {"n_neighbors": [500, 1000, 2000], "selection": "local"},
}
# The most rows of some methods.
MOST_ROWS = {"SVC": 100_000, "FalkSVC, center": 1_000_000, "FalkSVC, local": 1_000_000}
COLUMNS = f"""
set = set | method = method | rows = rows:, | accuracy % = 100 * accuracy:.2f
fit CPU s = fit_cpu_s:.1f | fit wall s = fit_wall_s:.1f | CPU us a row = 1e6 * fit_cpu_s / rows:.0f
predict CPU us a query = 1e6 * predict_cpu_s / {N_TEST}:.1f | centers = centers:,
rounds = n_rounds | rows searched = n_searched:, | cover wall s = cover_s:.1f
train wall s = train_s:.1f | {PEAK}
"""
TEXT = (
    f"{{machine}}\n\nk = 1000, k' = 500, C = {FALK['C']:g}, width: the median distance of each "
    f'neighborhood (of "local" they are selected); two workers of one thread and 2 GiB; '
    f"{N_TEST:,} queries."
)


def keys(run: Run) -> Iterator[Record]:
    """Yield the peers last, for this process keeps what they hold."""
    for method in (*VARIANTS, "SVC", "HistGradientBoosting"):
        for n in run.settings["rows"]:
            if n <= MOST_ROWS.get(method, n):
                yield from ({"set": name, "method": method, "rows": n} for name in SETS)


def measure(run: Run, set: str, method: str, rows: int) -> Record:
    train, test = rows_of(set, run.folder, rows, 0), rows_of(set, run.folder, N_TEST, 1)
    if method in VARIANTS:
        return falk(train, test, VARIANTS[method])
    return peer(method, train, test)


def rows_of(name: str, folder: Path, n: int, seed: int) -> Path:
    """Return rows on disk; ndcc is no set of daskls."""
    if name != "ndcc":
        return written(name, folder, n, seed)
    path = folder / f"{name}-{n}-{seed}.zarr"
    if not path.exists():
        write_set(path, *Ndcc().rows(0, n, seed))
    return path


def falk(train: Path, test: Path, params: dict[str, Any]) -> Record:
    model = FalkSVC(random_state=0, **params)
    predicted, cost = fit_predict(model, train, test / "X")
    return {
        **cost,
        "accuracy": float(np.mean(predicted == labels(test))),
        "centers": model.n_cells_,
        **model.cover_,
        "leaves_read": float(model.fit_report_.n_read.mean()),
        **{f"{name}_s": seconds for name, seconds in model.stage_s_.items()},
    }


def peer(name: str, train: Path, test: Path) -> Record:
    X, X_test = (zarr.open_array(path / "X")[:] for path in (train, test))
    y = labels(train)
    if name == "SVC":
        model = SVC(C=FALK["C"], gamma=peer_gamma(X), cache_size=2000)
    else:
        model = HistGradientBoostingClassifier(random_state=0)
    _, fit_s = cpu_of(lambda: model.fit(X, y))
    predicted, predict_s = cpu_of(lambda: model.predict(X_test))
    accuracy = float(np.mean(predicted == labels(test)))
    return {"fit_cpu_s": fit_s, "predict_cpu_s": predict_s, "accuracy": accuracy}


def peer_gamma(X: np.ndarray) -> float:
    """Return gamma for the width that neighborhoods of 1000 of 100,000 rows have."""
    rows = X[:2000].astype(float)
    distances = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(-1))
    return float(np.percentile(distances[distances > 0], 2) ** -2)


def ordered(journal: Journal) -> list[Record]:
    return journal.ordered("set", "method", "rows")


def draw(journal: Journal) -> Figure:
    figure, grid = plt.subplots(len(SETS), 3, figsize=(14, 12))
    for (fit, query, right), name in zip(grid, SETS, strict=True):
        own = [r for r in ordered(journal) if r["set"] == name]
        lines(fit, own, "method", "rows", "fit_cpu_s")
        lines(query, own, "method", "rows", lambda r: 1e6 * r["predict_cpu_s"] / N_TEST)
        lines(right, own, "method", "rows", lambda r: 100 * r["accuracy"])
        rows = np.array(sorted({r["rows"] for r in own}))
        first = next(r for r in own if r["method"] == "FalkSVC")
        growth = rows * np.log(rows) / (rows[0] * np.log(rows[0]))
        fit.plot(rows, first["fit_cpu_s"] * growth, ":", color="gray", label="n log n")
        if best := Ndcc().bayes_accuracy() if name == "ndcc" else bayes_accuracy(name):
            right.axhline(100 * best, ls=":", color="gray", label="best possible")
        fit.set(yscale="log", ylabel="CPU seconds", title=f"{name}: training")
        query.set(yscale="log", ylabel="CPU microseconds", title=f"{name}: a query")
        right.set(ylabel="%", title=f"{name}: accuracy on {N_TEST:,} rows")
        for axes in (fit, query, right):
            axes.set(xscale="log", xlabel="training rows")
            axes.legend(fontsize=8)
    figure.tight_layout()
    return figure


EXPERIMENT = Experiment(
    keys,
    measure,
    page("FaLK-SVM against the number of rows", TEXT, COLUMNS, ordered),
    draw,
    place=cluster,
    warm=lambda: [FalkSVC(100, selection=None)],
    settings={"rows": ROWS},
    dpi=110,
)
