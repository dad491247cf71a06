"""Dates and times as features: seconds since 1970, calendar parts, and their places on circles.

Text is dates where all of it has one of a few spellings; pandas and Arrow guess value by value.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.records import Float64, Mask
from daskls.sources.arrow import as_text, compute_module, import_arrow, is_date, is_text
from daskls.sources.base import MedianSample

ISO = "ISO 8601"
# Day first where every date of a column could be read both ways, which a warning then says.
ORDERS = ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y", "%Y{0}%m{0}%d")
TIMES = ("", " %H:%M", " %H:%M:%S")
SPELLINGS = (ISO, *(a.format(b) + c for a, b, c in product(ORDERS, "/.-", TIMES)))
MAYBE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})")
# In ISO 8601, after the date.
OFFSET = "[T ].*[Z+-]"
# The first three of a date in another spelling.
DATE_NUMBERS = r"^(?P<a>\d+)\D(?P<b>\d+)\D(?P<c>\d+)"
# Calendar parts, as functions of pyarrow.compute, and the length of the circle that some run on.
PARTS = {"year": "year", "month": "month", "day": "day", "weekday": "day_of_week", "hour": "hour"}
CIRCLES = {"month": 12, "weekday": 7, "hour": 24}


def read_dates(values: Any, spelling: str, zone: str | None = None) -> Any:
    """Return values as timestamps, in ``zone`` if it has one; None if some are not dates.

    Dates without a zone are local ones; with one, where ``zone`` is None, those of UTC.
    """
    arrow, compute = import_arrow(), compute_module()
    if values.null_count == len(values):
        values = arrow.nulls(len(values))
    elif is_text(values.type):
        text = compute.utf8_trim_whitespace(as_text(values))
        values = _parsed(text, spelling)
        if values is None and spelling == ISO:
            return _read_mixed(text, zone)
    if values is None or not (is_date(values.type) or arrow.types.is_null(values.type)):
        return None
    values_zone = getattr(values.type, "tz", None)
    dates = values.cast(arrow.timestamp("us", values_zone), safe=False)
    if values_zone is None and zone is not None:
        return compute.assume_timezone(dates, zone, ambiguous="earliest", nonexistent="earliest")
    return dates.cast(arrow.timestamp("us", zone))


def _parsed(text: Any, spelling: str) -> Any:
    arrow, compute = import_arrow(), compute_module()
    if spelling != ISO:
        dates = compute.strptime(text, format=spelling, unit="us", error_is_null=True)
        is_whole = dates.null_count == text.null_count
        return dates if is_whole and _are_in_calendar(dates, text, spelling) else None
    for zone in (None, "UTC"):
        try:
            return compute.cast(text, arrow.timestamp("us", zone))
        except arrow.ArrowInvalid:
            continue
    return None


def _are_in_calendar(dates: Any, text: Any, spelling: str) -> bool:
    """Whether all days are those written: Arrow takes February 30 as a day of March."""
    compute = compute_module()
    fields = compute.extract_regex(text, DATE_NUMBERS).flatten()
    written = fields[re.findall("[dmY]", spelling).index("d")].cast(import_arrow().int64())
    same = compute.equal(written, compute.day(dates))
    return bool(compute.all(same, min_count=0).as_py())


def _read_mixed(text: Any, zone: str | None) -> Any:
    """Return text as dates where some have an offset from UTC; None if some are not dates."""
    compute = compute_module()
    has_offset = compute.match_substring_regex(text, OFFSET)
    parts = [compute.if_else(mask, text, None) for mask in (has_offset, compute.invert(has_offset))]
    if any(part.null_count == len(text) for part in parts):
        return None
    timestamps = [read_dates(part, ISO, zone) for part in parts]
    return None if any(dates is None for dates in timestamps) else compute.coalesce(*timestamps)


def seconds_of(dates: Any) -> Float64:
    """Return the seconds since 1970, NaN where there is no date."""
    microseconds = dates.cast(import_arrow().int64())
    seconds: Float64 = microseconds.to_numpy(zero_copy_only=False).astype(np.float64)
    seconds[np.asarray(dates.is_null())] = np.nan
    return seconds / 1e6


def part_of_dates(dates: Any, part: str) -> Float64:
    values = getattr(compute_module(), PARTS[part])(dates)
    numbers: Float64 = values.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def feature_names(name: str, parts: tuple[str, ...]) -> list[str]:
    """Return the names of a date's features.

    >>> feature_names("sold", ("year", "month"))
    ['sold', 'sold year', 'sold month', 'sold month (cos)', 'sold month (sin)']
    """
    names = [name]
    for part in parts:
        names.append(f"{name} {part}")
        if part in CIRCLES:
            names += [f"{name} {part} (cos)", f"{name} {part} (sin)"]
    return names


def features_of(dates: Any, parts: tuple[str, ...], usual: float | None) -> tuple[Float64, Mask]:
    """Return the features, (m, number of names), and which dates are missing.

    A missing date counts as the one at ``usual`` seconds.
    """
    arrow = import_arrow()
    missing: Mask = np.asarray(dates.is_null())
    instant = arrow.scalar(round((usual or 0.0) * 1e6), arrow.int64()).cast(dates.type)
    dates = compute_module().fill_null(dates, instant)
    columns = [seconds_of(dates)]
    for part in parts:
        columns.append(part_of_dates(dates, part))
        if part in CIRCLES:
            angle = 2 * np.pi / CIRCLES[part] * columns[-1]
            # Rounded, as processors of other makes differ in the last digit.
            columns += [np.cos(angle).round(12), np.sin(angle).round(12)]
    return np.column_stack(columns), missing


@dataclass
class DateScan:
    """A column so far, as read by one spelling: the ranges of parts, and a sample of seconds."""

    zone: str | None
    sample: MedianSample
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, dates: Any, keys: Any) -> None:
        self.sample.add(keys, seconds_of(dates))
        dates = dates.drop_null()
        for part in PARTS if len(dates) else ():
            numbers = part_of_dates(dates, part)
            low, high = self.ranges.get(part, (np.inf, -np.inf))
            self.ranges[part] = min(low, float(numbers.min())), max(high, float(numbers.max()))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of which the rows have more than one value."""
        return tuple(part for part, (low, high) in self.ranges.items() if low < high)


def first_other(values: Any, spelling: str) -> int:
    """Return the first of values that are not all dates which is none."""
    return bisect_left(
        range(len(values)), True, key=lambda i: read_dates(values[: i + 1], spelling) is None
    )


def not_a_date(name: str, values: Any, first_row: int, spelling: str) -> DataError:
    row = first_other(values, spelling)
    return DataError(
        f"Column {name!r} holds {values[row].as_py()!r} in row {first_row + row} (the first is 0), "
        f"where the training table has dates, as {spelling}. Correct it, or leave it empty."
    )
