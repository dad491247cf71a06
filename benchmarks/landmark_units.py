"""LandmarkSVC with the same rows in four units, beside a linear SVM.

The sets of `landmarks.py` and three small ones, features divided by their standard deviation; then
all of them times a thousandth, times a thousand, and plus a thousand. Clusters and C are left to
the estimator. Diabetes and german.numer have no test set: of five random splits (seeds 0 to 4) two
thirds train; elsewhere five seeds of the model. The linear SVM is liblinear (`LinearSVC`) on the
features of unit 1, its C from 1e-5 to 100 by 5 folds. MNIST is fitted once a unit, at the C that
the choice of `landmarks.py` found in unit 1 (the unit's fourth power divides it). ``--with
code=...`` names the version that is measured; "before" was commit 461dac0.
"""

from collections.abc import Iterator

from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from benchmarks import landmarks
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, page
from benchmarks.suite.data import Data, by_deviation, has_test, loaded, split
from daskls import LandmarkSVC

SMALL = ("diabetes", "german.numer", "a1a")
SETS = (*SMALL, "svmguide1", "ijcnn1", "usps", "usps01", "mnist")
# A factor and a shift.
UNITS = {"1": (1.0, 0.0), "1e-3": (1e-3, 0.0), "1e3": (1e3, 0.0), "+1000": (1.0, 1e3)}


def rows_of(name: str, seed: int) -> Data:
    """Return a set's rows, each feature of standard deviation 1 in the training rows."""
    if name not in SMALL:
        return landmarks.rows_of(name)
    data = loaded(name) if has_test(name) else split(name, seed)
    X, X_test = by_deviation(data.X, data.X_test)
    return data._replace(X=X, X_test=X_test)


def keys(run: Run) -> Iterator[Record]:
    for name in SETS:
        for seed in range(1 if name == "mnist" else 5):
            yield {"code": run.settings["code"], "set": name, "seed": seed}
            if name in (*SMALL, "svmguide1"):
                yield {"code": "LinearSVC", "set": name, "seed": seed}


def measure(run: Run, code: str, set: str, seed: int) -> Record:
    data = rows_of(set, seed)
    if code == "LinearSVC":
        return linear(data)
    found, seconds = cpu_of(lambda: in_units(data, seed, chosen_cost(run, set)))
    return {**found, "cpu_s": seconds}


def in_units(data: Data, seed: int, given: float | None) -> Record:
    """Fit and predict in all units; compare the labels with those of unit 1."""
    record: Record = {"errors": {}, "same": {}}
    labels = None
    for unit, (factor, shift) in UNITS.items():
        model = LandmarkSVC(C=given and given / factor**4, random_state=seed)
        model.fit(data.X * factor + shift, data.y)
        found = model.predict(data.X_test * factor + shift)
        labels = found if labels is None else labels
        record["errors"][unit] = 100 * float((found != data.y_test).mean())
        record["same"][unit] = 100 * float((found == labels).mean())
        record["n_cells"] = model.n_cells_
    return record


def chosen_cost(run: Run, name: str) -> float | None:
    """Return the C that `landmarks.py` chose for MNIST, whose choice takes long."""
    if name != "mnist":
        return None
    others = Journal(run.journal.path.with_name("landmarks.jsonl"))
    first = others.find(set=name, method="LandmarkSVC", seed=0)
    return first and float(first["C"])


def linear(data: Data) -> Record:
    grid = {"C": [*landmarks.SMALLER, *landmarks.COSTS]}
    search = GridSearchCV(LinearSVC(dual="auto", random_state=0), grid, cv=5)
    error = 100 * (1 - search.fit(data.X, data.y).score(data.X_test, data.y_test))
    return {"errors": {"1": error}, **search.best_params_}


def rows(journal: Journal) -> list[Record]:
    """Return a row of the table a set and version, with all its records."""
    return [
        {"set": name, "name": "LinearSVC" if code == "LinearSVC" else f"LandmarkSVC {code}"}
        | {"own": own, "n_cells": own[0].get("n_cells", "")}
        | {unit: [r["errors"][unit] for r in own if unit in r["errors"]] for unit in UNITS}
        for name in SETS
        for code in ("LinearSVC", "before", "after")
        if (own := journal.latest("seed", code=code, set=name))
    ]


TEXT = (
    "`benchmarks/landmark_units.py`, one thread, {machine}. Features of standard deviation 1 "
    '("usps01" in [0, 1]), times 1e-3, times 1e3, plus 1000; number of clusters and C are the '
    'estimator\'s own (of MNIST the C of one choice in unit 1). Mean and deviation; "before" takes '
    "rows as they are, 100 clusters, C from 1e-5 to 100. The last column: labels of test rows that "
    "a unit leaves as they are in unit 1, the least of all seeds and units."
)
COLUMNS = "set = set | method = name | seeds = len(own) | clusters = n_cells | "
COLUMNS += " | ".join(f"error %, {u} = mean_of(r['{u}'], 2) if r['{u}'] else ''" for u in UNITS)
COLUMNS += " | least share of equal labels, % = min(min(o['same'].values()) for o in own):.2f"
EXPERIMENT = Experiment(
    keys,
    measure,
    page("LandmarkSVC in other units", TEXT, COLUMNS, rows),
    settings={"code": "after"},
)
