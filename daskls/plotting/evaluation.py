"""The answers of a model to rows with known labels: what confusion and calibration are drawn of."""

from dataclasses import dataclass
from typing import Any

import dask
import numpy as np

from daskls.errors import DataError
from daskls.records import Float64, Int64, Labels, Mask, Reals
from daskls.run.compute import compute
from daskls.run.confusion import Confusion, count_block, tabulate
from daskls.run.rows import find_labels, open_whole

__all__ = ["Calibration", "HeldOutResult", "evaluate"]

N_BINS = 10
# Rows that a picture of a partition needs of a test set, at the most.
MOST_ROWS = 20_000
# Blocks that they are read by.
ROWS_NBYTES = 16 << 20


@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities beside shares, bin by bin of the unit interval; bins without rows are left out.

    Attributes
    ----------
    expected : float64 array, shape (bins,). Means of the probabilities.
    observed : float64 array, shape (bins,). Shares of the rows that are of the class.
    counts : int64 array, shape (bins,). Rows.
    of : str. Whose probabilities.
    """

    expected: Float64
    observed: Float64
    counts: Int64
    of: str

    @property
    def error(self) -> float:
        """The mean difference of probability and share, by rows."""
        return float(np.average(abs(self.expected - self.observed), weights=self.counts))


@dataclass(frozen=True, eq=False)
class HeldOutResult:
    """Results on rows with labels.

    Attributes
    ----------
    confusion : Confusion
    calibration : Calibration, or None of a model without probabilities
    rows : array (m, d) of some rows, or None where they are no array
    """

    confusion: Confusion
    calibration: Calibration | None
    rows: Reals | None

    @property
    def accuracy(self) -> float:
        """The share of rows that are given their label."""
        return float(self.confusion.counts.trace() / self.confusion.counts.sum())


def evaluate(estimator: Any, X: Any, y: Any) -> HeldOutResult:
    """Compare a model with labels; the client holds a few numbers a row.

    Raises
    ------
    DataError : no rows, or another number of labels
    """
    y, names = find_labels(X, y)
    lazy = [estimator.predict(X), y if dask.is_dask_collection(y) else np.asarray(y)]
    if hasattr(estimator, "predict_proba"):
        lazy += _summed_up(estimator.predict_proba(X))
    predicted, true, *probable = compute(lazy, estimator.client)
    if not len(predicted) or len(predicted) != len(true):
        raise DataError(
            f"X has {len(predicted)} rows and y {len(true)} labels; a report on a test set needs "
            "rows, and one label for each."
        )
    labels = true if names is None else names[true]
    counts = count_block(predicted, labels, None)
    return HeldOutResult(
        tabulate(counts, estimator.classes_.tolist()),
        _calibrate(estimator.classes_, labels, *probable) if probable else None,
        _some_rows(X, estimator),
    )


def _summed_up(proba: Any) -> list[Any]:
    """Return the probability of the second of two classes, or the largest one and whose it is."""
    if proba.shape[1] == 2:
        return [proba[:, 1]]
    return [proba.max(axis=1), proba.argmax(axis=1)]


def _calibrate(
    classes: Labels, labels: Labels, probable: Float64, likeliest: Int64 | None = None
) -> Calibration:
    """Count rows, and those of the class, by bins of the probability."""
    named = classes[1] if likeliest is None else classes[likeliest]
    hits: Mask = labels == named
    bins = np.minimum((probable * N_BINS).astype(int), N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    seen = counts > 0
    expected = np.bincount(bins, probable, N_BINS)[seen] / counts[seen]
    observed = np.bincount(bins, hits, N_BINS)[seen] / counts[seen]
    of = f"class {classes[1]}" if likeliest is None else "the likeliest class"
    return Calibration(expected, observed, counts[seen], of)


def _some_rows(X: Any, estimator: Any) -> Reals | None:
    """Return some rows of an array or of a data set, evenly spaced; None of other tables."""
    is_frame = hasattr(X, "columns")
    if is_frame and hasattr(estimator, "table_"):
        # Its columns may be text; the model's features are made of them.
        return None
    in_memory = isinstance(X, (np.ndarray, list)) or (is_frame and hasattr(X, "to_numpy"))
    rows = np.asarray(X) if in_memory else open_whole(X, "X", ROWS_NBYTES)
    some = rows[:: -(-len(rows) // MOST_ROWS)]
    return np.asarray(compute([some], estimator.client)[0])
