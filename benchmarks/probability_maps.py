"""Maps to probabilities by a second fit, beside CalibratedClassifierCV and LightGBM's own.

One process, one core. Official test rows (covtype-100k: drawn). CalibratedClassifierCV trains the
same estimator three times on two thirds of all rows, and averages three models.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV

from benchmarks.accuracy import rows_of
from benchmarks.peers import Data
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite.contenders import BOOSTING, cells, squares
from benchmarks.suite.figures import Figure, plt
from benchmarks.suite.proper import N_BINS, scores
from benchmarks.suite.tables import mean_of

SETS = ("a9a", "letter", "covtype-100k")
N_SEEDS = 3
METHODS = {
    "hinge, None, rbf": cells(loss="hinge", feature_scale=None, kernel="rbf"),
    "squared_error, learned, auto": squares("learned", "auto"),
}
KINDS = ("sigmoid", "isotonic")
MAPS = (
    *KINDS,
    "CalibratedClassifierCV, sigmoid",
    "CalibratedClassifierCV, isotonic",
)
BOOSTED = "LightGBM, early stopping"


@lru_cache(maxsize=1)
def data_of(name: str) -> Data:
    return rows_of(name, "test", 0)


def keys() -> Iterator[Record]:
    for name in SETS:
        for seed in range(N_SEEDS):
            for method in METHODS:
                for maps in MAPS:
                    yield {"set": name, "method": method, "maps": maps, "seed": seed}
            yield {"set": name, "method": BOOSTED, "maps": "its own", "seed": seed}


def estimator_of(method: str, maps: str, seed: int) -> Any:
    if method == BOOSTED:
        return BOOSTING[BOOSTED](seed)
    own = METHODS[method](seed)
    if maps.startswith("Calibrated"):
        own.set_params(probability=False)
        return CalibratedClassifierCV(own, method=maps.split(", ")[1], cv=3)
    return own.set_params(probability=maps)


def measure(run: Run, set: str, method: str, maps: str, seed: int) -> Record:
    data = data_of(set)
    model = estimator_of(method, maps, seed)
    _, fit_s = cpu_of(lambda: model.fit(data.X, data.y))
    ask = model._model if method == BOOSTED else model
    found, predict_s = cpu_of(lambda: np.asarray(ask.predict_proba(data.X_test)))
    return {
        **scores(found, np.searchsorted(np.unique(data.y), data.y_test)),
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
    }


FIELDS = ("log_loss", "brier", "ece", "error", "fit_cpu_s", "predict_cpu_s")
COLUMNS = """
set = set | estimator = method | maps = maps | seeds = seeds | log loss = shown(all_log_loss, 4)
Brier score = shown(all_brier, 4) | calibration error = shown(all_ece, 4)
error of the likeliest, % = shown(all_error, 2)
fit, CPU s = shown(all_fit_cpu_s, 1) | predict_proba, CPU s = shown(all_predict_cpu_s, 2)
log loss / CalibratedClassifierCV's = ratio
"""


def rows(journal: Journal) -> Iterator[Record]:
    for name in SETS:
        for method in (*METHODS, BOOSTED):
            for maps in (*MAPS, "its own"):
                own = list(journal.where(set=name, method=method, maps=maps))
                if own:
                    yield {
                        **own[0],
                        "seeds": len(own),
                        **{f"all_{field}": [r[field] for r in own] for field in FIELDS},
                        "ratio": ratio(journal, name, method, maps),
                    }


def ratio(journal: Journal, name: str, method: str, maps: str) -> str:
    own = [r["log_loss"] for r in journal.where(set=name, method=method, maps=maps)]
    peer = f"CalibratedClassifierCV, {maps}"
    theirs = [r["log_loss"] for r in journal.where(set=name, method=method, maps=peer)]
    return f"{np.mean(own) / np.mean(theirs):.2f}" if own and theirs else ""


def shown(values: list[float], digits: int) -> str:
    return mean_of(values, digits, ddof=1)


def report(journal: Journal) -> str:
    text = (
        "# Maps to probabilities by a second fit\n\n"
        f"`benchmarks/probability_maps.py`, one process, one thread, beside other work; "
        f"{journal.machine}. Later versions train other models: what holds is how the maps "
        "compare. Official test rows; mean and deviation over seeds. Those of daskls are "
        "VoronoiSVC with loss, feature_scale and kernel as named, and `probability=` as under "
        "maps; CalibratedClassifierCV has cv=3 and the same estimator without. Calibration error: "
        f"{N_BINS} bins of the largest probability.\n\n"
    )
    return text + table(COLUMNS, list(rows(journal)), shown=shown)


def draw(journal: Journal) -> Figure:
    """Draw log loss against CPU seconds, a panel a set."""
    figure, grid = plt.subplots(1, len(SETS), figsize=(4 * len(SETS), 3.4))
    for axes, name in zip(grid, SETS, strict=True):
        for own in rows(journal):
            if own["set"] == name:
                point = np.mean(own["all_fit_cpu_s"]), np.mean(own["all_log_loss"])
                ours = own["maps"] in KINDS
                marker = "s" if own["method"] == BOOSTED else ("o" if ours else "^")
                color = {BOOSTED: "C7"}.get(
                    own["method"], "C0" if "hinge" in own["method"] else "C1"
                )
                fill = "full" if "sigmoid" in own["maps"] else "none"
                label = f"{own['method']}: {own['maps']}"
                axes.plot(*point, marker, color=color, fillstyle=fill, label=label)
        axes.set(title=name, xscale="log", xlabel="fit, CPU s", ylabel="log loss")
    told = grid[0].get_legend_handles_labels()
    figure.legend(*told, fontsize=6, ncols=3, loc="lower center")
    figure.tight_layout(rect=(0, 0.16, 1, 1))
    return figure


EXPERIMENT = Experiment(
    list(keys()),
    measure,
    report,
    draw,
    warm=lambda: [cells(cell_size=100)(0), squares("learned", "auto", cell_size=100)(0)],
)
