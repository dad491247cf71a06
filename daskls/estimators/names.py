"""Columns by name: of DataFrames and of data sets, kept with a model and compared as in sklearn."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.store.arrays import find_dataset

__all__ = ["check_names", "feature_names", "keep_names"]

# Names of each kind that an error shows.
MAX_SHOWN = 5


def feature_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a DataFrame or of a data set; None where X has none.

    Names that are not text, as the numbers that pandas gives, are no names.

    Raises
    ------
    DataError : when some names are text and others are not
    """
    dataset = find_dataset(X)
    if dataset is not None:
        return dataset.feature_names
    # A table of Arrow calls the columns themselves so.
    names = getattr(X, "column_names", getattr(X, "columns", None))
    names = [] if names is None or callable(names) else list(names)
    are_text = {isinstance(name, str) for name in names}
    if are_text == {True, False}:
        other = next(name for name in names if not isinstance(name, str))
        raise DataError(
            f"Feature names are only supported if all of them are text, but X has {other!r} "
            f"({type(other).__name__}) among them. Convert them with "
            "X.columns = X.columns.astype(str)."
        )
    return names if are_text == {True} else None


def check_names(estimator: Any, X: Any) -> None:
    """Refuse rows whose columns have other names, or another order, than in training.

    Where only one side has names, scikit-learn warns, and so does this.

    Raises
    ------
    DataError : with the names that differ
    """
    fitted, given = getattr(estimator, "feature_names_in_", None), feature_names(X)
    name = type(estimator).__name__
    if fitted is None and given is not None:
        _warn(f"X has feature names, but {name} was fitted without feature names")
    elif fitted is not None and given is None:
        _warn(f"X does not have valid feature names, but {name} was fitted with feature names")
    elif fitted is not None and given is not None and list(fitted) != given:
        raise DataError(_difference(list(fitted), given))


def keep_names(estimator: Any, names: Sequence[str] | None) -> None:
    """Set or remove ``feature_names_in_``, which an estimator has only of named columns."""
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def _warn(message: str) -> None:
    """Warn at the line that called the estimator."""
    warnings.warn(message, UserWarning, stacklevel=4)


def _difference(fitted: list[str], given: list[str]) -> str:
    """Say how names differ, in scikit-learn's words."""
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
    """Name the first column that is not where it was, if one of the two lists is no more."""
    pairs = enumerate(zip(fitted, given, strict=False))
    return [f"Column {i} is {now!r}, was {was!r}." for i, (was, now) in pairs if was != now][:1]


def _listed(names: list[str]) -> list[str]:
    """Return one line a name, of the first ones only if they are many."""
    more = ["- ..."] if len(names) > MAX_SHOWN else []
    return [*(f"- {name}" for name in names[:MAX_SHOWN]), *more]
