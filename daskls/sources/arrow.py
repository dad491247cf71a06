"""Arrow columns as numbers and as text; pyarrow is loaded when a table is first read."""

import re
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.records import EXACT, INEXACT, Float64
from daskls.sources.base import WHOLE_FLOAT

# The metadata of a batch that names the file or the partition it is of.
PART = b"daskls.part"
INTEGER = re.compile(r"\s*[+-]?\d+\s*")


def import_arrow() -> Any:
    """Import pyarrow only when it is needed: it takes 100 ms, and most fits are of arrays."""
    import pyarrow

    return pyarrow


def compute_module() -> Any:
    from pyarrow import compute

    return compute


def column_of(batch: Any, name: str) -> Any:
    """Return a column of a batch or table as one array; dictionaries are decoded."""
    arrow = import_arrow()
    values = batch.column(name)
    if isinstance(values, arrow.ChunkedArray):
        values = values.combine_chunks()
    if arrow.types.is_dictionary(values.type):
        return values.dictionary_decode()
    if arrow.types.is_duration(values.type) or arrow.types.is_time(values.type):
        return _seconds_of(values)
    return values


def _seconds_of(values: Any) -> Any:
    """Return durations, or times of a day since midnight, as seconds."""
    arrow, compute = import_arrow(), compute_module()
    numbers = values.cast(arrow.int32() if values.type.bit_width == 32 else arrow.int64())
    units = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
    return compute.divide(numbers.cast(arrow.float64(), safe=False), units[values.type.unit])


def part_text(part: str) -> str:
    """Return how a batch of a part names it."""
    return part.encode(errors="backslashreplace").decode()


def of_part(batch: Any, part: str) -> Any:
    return batch.replace_schema_metadata({PART: part_text(part)})


def part_of(batch: Any) -> str:
    return str((batch.schema.metadata or {}).get(PART, b"").decode())


class PartTypes:
    """The types that a column has in the parts of a table: one of each family, with its part."""

    def __init__(self, where: str, name: str) -> None:
        self.where, self.name = where, name
        self.families: dict[str, str] = {}

    def add(self, batch: Any, row: int) -> None:
        kind = batch.schema.field(self.name).type
        held, element = "", kind
        if is_category(kind):
            held, element = "categories of ", kind.value_type
        family = "numbers" if is_number(element) else "text" if is_text(element) else str(element)
        named = f"text ({element})" if is_text(element) else element
        part = part_of(batch)
        self.families.setdefault(family, f"{held}{named} in {part or f'the rows from {row} on'}")

    def check(self, why: str = "") -> None:
        if len(self.families) > 1:
            raise DataError(
                f"{self.where}: column {self.name!r} holds {' and '.join(self.families.values())}. "
                f"{why}Give it one type in all parts: convert it with .astype(str), or to numbers, "
                "and write the parts again."
            )


def index_of(schema: Any) -> frozenset[str]:
    """Return the names of the columns that pandas wrote as the index of a DataFrame."""
    try:
        index = (schema.pandas_metadata or {}).get("index_columns") or ()
    except ValueError:  # Not JSON, so it is not of pandas.
        return frozenset()
    # A range of numbers is stored as a description, not as a column.
    return frozenset(name for name in index if isinstance(name, str)) & frozenset(schema.names)


def is_category(kind: Any) -> bool:
    return bool(import_arrow().types.is_dictionary(kind))


def is_text(kind: Any) -> bool:
    types = import_arrow().types
    return any(f(kind) for f in (types.is_string, types.is_large_string, types.is_string_view))


def is_date(kind: Any) -> bool:
    types = import_arrow().types
    return bool(types.is_timestamp(kind) or types.is_date(kind))


def is_number(kind: Any) -> bool:
    """Whether a type is numbers; bools are not."""
    types = import_arrow().types
    return any(f(kind) for f in (types.is_integer, types.is_floating, types.is_decimal))


def refused_type(kind: Any) -> str | None:
    types = import_arrow().types
    known = is_number(kind) or is_text(kind) or is_category(kind) or types.is_temporal(kind)
    if known or types.is_boolean(kind) or types.is_null(kind):
        return None
    return f"{kind}, which is neither numbers, text, categories nor dates"


def as_text(values: Any) -> Any:
    """Return values as text; missing values stay missing, and whole numbers are spelled as such."""
    arrow, compute = import_arrow(), compute_module()
    types = arrow.types
    if types.is_floating(values.type) or types.is_decimal(values.type):
        numbers = compute.cast(values, arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        whole = is_whole(numbers)
        spelled = arrow.array(np.where(whole, numbers, 0).astype(np.int64)).cast(
            arrow.large_string()
        )
        text = compute.if_else(arrow.array(whole), spelled, values.cast(arrow.large_string()))
        return compute.if_else(arrow.array(np.isnan(numbers)), None, text)
    if not is_text(values.type) or types.is_string_view(values.type):
        values = values.cast(arrow.large_string())
    return values


def is_whole(numbers: Float64) -> Any:
    """Return which numbers are whole and have one spelling."""
    return (np.floor(numbers) == numbers) & (np.abs(numbers) < EXACT)


def whole_spelled(text: Any) -> Any:
    """Return text in which the whole numbers that pandas writes as 1.0 are 1."""
    whole = f"^{WHOLE_FLOAT.pattern}$"
    return compute_module().replace_substring_regex(text, pattern=whole, replacement=r"\1")


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
    floats: Float64 = numbers.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return floats


def inexact_integer(values: Any, numbers: Float64) -> tuple[int, int] | None:
    if import_arrow().types.is_floating(values.type):
        return None
    for place in np.flatnonzero(np.abs(numbers) >= EXACT).tolist():
        value = values[place].as_py()
        is_integer = not isinstance(value, str) or INTEGER.fullmatch(value)
        if is_integer and int(value) != int(numbers[place]):
            return place, int(value)
    return None


def as_numbers(
    values: Any, name: str, first_row: int, *, original: Any = None, trained: str = "numbers"
) -> Float64:
    """Return values as float64, with NaN for missing ones; DataError shows ``original``."""
    arrow = import_arrow()
    if values.null_count == len(values):
        return np.full(len(values), np.nan)
    if is_text(values.type) or is_number(values.type):
        numbers = try_numbers(values)
        inexact = None if numbers is None else inexact_integer(values, numbers)
        if inexact is not None:
            row, held = first_row + inexact[0], str(inexact[1])
            raise DataError(
                f"The table: column {name!r} holds {held} in row {row} (the first is 0); {INEXACT}."
            )
        if numbers is not None:
            return numbers
        row = next(i for i in range(len(values)) if try_numbers(values[i : i + 1]) is None)
        held = repr((values if original is None else original)[row].as_py())
    elif arrow.types.is_boolean(values.type):
        return as_numbers(values.cast(arrow.uint8()), name, first_row)
    else:
        row, held = 0, str(values.type)
    raise DataError(
        f"Column {name!r} holds {held} in row {first_row + row} (the first is 0), where the "
        f"training table has {trained}. Write it in the same way, or remove the row."
    )
