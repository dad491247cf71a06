"""The answers of a model to rows whose labels, or numbers, are known.

What a report is of, and one picture of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np

from daskls.errors import DataError
from daskls.live.record import MEASURES, Measure
from daskls.records import Float64, Int64, Labels, Mask, Reals
from daskls.run.compute import compute
from daskls.run.confusion import Confusion, count_block, tabulate
from daskls.run.contract import Method
from daskls.run.labels import check_numbers, first_bad_number, number_error
from daskls.run.rows import find_labels, open_whole
from daskls.solvers.registry import find_measure
from daskls.sources.door import open_source
from daskls.store.reader import ModelReader

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


@dataclass(frozen=True, eq=False)
class HeldOutNumbers:
    """Results on rows with numbers, of which each has t.

    Attributes
    ----------
    true, predicted : float64 arrays, shape (m, t)
    rows : array (k, d) of some rows, or None where they are no array
    of_rows : array (k, t). What these have.
    """

    true: Float64
    predicted: Float64
    rows: Reals | None
    of_rows: Float64

    @property
    def r2(self) -> Float64:
        """R2 of each column, (t,): 1 less the mean square missed, in units of the variance."""
        missed = ((self.true - self.predicted) ** 2).mean(axis=0)
        variance = self.true.var(axis=0)
        # As scikit-learn has it: of equal numbers 1 where all are met, else 0.
        flat = variance == 0
        found: Float64 = 1 - missed / np.where(flat, 1.0, variance)
        return np.where(flat, (missed == 0).astype(float), found)

    @property
    def rmse(self) -> Float64:
        """The root of the mean square missed of each column, (t,), in its units."""
        found: Float64 = np.sqrt(((self.true - self.predicted) ** 2).mean(axis=0))
        return found

    @property
    def mae(self) -> Float64:
        """The mean absolute difference of each column, (t,), in its units."""
        found: Float64 = np.abs(self.true - self.predicted).mean(axis=0)
        return found


@dataclass(frozen=True, eq=False)
class HeldOutLevels(HeldOutNumbers):
    """Results on rows with one number each, answered at q levels: true is (m, q), all the same.

    Attributes
    ----------
    levels : tuple of float
    d2 : float64 array, shape (q,). 1 less the loss in units of the best constant's.
    """

    levels: tuple[float, ...]
    d2: Float64

    @property
    def covered(self) -> Float64:
        """The share of rows that are at or below the answer of each level, (q,)."""
        found: Float64 = (self.true <= self.predicted).mean(axis=0)
        return found


def evaluate(estimator: Any, X: Any, y: Any) -> HeldOutResult | HeldOutNumbers:
    """Compare a model with labels or numbers; the client holds a few numbers a row.

    Raises
    ------
    DataError : no rows, or another number of labels; of a regressor no numbers
    """
    y, names = find_labels(open_source(X), y)
    lazy = [estimator.predict(X), y if dask.is_dask_collection(y) else np.asarray(y)]
    if hasattr(estimator, "predict_proba"):
        lazy += _summed_up(estimator.predict_proba(X))
    predicted, true, *probable = compute(lazy, estimator.client)
    is_of_classes = hasattr(estimator, "classes_")
    if not len(predicted) or len(predicted) != len(true):
        what = "labels" if is_of_classes else "numbers"
        raise DataError(
            f"X has {len(predicted)} rows and y {len(true)} {what}; a report on a test set needs "
            f"rows, and one {what[:-1]} for each."
        )
    if not is_of_classes:
        return _compare_numbers(predicted, true, names, X, estimator)
    labels = true if names is None else names[true]
    counts = count_block(predicted, labels, None)
    return HeldOutResult(
        tabulate(counts, estimator.classes_.tolist()),
        _calibrate(estimator.classes_, labels, *probable) if probable else None,
        _some_rows(X, estimator),
    )


def _compare_numbers(
    predicted: Float64, y: Any, names: Labels | None, X: Any, estimator: Any
) -> HeldOutNumbers:
    """Compare a regressor's answers with numbers."""
    check_numbers(y.dtype, names)
    n, target = len(predicted), estimator._reader.target
    predicted, y = predicted.reshape(n, -1), y.reshape(n, -1)
    if y.shape[1] != target.width:
        raise DataError(
            f"y has {y.shape[1]} columns, but the model predicts {target.width} number(s) of a "
            "row. Pass the columns that it was trained on."
        )
    bad = first_bad_number(y)
    if bad is not None:
        raise number_error(bad)
    true = y.astype(np.float64)
    some = _some_rows(X, estimator), true[:: _step(n)]
    if target.quantile is None:
        return HeldOutNumbers(true, predicted, *some)
    spec = estimator._reader.resolved.spec
    measure, columns = find_measure(spec), zip(predicted.T, spec.levels, strict=True)
    d2 = np.array([measure.d2(true[:, 0], values, level) for values, level in columns])
    return HeldOutLevels(
        np.repeat(true, len(d2), axis=1), predicted, *some, levels=spec.levels, d2=d2
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


def _step(n_rows: int) -> int:
    """Return which of so many rows are drawn: one in this many."""
    return -(-n_rows // MOST_ROWS)


def _some_rows(X: Any, estimator: Any) -> Reals | None:
    """Return some rows of an array or of a data set, evenly spaced; None of other tables."""
    is_frame = hasattr(X, "columns")
    if is_frame and hasattr(estimator, "table_"):
        # Its columns may be text; the model's features are made of them.
        return None
    in_memory = isinstance(X, (np.ndarray, list)) or (is_frame and hasattr(X, "to_numpy"))
    rows = np.asarray(X) if in_memory else open_whole(X, "X", ROWS_NBYTES)
    some = rows[:: _step(len(rows))]
    return np.asarray(compute([some], estimator.client)[0])


BLUE, ORANGE, GRAY = "#17518f", "#d96a00", "#8a8f96"
# Of features, as the decision about them names them.
SCALES = {"given": "as they are", "spread": "by spread"}
CODING_WORDS = {"none": "", "ranks": "ranks, ", "indicators": "indicators, ", "both": "both, "}


@dataclass(frozen=True)
class Subject:
    """A model that is reported on.

    Attributes
    ----------
    estimator : fitted estimator
    reader : ModelReader. Its model.
    method : Method. Its method.
    evaluation : HeldOutResult, of a regressor HeldOutNumbers; None without rows of a test set
    """

    estimator: Any
    reader: ModelReader
    method: Method
    evaluation: HeldOutResult | HeldOutNumbers | None

    @property
    def is_of_numbers(self) -> bool:
        """Whether the model is a regressor."""
        return self.reader.target.kind == "numbers"

    @property
    def measure(self) -> Measure:
        """How its errors are told."""
        return MEASURES[self.reader.target.measured_as]

    @property
    def rows(self) -> Reals | None:
        """Some rows of the test set, if it is an array."""
        return self.evaluation.rows if self.evaluation else None


@dataclass(frozen=True)
class Panel:
    """One picture of a report.

    Attributes
    ----------
    name : str
    title : str
    note : str. How to read it; where nothing is drawn, why.
    draw : draws into given axes; None where there is nothing to draw
    """

    name: str
    title: str
    note: str
    draw: Callable[[Any], None] | None = None
