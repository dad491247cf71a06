"""VoronoiSVC's search from coarse to fine beside its full search and liquidSVM, on many real sets.

One process, one core, default parameters (cells of 2000), features scaled by the least and largest
value of the training rows. Sets without test rows are split ten times, two thirds to train; of the
others five seeds of the model are measured (one of covtype), of liquidSVM fewer where a fit takes a
minute and more. The methods take turns on the same rows.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.peers import LiquidSVM
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite import standing as st
from benchmarks.suite.data import Data, by_training, has_test, shifted, split
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.tables import mean_of

LARGE = ("covtype", "ijcnn1", "letter", "usps", "pendigits", "satimage", "a9a", "splice")
SMALL = (
    *("a1a", "australian", "breast", "chess", "cmc", "diabetes", "german.numer", "haberman"),
    *("heart", "higgs-11k", "hill-valley", "hill-valley-clean", "ionosphere", "liver"),
    *("mushrooms", "musk1", "spambase", "svmguide1", "tic-tac-toe", "transfusion", "vote"),
)
METHODS = ("refine", "full", "liquidSVM")
N_SPLITS = 10
SEEDS = {"covtype": 1}
LIQUID_SEEDS = {"covtype": 1, "letter": 1, "a9a": 1}


@lru_cache(maxsize=1)
def rows_of(name: str, seed: int) -> Data:
    """Return a set's rows, scaled; one without test rows is split."""
    if has_test(name):
        return by_training(name)
    data = split(name, seed)
    low = data.X.min(axis=0)
    X, X_test = shifted(data.X, data.X_test, low, data.X.max(axis=0) - low)
    return data._replace(X=X, X_test=X_test)


def keys(run: Run) -> Iterator[Record]:
    for name in (*LARGE, *SMALL):
        for seed in range(SEEDS.get(name, 5 if has_test(name) else N_SPLITS)):
            for method in METHODS:
                if method != "liquidSVM" or seed < LIQUID_SEEDS.get(name, N_SPLITS):
                    yield {"set": name, "seed": seed, "method": method}


def model_of(method: str, seed: int) -> Any:
    if method == "liquidSVM":
        return LiquidSVM(voronoi="6 2000", random_seed=seed)
    return PaperSVC(search=method, random_state=seed)


def measure(run: Run, set: str, seed: int, method: str) -> Record:
    X, y, X_test, y_test = rows_of(set, seed)
    classes, codes = np.unique(y, return_inverse=True)
    model, many = model_of(method, seed), len(classes) > 2
    # liquidSVM takes -1 and 1, or whole numbers.
    given = codes if many else 2 * codes - 1
    _, train_s = cpu_of(lambda: model.fit(X, given))
    found, predict_s = cpu_of(lambda: np.asarray(model.predict(X_test)))
    labels = classes[found.astype(int) if many else (found > 0).astype(int)]
    error = 100 * float((labels != y_test).mean())
    record: Record = {"train_s": train_s, "predict_s": predict_s, "error": error}
    if method != "liquidSVM":
        cells = model.fit_report_
        record["n_tried"] = float(cells.n_tried[cells.n_trained > 0].mean())
        record["at_limit"] = int(cells.n_at_limit.sum())
    return record


# The report: a row of the table holds all records of one set, by method.


def means(records: list[Record], what: str, digits: int) -> str:
    return mean_of([r[what] for r in records], digits) if records else ""


def ratio(row: Record, what: str) -> str:
    theirs = {r["seed"]: r[what] for r in row["liquidSVM"]}
    ours = [r[what] for r in row["refine"] if r["seed"] in theirs]
    return f"{np.mean(list(theirs.values())) / np.mean(ours):.1f}" if ours else ""


COLUMNS = " | ".join(
    [
        "set = set | runs = len(refine)",
        *(
            f"{m}: train = means({m}, 'train_s', 2) | predict = means({m}, 'predict_s', 3) | "
            f"error % = means({m}, 'error', 2)"
            for m in METHODS
        ),
        "liquidSVM / refine: train = ratio(r, 'train_s') | predict = ratio(r, 'predict_s')",
    ]
)


def report(journal: Journal) -> str:
    rows = [
        {"set": s} | {m: journal.latest("seed", set=s, method=m) for m in METHODS}
        for s in (*LARGE, *SMALL)
    ]
    rows = [row for row in rows if row["refine"]]
    pairs = {row["set"]: st.paired(row["refine"], row["full"]) for row in rows if row["full"]}
    differences = np.array([np.mean(pair) for pair in pairs.values()])
    beyond = [
        f"{name} {np.mean(p):+.3f} +- {st.error_of(p):.3f}"
        for name, p in pairs.items()
        if len(p) > 1 and abs(np.mean(p)) > 2 * st.error_of(p) > 0
    ]
    return (
        "# Many real sets, one core\n\n"
        f"`benchmarks/many_sets.py`, one process, one thread, {journal.machine}. Features scaled "
        "by the training rows' least and largest value, cells of 2000, CPU seconds; mean and "
        "deviation over seeds, of sets without test rows over ten splits. Ratios are of the means "
        "of the same seeds.\n\n"
        + table(COLUMNS, rows, means=means, ratio=ratio)
        + f"\nMean difference of error, refine less full, over {len(differences)} sets: "
        f"{differences.mean():+.3f} points, standard error {st.error_of(differences):.3f}. Beyond "
        f"two standard errors of its own: {', '.join(beyond) or 'no set'}.\n"
    )


EXPERIMENT = Experiment(
    keys, measure, report, warm=lambda: [model_of(method, 0) for method in ("refine", "full")]
)
