"""What a report is made of: a model, its predictions for a test set, and panels."""

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
from daskls.run.rows import find_labels, open_column, open_whole
from daskls.solvers.registry import find_measure
from daskls.sources.door import open_source
from daskls.store.reader import ModelReader

# Bins of probabilities.
N_BINS = 10
# The most rows of a test set that pictures draw.
MOST_ROWS = 20_000
# Bytes of a block when these rows are read.
ROWS_NBYTES = 16 << 20
BLUE, ORANGE, GRAY = "#17518f", "#d96a00", "#8a8f96"
# Words for decisions about the scale and the coding of features.
SCALES = {"given": "as they are", "spread": "by spread"}
CODING_WORDS = {"none": "", "ranks": "ranks, ", "indicators": "indicators, ", "both": "both, "}


# Results


@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities beside frequencies, in bins of the unit interval; empty bins are left out.

    Attributes
    ----------
    expected : float64 array, shape (bins,). The mean probability of each bin.
    observed : float64 array, shape (bins,). The share of its rows that belong to the class.
    counts : int64 array, shape (bins,). Its rows.
    of : str. The class whose probabilities they are.
    """

    expected: Float64
    observed: Float64
    counts: Int64
    of: str

    @property
    def error(self) -> float:
        """The mean absolute difference of probability and frequency, weighted by rows."""
        return float(np.average(abs(self.expected - self.observed), weights=self.counts))


@dataclass(frozen=True, eq=False)
class HeldOutResult:
    """A classifier's results on a test set.

    Attributes
    ----------
    confusion : Confusion
    calibration : Calibration, or None for a model without probabilities
    rows : array (m, d) of some rows, or None where the test set is no array
    """

    confusion: Confusion
    calibration: Calibration | None
    rows: Reals | None

    @property
    def accuracy(self) -> float:
        """The share of rows whose label is predicted."""
        return float(self.confusion.counts.trace() / self.confusion.counts.sum())


@dataclass(frozen=True, eq=False)
class HeldOutNumbers:
    """A regressor's results on a test set with t numbers per row.

    Attributes
    ----------
    true, predicted : float64 arrays, shape (m, t)
    rows : array (k, d) of some rows, or None where the test set is no array
    of_rows : array (k, t). The true numbers of these rows.
    """

    true: Float64
    predicted: Float64
    rows: Reals | None
    of_rows: Float64

    @property
    def r2(self) -> Float64:
        """R2 of each column, (t,): 1 - mean squared error / variance."""
        squared_error = ((self.true - self.predicted) ** 2).mean(axis=0)
        variance = self.true.var(axis=0)
        # Not scikit-learn's r2_score, which has no R2 of a single row. As there, R2 of equal
        # numbers is 1 if all are predicted exactly, else 0.
        flat = variance == 0
        found: Float64 = 1 - squared_error / np.where(flat, 1.0, variance)
        return np.where(flat, (squared_error == 0).astype(float), found)

    @property
    def rmse(self) -> Float64:
        """The root mean squared error of each column, (t,), in its units."""
        found: Float64 = np.sqrt(((self.true - self.predicted) ** 2).mean(axis=0))
        return found

    @property
    def mae(self) -> Float64:
        """The mean absolute error of each column, (t,), in its units."""
        found: Float64 = np.abs(self.true - self.predicted).mean(axis=0)
        return found


@dataclass(frozen=True, eq=False)
class HeldOutLevels(HeldOutNumbers):
    """Results of a regressor of q levels on a test set with one number per row.

    Attributes
    ----------
    true : float64 array, shape (m, q). The same number for all levels.
    levels : tuple of float, of length q
    d2 : float64 array, shape (q,). 1 - loss / loss of the best constant.
    """

    levels: tuple[float, ...]
    d2: Float64

    @property
    def covered(self) -> Float64:
        """The share of rows at or below the prediction of each level, (q,)."""
        found: Float64 = (self.true <= self.predicted).mean(axis=0)
        return found


# Reports


@dataclass(frozen=True)
class Subject:
    """The model that a report is about.

    Attributes
    ----------
    estimator : fitted estimator
    reader : ModelReader. Its model.
    method : Method. Its method.
    evaluation : results on a test set; None without one
    """

    estimator: Any
    reader: ModelReader
    method: Method
    evaluation: HeldOutResult | HeldOutNumbers | None

    @property
    def is_regressor(self) -> bool:
        """Whether the model predicts numbers."""
        return bool(self.estimator._kind == "numbers")

    @property
    def measure(self) -> Measure:
        """How its errors are named and written."""
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
    note : str. How to read the picture; where there is none, why.
    draw : function that draws into the given axes; None where there is nothing to draw
    """

    name: str
    title: str
    note: str
    draw: Callable[[Any], Any] | None = None


# Evaluation


def evaluate(estimator: Any, X: Any, y: Any) -> HeldOutResult | HeldOutNumbers:
    """Compare predictions with the labels or numbers of a test set.

    The client holds a few numbers per row, never all features.

    Raises
    ------
    DataError : no rows, or another number of labels than of rows; for a regressor no numbers
    """
    y, names = find_labels(open_source(X), y)
    most = 1 if estimator._kind == "classes" else None
    y = open_column(y, "y", most) if dask.is_dask_collection(y) else np.asarray(y)
    lazy = [estimator.predict(X), y]
    if hasattr(estimator, "predict_proba"):
        lazy += _reduce_probabilities(estimator.predict_proba(X))
    # One pass over X for all of them.
    predicted, true, *probable = compute(lazy, estimator.client)
    if not len(predicted) or len(predicted) != len(true):
        what = "labels" if estimator._kind == "classes" else "numbers"
        raise DataError(
            f"X has {len(predicted)} rows and y {len(true)} {what}; a report on a test set needs "
            f"rows, and one {what[:-1]} for each."
        )
    if estimator._kind == "numbers":
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
    """Compare a regressor's predictions with numbers.

    Raises
    ------
    DataError : y of another type or shape, or with NaN or infinity
    """
    check_numbers(y.dtype, names)
    n, target = len(predicted), estimator._reader.target
    predicted, y = predicted.reshape(n, -1), y.reshape(n, -1)
    if y.shape[1] != target.width:
        raise DataError(
            f"y has {y.shape[1]} columns, but the model predicts {target.width} number(s) per "
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


def _reduce_probabilities(proba: Any) -> list[Any]:
    """Return the probability of the second of two classes; of more, the largest and its class."""
    if proba.shape[1] == 2:
        return [proba[:, 1]]
    return [proba.max(axis=1), proba.argmax(axis=1)]


def _calibrate(
    classes: Labels, labels: Labels, probable: Float64, likeliest: Int64 | None = None
) -> Calibration:
    """Compare probabilities with frequencies, in bins."""
    named = classes[1] if likeliest is None else classes[likeliest]
    # Not scikit-learn's calibration_curve, which does not return the counts of its bins.
    hits: Mask = labels == named
    bins = np.minimum((probable * N_BINS).astype(int), N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    seen = counts > 0
    expected = np.bincount(bins, probable, N_BINS)[seen] / counts[seen]
    observed = np.bincount(bins, hits, N_BINS)[seen] / counts[seen]
    of = f"class {classes[1]}" if likeliest is None else "the likeliest class"
    return Calibration(expected, observed, counts[seen], of)


def _step(n_rows: int) -> int:
    """Return k, where every k-th of ``n_rows`` rows is drawn."""
    return -(-n_rows // MOST_ROWS)


def _some_rows(X: Any, estimator: Any) -> Reals | None:
    """Return some rows of an array or a data set, evenly spaced; None for a table."""
    is_frame = hasattr(X, "columns")
    if is_frame and hasattr(estimator, "table_"):
        # Its columns may be text, and are not the model's features.
        return None
    in_memory = isinstance(X, (np.ndarray, list)) or (is_frame and hasattr(X, "to_numpy"))
    rows = np.asarray(X) if in_memory else open_whole(X, "X", ROWS_NBYTES)
    some = rows[:: _step(len(rows))]
    return np.asarray(compute([some], estimator.client)[0])
