"""VoronoiSVC with each loss, feature scale and kernel beside gradient boosting and a tuned SVC.

One process, one core. Error on official test rows (covtype's are drawn), CPU seconds of fit and of
prediction; the same on inner splits of training rows, by which defaults are decided.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.peers import Data
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite import standing as st
from benchmarks.suite.contenders import (
    AUTO,
    BOOSTED,
    BOOSTING,
    ESTIMATORS,
    LARGE_ONLY,
    LEARNED,
    OURS,
    PATIENCE,
    PEERS,
    TUNED,
    TUNING_ROWS,
    cells,
    squares,
)
from benchmarks.suite.data import by_training, in_training_range
from benchmarks.suite.figures import Figure, plain_log, plt
from benchmarks.suite.journal import TOO_SLOW
from benchmarks.suite.tables import versions
from daskls import VoronoiSVC
from daskls.datasets import load_real

LARGE = ("covtype", "covtype-100k", "ijcnn1", "letter", "a9a", "mnist")
# At most 20,000 training rows: inner splits.
SMALL = (
    *("letter", "usps", "pendigits", "satimage", "splice", "a1a", "australian", "breast", "chess"),
    *("cmc", "diabetes", "german.numer", "haberman", "heart", "higgs-11k", "hill-valley"),
    *("hill-valley-clean", "ionosphere", "liver", "mushrooms", "musk1", "spambase", "svmguide1"),
    *("tic-tac-toe", "transfusion", "vote"),
)
FIRST_ROWS = 100_000
N_SEEDS, N_SPLITS = 5, 5
SEEDS = {"a9a": 3, "mnist": 3}
MAX_SVC_ROWS = 10_000
# An estimator with a learned scale, and the same without.
LEARNED_OF = {name: name.replace("learned", "None") for name in OURS if "learned" in name}
N_ACROSS = 5


@lru_cache(maxsize=1)
def rows_of(name: str, part: str, split: int) -> Data:
    """Return scaled rows to train and to test on: official ones, or those of an inner split."""
    if part == "test":
        data = by_training(name.removesuffix("-100k"))
        return data.first(FIRST_ROWS) if name.endswith("-100k") else data
    whole = load_real(name)
    X, X_test, y, y_test = train_test_split(
        whole.X, whole.y, test_size=0.2, random_state=split, stratify=whole.y
    )
    return in_training_range(Data(X, y, X_test, y_test))


def keys() -> Iterator[Record]:
    """Yield the sets with test rows, then the inner splits."""
    for name in LARGE:
        for seed in range(SEEDS.get(name, N_SEEDS)):
            for estimator in {**OURS, **LARGE_ONLY, **BOOSTING}:
                yield {"part": "test", "set": name, "estimator": estimator, "seed": seed}
    for name in SMALL:
        for seed in range(N_SPLITS):
            for estimator in {**OURS, **BOOSTING, **TUNED}:
                yield {"part": "inner", "set": name, "estimator": estimator, "seed": seed}


def measure(run: Run, part: str, set: str, estimator: str, seed: int) -> Record:
    data = rows_of(set, part, seed if part == "inner" else 0)
    rows = {"train_rows": len(data.X), "test_rows": len(data.X_test)}
    if estimator in TUNED and len(data.X) > MAX_SVC_ROWS:
        return {**rows, "failure": f"{TOO_SLOW}: more than {MAX_SVC_ROWS:,} rows"}
    model = ESTIMATORS[estimator](seed)
    _, fit_s = cpu_of(lambda: model.fit(data.X, data.y))
    predicted, predict_s = cpu_of(lambda: np.asarray(model.predict(data.X_test)))
    return {
        **rows,
        "error": 100 * float(np.mean(predicted != data.y_test)),
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
        **({"versions": {"lightgbm": version("lightgbm")}} if "LightGBM" in estimator else {}),
        **decided(model),
    }


def decided(model: Any) -> Record:
    """Return what a model of cells chose for all of them."""
    if not isinstance(model, VoronoiSVC):
        return {}
    summary = model._reader.resolved.summary
    candidates = summary.get("candidates", {})
    return {
        "cells": model.n_cells_,
        **{key: summary[key] for key in ("decision", "z", "chosen") if key in summary},
        "held_out": {name: own["held_out"] for name, own in candidates.items()},
    }


# The report


def of(journal: Journal, part: str, name: str, estimator: str) -> list[Record]:
    """Return what was measured of an estimator on a set, by seed."""
    found = journal.ordered("seed", part=part, set=name, estimator=estimator)
    return [r for r in found if "error" in r]


def summed_up(journal: Journal, part: str, name: str, estimator: str) -> Record:
    """Return a row of a table: the values of all seeds, and what was decided in them."""
    own = of(journal, part, name, estimator)
    chosen = [r["chosen"]["kernel"] for r in own if "chosen" in r]
    decisions = [r["decision"] for r in own if "decision" in r]
    fields = ("error", "fit_cpu_s", "predict_cpu_s")
    return {
        **own[0],
        "seeds": len(own),
        "takes": counted(decisions) if "learned" in estimator else "",
        "kernels": counted(chosen) if "auto" in estimator else "",
        **{f"all_{field}": [r[field] for r in own] for field in fields},
    }


def counted(values: Sequence[str]) -> str:
    return ", ".join(f"{value} {values.count(value)}" for value in dict.fromkeys(values))


COLUMNS = """
set = set | estimator = estimator | seeds = seeds | error % = mean_of(all_error, 2, ddof=1)
fit, CPU s = mean_of(all_fit_cpu_s, 1, ddof=1)
predict, CPU s = mean_of(all_predict_cpu_s, 2, ddof=1)
cells, first seed = cells | scale taken = takes | kernel taken = kernels
"""


def large(journal: Journal) -> str:
    rows = [
        summed_up(journal, "test", name, estimator)
        for name in LARGE
        for estimator in ESTIMATORS
        if of(journal, "test", name, estimator)
    ]
    text = (
        "\n## Official test rows\n\nMean and deviation over seeds. covtype: class 2 against the "
        f"rest, 464,429 drawn rows to train, 116,583 to test; covtype-100k: the first "
        f"{FIRST_ROWS:,} of those. Errors and seconds as measured; parameters that are not named "
        "are defaults.\n\n"
    )
    return text + table(COLUMNS, rows) + beside_boosting(journal)


def beside_boosting(journal: Journal) -> str:
    """Return CPU seconds on covtype as shares of LightGBM's."""
    parts = []
    theirs = of(journal, "test", "covtype", BOOSTED)
    for name in (LEARNED, AUTO) if theirs else ():
        if ours := of(journal, "test", "covtype", name):
            fit, predict = (
                st.mean(ours, f) / st.mean(theirs, f) for f in ("fit_cpu_s", "predict_cpu_s")
            )
            parts.append(f"{name}: fit {fit:.2f}, predict {predict:.3f}")
    told = f"\ncovtype, CPU seconds as shares of {BOOSTED}'s: {'; '.join(parts)}.\n"
    return told if parts else ""


# Inner splits


def whole(journal: Journal, estimators: Iterable[str]) -> list[str]:
    """Return the sets on which these estimators have done all splits."""
    estimators = list(estimators)
    return [
        name
        for name in SMALL
        if all(len(of(journal, "inner", name, e)) == N_SPLITS for e in estimators)
    ]


def ranks(journal: Journal, estimators: Sequence[str]) -> tuple[dict[str, float], int]:
    """Return mean ranks by the mean error of each set, equal ones sharing theirs; and the sets."""
    names = whole(journal, estimators)
    boards = {s: {e: of(journal, "inner", s, e) for e in estimators} for s in names}
    return st.mean_ranks(boards), len(names)


def ranked(journal: Journal) -> str:
    among, n_sets = ranks(journal, list(OURS))
    every, n_every = ranks(journal, [*OURS, *PEERS])
    names = whole(journal, OURS)
    rows = [
        {
            "estimator": e,
            "rank": among.get(e),
            "every": every.get(e),
            "records": own,
            "sets": len({r["set"] for r in own}),
        }
        for e in (*OURS, *PEERS)
        if (own := [r for name in names for r in of(journal, "inner", name, e)])
    ]
    columns = f"""
    estimator = estimator | sets = sets
    mean rank among daskls', {n_sets} sets = rank and '%.2f' % rank or ''
    mean rank among all, {n_every} sets = every and '%.2f' % every or ''
    mean error % = mean(records, 'error'):.2f | fit, CPU s = mean(records, 'fit_cpu_s'):.2f
    predict, CPU s = mean(records, 'predict_cpu_s'):.3f
    """
    text = (
        f"\n## Inner splits\n\n{N_SPLITS} splits of the training rows of sets of at most 20,000, "
        "stratified, 80 % to train; the same rows for all. Ranks are of a set's mean error. The "
        f"SVC (sets of at most {MAX_SVC_ROWS:,} rows) is tuned by 3 folds of {TUNING_ROWS:,}; "
        f"LightGBM stops after {PATIENCE} rounds without a gain on a tenth of the rows.\n\n"
    )
    return text + table(columns.strip(), rows, mean=st.mean)


def by_set(journal: Journal) -> str:
    """Return a table of mean errors, a row a set."""
    found = {s: {e: of(journal, "inner", s, e) for e in (*OURS, *PEERS)} for s in SMALL}
    measured = {name: own for name, own in found.items() if any(own.values())}
    shown = st.wide(measured, "set = set", lambda r: f"{st.mean(r, 'error'):.2f}" if r else "")
    return f"\nMean error %:\n\n{shown}"


def paired(journal: Journal, name: str, new: str, old: str) -> np.ndarray:
    """Return the differences of error, new less old, of the splits that both have."""
    return st.paired(*(of(journal, "inner", name, e) for e in (new, old)))


def scales(journal: Journal) -> str:
    """Return the learned scale against None: differences, z, decisions, a row a set and kernel."""
    rows = [
        row
        for name in SMALL
        for new, old in LEARNED_OF.items()
        if (row := compared(journal, name, new, old))
    ]
    worse = [
        f"{r['set']} ({r['estimator']}) {r['difference']:+.2f} ± {r['spread']:.2f}"
        for r in rows
        if r["difference"] > 3 * r["spread"] > 0
    ]
    means = "; ".join(
        f"{new}: {np.mean(own):+.3f} points over {len(own)} sets"
        for new in LEARNED_OF
        if (own := [r["difference"] for r in rows if r["estimator"] == new])
    )
    columns = """
    set = set | estimator = estimator | learned less None, points = difference:+.2f
    standard error = spread:.2f | z of learned = mean_of(z, 1, ddof=1) | scale taken = takes
    """
    text = (
        '\n## "learned" against None\n\nPaired differences of error over the inner splits. z is '
        "that of the model's own comparison on held-out rows, mean and deviation over splits.\n\n"
    )
    told = f"\nMean difference: {means}.\n\nWorse by three paired standard errors: "
    return f"{text}{table(columns.strip(), rows)}{told}{', '.join(worse) or 'no set'}.\n"


def compared(journal: Journal, name: str, new: str, old: str) -> Record:
    differences = paired(journal, name, new, old)
    if len(differences) < N_SPLITS:
        return {}
    own = of(journal, "inner", name, new)
    return {
        "set": name,
        "estimator": new,
        "difference": float(differences.mean()),
        "spread": st.error_of(differences),
        "z": [r["z"]["learned"] for r in own],
        "takes": counted([r["decision"] for r in own]),
    }


def against_peers(journal: Journal) -> str:
    """Return the sets on which a peer is better by three paired standard errors."""
    lines = []
    for ours in (LEARNED, AUTO):
        for peer in PEERS:
            found = {s: paired(journal, s, ours, peer) for s in SMALL}
            found = {s: d for s, d in found.items() if len(d) == N_SPLITS}
            worse, better = (
                [s for s, d in found.items() if sign * d.mean() > 3 * st.error_of(d) > 0]
                for sign in (1, -1)
            )
            if found:
                lines.append(
                    f"- {ours}, against {peer} ({len(found)} sets): worse on "
                    f"{', '.join(worse) or 'none'}; better on {', '.join(better) or 'none'}."
                )
    text = "\n## Beside the peers\n\nInner splits, beyond three paired standard errors:\n\n"
    return text + "\n".join(lines) + "\n"


def report(journal: Journal) -> str:
    peers = versions(journal.records)
    text = (
        "# Error and cost of losses, scales and kernels, beside gradient boosting\n\n"
        f"`benchmarks/accuracy.py`, one process, one thread, beside other work; {journal.machine}"
        f"{peers and ', '}{peers}. Those of daskls are VoronoiSVC with loss, feature_scale and "
        "kernel as named. Features in [0, 1] by the training rows; CPU seconds, user and system, "
        "of all that `fit` and `predict` do.\n"
    )
    parts = [text, large(journal)]
    if journal.where(part="inner"):
        parts += [ranked(journal), by_set(journal), scales(journal), against_peers(journal)]
    return "".join(parts)


def draw(journal: Journal) -> Figure:
    """Draw a panel a set: error against the CPU seconds of fit and prediction."""
    panels = [
        (part, name)
        for part, names in (("test", LARGE), ("inner", SMALL))
        for name in names
        if journal.where(part=part, set=name)
    ]
    n_rows = -(-(len(panels) + 1) // N_ACROSS)
    size = (3.2 * N_ACROSS, 2.9 * n_rows)
    figure, grid = plt.subplots(n_rows, N_ACROSS, figsize=size, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, (part, name) in zip(grid.flat, panels, strict=False):
        axes.axis("on")
        for estimator in ESTIMATORS:
            if own := of(journal, part, name, estimator):
                seconds = st.mean(own, "fit_cpu_s") + st.mean(own, "predict_cpu_s")
                axes.plot(seconds, st.mean(own, "error"), linestyle="", **mark(estimator))
        axes.set(xscale="log", title=name if part == "test" else f"{name}, inner")
        plain_log(axes.xaxis)
        axes.tick_params(labelsize=7)
    legend = grid.flat[len(panels)]
    for estimator in ESTIMATORS:
        legend.plot([], [], linestyle="", label=estimator, **mark(estimator))
    legend.legend(fontsize=6, loc="upper left", title="error % against CPU s", title_fontsize=7)
    figure.tight_layout()
    return figure


def mark(estimator: str) -> Record:
    """Return a color a loss and scale, a shape a kernel; peers are gray."""
    if estimator in (*BOOSTING, *TUNED):
        return {"marker": "sD^v"[[*BOOSTING, *TUNED].index(estimator)], "color": "C7"}
    loss, scale, kernel = estimator.split(", ")[:3]
    color = {"None": "C0", "spread": "C2", "learned": "C1"}[scale]
    shape = {"rbf": "o", "exponential": "P", "auto": "X"}[kernel]
    if estimator in LARGE_ONLY:
        shape = "*"
    return {"marker": shape, "color": color, "fillstyle": "none" if loss == "hinge" else "full"}


EXPERIMENT = Experiment(
    list(keys()),
    measure,
    report,
    draw,
    warm=lambda: [
        cells(cell_size=100, feature_scale="learned")(0),
        squares("learned", "auto", cell_size=100)(0),
        squares("learned", "exponential", cell_size=100)(0),
    ],
)
