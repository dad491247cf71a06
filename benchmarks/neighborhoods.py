"""FalkSVC, KNNSVC and the sampling methods with C and gamma as they are, and chosen from the data.

Inner splits of training rows, the same for all: 80 % to train. One process, one core.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.accuracy import N_SPLITS, SMALL, rows_of
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite import standing as st
from benchmarks.suite.figures import Figure, plt
from benchmarks.suite.tables import mean_of
from daskls import KNNSVC, FalkSVC, LocalSamplingSVC, NeighborSamplingSVC

# As they are, and chosen.
PAIRS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "FalkSVC": (FalkSVC, {"selection": None}, {"selection": "local"}),
    # Before, C was 1 and gamma scikit-learn's "scale".
    "KNNSVC": (KNNSVC, {"C": 1.0}, {}),
    "LocalSamplingSVC": (LocalSamplingSVC, {"C": 1.0}, {}),
    "NeighborSamplingSVC": (NeighborSamplingSVC, {"C": 1.0}, {}),
}


def keys() -> Iterator[Record]:
    for name in SMALL:
        for seed in range(N_SPLITS):
            for estimator in PAIRS:
                for chosen in (False, True):
                    yield {"set": name, "estimator": estimator, "chosen": chosen, "seed": seed}


def measure(run: Run, set: str, estimator: str, chosen: bool, seed: int) -> Record:
    data = rows_of(set, "inner", seed)
    kind, given, open_ = PAIRS[estimator]
    model = kind(random_state=seed, **(open_ if chosen else given))
    _, fit_s = cpu_of(lambda: model.fit(data.X, data.y))
    predicted, predict_s = cpu_of(lambda: np.asarray(model.predict(data.X_test)))
    return {
        "train_rows": len(data.X),
        "error": 100 * float(np.mean(predicted != data.y_test)),
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
    }


def errors(journal: Journal, name: str, estimator: str, chosen: bool) -> dict[int, float]:
    found = journal.where(set=name, estimator=estimator, chosen=chosen)
    return {r["seed"]: r["error"] for r in found}


def rows(journal: Journal, estimator: str) -> Iterator[Record]:
    for name in SMALL:
        old, new = (errors(journal, name, estimator, chosen) for chosen in (False, True))
        both = sorted(set(old) & set(new))
        if len(both) == N_SPLITS:
            gained = np.array([new[s] - old[s] for s in both])
            yield {
                "set": name,
                "estimator": estimator,
                "old": [old[s] for s in both],
                "new": [new[s] for s in both],
                "difference": float(gained.mean()),
                "spread": st.error_of(gained),
                **{
                    f"{field}_{chosen}": float(np.mean([r[field] for r in found]))
                    for field in ("fit_cpu_s",)
                    for chosen in (False, True)
                    if (found := list(journal.where(set=name, estimator=estimator, chosen=chosen)))
                },
            }


COLUMNS = """
set = set | estimator = estimator | as it is, error % = shown(old, 2) | chosen = shown(new, 2)
difference, points = difference:+.2f | standard error = spread:.2f
fit, CPU s = fit_cpu_s_False:.2f | chosen, CPU s = fit_cpu_s_True:.2f
"""


def shown(values: list[float], digits: int) -> str:
    return mean_of(values, digits, ddof=1)


def report(journal: Journal) -> str:
    text = (
        "# Parameters as they are, and chosen from the data\n\n"
        f"`benchmarks/neighborhoods.py`, one process, one thread, beside other work; "
        f"{journal.machine}. {N_SPLITS} inner splits; mean and deviation, paired differences.\n"
    )
    for estimator, (_, given, open_) in PAIRS.items():
        own = list(rows(journal, estimator))
        if own:
            better = sum(r["difference"] < 0 for r in own)
            worse = [r["set"] for r in own if r["difference"] > 2]
            mean = float(np.mean([r["difference"] for r in own]))
            text += (
                f"\n## {estimator}: {given or 'defaults'} and {open_ or 'defaults'}\n\n"
                f"{len(own)} sets: better on {better}, by {-mean:.2f} points in the mean; worse by "
                f"more than 2 points on {', '.join(worse) or 'none'}.\n\n"
            ) + table(COLUMNS, own, shown=shown)
    return text


def draw(journal: Journal) -> Figure:
    """Draw the differences, a line a set."""
    figure, grid = plt.subplots(1, len(PAIRS), figsize=(5 * len(PAIRS), 5), squeeze=False)
    for axes, estimator in zip(grid.flat, PAIRS, strict=True):
        own = list(rows(journal, estimator))
        at = np.arange(len(own))
        differences, spreads = ([r[field] for r in own] for field in ("difference", "spread"))
        axes.errorbar(differences, at, xerr=spreads, fmt="o", color="C0")
        axes.axvline(0, color="C7", linewidth=1)
        axes.set_yticks(at, [r["set"] for r in own], fontsize=7)
        axes.set(title=estimator, xlabel="chosen less as it is, points of error")
    figure.tight_layout()
    return figure


EXPERIMENT = Experiment(list(keys()), measure, report, draw)
