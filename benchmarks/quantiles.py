"""Quantiles 0.1, 0.5 and 0.9 of six sets, five splits each; and leave-one-out of expectiles.

Four fifths of the rows to train. Boosting fits a model a level; liquidSVM, where it is installed,
has features of deviation 1. Losses are pinball losses over the deviation of y among training rows.
Expectiles: the loss of rows that were left out at fixed sides, which chooses C, beside that of
models that are trained without each row.

    python -m benchmarks quantiles --only set=houses estimator=LightGBM
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.preprocessing import StandardScaler

from benchmarks.peers import Data, LiquidSVM
from benchmarks.regression import lightgbm, rows, whole
from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite import standing as st
from benchmarks.suite.apart import begin_limit, run_forked
from benchmarks.suite.defaults import LIMIT_S, versions_of
from benchmarks.suite.measure import cpu_of
from benchmarks.suite.tables import versions
from daskls import VoronoiQuantileRegressor
from daskls.kernels.frame import decide_pairs
from daskls.records import CellReport, SolverSpec
from daskls.solvers.base import CellRows
from daskls.solvers.level_losses import Expectile
from daskls.solvers.registry import find_solver

SETS = ("cpu-act", "pol", "houses", "house-16h", "fried", "mv")
LEVELS = (0.1, 0.5, 0.9)
SPLITS, LEFT_OUT, N_SPLITS, OURS = "split", "left out", 5, "VoronoiQuantileRegressor"
# What the coverage may be off by, where two deviations of a binomial are less.
OFF = 0.02
# Of expectiles: few rows, as each is left out by a fit of its own.
FEW, COSTS = 300, (0.5, 5.0, 50.0)


class EachLevel:
    """A model a level, side by side."""

    def __init__(self, make: Any) -> None:
        self._models = [make(level) for level in LEVELS]

    def fit(self, X: np.ndarray, y: np.ndarray) -> "EachLevel":
        for model in self._models:
            model.fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.stack([model.predict(X) for model in self._models], axis=1)


class LiquidQuantiles:
    """liquidSVM's quantile regression with its own selection, all levels in one."""

    def __init__(self, seed: int) -> None:
        self._library = LiquidSVM().library

    def fit(self, X: np.ndarray, y: np.ndarray) -> "LiquidQuantiles":
        self._scaler = StandardScaler().fit(X)
        self._model = self._library.qtSVM(
            self._scaler.transform(X), y.astype(float), weights=list(LEVELS), threads=1
        )
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        found, _ = self._model.test(self._scaler.transform(X), np.zeros(len(X)))
        return np.asarray(found).reshape(len(X), -1)[:, -len(LEVELS) :]


def hist(seed: int) -> EachLevel:
    return EachLevel(
        lambda q: HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=seed)
    )


CONTENDERS = {
    OURS: lambda seed: VoronoiQuantileRegressor(quantile=LEVELS, random_state=seed),
    "LightGBM": lambda seed: EachLevel(
        lambda q: lightgbm(seed, objective="quantile", alpha=q, **{"metric": "None"})
    ),
    "HistGradientBoosting": hist,
    "liquidSVM": LiquidQuantiles,
}


def keys(run: Run) -> Iterator[Record]:
    """Yield a split of every set, then the other splits; then expectiles."""
    for seed in range(N_SPLITS):
        for name in SETS:
            for contender in CONTENDERS:
                yield {"part": SPLITS, "set": name, "estimator": contender, "seed": seed}
    for name in SETS:
        for level in LEVELS:
            for cost in COSTS:
                yield {"part": LEFT_OUT, "set": name, "level": level, "C": cost}


def measure(
    run: Run, part: str, set: str, estimator: str = "", seed: int = 0, **given: float
) -> Record:
    if part == LEFT_OUT:
        return left_out(set, given["level"], given["C"])
    data = rows(set, seed)
    shape = {"train_rows": len(data.X), "features": data.X.shape[1], "test_rows": len(data.X_test)}
    return {**shape, **run_forked(fitted, data, estimator, seed, limit_s=LIMIT_S)}


def fitted(data: Data, contender: str, seed: int) -> Record:
    """Fit and predict in this process; what first ones load and compile comes before."""
    few = np.random.default_rng(0).permutation(len(data.X))[:400]
    CONTENDERS[contender](seed).fit(data.X[few], data.y[few]).predict(data.X[few])
    model = CONTENDERS[contender](seed)
    begin_limit(LIMIT_S)
    _, fit_s = cpu_of(lambda: model.fit(data.X, data.y))
    found, predict_s = cpu_of(lambda: np.asarray(model.predict(data.X_test)))
    columns = list(zip(LEVELS, found.T, strict=True))
    losses = [mean_pinball_loss(data.y_test, own, alpha=q) / data.y.std() for q, own in columns]
    return {
        "error": float(np.mean(losses)),
        "losses": list(map(float, losses)),
        "covered": [float((data.y_test <= own).mean()) for _, own in columns],
        "crossed": float((np.diff(found, axis=1) < 0).any(axis=1).mean()),
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
        **versions_of(contender),
    }


def left_out(name: str, level: float, cost: float) -> Record:
    """Return the loss of rows left out at fixed sides, and that of fits without each row."""
    X, y = whole(name)
    chosen = np.random.default_rng(0).permutation(len(X))[:FEW]
    X = X[chosen] / np.maximum(X[chosen].std(axis=0), 1e-12)
    y = (y[chosen] - y[chosen].mean()) / y[chosen].std()
    spec = SolverSpec(
        kernel="laplacian", width=4.0, C=(cost,), loss="expectile", target="numbers",
        quantile=level, fit_intercept=True,
    )  # fmt: skip

    def fit(kept: np.ndarray) -> Any:
        report = CellReport(0, 0, 0, 0, 0.0)
        cell = CellRows(X[kept], y[kept, None], np.ones(kept.sum()), report, (0,))
        return next(find_solver(spec).fit([cell], spec))

    everyone = np.ones(FEW, bool)
    told = fit(everyone).report.validation_error
    missed = np.empty(FEW)
    for i in range(FEW):
        kept = everyone.copy()
        kept[i] = False
        missed[i] = y[i] - decide_pairs(fit(kept), X[i : i + 1])[0, 0]
    return {"told": float(told), "exact": Expectile().mean(missed, level)}


def coverage(journal: Journal) -> list[Record]:
    """Return a row a set and contender: mean coverage at each level, and whether it is near."""
    lines = []
    for name in st.sets(journal, SPLITS):
        for contender in CONTENDERS:
            own = [r for r in st.done(journal, SPLITS, name, contender).values() if "covered" in r]
            if own:
                lines.append({"set": name, "estimator": contender, **covered_of(own)})
    return lines


def covered_of(own: list[Record]) -> Record:
    """Return mean shares of rows at or below, and how many levels are as near as is asked."""
    means = np.mean([r["covered"] for r in own], axis=0)
    n_rows = sum(r["test_rows"] for r in own)
    levels = np.array(LEVELS)
    allowed = np.maximum(OFF, 2 * np.sqrt(levels * (1 - levels) / n_rows))
    near = np.abs(means - levels) <= allowed
    return {
        "covered": " ".join(f"{own:.3f}" for own in means),
        "near": f"{near.sum()} of {len(levels)}",
        "crossed": 100 * float(np.mean([r["crossed"] for r in own])),
    }


def by_set(journal: Journal, of: Any, digits: int) -> str:
    """Return a table of means and deviations over splits, a row a set."""
    found = st.every(journal, SPLITS, CONTENDERS)
    columns = "set = set | train rows = train_rows:,"
    return st.wide(found, columns, lambda own: st.spread(own, of, digits))


def besides(journal: Journal) -> list[Record]:
    """Return a row a set and level: ours beside the best of the others."""
    measured = {r["estimator"] for r in journal.where(part=SPLITS) if "losses" in r}
    others = [c for c in CONTENDERS if c != OURS and c in measured]
    found = []
    for name in st.sets(journal, SPLITS):
        own = st.common(journal, SPLITS, name, [OURS, *others])
        if not others or not own[OURS] or any(map(st.is_ended, own[OURS])):
            continue
        for at, level in enumerate(LEVELS):
            losses = {c: [{"error": r["losses"][at]} for r in rs] for c, rs in own.items()}
            beside = st.beside(losses, OURS)
            is_near = beside.difference <= beside.two_errors
            found.append({"set": name, "level": level, **beside._asdict(), "is_near": is_near})
    return found


def report(journal: Journal) -> str:
    text = (
        "# Quantiles as they are\n\n"
        f"`benchmarks/quantiles.py`; {journal.machine}, {versions(journal.records)}. Every "
        "estimator with its defaults; boosting fits a model a level. One process of one thread, "
        f"after a fit and a prediction of 400 rows; beside other work. Random splits, "
        "four fifths to train; mean and deviation. Losses: pinball losses over y's deviation in "
        "training rows. liquidSVM has features of deviation 1, and is in the tables where it was "
        f"measured. What takes more than {LIMIT_S} CPU seconds is ended.\n"
    )
    for at, level in enumerate(LEVELS):
        own = by_set(journal, lambda r, at=at: r["losses"][at], 5)
        text += f"\n## Pinball loss at {level:g}\n\n{own}"
    for title, of in (
        ("Fit of all levels, CPU seconds", lambda r: r["fit_cpu_s"]),
        ("Prediction of all test rows, CPU seconds", lambda r: r["predict_cpu_s"]),
    ):
        text += f"\n## {title}\n\n{by_set(journal, of, 2)}"
    columns = (
        f"set = set | estimator = estimator | share of rows at or below, of {LEVELS} = covered | "
        "near = near | rows whose levels cross, % = f'{crossed:.1f}'"
    )
    text += (
        "\n## Coverage\n\nOf all test rows. Near: within "
        f"{OFF} or two binomial deviations.\n\n{table(columns, coverage(journal))}"
    )
    lines = besides(journal)
    columns = """
    set = set | level = level | best of the others = best | loss over its = f'{ratio:.3f}'
    difference = f'{difference:+.5f}' | two standard errors = f'{two_errors:.5f}'
    """
    n_near = sum(r["is_near"] for r in lines)
    text += (
        f"\n## Beside the best of the others\n\nPaired over splits.\n\n"
        f"{table(columns.strip(), lines)}\nBest, or within two paired standard errors of the best: "
        f"{n_near} of {len(lines)}.\n"
    )
    lines = journal.ordered("set", "level", "C", part=LEFT_OUT)
    columns = """
    set = set | level = level | C = C | at fixed sides = f'{told:.4f}' | exact = f'{exact:.4f}'
    ratio = f'{told / exact:.3f}'
    """
    return (
        f"{text}\n## Expectiles: rows left out at fixed sides\n\n{FEW} rows of each set, a "
        "Laplacian kernel of 4 median distances, no C chosen. The loss of each row by the model "
        "without it, whose sides are those of the model with it, beside that of models trained "
        f"without it.\n\n{table(columns.strip(), lines)}"
    )


EXPERIMENT = Experiment(keys, measure, report)
