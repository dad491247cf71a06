"""LandmarkSVC with the same rows in four units, beside a linear SVM.

The sets of `landmarks.py` and three small ones, features divided by their standard deviation; then
all of them times a thousandth, times a thousand, and plus a thousand. Clusters and C are left to
the estimator. Diabetes and german.numer have no test set: of five random splits (seeds 0 to 4) two
thirds train; elsewhere five seeds of the model. The linear SVM is liblinear (`LinearSVC`) on the
features of unit 1, its C from 1e-5 to 100 by 5 folds. MNIST is fitted once a unit, at the C that
the choice of `landmarks.py` found in unit 1 (the unit's fourth power divides it). Rows that are
done are in ``benchmarks/results/landmark_units.jsonl``.

    python benchmarks/landmark_units.py [--sets diabetes svmguide1 ...] [--code after]

``--code`` names the version that is measured; "before" was commit 461dac0. The sets are read from
the folder in DASKLS_DATA.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import dask
import landmarks
import numpy as np
from journal import Column, Journal, Record, table
from measure import machine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import LinearSVC

from daskls import LandmarkSVC
from daskls.datasets import load_real

RESULTS = Path(__file__).parent / "results"
SMALL = ("diabetes", "german.numer", "a1a")
SETS = (*SMALL, "svmguide1", "ijcnn1", "usps", "usps01", "mnist")
UNITS: dict[str, tuple[float, float]] = {
    "1": (1.0, 0.0),
    "1e-3": (1e-3, 0.0),
    "1e3": (1e3, 0.0),
    "+1000": (1.0, 1e3),
}


def load(name: str, seed: int) -> landmarks.Rows:
    """Return a set's rows, each feature of standard deviation 1 in the training rows."""
    if name not in SMALL:
        return landmarks.load(name)
    data = load_real(name)
    parts = data.X, data.X_test, data.y, data.y_test
    if data.X_test is None:
        parts = train_test_split(
            data.X, data.y, test_size=1 / 3, random_state=seed, stratify=data.y
        )
    X, X_test = (np.asarray(part, np.float64) for part in parts[:2])
    scale = X.std(axis=0)
    scale[scale == 0] = 1.0
    return X / scale, parts[2], X_test / scale, parts[3]


def measure(journal: Journal, code: str, name: str, seed: int) -> None:
    """Fit and predict in all units; compare the labels with those of unit 1."""
    key = {"code": code, "set": name, "seed": seed}
    if journal.is_done(**key):
        return
    X, y, X_test, y_test = load(name, seed)
    given = chosen_cost(name)
    record: Record = {"errors": {}, "same": {}}
    labels = None
    started = time.process_time()
    for unit, (factor, shift) in UNITS.items():
        model = LandmarkSVC(C=given and given / factor**4, random_state=seed)
        found = model.fit(X * factor + shift, y).predict(X_test * factor + shift)
        labels = found if labels is None else labels
        record["errors"][unit] = 100 * float((found != y_test).mean())
        record["same"][unit] = 100 * float((found == labels).mean())
        record["n_cells"] = model.n_cells_
    record["cpu_s"] = time.process_time() - started
    journal.add({**key, **record})


def chosen_cost(name: str) -> float | None:
    """Return the C that `landmarks.py` chose for MNIST, whose choice takes long."""
    if name != "mnist":
        return None
    first = Journal(RESULTS / "landmarks.jsonl").find(set=name, method="LandmarkSVC", seed=0)
    return first and float(first["C"])


def measure_linear(journal: Journal, name: str, seed: int) -> None:
    key = {"code": "LinearSVC", "set": name, "seed": seed}
    if journal.is_done(**key):
        return
    X, y, X_test, y_test = load(name, seed)
    linear = LinearSVC(dual="auto", random_state=0)
    search = GridSearchCV(linear, {"C": [*landmarks.SMALLER, *landmarks.COSTS]}, cv=5)
    error = 100 * (1 - search.fit(X, y).score(X_test, y_test))
    journal.add({**key, "errors": {"1": error}, **search.best_params_})


def report(journal: Journal) -> str:
    """Return the table, one row a set and version."""
    rows: list[Record] = []
    for name in SETS:
        for code in ("LinearSVC", "before", "after"):
            own = [r for r in journal.records if (r["code"], r["set"]) == (code, name)]
            if own:
                rows.append({"set": name, "code": code, "own": own})

    def spread(unit: str) -> Callable[[Record], str]:
        def show(r: Record) -> str:
            values = np.array([one["errors"][unit] for one in r["own"]])
            return f"{values.mean():.2f}" + (f" ± {values.std():.2f}" if len(values) > 1 else "")

        return show

    def least(r: Record) -> str:
        shares = [one["same"][unit] for one in r["own"] for unit in UNITS]
        return f"{min(shares):.2f}"

    columns: list[Column] = [
        ("set", lambda r: r["set"]),
        ("method", lambda r: r["code"] if r["code"] == "LinearSVC" else f"LandmarkSVC {r['code']}"),
        ("seeds", lambda r: len(r["own"])),
        ("clusters", lambda r: r["own"][0]["n_cells"]),
        *((f"error %, {unit}", spread(unit)) for unit in UNITS),
        ("least share of equal labels, %", least),
    ]
    return (
        "# LandmarkSVC in other units\n\n"
        f"`benchmarks/landmark_units.py`, one thread, {machine()}. Features of standard deviation "
        '1 ("usps01" in [0, 1]), times 1e-3, times 1e3, plus 1000; number of clusters and C are '
        "the estimator's own (of MNIST the C of one choice in unit 1). Mean and deviation; "
        '"before" takes rows as they are, 100 clusters, C from 1e-5 to 100. The last '
        "column: labels of test rows that a unit leaves as they are in unit 1, the least of all "
        "seeds and units.\n\n" + table(columns, rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--code", default="after")
    chosen = parser.parse_args()
    journal = Journal(RESULTS / "landmark_units.jsonl")
    warnings.simplefilter("ignore")
    with dask.config.set(scheduler="sync"):
        for name in chosen.sets:
            for seed in range(1 if name == "mnist" else 5):
                measure(journal, chosen.code, name, seed)
                if name in (*SMALL, "svmguide1"):
                    measure_linear(journal, name, seed)
            (RESULTS / "landmark_units.md").write_text(report(journal))


if __name__ == "__main__":
    main()
