"""Checks and conversions of parameters and data before any graph is built."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import (
    check_array,
    check_consistent_length,
    check_random_state,
    column_or_1d,
    get_tags,
)
from sklearn.utils.multiclass import check_classification_targets

from daskls.errors import DataError, ParameterError
from daskls.estimators.columns import check_columns
from daskls.records import LARGEST, SMALLEST, AnyArray, Float64, Labels, Reals, TargetKind
from daskls.run.labels import (
    check_label_kind,
    check_numbers,
    check_values,
    first_bad_label,
    first_bad_number,
    label_error,
    number_error,
)
from daskls.run.rows import open_column, open_named
from daskls.sources.door import Source

# Parameters that do not describe the model.
NOT_SAVED = ("client", "store", "verbose")


def candidates(name: str, value: float | Sequence[float] | None) -> tuple[float, ...] | None:
    """Return a parameter's candidates in increasing order, or None for the method's own grid."""
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


def flat(name: str, value: Any, dtype: type | None = None) -> AnyArray:
    try:
        values = np.atleast_1d(np.asarray(value, dtype))
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim > 1:
        raise ParameterError(f"{name} is {value!r}; give a number, or a flat list of numbers.")
    return values


def levels_of(value: float | Sequence[float]) -> float | tuple[float, ...]:
    """Return a level, or several in the given order.

    >>> levels_of(0.5), levels_of([0.9, 0.1])
    (0.5, (0.9, 0.1))
    """
    values = flat("quantile", value, np.float64)
    bad = values[~((values > 0) & (values < 1))]
    if not len(values) or len(bad):
        got = f"holds {bad[0]:g}" if len(bad) else "is empty"
        raise ParameterError(
            f"quantile {got}; it takes one level or several, above 0 and below 1. Give 0.5 for the "
            "median, or (0.1, 0.5, 0.9)."
        )
    if len(np.unique(values)) < len(values):
        raise ParameterError(
            f"quantile is {value!r}, where a level comes twice; give each level once."
        )
    return tuple(values.tolist()) if np.ndim(value) else float(values[0])


def check_class_weight(class_weight: Any) -> None:
    for label, value in class_weight.items() if isinstance(class_weight, dict) else ():
        if not (isinstance(value, Real) and SMALLEST <= float(value) <= LARGEST):
            raise ParameterError(
                f"class_weight of {label!r} is {value!r}; it must be a number from {SMALLEST:g} to "
                f"{LARGEST:g}. Leave rows that should not count out, or give them sample_weight 0."
            )


def check_unused(estimator: BaseEstimator, names: Iterable[str], why: str) -> None:
    """Refuse parameters that have no effect, unless they have their default value."""
    defaults = signature(type(estimator)).parameters
    for name in names:
        value = getattr(estimator, name)
        if np.any(value != defaults[name].default):
            raise ParameterError(
                f"{name}={value!r} has no effect with {why}. Leave {name} at its default, "
                f"{defaults[name].default!r}."
            )


def draw_seed(random_state: Any) -> int | None:
    """Return the integer seed of a fit; None if the user gives none."""
    if random_state is None:
        return None
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def saved_params(estimator: BaseEstimator) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    return {name: _json(value) for name, value in params.items() if name not in NOT_SAVED}


def _json(value: Any) -> Any:
    """Return a parameter as a JSON value; None for an object that has none."""
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
    return {
        name: dict(value["__items__"]) if isinstance(value, dict) else value
        for name, value in params.items()
    }


@contextmanager
def _one_error() -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(str(error)) from error


def check_rows(estimator: BaseEstimator, X: Any, n_least: int = 1) -> Reals:
    """Return rows as an array, checked as by scikit-learn but for NaN and infinity."""
    # First, as some sparse matrices are mappings.
    check_values(X, "X")
    _check_container(X)
    check_columns(X)
    with _one_error():
        # Not validate_data: names and widths are checked for arrays on Dask and Zarr, too.
        rows: Reals = check_array(
            X,
            ensure_all_finite=False,
            ensure_min_samples=n_least,
            estimator=type(estimator).__name__,
            input_name="X",
        )
        # scikit-learn before 1.9 does not convert object columns next to pandas' extension dtypes.
        return rows.astype(np.float64) if rows.dtype.kind == "O" else rows


def _check_container(X: Any) -> None:
    """Refuse mappings and iterators, which NumPy would take for a single value."""
    if isinstance(X, Mapping | Iterator):
        raise DataError(
            f"X is of type {type(X).__name__}; pass an array (rows, features), or a table: "
            'columns as pandas.DataFrame(X), with their labels as y="column".'
        )


def check_input(
    estimator: BaseEstimator, X: Source, y: Any, sample_weight: Any
) -> tuple[Source, Source | None, Source | None]:
    """Return handles on X, y and weights, checked much as by scikit-learn if in memory."""
    for name, values in (("X", X.given), ("y", y), ("sample_weight", sample_weight)):
        check_values(values, name)
    if X.in_memory:
        if y is None:
            name = type(estimator).__name__
            raise DataError(f"{name} requires y to be passed, but the target y is None. Pass y.")
        X = Source(check_rows(estimator, X.given, n_least=2), "memory")
    target = None if y is None else open_named(y, "y")
    if target is not None and target.in_memory:
        labels = _check_target(estimator, target.given)
        target = Source(labels, "memory")
        if X.in_memory:
            with _one_error():
                check_consistent_length(X.given, labels)
    weight = None if sample_weight is None else open_named(sample_weight, "sample_weight")
    if weight is not None and weight.in_memory:
        weight = Source(check_weights(weight.given), "memory")
    return X, target, weight


def _check_target(estimator: BaseEstimator, y: Any) -> AnyArray:
    is_column = estimator._kind == "numbers" and getattr(y, "shape", ())[1:] == (1,)
    if is_column and not get_tags(estimator).target_tags.multi_output:
        # As in scikit-learn: an estimator of one number per row warns of a column vector.
        y = column_or_1d(y, warn=True)
    found = check_targets(y, estimator._kind)
    if estimator._kind == "classes":
        with _one_error():
            # Each class twice, so that scikit-learn does not warn of classes with few rows: the
            # fit does, which counts labels in any container.
            check_classification_targets(np.tile(np.unique(found), 2))
    return found


def check_labels(y: Any) -> Labels:
    check_values(y, "y")
    # NumPy would turn the numbers into text in a list that mixes both.
    if isinstance(y, list | tuple) and {isinstance(label, str) for label in y} == {False, True}:
        y = np.array(y, dtype=object)
    labels: Labels = np.asarray(y)
    check_label_kind(labels.dtype)
    if labels.dtype.kind == "T":
        labels = labels.astype(object)
    with _one_error():
        labels = column_or_1d(labels, warn=True)
    bad = first_bad_label(labels)
    if bad is not None:
        raise label_error(bad)
    return labels


def check_targets(y: Any, kind: TargetKind) -> AnyArray:
    """Return labels in memory as an array (n,), or numbers as an array (n,) or (n, t)."""
    if kind == "classes":
        return check_labels(y)
    check_values(y, "y")
    numbers = np.asarray(y)
    if numbers.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            numbers = numbers.astype(np.float64)
    check_numbers(numbers.dtype)
    if numbers.ndim not in (1, 2) or not numbers.shape[-1]:
        raise DataError(
            f"y has shape {numbers.shape}; numbers are (n,), or (n, t) of t columns. Pass one "
            "number, or a row of numbers, for each row of X."
        )
    bad = first_bad_number(numbers.reshape(len(numbers), -1))
    if bad is not None:
        raise number_error(bad)
    return numbers[:, 0] if numbers.shape[1:] == (1,) else numbers


def check_weights(sample_weight: Any) -> Float64:
    check_values(sample_weight, "sample_weight")
    weights = np.asarray(sample_weight)
    if weights.ndim == 0:
        raise DataError(
            f"sample_weight is {sample_weight!r}, a single value; give one number per row, or None "
            "if all rows count equally."
        )
    if weights.dtype.kind not in "biuf":
        raise DataError(
            f"sample_weight has dtype {weights.dtype}, but weights are numbers. Pass one number a "
            "row."
        )
    numbers: Float64 = weights.astype(np.float64)
    return numbers


def open_column_of(values: Any, name: str, kind: TargetKind = "classes") -> Any:
    """Return y or weights as a NumPy array if in memory, else as a Dask array; None stays None."""
    if values is None:
        return None
    source = open_named(values, name)
    if not source.in_memory:
        return open_column(source, name, None if kind == "numbers" else 1)
    return check_targets(source.given, kind) if name == "y" else check_weights(source.given)


def check_same_kind(y: Labels, classes: Labels) -> None:
    if len(y) and _is_text(y) != _is_text(classes):
        first = y[:1].tolist()[0]
        raise DataError(
            f"y holds {first!r}, but the model's classes are {classes.tolist()}: they have none in "
            "common. Score on labels of the kind that it was trained on."
        )


def _is_text(labels: Labels) -> bool:
    return labels.dtype.kind in "OUT"
