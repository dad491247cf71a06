"""Classifiers as they are on larger tables: 16,000 to 464,429 rows to train, official test rows.

VoronoiSVC by its defaults; LightGBM by its own, and with 1000 trees of 255 leaves. Measured as
`ten_sets` does, which has four of these sets, too: measured at another time, so in its own journal.
"""

from collections.abc import Iterator
from statistics import fmean

from benchmarks.suite import Experiment, Journal, Record, table
from benchmarks.suite.defaults import DEFAULT
from benchmarks.suite.tables import mean_of, versions
from benchmarks.ten_sets import measure

SETS = ("letter", "ijcnn1", "a9a", "covtype-100k", "covtype")
# Seeds move the model of cells; LightGBM takes all rows and all features.
SEEDS = {DEFAULT: 5, "LightGBM": 1, "LightGBM 1000 x 255": 1}
# Half a minute a fit.
FEWER = {"covtype": 3}
FIELDS = {"error": ("error, %", 2), "fit_cpu_s": ("fit", 1), "predict_cpu_s": ("predict", 1)}


def keys() -> Iterator[Record]:
    for name in SETS:
        for estimator, n_seeds in SEEDS.items():
            for seed in range(min(n_seeds, FEWER.get(name, n_seeds))):
                yield {"set": name, "estimator": estimator, "seed": seed}


def line(journal: Journal, name: str) -> Record:
    """Return a row of the table: all estimators on a set."""
    found: Record = {"set": name}
    for estimator in SEEDS:
        own = journal.ordered("seed", set=name, estimator=estimator)
        for field, (_, digits) in FIELDS.items():
            values = [r[field] for r in own if field in r]
            if values:
                found["rows"] = f"{own[0]['train_rows']:,}"
                # Predictions take the same of all seeds.
                told = [fmean(values)] if field == "predict_cpu_s" else values
                found[f"{estimator} {field}"] = mean_of(told, digits, ddof=1)
    return found


def report(journal: Journal) -> str:
    columns = ["set = set", "training rows = rows"]
    for estimator in SEEDS:
        for field, (title, _) in FIELDS.items():
            # A name stands before the first of its columns.
            shown = f"{estimator}: {title}" if field == "error" else title
            columns.append(f"{shown} = r.get('{estimator} {field}', '')")
    return (
        "# Larger tables\n\n"
        f"`benchmarks/more_rows.py`; {journal.machine}, {versions(journal.records)}. Every "
        "estimator with its defaults but for what its name says, features in [0, 1] by the "
        "training rows, one process of one thread, after a fit and a prediction of 400 rows, which "
        "load and compile; beside other work. CPU seconds of the fit and of the prediction of all "
        f"test rows. VoronoiSVC: mean (and deviation) of {SEEDS[DEFAULT]} seeds, of all of covtype "
        f"{FEWER['covtype']}. Official test rows, of covtype 116,583 drawn ones. "
        "letter has 26 classes; of covtype class 2 stands against the rest, covtype-100k are its "
        "first 100,000 training rows.\n\n"
        "## More rows\n\n" + table(" | ".join(columns), [line(journal, name) for name in SETS])
    )


EXPERIMENT = Experiment(list(keys()), measure, report)
