"""Validates y, which holds class labels or numbers, and the values of features."""

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed

from daskls.errors import DataError
from daskls.records import INEXACT, LARGEST_FEATURE, AnyArray, Labels, Reals, first_inexact

# The largest magnitude of a numeric target: sums of squares over any number of rows stay finite.
LARGEST_NUMBER = 1e100
# A row, and its value as text; "" for NaN or infinity.
BadLabel = tuple[int, str]
TAKEN = "labels are whole numbers, booleans or text, all of one kind"
# By the kind of other dtypes: what they hold, and how to convert it to labels.
OTHER_KINDS = {
    "S": ("bytes", "Decode them with np.char.decode(y)"),
    "M": ("dates", "Convert them with y.astype(str)"),
    "m": ("durations", "Convert them with y.astype(int)"),
    "c": ("complex numbers", "Map them to codes with np.unique(y, return_inverse=True)"),
    "V": ("records", "Map them to codes with np.unique(y, return_inverse=True)"),
}
# Rows per tile, so that tiles and masks stay in the cache: a million rows of 28 features take 20
# ms; tiles of 65,536 rows take 31 ms, and all rows at once 68 ms.
CHECKED_ROWS = 4096


class BadValue(NamedTuple):
    """A value of X that is NaN, infinite or too large, or an integer that no float64 is."""

    row: int
    column: int
    value: float


def check_label_kind(dtype: np.dtype[Any]) -> None:
    if dtype.kind in OTHER_KINDS:
        held, remedy = OTHER_KINDS[dtype.kind]
        raise DataError(f"Unknown label type: y holds {held} ({dtype}); {TAKEN}. {remedy}.")


def first_bad_label(y: Labels) -> BadLabel | None:
    """Return the first row without a valid label, as NaN or no text; None if all are valid."""
    if y.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(y))
        return (int(bad[0]), "") if len(bad) else None
    if y.dtype.kind != "O" or all(issubclass(kind, str) for kind in set(map(type, y.tolist()))):
        return None
    # The first value that is neither text nor a number; without any, the first that is no text.
    values = y.tolist()
    strange = [not isinstance(value, str | Integral | float) for value in values]
    row = strange.index(True) if any(strange) else [isinstance(v, str) for v in values].index(False)
    return row, f"{y[row]!r} ({type(y[row]).__name__})"


def label_error(bad: BadLabel) -> DataError:
    row, held = bad
    if not held:
        return _not_finite(row)
    return DataError(
        f"Unknown label type: y holds {held} in row {row}; {TAKEN}, and an array of objects must "
        "hold text only. Remove rows without a label, and convert the others with y.astype(int) or "
        "y.astype(str)."
    )


def check_numbers(dtype: np.dtype[Any], classes: Labels | None = None) -> None:
    """Raise DataError if y holds text, booleans, objects or codes of ``classes``."""
    if dtype.kind in "fiu" and classes is None:
        return
    held = "classes" if classes is not None else {"b": "booleans"}.get(dtype.kind, f"{dtype}")
    remedy = "If these are classes, use a classifier such as VoronoiSVC"
    if classes is None and dtype.kind not in "bcV":
        remedy += "; if they are numbers, convert them with y.astype(float)"
    raise DataError(f"y holds {held}, but a regressor needs numbers. {remedy}.")


def first_bad_number(y: Reals) -> BadLabel | None:
    place = first_inexact(y)
    if place is not None:
        return place // y.shape[1], str(y.reshape(-1)[place])
    # Negated, as comparisons with NaN are false.
    bad = np.flatnonzero(~(np.abs(y.astype(np.float64)) <= LARGEST_NUMBER).all(axis=1))
    if not len(bad):
        return None
    row = int(bad[0])
    held = y[row][~(np.abs(y[row].astype(np.float64)) <= LARGEST_NUMBER)][0]
    return row, f"{held:g}" if np.isfinite(held) else ""


def number_error(bad: BadLabel) -> DataError:
    row, held = bad
    if not held:
        return _not_finite(row)
    if held.lstrip("-").isdecimal():
        return DataError(f"y holds {held} in row {row}; {INEXACT}.")
    return DataError(
        f"y holds {held} in row {row}; numbers up to {LARGEST_NUMBER:g} are taken. Scale y, or "
        "take its logarithm."
    )


def _not_finite(row: int) -> DataError:
    return DataError(f"Input y contains NaN or infinity, first in row {row}. Remove it.")


def first_bad_value(X: Reals, *, but_nan: bool = False) -> BadValue | None:
    """Return the first value that is NaN, infinite or too large; DataError for a masked array."""
    check_values(X, "X")
    if X.dtype.kind != "f":
        return _first_inexact_value(X)
    # mypy does not infer from the kind that these are floats.
    limit = min(LARGEST_FEATURE, float(np.finfo(X.dtype).max))  # type: ignore[type-var]
    # Tile by tile: a temporary of X's size would double the memory of the task.
    for start in range(0, len(X), CHECKED_ROWS):
        tile = X[start : start + CHECKED_ROWS]
        # Negated, as NaN compares as false. In float16 only infinity is that large.
        bad = ~(np.isfinite(tile) & (np.abs(tile) <= limit))
        if but_nan and bad.any():
            bad &= ~np.isnan(tile)
        if bad.any():
            row, column = np.unravel_index(bad.argmax(), bad.shape)
            return BadValue(start + int(row), int(column), float(tile[row, column]))
    return None


def _first_inexact_value(X: Reals) -> BadValue | None:
    """Return the first integer that float64 does not hold; or None."""
    for start in range(0, len(X), CHECKED_ROWS):
        place = first_inexact(X[start : start + CHECKED_ROWS])
        if place is not None:
            row, column = start + place // X.shape[1], place % X.shape[1]
            return BadValue(row, column, int(X[row, column]))
    return None


def value_error(bad: BadValue, names: Sequence[str] | None = None) -> DataError:
    value, column = bad.value, bad.column if names is None else repr(names[bad.column])
    place = f"first in row {bad.row}, column {column}"
    if isinstance(value, int):
        return DataError(f"Input X contains {value}, {place}; {INEXACT}.")
    if np.isfinite(value):
        return DataError(
            f"Input X contains {value:g}, {place}; values must be at most "
            f"{LARGEST_FEATURE:g} in size, as squared distances of larger ones overflow float32. "
            "Where it stands for a missing value, impute it or remove the row; else bring the "
            "feature to a smaller unit, or take its logarithm."
        )
    if value == value:
        return DataError(
            f"Input X contains infinity, {place}; values must be finite. Remove such rows, or "
            "replace the value by a meaningful one."
        )
    return DataError(
        f'Input X contains NaN, {place}; with missing="refuse" a fit takes none. Impute or remove '
        'such rows, or fit with missing="auto": medians take their place.'
    )


def check_block(
    block: Any,
    shape: tuple[int, ...],
    number: tuple[int, ...],
    *,
    what: str,
    declared: np.dtype[Any],
) -> AnyArray:
    where = f"Block {number if any(number[1:]) else number[0]} of {what}"
    check_values(block, where)
    try:
        values = np.asarray(block)
    except (TypeError, ValueError) as error:
        kind = type(block).__name__
        raise DataError(
            f"{where} is of type {kind}, and no array can be made of it: {error}. Let the function "
            "that makes the blocks return NumPy arrays."
        ) from error
    if values.shape != tuple(shape):
        raise DataError(
            f"{where} has the shape {values.shape}, but its Dask array declares {tuple(shape)}. "
            "Declare what the function returns, as in map_blocks(f, chunks=...), or call "
            f"{what}.compute_chunk_sizes() first."
        )
    if values.dtype == declared:
        return values
    as_text = {declared.kind, values.dtype.kind} <= set("UTO")
    bad = None if as_text else _first_changed(values, declared)
    if bad is not None:
        raise DataError(
            f"{where} holds {values.dtype}, such as {bad!s}, but its Dask array declares "
            f"{declared}. Declare what the blocks hold, as in map_blocks(f, "
            f"dtype={str(values.dtype)!r}), or convert them in the function itself: {what}.astype "
            "changes nothing where the dtype is declared already."
        )
    # The labels of a model are stored as JSON, which has no variable-width dtype.
    dtype = object if values.dtype.kind == "T" else values.dtype if as_text else declared
    return values.astype(dtype, copy=False)


def _first_changed(values: AnyArray, dtype: np.dtype[Any]) -> Any:
    """No integers are taken from floats, even whole ones: those of the next block may not be."""
    numbers = values.reshape(-1)
    if not len(numbers):
        return None
    kind = values.dtype.kind
    if not {kind, dtype.kind} <= set("biuf") or (kind == "f" and dtype.kind != "f"):
        return numbers[0]
    if kind in "iu" and dtype.kind == "f":
        # Beyond, NumPy would compare them as floats, in which neighbors are equal.
        most = 2 ** (np.finfo(dtype).nmant + 1)
        changed = (numbers < -most) | (numbers > most)
    else:
        with np.errstate(all="ignore"):
            changed = (numbers.astype(dtype) != numbers) & (numbers == numbers)
    return numbers[changed.argmax()] if changed.any() else None


def check_values(values: Any, name: str) -> None:
    """Refuse masked arrays, whose masks would be lost; sparse ones; delayed objects and futures."""
    if isinstance(getattr(values, "_meta", values), np.ma.MaskedArray):
        raise DataError(
            f"{name} is a masked array, whose masked values would be taken for data. Fill them "
            "with .filled(value), or leave their rows out."
        )
    is_delayed = isinstance(values, Delayed)
    # Futures are recognized by their methods, as their class would have to be loaded with
    # distributed.
    if is_delayed or (hasattr(values, "done") and hasattr(values, "result")):
        call = "compute" if is_delayed else "result"
        raise DataError(
            f"{name} is of type {type(values).__name__}, whose shape is not known before it is "
            f"computed. Pass its value, {name}.{call}(), or declare it: "
            f"dask.array.from_delayed({name}, shape, dtype) stays lazy."
        )
    _check_dense(values, name)


def _check_dense(values: Any, name: str) -> None:
    """Refuse sparse values; the error gives their size as dense ones."""
    sample = getattr(values, "_meta", values)
    if not (hasattr(sample, "nnz") and (hasattr(sample, "toarray") or hasattr(sample, "todense"))):
        return
    nbytes = math.prod(values.shape) * values.dtype.itemsize
    count = "" if sample is not values else f", {values.nnz} values"
    convert = "toarray" if hasattr(sample, "toarray") else "todense"
    dense = f"X.{convert}()"
    if sample is not values or name.startswith("Block"):
        dense = f"X.map_blocks(lambda block: block.{convert}())"
    raise DataError(
        f"{name} is sparse ({' x '.join(map(str, values.shape))}{count}), but dense rows are "
        f"required: {nbytes / 2**20:,.1f} MiB of {values.dtype}. Where that fits, pass {dense}; "
        "else reduce the features first (scikit-learn's TruncatedSVD), or pass the path of a "
        "LIBSVM file, which is made dense on disk a block at a time."
    )


def check_discrete(labels: Labels) -> None:
    """Raise DataError for fractions, which are no classes."""
    if labels.dtype.kind == "f" and (fractions := labels[labels != np.floor(labels)]).size:
        raise DataError(
            f"Unknown label type: continuous. y holds {float(fractions[0])!r}; a classifier needs "
            "discrete labels. Bin y, or use a regressor such as VoronoiSVR."
        )
