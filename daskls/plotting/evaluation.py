"""The parts of a report: a model, its predictions for a test set, and panels."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np

from daskls.cluster import compute
from daskls.errors import DataError
from daskls.live.record import MEASURES, Measure
from daskls.methods.predict import OF_NUMBERS, predict_array
from daskls.records import AnyArray, Float64, Int64, Reals
from daskls.run.confusion import MOST_ROWS, Confusion, LevelScores, NumberScores, score_blocks
from daskls.run.contract import Method
from daskls.run.rows import find_labels, open_column, open_whole
from daskls.seeds import SHUFFLED
from daskls.sources.door import open_source
from daskls.store.reader import ModelReader

# Bytes of a block when these rows are read.
ROWS_NBYTES = 16 << 20
BLUE, ORANGE, GRAY = "#17518f", "#d96a00", "#8a8f96"
# Words for decisions about the scale of features.
SCALES = {"given": "as they are", "spread": "by spread"}
# Fewer rows whose columns are shuffled show chance alone.
LEAST_SHUFFLED = 100


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """A model's results on a test set: scores of all rows, and some rows for pictures.

    `true` and `predicted` are labels or numbers, `probable` (m, k) if the model has probabilities,
    `decisions` (m,) if it has two classes.
    """

    scores: Confusion | NumberScores | LevelScores
    rows: Reals
    true: AnyArray
    predicted: AnyArray
    probable: Float64 | None = None
    decisions: Float64 | None = None


@dataclass(frozen=True)
class Subject:
    """The model that a report is about, and its evaluation if there is a test set."""

    estimator: Any
    reader: ModelReader
    method: Method
    evaluation: HeldOutScores | None

    @property
    def is_regressor(self) -> bool:
        return bool(self.estimator._kind == "numbers")

    @property
    def measure(self) -> Measure:
        return MEASURES[self.reader.target.measured_as]

    @property
    def rows(self) -> Reals | None:
        return self.evaluation.rows if self.evaluation else None

    @property
    def has_errors(self) -> bool:
        return bool(np.isfinite(self.reader.report.validation_error).any())


@dataclass(frozen=True)
class Panel:
    """One picture of a report, with a note how to read it."""

    name: str
    title: str
    note: str
    draw: Callable[[Any], Any]


def evaluate(estimator: Any, X: Any, y: Any) -> HeldOutScores:
    """Score predictions for a test set block by block; `MOST_ROWS` rows at most are kept."""
    y, names = find_labels(open_source(X), y)
    is_classes, client = estimator._kind == "classes", estimator.client
    y = replace(y, value=_in_one(y.value), kind="dask") if y.in_memory else y
    y = open_column(y, "y", 1 if is_classes else None)
    lazy = {"predicted": _in_one(estimator.predict(X))}
    if hasattr(estimator, "predict_proba"):
        lazy["probable"] = _in_one(estimator.predict_proba(X))
    if is_classes and len(estimator.classes_) == 2:
        lazy["decisions"] = _in_one(estimator.decision_function(X))
    n_rows, what = len(lazy["predicted"]), "label" if is_classes else "number"
    if not n_rows or n_rows != len(y):
        raise DataError(
            f"X has {n_rows} rows and y {len(y)} {what}s; a report on a test set needs rows, and "
            f"one {what} for each."
        )
    known = None if names is None else names.tolist()
    tasks, combine = score_blocks(estimator, lazy["predicted"], y, known, client)
    in_memory = isinstance(X, (np.ndarray, list))
    rows = np.asarray(X) if in_memory else open_whole(open_source(X), ROWS_NBYTES)
    step = -(-n_rows // MOST_ROWS)
    # One pass over X for all of them.
    results = compute([*tasks, *(array[::step] for array in (rows, y, *lazy.values()))], client)
    scores, (rows, true, *answers) = combine(results[: len(tasks)]), results[len(tasks) :]
    true = true if names is None else names[true]
    return HeldOutScores(scores, np.asarray(rows), true, **dict(zip(lazy, answers, strict=True)))


def _in_one(values: Any) -> da.Array:
    """Return values in memory as one chunk; Dask cuts none of objects, as labels of pandas are."""
    return values if isinstance(values, da.Array) else da.from_array(np.asarray(values), chunks=-1)


def importances_by_shuffling(
    estimator: Any, scores: HeldOutScores, owner: Int64
) -> tuple[Float64, int] | None:
    """Return by how much the score falls if each column is shuffled, and of how many rows.

    `owner` is the number of the column that each feature is of. None for too few rows, of which as
    many are taken as `MOST_ROWS` predictions allow.
    """
    n_columns = int(owner.max()) + 1
    step = -(-len(scores.rows) * n_columns // MOST_ROWS)
    rows, true = scores.rows[::step], scores.true[::step]
    if len(rows) < LEAST_SHUFFLED:
        return None
    others = rows[SHUFFLED.generator(0).permutation(len(rows))]
    wanted = estimator.classes_ if estimator._kind == "classes" else OF_NUMBERS

    def lost(column: int) -> float:
        shuffled = np.where(owner == column, others, rows)
        answers = predict_array(shuffled, estimator._handle, wanted)
        return whole - float(estimator._score_rows(answers, true, None, None))

    whole = float(estimator._score_rows(scores.predicted[::step], true, None, None))
    return np.array([lost(column) for column in range(n_columns)]), len(rows)
