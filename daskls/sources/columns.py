"""One column of a table in the first pass: what it holds, and what becomes of it."""

from typing import Any

import numpy as np

from daskls.errors import listed, warn_user
from daskls.records import INEXACT, Float64, Keys
from daskls.sources.arrow import (
    INTEGER,
    PartTypes,
    as_text,
    column_of,
    compute_module,
    import_arrow,
    is_category,
    is_date,
    is_number,
    is_text,
    is_whole,
    part_of,
    refused_type,
    try_numbers,
)
from daskls.sources.base import (
    WITH_COMMA,
    WRITE_EITHER,
    WRITE_POINTS,
    MedianSample,
    one_spelling,
    reads_as_number,
)
from daskls.sources.dates import ISO, MAYBE, SPELLINGS, DateScan, first_other, read_dates
from daskls.sources.encoding import FLAGS, ColumnEncoding
from daskls.sources.signs import COMMA, UNCLEAR, NumberFormatScan, has_commas, without_blanks
from daskls.sources.statistics import NO_WORD, Statistics, TargetSums

MAX_CATEGORIES = 64
# Beside more numbers a text that may stand for a missing value is no category.
FEW_NUMBERS = 20
UNITS = "remove that row if it is a line of units, or leave its field empty if a value is missing"


class ColumnScan:
    """The content of a column, batch by batch."""

    def __init__(self, types: PartTypes, kind: Any, *, with_median: bool) -> None:
        self.name, self.types = types.name, types
        # A part of categories makes categories of the numbers of other parts.
        self.is_category = is_category(kind)
        # False for good once a value is not a number; text can be one in a file, not in a frame.
        self.are_numbers = True
        # The ways, by points and by commas, in which all text so far is numbers.
        self.readings = [
            NumberFormatScan(mark, MedianSample() if with_median else None) for mark in UNCLEAR
        ]
        self.with_median = with_median
        self.has_blank = False
        # The type of a column without values.
        self.is_bool = bool(import_arrow().types.is_boolean(kind))
        # In a text file numbers are text, too; a frame says which columns are numbers.
        self.is_of_file = False
        # Distinct values as text; None if there are more than categories may have.
        self.values: set[str] | None = set()
        # The types of all parts, as text.
        self.seen: set[str] = set()
        self.refused: str | None = None
        self.first_text: tuple[int, str] | None = None
        self.first_fraction: float | None = None
        self.first_missing: int | None = None
        # The first number with a comma; None for good once a text is no number at all.
        self.comma: str | None = ""
        # Text in the first row of a file, a line of units; None if other rows hold text, too.
        self.unit: str | None = ""
        self.n_below_unit, self.part = 0, ""
        # Dates as read by each spelling; none is left once a value is no date in any.
        self.dates: dict[str, DateScan] | None = None
        # The first value, and its row, that is no date after some that are.
        self.no_date: tuple[int, str] | None = None

    @property
    def may_be_number(self) -> bool:
        is_empty_bool = self.is_bool and not self.types.families
        return self.reading is not None and not (is_empty_bool or self.is_category)

    @property
    def reading(self) -> NumberFormatScan | None:
        """How all are numbers for certain; bare text in a frame would be, were none blank."""
        for scan in self.readings:
            if self.are_numbers or scan.sign is not None or (scan.are_bare and self.has_blank):
                return scan
        return None

    def add(self, batch: Any, keys: Keys, row: int, *, is_typed: bool) -> None:
        kind, column = batch.schema.field(self.name).type, column_of(batch, self.name)
        values = without_blanks(column)
        self.has_blank |= values is not column
        self.is_of_file = not is_typed
        self.is_category |= is_category(kind)
        if not import_arrow().types.is_null(kind):
            self.seen.add(str(kind))
        if is_typed and values.null_count < len(values):
            self.refused = self.refused or refused_type(kind)
        if self.refused:
            self.types.add(batch, row)
            return
        numbers = self._numbers(values, row, is_typed=is_typed)
        is_first, self.part = row == 0 or part_of(batch) != self.part, part_of(batch)
        missing = np.asarray(values.is_null()) if numbers is None else np.isnan(numbers)
        if self.first_missing is None and missing.any():
            self.first_missing = row + int(np.argmax(missing))
        if missing.all():
            return
        # In a frame "1" beside "1,2" are lists.
        if is_typed and is_text(values.type) and not has_commas(values):
            self.readings = [scan for scan in self.readings if scan.mark != COMMA]
        self.readings = [scan for scan in self.readings if scan.add(values, numbers, keys, row)]
        if is_typed:
            self.types.add(batch, row)
            if not import_arrow().types.is_integer(values.type):
                self._note_fraction(numbers)
        if numbers is None and is_text(values.type):
            self._note_spelling(values, is_first=is_first)
        if numbers is None and (is_date(values.type) or not self.is_category):
            self._note_dates(values, keys, row)
        if self.values is not None and not is_date(values.type):
            texts = as_text(values.unique()).drop_null().to_pylist()
            self.values = set(one_spelling(self.values.union(texts)).values())
            if len(self.values) > MAX_CATEGORIES:
                self.values = None

    def _note_fraction(self, numbers: Float64 | None) -> None:
        """Keep the first number that has no certain spelling as text."""
        if numbers is not None and self.first_fraction is None:
            other = ~(is_whole(numbers) | np.isnan(numbers))
            self.first_fraction = float(numbers[other.argmax()]) if other.any() else None

    def _note_dates(self, values: Any, keys: Keys, row: int) -> None:
        """Keep the spellings in which all values so far are dates, with what they make of them."""
        if self.dates is None:
            first = values.drop_null()[0].as_py()
            maybe = not isinstance(first, str) or MAYBE.match(first)
            # Of text none, even if it has offsets: some batches may lack them.
            zone = getattr(values.type, "tz", None)
            spellings = (SPELLINGS if is_text(values.type) else (ISO,)) if maybe else ()
            self.dates = {form: DateScan(zone, MedianSample()) for form in spellings}
        read = {form: read_dates(values, form, scan.zone) for form, scan in self.dates.items()}
        if read and all(dates is None for dates in read.values()):
            at = max(first_other(values, form) for form in read)
            self.no_date = (row + at, str(values[at].as_py()))
        self.dates = {form: self.dates[form] for form, dates in read.items() if dates is not None}
        for form, scan in self.dates.items():
            scan.add(read[form], keys)

    def _note_spelling(self, values: Any, *, is_first: bool) -> None:
        """Note whether text is numbers with commas, or numbers below a line of units."""
        if self.comma is not None:
            compute, text = compute_module(), as_text(values).drop_null()
            known = compute.match_substring_regex(text, f"^(?:{WITH_COMMA.pattern})$")
            with_commas = text.filter(known)
            # A frame would hold numbers without commas as numbers.
            if self.is_of_file:
                whole = compute.match_substring_regex(text, f"^{INTEGER.pattern}$")
                known = compute.or_(known, whole)
            first = self.comma or (with_commas[0].as_py() if len(with_commas) else "")
            self.comma = first if compute.all(known).as_py() else None
        if self.unit is not None and self.is_of_file:
            rest = try_numbers(values[1:] if is_first else values)
            if rest is None:
                self.unit = None
            elif is_first:
                self.unit = self.unit or values[0].as_py() or ""
            self.n_below_unit += 0 if rest is None else int((~np.isnan(rest)).sum())

    def mistake(self, *, beside_commas: bool) -> tuple[str, str] | None:
        """Return which numbers the column holds if they cannot be read as such, and a remedy.

        Where other columns have decimal commas, 1.234 may be 1234.
        """
        if self.may_be_number and self.reading is not None:
            if beside_commas and self.are_numbers and self.readings[-1].is_unclear:
                return "numbers as 1.234, beside columns with decimal commas", WRITE_EITHER
            at = self.reading.inexact
            return None if at is None else (f"{at[1]} in row {at[0]} (the first is 0)", INEXACT)
        if self.comma:
            return f"numbers with commas ({self.comma!r})", WRITE_POINTS
        if self.unit and self.n_below_unit > FEW_NUMBERS:
            return f"numbers below a first row of {self.unit!r}", UNITS
        return None

    def check_types(self) -> None:
        """Refuse parts of two types unless all of their values are known as text."""
        families, texts = set(self.types.families), {value.lower() for value in self.values or ()}
        if families == {"numbers", "text"} and self.first_fraction is not None:
            self.types.check(f"As text, {self.first_fraction!r} may be spelled in several ways. ")
        elif families != {"numbers", "text"} and not (
            families == {"bool", "text"} and texts <= set(FLAGS)
        ):
            self.types.check()

    def _numbers(self, values: Any, row: int, *, is_typed: bool) -> Float64 | None:
        """Return the batch as numbers: in a text file only if all of the column so far are."""
        numbers = None
        if is_typed:
            if is_number(values.type) or import_arrow().types.is_null(values.type):
                numbers = try_numbers(values)
        elif self.are_numbers:
            numbers = try_numbers(values)
        if numbers is None and self.are_numbers and values.null_count < len(values):
            self.are_numbers = False
            present = values.drop_null().to_pylist()
            # Only in a file, where all columns are text, is a text a number.
            are_numbers = (not is_typed and reads_as_number(value) for value in present)
            texts = (v for v, is_one in zip(present, are_numbers, strict=True) if not is_one)
            self.first_text = (row, str(next(texts, present[0])))
        return numbers

    @property
    def has_many(self) -> bool:
        """Whether it holds more values than become categories."""
        return self.values is None and not self.may_be_number and not self.dates

    @property
    def is_spiky(self) -> bool:
        """Whether most rows of a sample have one number, and the others many."""
        reading = self.reading if self.may_be_number else None
        if reading is None or reading.sample is None or reading.sign is not None:
            return False
        values, counts = np.unique(reading.sample.values, return_counts=True)
        return len(values) > FEW_NUMBERS and 2 * int(counts.max()) > len(reading.sample.values)

    def encoding(self, statistics: Statistics | None) -> ColumnEncoding:
        if self.dates and not self.may_be_number:
            return self._date_encoding(self.dates)
        reading = self.reading if self.may_be_number else None
        fill = 0.0 if self.with_median else None
        if reading is not None and reading.sample is not None:
            fill = reading.sample.median()
        values = self.values or set()
        is_flag = values and {value.lower() for value in values} <= set(FLAGS)
        kind = "number" if reading is not None else "flag" if is_flag else "category"
        categories = tuple(sorted(values)) if kind == "category" else ()
        fill, usual = (None, fill) if self.first_missing is None else (fill, None)
        if statistics is None:
            sign = None if reading is None else reading.sign
            return ColumnEncoding(self.name, kind, categories, fill, usual, sign=sign)
        return ColumnEncoding(
            self.name,
            "number" if kind == "number" else "statistics",
            statistics.values,
            fill,
            usual,
            parts=statistics.names,
            statistics=tuple(statistics.of_all.ravel().tolist()),
            letters="" if statistics.letters is None else statistics.letters.to_text(),
            is_cut=statistics.is_cut,
        )

    def _date_encoding(self, dates: dict[str, DateScan]) -> ColumnEncoding:
        spelling, scan = next(iter(dates.items()))
        if spelling.startswith("%d") and any(other.startswith("%m") for other in dates):
            warn_user(
                f"Every date of column {self.name!r} reads day first and month first; the day is "
                "taken to be first. Write dates as 2024-12-31 to be sure.",
                UserWarning,
            )
        median = scan.sample.median() if self.with_median else None
        fill, usual = (None, median) if self.first_missing is None else (median, None)
        return ColumnEncoding(
            self.name,
            "date",
            fill=fill,
            usual=usual,
            spelling=spelling,
            zone=scan.zone,
            parts=scan.parts,
        )

    def refusal(self, *, has_target: bool) -> str | None:
        if self.refused or self.may_be_number or self.dates:
            return self.refused
        values, first = self.values, self.first_text
        if values is None and has_target:
            return None
        if values is None:
            hint = "; with a label they would become its statistics"
            if first is not None and NO_WORD.fullmatch(first[1]):
                hint = _if_missing(first[1])
            return self._many(hint)
        marks = sorted(text for text in values if not reads_as_number(text))
        is_marked = self.is_of_file and marks and all(map(NO_WORD.fullmatch, marks))
        if is_marked and len(values) - len(marks) > FEW_NUMBERS:
            return _marked(*marks)
        return None

    def refusal_of_many(self, sums: TargetSums) -> str | None:
        """Return what many values hold if most of them, but not all, are dates or numbers."""
        if self.no_date is not None and sums.are_dates:
            row, value = self.no_date
            return self._many(f"; all are dates up to {value!r} in row {row} (the first is 0)")
        # In a frame, where numbers are no text, text is meant as such.
        if self.is_of_file and sums.marks:
            return _marked(*sums.marks)
        return None

    def _many(self, hint: str) -> str:
        first = self.first_text
        known = "" if first is None else f" ({first[1]!r} is the first, from row {first[0]} on)"
        return f"text{known} of more than {MAX_CATEGORIES} different values{hint}"


def _marked(*marks: str) -> str:
    return f"numbers and {listed([*map(repr, marks)])}{_if_missing(marks[0])}"


def _if_missing(mark: str) -> str:
    return f"; where {mark!r} stands for a missing value, leave the field empty"
