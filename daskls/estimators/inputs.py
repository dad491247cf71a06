"""What estimators check and convert before any graph is built."""

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import dask
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import (
    check_array,
    check_consistent_length,
    check_random_state,
    check_X_y,
    column_or_1d,
)
from sklearn.utils.multiclass import check_classification_targets

from daskls.errors import DataError, ParameterError
from daskls.estimators.columns import check_columns
from daskls.records import LARGEST, SMALLEST, FloatArray

__all__ = [
    "candidates",
    "check_class_weight",
    "check_input",
    "check_rows",
    "check_same_kind",
    "draw_seed",
    "flat",
    "is_in_memory",
    "saved_params",
]

# Neither describes the model.
NOT_SAVED = ("client", "store", "verbose")


def candidates(name: str, value: float | Sequence[float] | None) -> tuple[float, ...] | None:
    """Return a parameter's candidate values, or None for the method's own grid.

    Raises
    ------
    ParameterError : no values, or one that is no number or out of range
    """
    if value is None:
        return None
    values = flat(name, value, np.float64)
    if len(values) == 0:
        raise ParameterError(
            f"{name} is an empty grid; give at least one value, or None for the method's own grid."
        )
    bad = values[~((values >= SMALLEST) & (values <= LARGEST))]
    if len(bad):
        raise ParameterError(
            f"{name} holds {bad[0]:g}; every value must be positive and finite, from "
            f"{SMALLEST:g} to {LARGEST:g}."
        )
    return tuple(np.unique(values).tolist())


def flat(name: str, value: Any, dtype: type | None = None) -> FloatArray:
    """Return a parameter's one or several values as an array of one dimension.

    Raises
    ------
    ParameterError : values that are not numbers where ``dtype`` asks for them, or nested ones
    """
    try:
        values = np.atleast_1d(np.asarray(value, dtype))
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim > 1:
        raise ParameterError(f"{name} is {value!r}; give a number, or a flat list of numbers.")
    return values


def check_class_weight(class_weight: Any) -> None:
    """Refuse weights of classes that are no positive numbers.

    Raises
    ------
    ParameterError
    """
    for label, value in class_weight.items() if isinstance(class_weight, dict) else ():
        if not (isinstance(value, Real) and SMALLEST <= float(value) <= LARGEST):
            raise ParameterError(
                f"class_weight of {label!r} is {value!r}; it must be a number from {SMALLEST:g} to "
                f"{LARGEST:g}. Leave rows that should not count out, or give them sample_weight 0."
            )


def draw_seed(random_state: Any) -> int | None:
    """Return the integer seed of a fit; None where the user leaves it open."""
    if random_state is None:
        return None
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def saved_params(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the constructor parameters that describe a model, as JSON values."""
    params = estimator.get_params(deep=False)
    return {name: _json(value) for name, value in params.items() if name not in NOT_SAVED}


def _json(value: Any) -> Any:
    """Return a parameter as a JSON value; an object that has none is named only."""
    if isinstance(value, dict):
        return {"__items__": [[_json(k), _json(v)] for k, v in value.items()]}
    if isinstance(value, np.ndarray | tuple | list):
        return [_json(v) for v in np.asarray(value).tolist()]
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else None


def params_from_json(params: dict[str, Any]) -> dict[str, Any]:
    """Return constructor parameters that `saved_params` wrote."""
    return {
        name: dict(value["__items__"]) if isinstance(value, dict) else value
        for name, value in params.items()
    }


def is_in_memory(X: Any) -> bool:
    """Whether X is an in-memory array or sequence, which scikit-learn's checks may look at."""
    on_disk = isinstance(X, (str, os.PathLike)) or hasattr(X, "store_path")
    return not on_disk and not dask.is_dask_collection(X)


def check_rows(estimator: BaseEstimator, X: Any, n_least: int = 1) -> FloatArray:
    """Return rows in memory as an array, as scikit-learn checks them; the estimator stays as it is.

    Values are checked for NaN and infinity where they are read, so that the error names the row.

    Raises
    ------
    DataError : a DataFrame with columns of text, categories or dates, which it names
    ValueError : scikit-learn's, for what is no array of numbers with rows and features
    """
    check_columns(X)
    rows: FloatArray = check_array(
        X,
        ensure_all_finite=False,
        ensure_min_samples=n_least,
        estimator=type(estimator).__name__,
        input_name="X",
    )
    return rows


def check_input(estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
    """Let scikit-learn check what is in memory; leave Dask and Zarr arrays to the graph."""
    if y is not None and is_in_memory(y):
        _check_labels(np.asarray(y))
    if is_in_memory(X):
        if y is None:
            # In scikit-learn's words.
            check_X_y(X, y, estimator=type(estimator).__name__)
        X = check_rows(estimator, X, n_least=2)
    if y is not None and is_in_memory(y):
        y = column_or_1d(np.asarray(y), warn=True)
        check_classification_targets(y)
        if isinstance(X, np.ndarray):
            check_consistent_length(X, y)
    if sample_weight is not None and is_in_memory(sample_weight):
        sample_weight = np.asarray(sample_weight, np.float64)
    return X, y, sample_weight


def check_same_kind(y: FloatArray, classes: FloatArray) -> None:
    """Refuse to compare text with numbers.

    Raises
    ------
    DataError
    """
    if len(y) and _is_text(y) != _is_text(classes):
        first = y[:1].tolist()[0]
        raise DataError(
            f"y holds {first!r}, but the model's classes are {classes.tolist()}: none is in both. "
            "Score on labels of the kind that it was trained on."
        )


def _is_text(labels: FloatArray) -> bool:
    """Whether labels are text."""
    return labels.dtype.kind in "OUT"


def _check_labels(y: Any) -> None:
    """Refuse NaN and infinity among labels, naming the first row; scikit-learn would not."""
    # It does refuse a single value, and none.
    if y.dtype.kind == "f" and y.ndim and y.size:
        bad = np.flatnonzero(~np.isfinite(y.reshape(len(y), -1)).all(axis=1))
        if len(bad):
            raise DataError(f"Input y contains NaN or infinity, first in row {bad[0]}. Remove it.")
