"""VoronoiSVC's search from coarse to fine beside its full search and liquidSVM, on many real sets.

One process, one core, ``scheduler="synchronous"``, default parameters (cells of 2000), features
scaled by the least and largest value of the training rows. Sets without test rows are split ten
times, two thirds to train; of the others five seeds of the model are measured (one of covtype), of
liquidSVM fewer where a fit takes a minute and more. The methods take turns on the same rows. Rows
that are done are in ``benchmarks/results/many_sets.jsonl``; the table is ``many_sets.md``.

    python benchmarks/many_sets.py [--sets ijcnn1 letter ...] [--methods refine full liquidSVM]

The sets are read from the folder in DASKLS_DATA.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import numpy as np
from journal import Column, Journal, Record, table
from measure import machine
from peers import LiquidSVM
from real_sets import by_training
from sklearn.model_selection import train_test_split

from daskls import VoronoiSVC
from daskls.datasets import load_real

RESULTS = Path(__file__).parent / "results"
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


def n_seeds(name: str) -> int:
    """Return how many seeds or splits of a set are measured."""
    return SEEDS.get(name, N_SPLITS if load_real(name).X_test is None else 5)


def rows_of(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Return (X, y, X_test, y_test), scaled; a set without test rows is split."""
    if name == "covtype" or load_real(name).X_test is not None:
        return by_training(name)
    data = load_real(name)
    X, X_test, y, y_test = train_test_split(
        data.X, data.y, test_size=1 / 3, random_state=seed, stratify=data.y
    )
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1)
    X, X_test = (((part - low) / width).astype(np.float32) for part in (X, X_test))
    return X, y, X_test, y_test


def model_of(method: str, seed: int) -> Any:
    if method == "liquidSVM":
        return LiquidSVM(voronoi="6 2000", random_seed=seed)
    return VoronoiSVC(search=method, random_state=seed)


def cpu_s(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def measure(journal: Journal, name: str, seed: int, methods: list[str]) -> None:
    X, y, X_test, y_test = rows_of(name, seed)
    classes, codes = np.unique(y, return_inverse=True)
    for method in methods:
        if method == "liquidSVM" and seed >= LIQUID_SEEDS.get(name, N_SPLITS):
            continue
        key = {"set": name, "seed": seed, "method": method}
        if journal.is_done(**key):
            continue
        model = model_of(method, seed)
        # liquidSVM takes -1 and 1, or whole numbers.
        given = codes if len(classes) > 2 else 2 * codes - 1
        train_s, _ = cpu_s(lambda model=model, given=given: model.fit(X, given))
        predict_s, found = cpu_s(lambda model=model: np.asarray(model.predict(X_test)))
        labels = classes[found.astype(int) if len(classes) > 2 else (found > 0).astype(int)]
        error = 100 * float((labels != y_test).mean())
        record: Record = {**key, "train_s": train_s, "predict_s": predict_s, "error": error}
        if isinstance(model, VoronoiSVC):
            report = model.fit_report_
            record |= {"n_tried": float(report.n_tried[report.n_trained > 0].mean())}
            record |= {"at_limit": int(report.n_at_limit.sum())}
        journal.add(record)
        print(record, flush=True)


def warm() -> None:
    """Compile what both searches run."""
    X = np.random.default_rng(0).random((400, 3))
    for k in (2, 3):
        for method in ("refine", "full"):
            y = (k * X[:, 0]).astype(int)
            model_of(method, 0).fit(X, y).predict(X)


def report(journal: Journal) -> str:
    """Return the table, and the mean difference of errors between the two searches."""
    rows: list[Record] = []
    for name in (*LARGE, *SMALL):
        own = {
            m: [r for r in journal.records if (r["set"], r["method"]) == (name, m)] for m in METHODS
        }
        if own["refine"]:
            rows.append({"set": name, **own})
    pairs = [paired(row) for row in rows if row["full"]]
    differences = np.array([np.mean(p) for p in pairs])
    beyond = [
        f"{row['set']} {np.mean(p):+.3f} +- {error_of(p):.3f}"
        for row, p in zip([r for r in rows if r["full"]], pairs, strict=True)
        if len(p) > 1 and abs(np.mean(p)) > 2 * error_of(p) > 0
    ]
    deviation = differences.std(ddof=1) / np.sqrt(len(differences))
    return (
        "# Many real sets, one core\n\n"
        f"`benchmarks/many_sets.py`, one process, one thread, {machine()}. Features scaled by the "
        "training rows' least and largest value, cells of 2000, CPU seconds; mean and deviation "
        "over seeds, of sets without test rows over ten splits. Ratios are of the means of the "
        "same seeds.\n\n"
        + table(columns(), rows)
        + f"\nMean difference of error, refine less full, over {len(differences)} sets: "
        f"{differences.mean():+.3f} points, standard error {deviation:.3f}. Beyond two standard "
        f"errors of its own: {', '.join(beyond) or 'no set'}.\n"
    )


def paired(row: Record) -> list[float]:
    full = {r["seed"]: r["error"] for r in row["full"]}
    return [r["error"] - full[r["seed"]] for r in row["refine"] if r["seed"] in full]


def error_of(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def columns() -> list[Column]:
    def mean(method: str, what: str, digits: int) -> Callable[[Record], str]:
        def show(row: Record) -> str:
            values = [r[what] for r in row[method]]
            if not values:
                return ""
            spread = f" ± {np.std(values):.{digits}f}" if len(values) > 1 else ""
            return f"{np.mean(values):.{digits}f}{spread}"

        return show

    def ratio(what: str) -> Callable[[Record], str]:
        def show(row: Record) -> str:
            theirs = {r["seed"]: r[what] for r in row["liquidSVM"]}
            ours = [r[what] for r in row["refine"] if r["seed"] in theirs]
            return f"{np.mean(list(theirs.values())) / np.mean(ours):.1f}" if ours else ""

        return show

    shown: list[Column] = [("set", lambda r: r["set"]), ("runs", lambda r: len(r["refine"]))]
    for method in METHODS:
        shown.append((f"{method}: train", mean(method, "train_s", 2)))
        shown.append(("predict", mean(method, "predict_s", 3)))
        shown.append(("error %", mean(method, "error", 2)))
    shown.append(("liquidSVM / refine: train", ratio("train_s")))
    shown.append(("predict", ratio("predict_s")))
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=[*LARGE, *SMALL])
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    chosen = parser.parse_args()
    journal = Journal(RESULTS / "many_sets.jsonl")
    warnings.simplefilter("ignore")
    with dask.config.set(scheduler="synchronous"):
        warm()
        for name in chosen.sets:
            for seed in range(n_seeds(name)):
                measure(journal, name, seed, chosen.methods)
            (RESULTS / "many_sets.md").write_text(report(journal))


if __name__ == "__main__":
    main()
