"""Classifiers as they are on larger tables: 16,000 to 464,429 rows to train, official test rows.

VoronoiSVC by its defaults; LightGBM by its own, and with 1000 trees of 255 leaves. Features in
[0, 1] by the training rows. `untuned` has every table, with at most 50,000 training rows.
"""

from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter

from sklearn.preprocessing import LabelEncoder

from benchmarks.peers import Data
from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite import standing as st
from benchmarks.suite.data import by_training
from benchmarks.suite.defaults import DEFAULT, LIMIT_S, cost_of
from benchmarks.suite.tables import versions

SETS = ("letter", "ijcnn1", "a9a", "mnist", "covtype-100k", "covtype")
FIRST_ROWS = 100_000
# Seeds move the model of cells; LightGBM takes all rows and all features.
SEEDS = {DEFAULT: 5, "LightGBM": 1, "LightGBM 1000 x 255": 1}
# Minutes a fit; and what takes a quarter of an hour or more.
FEWER = {"mnist": 1}
LEFT_OUT = {"mnist": "LightGBM 1000 x 255"}
FIELDS = {"error": ("error, %", 2), "fit_cpu_s": ("fit", 1), "predict_cpu_s": ("predict", 1)}


@lru_cache(maxsize=1)
def rows(name: str) -> Data:
    """Return the rows of a set, its labels as codes."""
    data = by_training(name.removesuffix("-100k"))
    data = data.first(FIRST_ROWS) if name.endswith("-100k") else data
    codes = LabelEncoder().fit(data.y)
    return data._replace(y=codes.transform(data.y), y_test=codes.transform(data.y_test))


def keys() -> Iterator[Record]:
    for name in SETS:
        for estimator, n_seeds in SEEDS.items():
            if estimator != LEFT_OUT.get(name):
                for seed in range(min(n_seeds, FEWER.get(name, n_seeds))):
                    yield {"set": name, "estimator": estimator, "seed": seed}


def measure(run: Run, set: str, estimator: str, seed: int) -> Record:
    data = rows(set)
    shape = {"train_rows": len(data.X), "features": data.X.shape[1], "test_rows": len(data.X_test)}
    return {**shape, **cost_of(data, estimator, seed)}


def line(journal: Journal, name: str) -> Record:
    """Return a row of the table: all estimators on a set."""
    found: Record = {"set": name}
    for estimator in SEEDS:
        own = journal.ordered("seed", set=name, estimator=estimator)
        if own:
            found["rows"] = f"{own[0]['train_rows']:,}"
        for field, (_, digits) in FIELDS.items():
            found[f"{estimator} {field}"] = st.spread(own, itemgetter(field), digits)
    return found


def report(journal: Journal) -> str:
    columns = ["set = set", "training rows = rows"]
    for estimator in SEEDS:
        for field, (title, _) in FIELDS.items():
            # A name stands before the first of its columns.
            shown = f"{estimator}: {title}" if field == "error" else title
            columns.append(f"{shown} = r['{estimator} {field}']")
    return (
        "# Larger tables\n\n"
        f"`benchmarks/more_rows.py`; {journal.machine}, {versions(journal.records)}. Every "
        "estimator with its defaults but for what its name says, features in [0, 1] by the "
        "training rows, one process of one thread, after a fit and a prediction of 400 rows, which "
        "load and compile. CPU seconds of the fit and of the prediction of all test rows; what "
        f"takes more than {LIMIT_S} is ended. VoronoiSVC: mean and deviation of {SEEDS[DEFAULT]} "
        f"seeds, of mnist {FEWER['mnist']}. Official test rows, of covtype 116,583 drawn ones. "
        "letter has 26 classes, mnist 10; of covtype class 2 stands against the rest, covtype-100k "
        f"are its first {FIRST_ROWS:,} training rows.\n\n"
        "## More rows\n\n" + table(" | ".join(columns), [line(journal, name) for name in SETS])
    )


EXPERIMENT = Experiment(list(keys()), measure, report)
