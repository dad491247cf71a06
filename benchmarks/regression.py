"""Regressors as they are: the sets of the folder whose targets are numbers, five splits each.

Four fifths of the rows to train. Features and y as they are, but for SVR, which needs both of
deviation 1. Errors are roots of mean squares over the deviation of y among training rows.

    python -m benchmarks regression --only set=houses estimator=VoronoiSVR
"""

from collections.abc import Iterator
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from benchmarks.peers import Data, LiquidSVM
from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite import standing as st
from benchmarks.suite.defaults import LIMIT_S, Task, cost_of
from benchmarks.suite.figures import Figure, plain_log, plt
from benchmarks.suite.real import load_real
from benchmarks.suite.tables import versions
from benchmarks.untuned import standing_of, words
from daskls import VoronoiSVR

SETS = ("diabetes", "cpu-act", "pol", "houses", "house-16h", "fried", "mv")
PART, N_SPLITS, OURS = "split", 5, "VoronoiSVR"
# Behind the default of LightGBM by no more than this, but for two paired standard errors.
SHARE = 0.03
# CPU seconds below which nobody minds how much faster another is.
LEAST_S = 0.2


def lightgbm(seed: int, **params: Any) -> Any:
    # Not everywhere is it installed, and a report needs it not.
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_jobs=1, random_state=seed, verbose=-1, **params)


def xgboost(seed: int) -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(n_jobs=1, random_state=seed)


def catboost(seed: int) -> Any:
    from catboost import CatBoostRegressor

    quiet = {"verbose": False, "allow_writing_files": False}
    return CatBoostRegressor(thread_count=1, random_seed=seed, **quiet)


def svr(seed: int) -> Any:
    own = make_pipeline(StandardScaler(), SVR())
    return TransformedTargetRegressor(own, transformer=StandardScaler())


class LiquidSquares:
    """liquidSVM's least squares with its own selection."""

    def __init__(self, seed: int) -> None:
        self._library = LiquidSVM().library

    def fit(self, X: np.ndarray, y: np.ndarray) -> "LiquidSquares":
        self._scaler = StandardScaler().fit(X)
        self._model = self._library.lsSVM(self._scaler.transform(X), y.astype(float), threads=1)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        found, _ = self._model.test(self._scaler.transform(X), np.zeros(len(X)))
        return np.asarray(found).reshape(len(X), -1)[:, 0]


OTHERS = {
    "LightGBM": lightgbm,
    "LightGBM 1000 x 63, 0.05": lambda seed: lightgbm(
        seed, n_estimators=1000, num_leaves=63, learning_rate=0.05
    ),
    "XGBoost": xgboost,
    "CatBoost": catboost,
    "HistGradientBoosting": lambda seed: HistGradientBoostingRegressor(random_state=seed),
    "random forest": lambda seed: RandomForestRegressor(random_state=seed),
    "SVR, standardized": svr,
    "liquidSVM": LiquidSquares,
}
CONTENDERS = {
    OURS: lambda seed: VoronoiSVR(random_state=seed),
    "VoronoiSVR, 4 partitions": lambda seed: VoronoiSVR(n_partitions=4, random_state=seed),
    **OTHERS,
}


def missed(predicted: np.ndarray, data: Data) -> float:
    return float(np.sqrt(np.mean((predicted - data.y_test) ** 2)) / data.y.std())


TASK = Task(CONTENDERS, missed, lambda y: y)


@cache
def whole(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "diabetes":
        # scikit-learn's, of 442 rows; the folder's of that name is another.
        X, y = load_diabetes(return_X_y=True)
        return np.asarray(X), np.asarray(y)
    data = load_real(name)
    return np.asarray(data.X, np.float64), np.asarray(data.y, np.float64)


def rows(name: str, seed: int) -> Data:
    X, y = whole(name)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    return Data(X, y, X_test, y_test)


def keys(run: Run) -> Iterator[Record]:
    """Yield a split of every set, then the other splits."""
    for seed in range(N_SPLITS):
        for name in SETS:
            for contender in CONTENDERS:
                yield {"part": PART, "set": name, "estimator": contender, "seed": seed}


def measure(run: Run, part: str, set: str, estimator: str, seed: int) -> Record:
    data = rows(set, seed)
    shape = {"train_rows": len(data.X), "features": data.X.shape[1], "test_rows": len(data.X_test)}
    return {**shape, **cost_of(data, estimator, seed, TASK)}


def present(journal: Journal) -> list[str]:
    """Return the contenders that a journal knows, and that have done every set."""
    sets = {r["set"] for r in journal.records}
    return [c for c in CONTENDERS if sets and all(st.done(journal, PART, name, c) for name in sets)]


def ranks(journal: Journal) -> list[Record]:
    """Return a row for each contender: mean rank and medians over sets."""
    known = present(journal)
    boards = st.board(journal, PART, known) if known else {}
    return [standing_of(boards, contender) for contender in known]


def errors(journal: Journal, field: str, digits: int) -> str:
    """Return a table of means and deviations over splits, a row a set."""
    found = st.every(journal, PART, CONTENDERS)
    columns = "set = set | train rows = train_rows:,"
    return st.wide(found, columns, lambda own: st.spread(own, itemgetter(field), digits))


def besides(journal: Journal) -> list[Record]:
    """Return a row for each set: VoronoiSVR beside the defaults of LightGBM."""
    found = []
    for name in st.sets(journal, PART):
        own = st.common(journal, PART, name, [OURS, "LightGBM"])
        if not own[OURS]:
            continue
        beside = st.beside(own, OURS)
        times = st.mean(own[OURS], "fit_cpu_s") / max(
            st.mean(own["LightGBM"], "fit_cpu_s"), LEAST_S
        )
        found.append(
            {
                "set": name,
                **beside._asdict(),
                "behind": beside.ratio > 1 + SHARE and beside.difference > beside.two_errors,
                "times": times,
                "seconds": st.mean(own[OURS], "fit_cpu_s"),
                "chosen": "; ".join(dict.fromkeys(words(r.get("choice", {})) for r in own[OURS])),
            }
        )
    return found


def report(journal: Journal) -> str:
    text = (
        "# Regressors as they are\n\n"
        f"`benchmarks/regression.py`; {journal.machine}, {versions(journal.records)}. Every "
        "estimator with its defaults but for what its name says; SVR and liquidSVM have features "
        "of deviation 1, SVR y too. One process of one thread, after a fit and a prediction of 400 "
        f"rows; beside other work. {N_SPLITS} random splits, four fifths to train; mean and "
        "deviation. Errors: root of the mean square over y's deviation in training rows. What "
        f"takes more than {LIMIT_S} CPU seconds is ended.\n\n## Mean ranks\n\n"
    )
    columns = """
    estimator = estimator | mean rank = rank:.2f
    median fit, CPU s = fit_cpu_s:.2f | median predict, CPU s = predict_cpu_s:.3f
    """
    text += table(columns.strip(), ranks(journal))
    for title, field, digits in (
        ("Error over the deviation of y", "error", 4),
        ("Fit, CPU seconds", "fit_cpu_s", 2),
        ("Prediction of all test rows, CPU seconds", "predict_cpu_s", 3),
    ):
        text += f"\n## {title}\n\n{errors(journal, field, digits)}"
    lines = besides(journal)
    columns = """
    set = set | error over LightGBM's = ratio:.3f | difference = difference:+.4f
    two standard errors = two_errors:.4f | fit, CPU s = seconds:.2f
    over LightGBM's = times:.1f | chosen = chosen
    """
    behind = ", ".join(r["set"] for r in lines if r["behind"]) or "no set"
    return (
        f"{text}\n## Beside the defaults of LightGBM\n\nPaired over splits; its CPU seconds count "
        f"as {LEAST_S} s at the least.\n\n{table(columns.strip(), lines)}\nBehind by more than "
        f"{SHARE:.0%} and two paired standard errors: {behind}.\n"
    )


def draw(journal: Journal) -> Figure:
    """Draw each set's errors over those of LightGBM, against CPU seconds of the fit."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for number, contender in enumerate(CONTENDERS):
        points = []
        for name in st.sets(journal, PART):
            own = st.common(journal, PART, name, [contender, "LightGBM"])
            if own[contender] and not any(map(st.is_ended, own[contender])):
                ratio = st.mean(own[contender], "error") / st.mean(own["LightGBM"], "error")
                points.append((st.mean(own[contender], "fit_cpu_s"), ratio))
        if points:
            marker = "o" if contender == OURS else "s"
            axes.plot(*zip(*points, strict=True), marker, color=f"C{number}", label=contender)
    axes.axhline(1.0, color="C7", lw=0.8, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="fit, CPU s", ylabel="error over LightGBM's")
    plain_log(axes.xaxis, (1, 3))
    plain_log(axes.yaxis)
    axes.legend(fontsize=7, ncols=2)
    figure.tight_layout()
    return figure


EXPERIMENT = Experiment(keys, measure, report, draw)
