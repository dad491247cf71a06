"""Estimators beside each other, made with a seed: VoronoiSVC in many ways, boosting, an SVC."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

from daskls import VoronoiSVC

__all__ = [
    "AUTO", "BOOSTED", "BOOSTING", "ESTIMATORS", "LARGE_ONLY", "LEARNED", "OURS", "PATIENCE",
    "PEERS", "TUNED", "TUNING_ROWS", "cells", "squares",
]  # fmt: skip

TUNING_ROWS = 2000
SVC_GRID = {"C": [1, 10, 100, 1000], "gamma": [0.01, 0.1, 1, 10]}
# Rounds without a gain after which boosting ends.
PATIENCE = 50


class StoppedBoosting:
    """LightGBM that ends by its error on a tenth of the rows."""

    def __init__(self, seed: int) -> None:
        self._seed, self._model = seed, boosting(seed)

    def fit(self, X: np.ndarray, y: np.ndarray) -> "StoppedBoosting":
        import lightgbm

        A, B, ya, yb = train_test_split(X, y, test_size=0.1, random_state=self._seed, stratify=y)
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        self._model.fit(A, ya, eval_set=[(B, yb)], callbacks=[stop])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._model.predict(X))


class TunedSVC:
    """An SVC of all rows, with C and gamma by 3 folds of some of them."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> "TunedSVC":
        few = np.random.default_rng(self._seed).permutation(len(X))[:TUNING_ROWS]
        search = GridSearchCV(SVC(), SVC_GRID, cv=3, refit=False).fit(X[few], y[few])
        self._model = SVC(**search.best_params_).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._model.predict(X))


def boosting(seed: int) -> Any:
    # Not everywhere is it installed, and a report needs it not.
    import lightgbm

    return lightgbm.LGBMClassifier(
        n_estimators=1000, num_leaves=255, n_jobs=1, random_state=seed, verbose=-1
    )


def cells(**params: Any) -> Callable[[int], VoronoiSVC]:
    return lambda seed: VoronoiSVC(random_state=seed, **params)


def squares(scale: str | None, kernel: str, **params: Any) -> Callable[[int], VoronoiSVC]:
    return cells(loss="squared_error", feature_scale=scale, kernel=kernel, **params)


PAPER, BOOSTED = "hinge, None, rbf", "LightGBM, 1000 x 255"
STOPPED, LARGER = "LightGBM, early stopping", "squared_error, learned, rbf, 4 x 4000"
LEARNED, AUTO = "squared_error, learned, rbf", "squared_error, learned, auto"
SCALES, KERNELS = (None, "spread", "learned"), ("rbf", "exponential", "auto")
OURS: dict[str, Callable[[int], Any]] = {
    PAPER: cells(loss="hinge", feature_scale=None, kernel="rbf"),
    "hinge, learned, rbf": cells(loss="hinge", feature_scale="learned", kernel="rbf"),
    **{
        f"squared_error, {scale}, {kernel}": squares(scale, kernel)
        for scale in SCALES
        for kernel in KERNELS
    },
}
BOOSTING: dict[str, Callable[[int], Any]] = {
    BOOSTED: boosting,
    STOPPED: StoppedBoosting,
    "HistGradientBoosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
TUNED: dict[str, Callable[[int], Any]] = {"SVC, tuned": TunedSVC}
PEERS = (*BOOSTING, *TUNED)
# On few rows there is one cell.
LARGE_ONLY = {LARGER: squares("learned", "rbf", cell_size=4000, n_partitions=4)}
ESTIMATORS = {**OURS, **LARGE_ONLY, **BOOSTING, **TUNED}
