"""Estimators with their defaults: how each is made, and what a fit in its own process costs."""

import resource
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.preprocessing import LabelEncoder
from sklearn.svm import SVC

from benchmarks.peers import Data
from benchmarks.suite.apart import begin_limit, run_forked
from benchmarks.suite.journal import Record
from benchmarks.suite.measure import cpu_of
from daskls import VoronoiSVC, VoronoiSVR

__all__ = [
    "CONTENDERS", "DEFAULT", "LIMIT_S", "OTHERS", "OURS", "Task", "cells", "cost_of", "few_rows",
    "versions_of",
]  # fmt: skip

LIMIT_S = 900
KIB = 1024


def cells(**params: Any) -> Callable[[int], VoronoiSVC]:
    return lambda seed: VoronoiSVC(random_state=seed, **params)


def lightgbm(seed: int, **params: Any) -> Any:
    # Not everywhere is it installed, and a report needs it not.
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1, **params)


def xgboost(seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, random_state=seed)


def catboost(seed: int) -> Any:
    from catboost import CatBoostClassifier

    quiet = {"verbose": False, "allow_writing_files": False}
    return CatBoostClassifier(thread_count=1, random_seed=seed, **quiet)


DEFAULT = "VoronoiSVC"
# With other parameters, which spend less time or more.
BUDGETS: dict[str, Callable[[int], Any]] = {
    "VoronoiSVC, rbf, X as it is": cells(kernel="rbf", feature_scale=None, feature_coding="none"),
    "VoronoiSVC, scale spread": cells(feature_scale="spread"),
    "VoronoiSVC, 8 partitions": cells(n_partitions=8),
}
OURS = {DEFAULT: cells(), **BUDGETS}
OTHERS: dict[str, Callable[[int], Any]] = {
    "LightGBM": lightgbm,
    "LightGBM 1000 x 255": lambda seed: lightgbm(seed, n_estimators=1000, num_leaves=255),
    "XGBoost": xgboost,
    "CatBoost": catboost,
    "HistGradientBoosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "SVC": lambda seed: SVC(),
}
CONTENDERS = {**OURS, **OTHERS}
PACKAGES = {
    "LightGBM": "lightgbm",
    "LightGBM 1000 x 255": "lightgbm",
    "XGBoost": "xgboost",
    "CatBoost": "catboost",
}


class Task(NamedTuple):
    """What contenders are to do.

    Attributes
    ----------
    contenders : dict of functions of a seed that return an estimator
    error : function of (predicted, data)
    targets : function of y of some rows, which may lack classes
    """

    contenders: Mapping[str, Callable[[int], Any]]
    error: Callable[[np.ndarray, Data], float]
    targets: Callable[[np.ndarray], np.ndarray]


def share_wrong(predicted: np.ndarray, data: Data) -> float:
    # CatBoost answers with columns.
    return 100 * float(np.mean(np.ravel(predicted) != data.y_test))


def as_codes(y: np.ndarray) -> np.ndarray:
    return np.asarray(LabelEncoder().fit_transform(y))


CLASSES = Task(CONTENDERS, share_wrong, as_codes)


def cost_of(data: Data, contender: str, seed: int, task: Task = CLASSES) -> Record:
    """Return error and cost of one fit of its own process, which is ended at LIMIT_S CPU s."""
    return run_forked(fitted, data, contender, seed, task, limit_s=LIMIT_S)


def fitted(data: Data, contender: str, seed: int, task: Task) -> Record:
    """Fit and predict in this process; what first ones load and compile comes before."""
    X, y = few_rows(data, task.targets)
    task.contenders[contender](seed).fit(X, y).predict(X)
    model = task.contenders[contender](seed)
    before = peak_mib()
    begin_limit(LIMIT_S)
    _, fit_s = cpu_of(lambda: model.fit(data.X, data.y))
    predicted, predict_s = cpu_of(lambda: np.asarray(model.predict(data.X_test)))
    return {
        "error": task.error(predicted, data),
        "fit_cpu_s": fit_s,
        "predict_cpu_s": predict_s,
        "more_mib": peak_mib() - before,
        **versions_of(contender),
        # Of a budget the errors and the seconds are enough.
        **({} if contender in BUDGETS else choice(model)),
    }


def few_rows(
    data: Data, targets: Callable[[np.ndarray], np.ndarray] = as_codes
) -> tuple[np.ndarray, np.ndarray]:
    """Return some training rows and their targets, for a first fit."""
    few = np.random.default_rng(0).permutation(len(data.X))[:400]
    return data.X[few], targets(data.y[few])


def versions_of(contender: str) -> Record:
    """Return the version of the package that a contender is of, if it has one of its own."""
    package = PACKAGES.get(contender)
    return {"versions": {package: import_module(package).__version__}} if package else {}


def choice(model: Any) -> Record:
    """Return what a model of cells decided before it trained them, all that its store tells."""
    if not isinstance(model, VoronoiSVC | VoronoiSVR):
        return {}
    resolved = model._reader.resolved
    told = {"spec": asdict(resolved.spec), "summary": dict(resolved.summary)}
    return {"cells": model.n_cells_, "choice": told}


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB
