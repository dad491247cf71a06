"""Checks and conversions of X, y and weights before any graph is built; names of columns."""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from numbers import Number
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets

from daskls.cluster import compute
from daskls.errors import DataError, listed, warn_user
from daskls.records import AnyArray, Float64, Labels, Reals, TargetKind
from daskls.run.labels import (
    check_discrete,
    check_label_kind,
    check_numbers,
    check_values,
    first_bad_label,
    first_bad_number,
    first_bad_value,
    label_error,
    number_error,
    value_error,
)
from daskls.run.resources import available_nbytes
from daskls.run.rows import check_numeric, check_width, open_column, open_named
from daskls.sources.base import TableOptions
from daskls.sources.encoding import TableEncoding
from daskls.sources.formats import Source
from daskls.sources.frames import all_columns, frame_name, sparse_columns, sparse_error

# Names that an error lists.
MAX_SHOWN = 5
# Types that a column of objects may hold; None is a missing value.
NUMBERS = (Number, np.bool_, NoneType)
# The spellings of numeric dtypes in pandas, Arrow and Polars.
NUMERIC = re.compile(r"(u?int\d+|float\d*|double|half_?float|bool|sparse\[|decimal)", re.IGNORECASE)
WIDE = re.compile("u?int64", re.IGNORECASE)


@contextmanager
def _one_error(X: Any = None) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        # Without the values of an array, which some of scikit-learn's errors end with.
        raise DataError(_text_in(X) or str(error).partition("\n[")[0]) from error


def _text_in(X: Any) -> str | None:
    """Return what to say of the first text in an array; None where there is none."""
    cells = np.asarray(() if X is None else X)
    is_text = cells.dtype.kind in "OUT" and cells.ndim == 2
    for (row, column), cell in np.ndenumerate(cells) if is_text else ():
        if isinstance(cell, str):
            with suppress(ValueError):
                float(cell)
                continue
            return (
                f"X holds text: {str(cell)!r} in row {row}, column {column}. Pass numbers, or a "
                "table, whose columns are encoded: pandas.DataFrame(X), or the path of a file."
            )
    return None


def origin_of(X: Source, y: Any) -> dict[str, Any]:
    """Return what X and y are called: a file by its last name, as its path may tell of its user."""
    if isinstance(X.value, str | os.PathLike):
        where = Path(X.where.partition("?")[0]).name
    else:
        where = (frame_name(X.value) or "rows").removeprefix("builtins.")
    is_series = (frame_name(y) or "").endswith(".Series")
    columns = [y.name] if is_series else all_columns(y)
    label = listed([str(name) for name in columns if name is not None])
    return {"where": where, **({"label": label} if label else {})}


def check_rows(estimator: BaseEstimator, X: Any, n_least: int = 1) -> Reals:
    """Return rows as an array, checked as by scikit-learn but for NaN and infinity."""
    # First, as some sparse matrices are mappings.
    X = _as_dense(X)
    check_values(X, "X")
    _check_container(X)
    check_columns(X)
    if len(shape := getattr(X, "shape", ())) == 2:
        check_width(shape)
    with _one_error(X):
        # Not validate_data: names and widths are checked for arrays on Dask and Zarr, too.
        rows: Reals = check_array(
            X,
            ensure_all_finite=False,
            ensure_min_samples=n_least,
            estimator=type(estimator).__name__,
            input_name="X",
        )
        # scikit-learn before 1.9 does not convert object columns next to pandas' extension dtypes.
        rows = rows.astype(np.float64) if rows.dtype.kind == "O" else rows
    # Dates and durations pass scikit-learn's check.
    check_numeric(rows.dtype)
    return rows


def _as_dense(X: Any) -> Any:
    """Return a sparse matrix as an array, if that takes half of the free memory at most."""
    if not hasattr(X, "nnz") or not hasattr(X, "toarray"):
        return X
    nbytes = math.prod(X.shape) * X.dtype.itemsize
    return X.toarray() if nbytes <= available_nbytes() // 2 else X


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
    if not X.in_memory:
        check_values(X.value, "X")
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        check_values(values, name)
    if X.in_memory:
        if y is None:
            name = type(estimator).__name__
            raise DataError(f"{name} requires y to be passed, but the target y is None. Pass y.")
        X = Source(check_rows(estimator, X.value, n_least=2), "memory")
    target = None if y is None else open_named(y, "y")
    if target is not None and target.in_memory:
        target = Source(_check_target(estimator, X, target.value), "memory")
    weight = None if sample_weight is None else open_named(sample_weight, "sample_weight")
    if weight is not None and weight.in_memory:
        weight = Source(check_weights(weight.value), "memory")
    return X, target, weight


def becomes_features(X: Source, y: Any, options: TableOptions) -> bool:
    """Whether columns are encoded; a frame of numbers with labels apart is an array."""
    if X.kind != "frame" or X.is_table(y):
        return X.is_table(y)
    return options != TableOptions(options.missing) or bool(other_columns(X.value))


def target_apart(estimator: Any, X: Source, y: Any) -> AnyArray | None:
    """Return the labels or numbers beside a frame; None if they are one of a table's columns."""
    if X.is_table(y):
        return None
    target = open_named(y, "y")
    values = target.value
    if not target.in_memory:
        (values,) = compute([read_targets(target, estimator._kind)], estimator.client)
    return _check_target(estimator, X, values)


def _check_target(estimator: BaseEstimator, X: Source, y: Any) -> AnyArray:
    """Return labels or numbers in memory as an array, as many as X has rows."""
    is_column = estimator._kind == "numbers" and getattr(y, "shape", ())[1:] == (1,)
    if is_column and not get_tags(estimator).target_tags.multi_output:
        # As in scikit-learn: an estimator of one number per row warns of a column vector.
        y = column_or_1d(y, warn=True)
    targets = check_targets(y, estimator._kind)
    if estimator._kind == "classes":
        check_discrete(targets)
        with _one_error():
            # Each class twice, so that scikit-learn does not warn of classes with few rows: the
            # fit does, which counts labels in any container.
            check_classification_targets(np.tile(np.unique(targets), 2))
    if X.in_memory:
        with _one_error():
            check_consistent_length(X.value, targets)
    return targets


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
            f"y has shape {numbers.shape}; it must be (n,), or (n, t) for t columns. Pass one "
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


def read_targets(y: Source, kind: TargetKind) -> Any:
    """Return y as a NumPy array if in memory, else as a Dask array."""
    if y.in_memory:
        return check_targets(y.value, kind)
    return open_column(y, "y", None if kind == "numbers" else 1)


def read_weights(sample_weight: Source) -> Any:
    """Return weights as a NumPy array if in memory, else as a Dask array."""
    if sample_weight.in_memory:
        return check_weights(sample_weight.value)
    return open_column(sample_weight, "sample_weight")


def check_same_kind(y: Labels, classes: Labels) -> None:
    if len(y) and _is_text(y) != _is_text(classes):
        first = y[:1].tolist()[0]
        raise DataError(
            f"y holds {first!r}, but the model's classes are {classes.tolist()}: they have none in "
            "common. Score on labels of the kind that it was trained on."
        )


def _is_text(labels: Labels) -> bool:
    return labels.dtype.kind in "OUT"


# Names and dtypes of columns: names are kept with a model, and checked in queries.


def check_names(estimator: Any, X: Source) -> None:
    """Refuse other names, or another order, than in training; warn where one side has none."""
    fitted, names = getattr(estimator, "feature_names_in_", None), X.names
    if hasattr(estimator, "table_"):
        fitted = estimator.table_.feature_names
    name = type(estimator).__name__
    if fitted is None and names is not None:
        message = f"X has feature names, but {name} was fitted without feature names"
        warn_user(message, UserWarning)
    elif fitted is not None and names is None:
        message = f"X does not have valid feature names, but {name} was fitted with feature names"
        warn_user(message, UserWarning)
    elif fitted is not None and names is not None and list(fitted) != names:
        raise DataError(_difference(list(fitted), names))
    table = None if X.dataset is None else X.dataset.table
    trained = getattr(estimator, "table_", None)
    if table and trained and TableEncoding.from_json(table).columns != trained.columns:
        raise DataError(
            f"{X.where} was encoded by its own medians and categories, not by those of the "
            "training table. Pass the table itself; the model encodes it."
        )


def check_columns(X: Any) -> None:
    """Refuse a DataFrame with columns that are not numeric, or with sparse columns only."""
    sparse = sparse_columns(X)
    if sparse and len(sparse) == len(X.columns):
        # Beside dense columns scikit-learn makes them dense, with a warning.
        raise sparse_error("X", sparse)
    bad = other_columns(X)
    if bad:
        more = f" and {len(bad) - MAX_SHOWN} more" if len(bad) > MAX_SHOWN else ""
        raise DataError(
            f"X has columns that are not numeric: {', '.join(bad[:MAX_SHOWN])}{more}. The model "
            "was trained on numbers; pass those, or train it on such columns, which fit encodes."
        )
    for place, (name, values) in enumerate(_wide_integers(X)):
        bad_value = first_bad_value(values)
        if bad_value is not None:
            raise value_error(bad_value._replace(column=place), [name] * (place + 1))


def _wide_integers(X: Any) -> Iterable[tuple[str, AnyArray]]:
    """Yield columns of 64-bit integers, which are cast to floats if other columns are floats."""
    for i, name in enumerate(all_columns(X)):
        column = X.iloc[:, i] if hasattr(X, "iloc") else X[name]
        if WIDE.match(str(getattr(column, "dtype", getattr(column, "type", "")))):
            # A column with gaps would become floats.
            fill = getattr(column, "fillna", getattr(column, "fill_null", None))
            values = np.asarray((column if fill is None else fill(0)).to_numpy())
            if values.dtype.kind != "f":
                yield str(name), values.reshape(-1, 1)


def other_columns(X: Any) -> list[str]:
    """Return the columns that are not numeric, with what they hold."""
    return [f"{name!r} ({held})" for name, held in _kinds(X) if held is not None]


def _kinds(X: Any) -> Iterable[tuple[Any, str | None]]:
    """Yield each column's name, and what it holds if it is not numeric; else None."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        for i, (name, kind) in enumerate(zip(X.columns, X.dtypes, strict=True)):
            is_object = getattr(kind, "kind", "") == "O" and str(kind) == "object"
            yield name, _first_other(X.iloc[:, i]) if is_object else _not_numeric(kind)
    elif hasattr(X, "column_names") or hasattr(X, "columns"):
        names = getattr(X, "column_names", None) or X.columns
        kinds = X.schema.types if hasattr(X, "schema") and hasattr(X.schema, "types") else X.dtypes
        yield from ((name, _not_numeric(kind)) for name, kind in zip(names, kinds, strict=True))


def _not_numeric(kind: Any) -> str | None:
    return None if NUMERIC.match(str(kind)) else str(kind)


def _first_other(column: Any) -> str | None:
    """Return the first value of an object column that is neither a number nor missing."""
    values = column.to_numpy()
    # Check the few distinct types first: that needs no Python loop over the rows.
    others = tuple(t for t in set(map(type, values)) if not issubclass(t, NUMBERS))
    if not others:
        return None
    row = next(i for i, value in enumerate(values) if isinstance(value, others))
    return f"{values[row]!r} in row {row}"


def keep_names(estimator: Any, names: Sequence[str] | None) -> None:
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def _difference(fitted: list[str], names: list[str]) -> str:
    """Return the message how names differ, in scikit-learn's words."""
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    lines = ["The feature names should match those that were passed during fit."]
    if unseen:
        lines += ["Feature names unseen at fit time:", *_listed(unseen)]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:", *_listed(missing)]
    if not unseen and not missing:
        lines += [
            "Feature names must be in the same order as they were in fit.",
            *_moved(fitted, names),
        ]
    return "\n".join([*lines, "Pass the columns that the model was trained on, in their order."])


def _moved(fitted: list[str], names: list[str]) -> list[str]:
    pairs = enumerate(zip(fitted, names, strict=False))
    return [f"Column {i} is {now!r}, was {was!r}." for i, (was, now) in pairs if was != now][:1]


def _listed(names: list[str]) -> list[str]:
    more = ["- ..."] if len(names) > MAX_SHOWN else []
    return [*(f"- {name}" for name in names[:MAX_SHOWN]), *more]
