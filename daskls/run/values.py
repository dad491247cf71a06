"""Values that no kernel can take: found in training rows and in queries alike."""

from typing import Any

import numpy as np
from dask.delayed import Delayed

from daskls.errors import DataError
from daskls.records import LARGEST_FEATURE, Reals

__all__ = ["check_values", "first_bad_value", "value_error"]

# Tiles and their masks stay in the cache: a million rows of 28 features take 20 ms, where 65,536
# rows at once take 31 and all together 68.
CHECKED_ROWS = 4096


def first_bad_value(X: Reals) -> tuple[int, float] | None:
    """Return (row, value) of the first value that is NaN, infinite or too large; or None.

    Raises
    ------
    DataError : masked values, which the metadata of a Dask array do not show
    """
    check_values(X, "X")
    if X.dtype.kind != "f":
        return None
    # The kind says that they are floats; no type follows from it.
    limit = min(LARGEST_FEATURE, float(np.finfo(X.dtype).max))  # type: ignore[type-var]
    # Tile by tile: a temporary of X's size would double the memory of the task.
    for start in range(0, len(X), CHECKED_ROWS):
        tile = X[start : start + CHECKED_ROWS]
        # NaN compares as false, so it is found too; float16 holds no value that large but infinity.
        bad = ~(np.isfinite(tile) & (np.abs(tile) <= limit))
        if bad.any():
            row, column = np.unravel_index(bad.argmax(), bad.shape)
            return start + int(row), float(tile[row, column])
    return None


def check_values(values: Any, name: str) -> None:
    """Refuse what would not be taken for the values that it stands for.

    Raises
    ------
    DataError : masked arrays, whose masks would be lost; delayed objects and futures
    """
    if isinstance(getattr(values, "_meta", values), np.ma.MaskedArray):
        raise DataError(
            f"{name} is a masked array, whose masked values would be taken for data. Fill them "
            "with .filled(value), or leave their rows out."
        )
    is_delayed = isinstance(values, Delayed)
    # Futures by what they can do: those of distributed have a class that only it loads.
    if is_delayed or (hasattr(values, "done") and hasattr(values, "result")):
        call = "compute" if is_delayed else "result"
        raise DataError(
            f"{name} is of type {type(values).__name__}, whose shape is not known before it is "
            f"computed. Pass its value, {name}.{call}(), or say what it will be: "
            f"dask.array.from_delayed({name}, shape, dtype) stays lazy."
        )


def value_error(row: int, value: float, name: str = "X") -> DataError:
    """Return the error for a value that no kernel can take."""
    if np.isfinite(value):
        return DataError(
            f"Input {name} contains {value:g}, first in row {row}; values must be at most "
            f"{LARGEST_FEATURE:g} in size, as squared distances of larger ones overflow float32. "
            "Where it stands for a missing value, impute it or remove the row; else bring the "
            "feature to a smaller unit, or take its logarithm."
        )
    what = "NaN" if value != value else "infinity"
    return DataError(
        f"Input {name} contains {what}, first in row {row}; values must be finite (no NaN, no "
        "inf). Impute or remove the rows, for example with scikit-learn's SimpleImputer."
    )
