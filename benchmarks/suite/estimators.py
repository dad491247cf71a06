"""What one estimator costs in this process: fit, prediction a row, size, support rows."""

import contextlib
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC, LinearSVC

import daskls
from benchmarks.suite.journal import Record
from benchmarks.suite.measure import cpu_of, nbytes_of

FEWEST_ROWS = 1000


def fit_few(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Load the compiled kernels, by a fit of a few rows of two classes."""
    rows = np.concatenate([np.flatnonzero(y == label)[:200] for label in np.unique(y)[:2]])
    # What was drawn of so few rows may hold one class alone.
    with contextlib.suppress(daskls.DasklsError):
        model.fit(X[rows], y[rows]).predict(X[:100])


def test_rows(model: Any, X_test: np.ndarray, limit_s: float) -> int:
    """Return how many test rows there is time for: all, or ten times as many while they are few."""
    n = FEWEST_ROWS
    model.predict(X_test[:n])  # opens the model
    while n < len(X_test):
        _, seconds = cpu_of(lambda n=n: model.predict(X_test[:n]))
        more = min(10 * n, len(X_test))
        # Many rows cost less each than few, as each call reads the models that it needs.
        if seconds * more / n > limit_s:
            break
        n = more
    return n


def timed_predict(model: Any, X: np.ndarray) -> tuple[np.ndarray, float]:
    """Predict until the clock, which counts in ticks, has something to count."""
    repeats, total = 0, 0.0
    while total < 0.2:
        predicted, seconds = cpu_of(lambda: model.predict(X))
        repeats, total = repeats + 1, total + seconds
    return predicted, total / repeats


def model_nbytes(model: Any) -> int:
    if not hasattr(model, "save"):
        return len(pickle.dumps(model))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.zarr")
        return nbytes_of(Path(folder))


def about(model: Any) -> Record:
    """Return how many models there are, and on how many support rows they rest."""
    if isinstance(model, SVC):
        return {"models": 1, "support": int(model.n_support_.sum())}
    if isinstance(model, LinearSVC):
        return {"models": 1}
    if not hasattr(model, "fit_report_"):
        return {}
    selected = getattr(model, "selected_", None) or {}
    return {
        "models": model.n_cells_,
        "support": int(model.fit_report_.n_support.sum()) if model.n_cells_ else 0,
        **{key: selected[key] for key in ("C", "gamma") if selected.get(key) is not None},
    }
