"""Arrow columns as numbers and as text; pyarrow is loaded when a table is first read."""

from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.records import Float64


def import_arrow() -> Any:
    """Import pyarrow only when it is needed: it takes 100 ms, and most fits are of arrays."""
    import pyarrow

    return pyarrow


def compute_module() -> Any:
    """Return pyarrow.compute."""
    from pyarrow import compute

    return compute


def column_of(batch: Any, name: str) -> Any:
    """Return a column of a batch or table as one array; dictionaries are decoded."""
    arrow = import_arrow()
    values = batch.column(name)
    if isinstance(values, arrow.ChunkedArray):
        values = values.combine_chunks()
    return values.dictionary_decode() if arrow.types.is_dictionary(values.type) else values


def index_of(schema: Any) -> frozenset[str]:
    """Return the names of the columns that pandas wrote as the index of a DataFrame."""
    try:
        index = (schema.pandas_metadata or {}).get("index_columns") or ()
    except ValueError:  # Not JSON, so it is not of pandas.
        return frozenset()
    # A range of numbers is stored as a description, not as a column.
    return frozenset(name for name in index if isinstance(name, str)) & frozenset(schema.names)


def is_category(kind: Any) -> bool:
    """Whether a type is that of categories."""
    return bool(import_arrow().types.is_dictionary(kind))


def is_text(kind: Any) -> bool:
    """Whether a type is text."""
    types = import_arrow().types
    return any(f(kind) for f in (types.is_string, types.is_large_string, types.is_string_view))


def is_date(kind: Any) -> bool:
    """Whether a type is dates, times or durations."""
    return bool(import_arrow().types.is_temporal(kind))


def is_number(kind: Any) -> bool:
    """Whether a type is numbers; bools are not."""
    types = import_arrow().types
    return any(f(kind) for f in (types.is_integer, types.is_floating, types.is_decimal))


def as_text(values: Any) -> Any:
    """Return values as text; missing values stay missing."""
    arrow = import_arrow()
    if not is_text(values.type) or arrow.types.is_string_view(values.type):
        values = values.cast(arrow.large_string())
    return values


def try_numbers(values: Any) -> Float64 | None:
    """Return values as float64, with NaN for missing ones; None if some are not numbers."""
    arrow, compute = import_arrow(), compute_module()
    if is_text(values.type):
        values = compute.utf8_trim_whitespace(as_text(values))
    if arrow.types.is_null(values.type):
        return np.full(len(values), np.nan)
    try:
        numbers = compute.cast(values, arrow.float64(), safe=False)
    except arrow.ArrowInvalid:
        # Arrow does not read a plus sign before a number.
        bare = compute.replace_substring_regex(values, pattern=r"^\+", replacement="")
        try:
            numbers = compute.cast(bare, arrow.float64(), safe=False)
        except arrow.ArrowInvalid:
            return None
    found: Float64 = numbers.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return found


def as_numbers(values: Any, name: str, first_row: int, where: str = "") -> Float64:
    """Return values as float64, with NaN for missing ones.

    Parameters
    ----------
    values : Arrow array
    name : str. Name of the column, for errors.
    first_row : int. Number of the first row, for errors.
    where : str. Name of a table to convert, for errors; "" for a table of queries.

    Raises
    ------
    DataError : a value is not a number; the message names its row
    """
    arrow = import_arrow()
    if is_text(values.type) or is_number(values.type) or arrow.types.is_null(values.type):
        numbers = try_numbers(values)
        if numbers is not None:
            return numbers
        row = next(i for i in range(len(values)) if try_numbers(values[i : i + 1]) is None)
        held = repr(values[row].as_py())
    elif arrow.types.is_boolean(values.type):
        return as_numbers(values.cast(arrow.uint8()), name, first_row, where)
    else:
        row, held = 0, str(values.type)
    if where:
        raise DataError(
            f"{where}, column {name!r}, row {first_row + row} (the first is 0): {held} is not a "
            "number; correct or remove the line."
        )
    raise DataError(
        f"Column {name!r} holds {held} in row {first_row + row} (the first is 0), where the "
        "training table has numbers. Correct it, or remove the row."
    )
