"""Names and dtypes of columns: names are kept with a model, and checked in queries."""

import re
from collections.abc import Iterable, Sequence
from numbers import Number
from types import NoneType
from typing import Any

import numpy as np

from daskls.errors import DataError, warn_user
from daskls.records import AnyArray
from daskls.run.labels import first_bad_value, value_error
from daskls.sources.door import Source
from daskls.sources.frames import all_columns, sparse_columns, sparse_error

# Names that an error lists.
MAX_SHOWN = 5
# Types that a column of objects may hold; None is a missing value.
NUMBERS = (Number, np.bool_, NoneType)
# The spellings of numeric dtypes in pandas, Arrow and Polars.
NUMERIC = re.compile(r"(u?int\d+|float\d*|double|half_?float|bool|sparse\[|decimal)", re.IGNORECASE)
WIDE = re.compile("u?int64", re.IGNORECASE)


def check_names(estimator: Any, X: Source) -> None:
    """Refuse other names, or another order, than in training; warn where one side has none."""
    fitted, given = getattr(estimator, "feature_names_in_", None), X.names
    name = type(estimator).__name__
    if fitted is None and given is not None:
        message = f"X has feature names, but {name} was fitted without feature names"
        warn_user(message, UserWarning)
    elif fitted is not None and given is None:
        message = f"X does not have valid feature names, but {name} was fitted with feature names"
        warn_user(message, UserWarning)
    elif fitted is not None and given is not None and list(fitted) != given:
        raise DataError(_difference(list(fitted), given))


def check_columns(X: Any) -> None:
    """Refuse a DataFrame with columns that are not numeric, or with sparse columns only."""
    sparse = sparse_columns(X)
    if sparse and len(sparse) == len(X.columns):
        # Beside dense columns scikit-learn makes them dense, with a warning.
        raise sparse_error("X", sparse)
    bad = [f"{name!r} ({held})" for name, held in _kinds(X) if held is not None]
    if bad:
        more = f" and {len(bad) - MAX_SHOWN} more" if len(bad) > MAX_SHOWN else ""
        raise DataError(
            f"X has columns that are not numeric: {', '.join(bad[:MAX_SHOWN])}{more}. Pass the "
            'table with its labels, fit(df, "label"), which encodes text and categories; or encode '
            "them first, with daskls.TableEncoder in a pipeline or scikit-learn's OneHotEncoder, "
            "dates as days since a fixed one."
        )
    for place, (name, values) in enumerate(_wide_integers(X)):
        found = first_bad_value(values)
        if found is not None:
            raise value_error(found._replace(column=place), [name] * (place + 1))


def _wide_integers(X: Any) -> Iterable[tuple[str, AnyArray]]:
    """Yield columns of 64-bit integers, which are cast to floats if other columns are floats."""
    for i, name in enumerate(all_columns(X)):
        column = X.iloc[:, i] if hasattr(X, "iloc") else X[name]
        if WIDE.match(str(getattr(column, "dtype", getattr(column, "type", "")))):
            values = np.asarray(column.to_numpy())
            yield str(name), values.reshape(-1, 1)


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


def _difference(fitted: list[str], given: list[str]) -> str:
    """Return the message how names differ, in scikit-learn's words."""
    unseen, missing = sorted(set(given) - set(fitted)), sorted(set(fitted) - set(given))
    lines = ["The feature names should match those that were passed during fit."]
    if unseen:
        lines += ["Feature names unseen at fit time:", *_listed(unseen)]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:", *_listed(missing)]
    if not unseen and not missing:
        lines += [
            "Feature names must be in the same order as they were in fit.",
            *_moved(fitted, given),
        ]
    return "\n".join([*lines, "Pass the columns that the model was trained on, in their order."])


def _moved(fitted: list[str], given: list[str]) -> list[str]:
    pairs = enumerate(zip(fitted, given, strict=False))
    return [f"Column {i} is {now!r}, was {was!r}." for i, (was, now) in pairs if was != now][:1]


def _listed(names: list[str]) -> list[str]:
    more = ["- ..."] if len(names) > MAX_SHOWN else []
    return [*(f"- {name}" for name in names[:MAX_SHOWN]), *more]
