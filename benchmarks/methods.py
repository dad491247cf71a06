"""All methods on the same five sets: error, training, prediction a row, size of the model.

VoronoiSVC stands there as it is and as in its paper, and LightGBM with its defaults as a mark that
many know. One process a measurement, one thread. Features in [0, 1]; for the linear methods
(LandmarkSVC, LinearSVC) of standard deviation 1. Methods with a grid of their own use it; the
others share one C and gamma a set, found for scikit-learn's SVC with 3 folds of 3000 rows. What
takes more than `LIMIT_S` CPU seconds is stopped and left out; prediction is measured on as many
rows as fit into `PREDICT_S`.
"""

import math
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import daskls
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, grid, panels, table
from benchmarks.suite.apart import begin_limit, run_forked
from benchmarks.suite.data import Data, scaled
from benchmarks.suite.defaults import lightgbm
from benchmarks.suite.estimators import about, fit_few, model_nbytes, test_rows, timed_predict
from benchmarks.suite.papers import PAPERS, PaperSVC
from benchmarks.suite.tables import cell, versions

SETS = ("svmguide1", "ijcnn1", "usps", "letter", "covtype")
COVTYPE_ROWS = 100_000
LIMIT_S = 180
PREDICT_S = 30
GRID = {"C": [1, 10, 100], "gamma": [0.02, 0.1, 0.5, 2.5, 12.5]}
GRID_ROWS = 3000
FALK = {"n_neighbors": 1000, "selection": "local"}
# Made with a seed, or with none.
METHODS: dict[str, Callable[..., Any]] = {
    "VoronoiSVC": daskls.VoronoiSVC,
    "VoronoiSVC, hinge": PaperSVC,
    "RandomChunkSVC": daskls.RandomChunkSVC,
    "FalkSVC": partial(daskls.FalkSVC, **FALK),
    "FalkSVC, center": partial(daskls.FalkSVC, **FALK, assign="center"),
    "LandmarkSVC": daskls.LandmarkSVC,
    "KNNSVC": daskls.KNNSVC,
    "KernelKNNClassifier": partial(daskls.KernelKNNClassifier, 5),
    "LocalSamplingSVC": daskls.LocalSamplingSVC,
    "NeighborSamplingSVC": daskls.NeighborSamplingSVC,
    "SVC": partial(SVC, cache_size=1000),
    "LinearSVC": partial(LinearSVC, dual=False),
    "LightGBM": lambda random_state: lightgbm(random_state),
}
SHARE_PARAMS = ("KNNSVC", "LocalSamplingSVC", "NeighborSamplingSVC", "SVC")
LINEAR = ("LandmarkSVC", "LinearSVC")
SEEDLESS = ("SVC", "LinearSVC")


@lru_cache(maxsize=1)
def rows_of(name: str) -> Data:
    """Return training and test rows in [0, 1]; test rows in a random order, covtype cut."""
    data = scaled(name)
    order = np.random.default_rng(0).permutation(len(data.X_test))
    data = data._replace(X_test=data.X_test[order], y_test=data.y_test[order])
    return data.first(COVTYPE_ROWS if name == "covtype" else None)


def measure(run: Run, set: str, method: str) -> Record:
    data = rows_of(set)
    if method == "search":
        return search(data)
    chosen = run.journal.find(set=set, method="search")["params"] if method in SHARE_PARAMS else {}
    return run_forked(measure_here, method, data, chosen, limit_s=LIMIT_S)


def search(data: Data) -> Record:
    """Choose the C and gamma that methods without a grid share."""
    rows = np.random.default_rng(1).permutation(len(data.X))[:GRID_ROWS]
    found = GridSearchCV(SVC(), GRID, cv=3).fit(data.X[rows], data.y[rows])
    return {"params": found.best_params_, "accuracy": float(found.best_score_)}


def measure_here(method: str, data: Data, params: dict[str, float]) -> Record:
    """Return what one method costs on one set; in a process of its own."""
    X, y, X_test, y_test = data
    if method in LINEAR:
        scaler = StandardScaler().fit(X.astype(np.float64))
        X, X_test = (scaler.transform(part).astype(np.float32) for part in (X, X_test))
    seed = {} if method in SEEDLESS else {"random_state": 0}
    make = partial(METHODS[method], **seed, **params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit_few(make(), X, y)
        begin_limit(LIMIT_S)
        model, fit_s = cpu_of(lambda: make().fit(X, y))
        n = test_rows(model, X_test, PREDICT_S)
        predicted, predict_s = timed_predict(model, X_test[:n])
    return {
        "error": float(np.mean(predicted != y_test[:n])),
        "fit_cpu_s": fit_s,
        "predict_us": 1e6 * predict_s / n,
        "test_rows": n,
        "rows": len(X),
        "features": X.shape[1],
        "classes": len(model.classes_),
        "model_nbytes": model_nbytes(model),
        **about(model),
        **({"versions": {"lightgbm": version("lightgbm")}} if method == "LightGBM" else {}),
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in caught})[:3],
    }


# The report


def shown(value: float) -> str:
    """Return two or more digits, however small the value; a hundredth at the least."""
    if value < 0.01:
        return "< 0.01"
    return f"{value:,.{max(0, 1 - math.floor(math.log10(value)))}f}"


# What is compared over the sets.
QUANTITIES = {
    "Error, %": "100 * error:.2f",
    "Training, CPU seconds": "shown(fit_cpu_s)",
    "Prediction, CPU microseconds a row": "shown(predict_us)",
    "Model, MB": "shown(model_nbytes / 1e6)",
}
COLUMNS = """
method = method | error % = r.get('failure') or '%.2f' % (100 * error)
train CPU s = shown(fit_cpu_s) | predict us a row = shown(predict_us)
model MB = shown(model_nbytes / 1e6) | models = models:, | support rows = support:,
test rows = test_rows:,
"""


def sets_text(journal: Journal) -> str:
    """Return what the sets are."""
    rows = [next(r for r in journal.where(set=name) if "rows" in r) for name in SETS]
    columns = "set = set | rows = rows:, | features = features | classes = classes"
    return f"\n## Sets\n\n{table(columns, rows)}"


def overview(journal: Journal) -> str:
    """Return a table of methods and sets for each quantity."""
    parts = [sets_text(journal)]
    for title, show in QUANTITIES.items():
        rows = [
            {"method": m, **{s: of_set(journal.find(set=s, method=m), show) for s in SETS}}
            for m in METHODS
        ]
        columns = " | ".join(f"{name} = {name}" for name in ("method", *SETS))
        parts.append(f"\n## {title}\n\n{table(columns, rows)}")
    return "".join(parts)


def of_set(record: Record | None, show: str) -> str:
    if record is None:
        return "not measured"
    return f"not done (> {LIMIT_S} s)" if "failure" in record else cell(show, record, shown=shown)


def section(name: str, journal: Journal) -> str:
    records = [r for m in METHODS if (r := journal.find(set=name, method=m))]
    first = next((r for r in records if "error" in r), None)
    if first is None:
        return ""
    shared = journal.find(set=name, method="search")["params"]
    return (
        f"\n## {name}: {first['rows']:,} rows, {first['features']} features, "
        f"{first['classes']} classes\n\nShared parameters: C={shared['C']:g}, "
        f"gamma={shared['gamma']:g}.\n\n{table(COLUMNS, records, shown=shown)}"
    )


def report(journal: Journal) -> str:
    return (
        "# All methods on the same sets\n\n"
        f"{journal.machine}, {versions(journal.records)}; one process, one thread, one seed, "
        "beside other work.\n\n"
        'VoronoiSVC has its defaults; "VoronoiSVC, hinge" is the paper\'s: '
        f"{', '.join(f'{k}={v!r}' for k, v in PAPERS.items())}. Of covtype, class 2 against the "
        f"rest, the first {COVTYPE_ROWS:,} training rows. "
        "Features in [0, 1]; of standard deviation 1 for LandmarkSVC and LinearSVC. KNNSVC, "
        "LocalSamplingSVC, NeighborSamplingSVC and SVC share one C and gamma a set, found for SVC "
        f"with 3 folds of at most {GRID_ROWS:,} rows among C={GRID['C']} and gamma={GRID['gamma']} "
        "(not part of the seconds); the others use their "
        "defaults, LinearSVC C=1; FalkSVC has 1000 neighbors and local selection. Errors are of "
        "the first test rows in a random order, as many as the last column says. A model's size "
        "is that of its files, a scikit-learn one's that of its pickle. Prediction is by a model "
        "that has answered before. Above "
        f"{LIMIT_S} CPU s of training and prediction a method is stopped.\n"
        + overview(journal)
        + "".join(section(name, journal) for name in SETS)
        + "\n![Error against prediction](methods.png)\n"
    )


EXPERIMENT = Experiment(
    grid(set=SETS, method=("search", *METHODS)),
    measure,
    report,
    lambda journal: panels.draw(journal, SETS, list(METHODS)),
)
