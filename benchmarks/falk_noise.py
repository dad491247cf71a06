"""Noise filters on rows with a tenth of wrong labels: what they find, and what 1-NN gains by it."""

from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.suite import Experiment, Record, Run, cpu_of, grid, page
from benchmarks.suite.data import scaled
from daskls import FalkNoiseFilter, KNNSVMNoiseFilter
from daskls.datasets import make_checkerboard

FILTERS: dict[str, Any] = {
    "FalkNoiseFilter": lambda: FalkNoiseFilter(200, selection="local", random_state=0),
    "KNNSVMNoiseFilter": lambda: KNNSVMNoiseFilter(20, C=16.0, random_state=0),
}
KEYS = grid(set=("checkerboard", "letter"), method=FILTERS)
COLUMNS = """
set = set | rows = rows:, | filter = method | precision % = 100 * precision:.1f
recall % = 100 * recall:.1f | 1-NN before % = 100 * before:.2f | after % = 100 * after:.2f
all wrong ones removed % = 100 * ideal:.2f | CPU s = cpu_s:.1f
"""
TEXT = (
    "{machine}\n\nA tenth of the labels is wrong; a nearest neighbor's accuracy on clean test rows:"
)


def noisy(name: str) -> tuple[np.ndarray, ...]:
    """Return rows, labels of which a tenth is wrong, which are, and clean test rows."""
    if name == "checkerboard":
        X, y = make_checkerboard(10_000, flip=0.0, random_state=0)
        X_test, y_test = make_checkerboard(10_000, flip=0.0, random_state=1)
    else:
        X, y, X_test, y_test = scaled(name)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(y)) < 0.1
    classes = np.unique(y)
    shift = rng.integers(1, len(classes), len(y))
    other = classes[(np.searchsorted(classes, y) + shift) % len(classes)]
    return X, np.where(wrong, other, y), wrong, X_test, y_test


def measure(run: Run, set: str, method: str) -> Record:
    X, y, wrong, X_test, y_test = noisy(set)
    keep, seconds = cpu_of(lambda: FILTERS[method]().fit(X, y).keep_)

    def accuracy(rows: np.ndarray) -> float:
        return float(KNeighborsClassifier(1).fit(X[rows], y[rows]).score(X_test, y_test))

    found = int((~keep & wrong).sum())
    return {
        "rows": len(X),
        "precision": found / max(int((~keep).sum()), 1),
        "recall": found / int(wrong.sum()),
        "before": accuracy(np.ones(len(y), bool)),
        "after": accuracy(keep),
        "ideal": accuracy(~wrong),
        "cpu_s": seconds,
    }


EXPERIMENT = Experiment(KEYS, measure, page("Noise filters", TEXT, COLUMNS, "set method"))
