"""Classifiers as they are: no parameter is chosen by hand, each has one process of one thread.

Features in [0, 1] by the training rows; official test rows (covtype's are drawn). Text of labels
becomes numbers for those who ask for numbers.
"""

import resource
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder
from sklearn.svm import SVC

from benchmarks.accuracy import rows_of
from benchmarks.peers import Data
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite.apart import begin_limit, run_forked
from benchmarks.suite.data import has_test, shifted
from benchmarks.suite.figures import Figure, plain_log, plt
from benchmarks.suite.tables import mean_of, versions
from daskls import VoronoiSVC
from daskls.datasets import load_real

# Without training and test rows of their own, a fifth of the rows is drawn to test.
SETS = (
    *("splice", "spambase", "usps", "satimage", "pendigits", "letter", "ijcnn1", "a9a"),
    *("covtype-100k", "mnist"),
)
N_SEEDS, LIMIT_S = 5, 900
SHARE, KIB = 0.2, 1024


def lightgbm(seed: int) -> Any:
    # Not everywhere is it installed, and a report needs it not.
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1)


def xgboost(seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, random_state=seed)


ESTIMATORS: dict[str, Callable[[int], Any]] = {
    "VoronoiSVC": lambda seed: VoronoiSVC(random_state=seed),
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "HistGradientBoosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "SVC": lambda seed: SVC(),
}
PACKAGES = {"LightGBM": "lightgbm", "XGBoost": "xgboost"}
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
        low = X.min(axis=0).astype(float)
        data = Data(*_placed(X, X_test, low, y, y_test))
    codes = LabelEncoder().fit(data.y)
    return data._replace(y=codes.transform(data.y), y_test=codes.transform(data.y_test))


def _placed(X: Any, X_test: Any, low: Any, y: Any, y_test: Any) -> tuple[Any, ...]:
    train, test = shifted(X, X_test, low, X.max(axis=0) - low)
    return train, y, test, y_test


def keys() -> Iterator[Record]:
    for seed in range(N_SEEDS):
        for name in SETS:
            for estimator in ESTIMATORS:
                if seed == 0 or (estimator in MOVED and name not in ONCE):
                    yield {"set": name, "estimator": estimator, "seed": seed}


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB


def fitted(data: Data, estimator: str, seed: int) -> Record:
    """Fit and predict in this process; what a first fit loads and compiles comes before."""
    few = np.random.default_rng(0).permutation(len(data.X))[:400]
    ESTIMATORS[estimator](seed).fit(data.X[few], LabelEncoder().fit_transform(data.y[few]))
    model = ESTIMATORS[estimator](seed)
    before = peak_mib()
    begin_limit(LIMIT_S)
    _, fit_s = cpu_of(lambda: model.fit(data.X, data.y))
    predicted, predict_s = cpu_of(lambda: np.asarray(model.predict(data.X_test)))
    package = PACKAGES.get(estimator)
    return {
        "error": 100 * float(np.mean(predicted != data.y_test)),
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
        "more_mib": peak_mib() - before,
        **({"versions": {package: import_module(package).__version__}} if package else {}),
    }


def measure(run: Run, set: str, estimator: str, seed: int) -> Record:
    data = rows(set)
    shape = {"train_rows": len(data.X), "features": data.X.shape[1], "test_rows": len(data.X_test)}
    return {**shape, **run_forked(fitted, data, estimator, seed, limit_s=LIMIT_S)}


def summed_up(journal: Journal, name: str, estimator: str) -> Record:
    """Return one row of the table: all seeds of an estimator on a set."""
    found = journal.ordered("seed", set=name, estimator=estimator)
    fields = ("error", "fit_cpu_s", "predict_cpu_s", "more_mib")
    own = [r for r in found if "error" in r]
    return {f"all_{f}": [r[f] for r in own] for f in fields if own}


def shown(values: list[float], digits: int) -> str:
    return mean_of(values, digits, ddof=1)


def wide(journal: Journal, field: str, digits: int) -> str:
    """Return a table of one number, a column an estimator."""
    lines = []
    for name in SETS:
        line: Record = {"set": name}
        for estimator in ESTIMATORS:
            line[estimator] = "not measured"
            if journal.ordered("seed", set=name, estimator=estimator):
                own = summed_up(journal, name, estimator)
                key = f"all_{field}"
                line[estimator] = shown(own[key], digits) if key in own else f"> {LIMIT_S} s"
        lines.append(line)
    return table(" | ".join(["set = set", *(f"{e} = {e}" for e in ESTIMATORS)]), lines)


def report(journal: Journal) -> str:
    text = (
        "# Classifiers as they are\n\n"
        f"`benchmarks/untuned.py`; {journal.machine}, {versions(journal.records)}. "
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
