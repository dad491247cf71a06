"""What a report is made of: a model, its predictions for a test set, and panels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from daskls.cluster import compute
from daskls.errors import DataError
from daskls.live.record import MEASURES, Measure
from daskls.records import AnyArray, Float64, Reals
from daskls.run.confusion import (
    MOST_ROWS,
    Confusion,
    LevelScores,
    NumberScores,
    score_blocks,
)
from daskls.run.contract import Method
from daskls.run.rows import find_labels, open_column, open_whole
from daskls.sources.door import open_source
from daskls.store.reader import ModelReader

# Bytes of a block when these rows are read.
ROWS_NBYTES = 16 << 20
BLUE, ORANGE, GRAY = "#17518f", "#d96a00", "#8a8f96"
# Words for decisions about the scale and the coding of features.
SCALES = {"given": "as they are", "spread": "by spread"}
CODING_WORDS = {"none": "", "ranks": "ranks, ", "indicators": "indicators, ", "both": "both, "}


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """A model's results on a test set: scores of all rows, and some rows for pictures.

    `true` and `predicted` are labels or numbers, `probable` (m, k) if the model has probabilities;
    `rows` is None where the test set is no array.
    """

    scores: Confusion | NumberScores | LevelScores
    true: AnyArray
    predicted: AnyArray
    probable: Float64 | None
    rows: Reals | None


# Reports


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


@dataclass(frozen=True)
class Panel:
    """One picture of a report, with a note how to read it or, without ``draw``, why it is empty."""

    name: str
    title: str
    note: str
    draw: Callable[[Any], Any] | None = None


def evaluate(estimator: Any, X: Any, y: Any) -> HeldOutScores:
    """Score predictions for a test set block by block; `MOST_ROWS` rows at most are kept."""
    y, names = find_labels(open_source(X), y)
    is_classes, client = estimator._kind == "classes", estimator.client
    y = open_column(y, "y", 1 if is_classes else None)
    lazy = [da.asarray(estimator.predict(X))]
    if hasattr(estimator, "predict_proba"):
        lazy.append(da.asarray(estimator.predict_proba(X)))
    n_rows = len(lazy[0])
    if not n_rows or n_rows != len(y):
        what = "labels" if is_classes else "numbers"
        raise DataError(
            f"X has {n_rows} rows and y {len(y)} {what}; a report on a test set needs rows, and "
            f"one {what[:-1]} for each."
        )
    tasks, combine = score_blocks(
        estimator, lazy[0], y, None if names is None else names.tolist(), client
    )
    step = -(-n_rows // MOST_ROWS)
    # One pass over X for all of them.
    found = compute([*tasks, *(own[::step] for own in (y, *lazy))], client)
    true, predicted, *probable = found[len(tasks) :]
    return HeldOutScores(
        combine(found[: len(tasks)]),
        true if names is None else names[true],
        predicted,
        probable[0] if probable else None,
        _some_rows(X, estimator, step),
    )


def _some_rows(X: Any, estimator: Any, step: int) -> Reals | None:
    """Return every ``step``-th row of an array or a data set; None for a table."""
    is_frame = hasattr(X, "columns")
    if is_frame and hasattr(estimator, "table_"):
        # Its columns may be text, and are not the model's features.
        return None
    in_memory = isinstance(X, (np.ndarray, list)) or (is_frame and hasattr(X, "to_numpy"))
    rows = np.asarray(X) if in_memory else open_whole(open_source(X), ROWS_NBYTES)
    return np.asarray(compute([rows[::step]], estimator.client)[0])
