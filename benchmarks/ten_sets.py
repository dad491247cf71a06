"""Classifiers as they are on ten sets, official test rows and seeds; `untuned` has all tables.

Features in [0, 1] by the training rows; official test rows (covtype's are drawn). Text of labels
becomes numbers for those who ask for numbers.
"""

from collections.abc import Iterator
from operator import itemgetter

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder

from benchmarks.accuracy import rows_of
from benchmarks.peers import Data
from benchmarks.suite import Experiment, Journal, Record, Run
from benchmarks.suite import standing as st
from benchmarks.suite.data import has_test, in_training_range
from benchmarks.suite.defaults import LIMIT_S, cost_of
from benchmarks.suite.figures import Figure, plain_log, plt
from benchmarks.suite.tables import versions
from daskls.datasets import load_real

# Without training and test rows of their own, a fifth of the rows is drawn to test.
SETS = (
    *("splice", "spambase", "usps", "satimage", "pendigits", "letter", "ijcnn1", "a9a"),
    *("covtype-100k", "mnist"),
)
ESTIMATORS = ("VoronoiSVC", "LightGBM", "XGBoost", "HistGradientBoosting", "SVC")
N_SEEDS = 5
SHARE = 0.2
# The others make the same model of any seed.
MOVED = ("VoronoiSVC", "HistGradientBoosting")
# Minutes a fit.
ONCE = ("mnist",)


def rows(name: str) -> Data:
    """Return the rows of a set, its labels as codes."""
    if name.endswith("-100k") or has_test(name):
        data = rows_of(name, "test", 0)
    else:
        whole = load_real(name)
        X, X_test, y, y_test = train_test_split(
            whole.X, whole.y, test_size=SHARE, random_state=0, stratify=whole.y
        )
        data = in_training_range(Data(X, y, X_test, y_test))
    codes = LabelEncoder().fit(data.y)
    return data._replace(y=codes.transform(data.y), y_test=codes.transform(data.y_test))


def keys() -> Iterator[Record]:
    for seed in range(N_SEEDS):
        for name in SETS:
            for estimator in ESTIMATORS:
                if seed == 0 or (estimator in MOVED and name not in ONCE):
                    yield {"set": name, "estimator": estimator, "seed": seed}


def measure(run: Run, set: str, estimator: str, seed: int) -> Record:
    data = rows(set)
    shape = {"train_rows": len(data.X), "features": data.X.shape[1], "test_rows": len(data.X_test)}
    return {**shape, **cost_of(data, estimator, seed)}


def wide(journal: Journal, field: str, digits: int) -> str:
    """Return a table of one number, a column an estimator."""
    found = {
        name: {e: journal.ordered("seed", set=name, estimator=e) for e in ESTIMATORS}
        for name in SETS
    }
    return st.wide(found, "set = set", lambda own: st.spread(own, itemgetter(field), digits))


def report(journal: Journal) -> str:
    text = (
        "# Classifiers as they are\n\n"
        f"`benchmarks/ten_sets.py`; {journal.machine}, {versions(journal.records)}. "
        "Every estimator with its defaults, features in [0, 1], one process of one thread, after a "
        "fit of 400 rows that loads and compiles; beside other work. Mean and deviation of up to "
        f"{1 + max(r['seed'] for r in journal.records)} seeds of those that a seed moves. Official "
        "test rows; of covtype-100k, class 2 against the rest, 116,583 drawn ones; of splice and "
        "spambase a fifth of the rows. Memory is what the process grew by. What takes more than "
        f"{LIMIT_S} CPU seconds is ended.\n"
    )
    for title, field, digits in (
        ("Error, %", "error", 2),
        ("Fit, CPU seconds", "fit_cpu_s", 1),
        ("Prediction of all test rows, CPU seconds", "predict_cpu_s", 2),
        ("Memory of fit and prediction, MiB", "more_mib", 0),
    ):
        text += f"\n## {title}\n\n{wide(journal, field, digits)}"
    return text


def draw(journal: Journal) -> Figure:
    """Draw error against CPU seconds of fit and prediction, a plot a set."""
    figure, grid = plt.subplots(2, 5, figsize=(15, 6))
    for axes, name in zip(grid.flat, SETS, strict=True):
        for number, (estimator, marker) in enumerate(zip(ESTIMATORS, "osD^v", strict=True)):
            found = journal.ordered("seed", set=name, estimator=estimator)
            own = [r for r in found if "error" in r]
            if own:
                seconds = [r["fit_cpu_s"] + r["predict_cpu_s"] for r in own]
                axes.plot(
                    float(np.mean(seconds)),
                    float(np.mean([r["error"] for r in own])),
                    marker,
                    color=f"C{number}",
                    label=estimator,
                    clip_on=False,
                )
        axes.set(title=name, xscale="log")
        # The largest error is drawn whole.
        axes.set_ylim(0, 1.08 * axes.dataLim.ymax)
        plain_log(axes.xaxis, (1, 3))
    for axes in grid[:, 0]:
        axes.set_ylabel("error %")
    for axes in grid[1]:
        axes.set_xlabel("fit and predict, CPU s")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels))
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return figure


EXPERIMENT = Experiment(list(keys()), measure, report, draw)
