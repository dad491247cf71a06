"""Numbers as people write them: "$1,234.50", "€ 5,50", "12 %", and blanks where there is none."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.records import Float64, Keys, TargetKind
from daskls.sources.arrow import (
    as_numbers,
    as_text,
    column_of,
    compute_module,
    import_arrow,
    inexact_integer,
    is_text,
    try_numbers,
)
from daskls.sources.base import WRITE_EITHER, MedianSample, TableSource

# A number with commas between thousands only, and with one sign, of a currency or of percent.
WRITTEN = (
    r"^(?P<minus>[+-]?)\s*(?P<before>\p{Sc}?)\s*(?P<inner>-?)"
    r"(?P<number>[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"[\s\p{Zs}]*(?P<after>[\p{Sc}%]?)$"
)
# How a column is marked, beside its sign, whose decimal points are commas: "1.234,5".
COMMA = ","
# By mark, a separator that stands for thousands in one country and for the point in another. A
# comma does not where a sign is of countries with points, as prices have no three decimals.
UNCLEAR = {
    "": r"^[^\d$£¥₹]?[1-9]\d{0,2},\d{3}$|^\D[1-9]\d{0,2}\.\d{3}$",
    COMMA: r"^\D?[1-9]\d{0,2}[.,]\d{3}$",
}
PEEKED_ROWS = 64
# Numbers that tell by their separator how their column is written, unless they are unclear. A bare
# 1.5 tells nothing: whether it is read beside others depends on where a batch ends.
TELLING = {"": r"^\D.*[.,]|,", COMMA: r"^\D.*[.,]|\.|,.*,"}
# Numbers of which blanks or apostrophes part the thousands, which no country has for the point.
GROUPED = r"^\D*\d{1,3}(?:[\s\p{Zs}'\x{2019}]\d{3})+(?:[.,]\d*)?\D*$"

# A number before a unit, or after a symbol or the code of a currency: "2919 EUR", "USD 7".
MEASURED = re.compile(
    r"\s*(?:([A-Z]{3}\s|[^\w\s.,+-])\s*[+-]?\d[\d.,]*|[+-]?\d[\d.,]*\s*([^\W\d]\S*|[^\w\s.,]))\s*"
)


def without_blanks(values: Any) -> Any:
    """Return values in which blank text is missing."""
    if not is_text(values.type):
        return values
    compute = compute_module()
    text = as_text(values)
    blank = compute.or_(compute.utf8_is_space(text), compute.equal(compute.binary_length(text), 0))
    return compute.if_else(blank, None, text) if compute.any(blank).as_py() else values


def unsigned(values: Any, sign: str) -> Any:
    """Return values in which numbers with a sign are bare; others do not become numbers by it."""
    if not is_text(values.type):
        return values
    compute = compute_module()
    text = _pointed(values, COMMA if sign.startswith(COMMA) else "")
    if try_numbers(text) is not None:
        return text
    signs, _, bare = _parts_of(text)
    is_own = compute.equal(signs, sign.removeprefix(COMMA))
    return compute.coalesce(compute.if_else(is_own, bare, None), text)


def _pointed(values: Any, mark: str) -> Any:
    """Return text in which commas are points, points commas, and thousands are not apart."""
    compute = compute_module()
    text = compute.utf8_trim_whitespace(as_text(values))
    are_grouped = compute.match_substring_regex(text, GROUPED)
    if _any(are_grouped):
        joined = compute.replace_substring_regex(text, r"(\d)[\s\p{Zs}'\x{2019}](\d)", r"\1\2")
        text = compute.if_else(are_grouped, joined, text)
    if mark == COMMA:
        for a, b in ((".", "\0"), (COMMA, "."), ("\0", COMMA)):
            text = compute.replace_substring(text, a, b)
    return text


def _parts_of(text: Any) -> tuple[Any, Any, Any]:
    """Return signs, signs before numbers, and bare numbers; null where text is no number."""
    compute = compute_module()
    minus, before, inner, number, after = compute.extract_regex(text, WRITTEN).flatten()
    none = import_arrow().scalar("", text.type)
    sign = compute.binary_join_element_wise(before, after, none)
    bare = compute.replace_substring(number, ",", "")
    return (
        sign,
        compute.binary_join_element_wise(sign, number, none),
        compute.binary_join_element_wise(minus, inner, bare, none),
    )


@dataclass
class NumberFormatScan:
    """Signs and separators in the text of a column, read with one mark, and its numbers."""

    mark: str
    sample: MedianSample | None = None
    signs: set[str] = field(default_factory=set)
    is_telling: bool = False
    is_unclear: bool = False
    # The first integer that float64 does not hold, and its row.
    inexact: tuple[int, int] | None = None

    def add(self, values: Any, numbers: Float64 | None, keys: Keys, row: int) -> bool:
        """Whether a batch, which may be plain ``numbers``, is numbers; if not, this one is none."""
        read = self._read(values, numbers)
        if read is None:
            return False
        if self.inexact is None and (inexact := inexact_integer(*read)) is not None:
            self.inexact = (row + inexact[0], inexact[1])
        if self.sample is not None:
            self.sample.add(keys, read[1])
        return True

    def _read(self, values: Any, numbers: Float64 | None) -> tuple[Any, Float64] | None:
        """Return the numbers of a batch, bare and as float64; None if some text is none."""
        compute, is_typed = compute_module(), not is_text(values.type)
        if numbers is not None and (
            is_typed or not self.mark or not _any(compute.match_substring(values, "."))
        ):
            # "nan" is no number among others that are text.
            has_nan = not is_typed and np.isnan(numbers).sum() > values.null_count
            self.signs.update(("", "nan") if has_nan else ("",))
            return values, numbers
        # Of plain numbers the first ones mostly tell that they have no decimal commas.
        some = slice(0, PEEKED_ROWS)
        if is_typed or (
            numbers is not None
            and len(values) > PEEKED_ROWS
            and self._read(values[some], numbers[some]) is None
        ):
            return None
        bare = text = _pointed(values, self.mark)
        # Without a sign, and nothing is to be told any more.
        parsed = try_numbers(text) if self.is_telling else None
        signs = import_arrow().array([""])
        if parsed is None:
            signs, written, bare = _parts_of(text)
            signs, bare = signs.filter(values.is_valid()), compute.coalesce(bare, text)
            parsed = try_numbers(bare)
            unclear = compute.match_substring_regex(written, UNCLEAR[self.mark])
            telling = compute.match_substring_regex(written, TELLING[self.mark])
            self.is_unclear |= _any(unclear)
            self.is_telling |= _any(compute.and_not(telling, unclear))
            self.is_telling |= _any(compute.match_substring_regex(as_text(values), GROUPED))
        self.signs.update(compute.fill_null(signs, "").unique().to_pylist())
        if parsed is None or np.isnan(parsed).sum() > values.null_count:
            return None
        return bare, parsed

    @property
    def sign(self) -> str | None:
        """The mark and sign of all, "" for none; None for bare numbers and where it is unclear."""
        is_clear = self.is_telling or not (self.is_unclear or "" in self.signs)
        return self.mark + next(iter(self.signs)) if is_clear and len(self.signs) == 1 else None

    @property
    def are_bare(self) -> bool:
        return self.signs == {""} and not (self.mark or self.is_telling or self.is_unclear)


def measured(texts: Sequence[str]) -> str | None:
    """Return one of the texts if most of them are numbers with the same unit.

    >>> measured(["87 m²", "102 m²", "unknown"]), measured(["a 1", "5 m", "6 l"])
    ('87 m²', None)
    """
    matches = [match for match in map(MEASURED.fullmatch, texts) if match]
    units = Counter(match.groups() for match in matches)
    unit, n = max(units.items(), key=itemgetter(1), default=(None, 0))
    if 2 * n <= len(texts):
        return None
    return next(match[0] for match in matches if match.groups() == unit)


def has_commas(text: Any) -> bool:
    compute = compute_module()
    return bool(compute.all(compute.match_substring(as_text(text), ",")).as_py())


def _any(mask: Any) -> bool:
    return bool(compute_module().any(mask).as_py())


def with_numbers(
    source: TableSource, label: str | None, kind: TargetKind, weight: str | None = None
) -> TableSource:
    """Return a table where a text label of numbers, and weights, have no signs nor commas."""
    wanted = (label if kind == "numbers" else None, weight)
    names = [name for name in wanted if name is not None]
    scans = {} if source.is_typed or not names else _scans_of(source, names)
    _check_clear(source, scans)
    signs = _signs_of(scans)
    if not signs:
        return source

    def batches(names: list[str]) -> Iterator[Any]:
        row, signed = 0, [name for name in names if name in signs]
        for batch in source.batches(names):
            for name in signed:
                at, values = batch.schema.get_field_index(name), column_of(batch, name)
                bare = unsigned(values, signs[name])
                numbers = import_arrow().array(as_numbers(bare, name, row, original=values))
                batch = batch.set_column(at, name, numbers)
            yield batch
            row += batch.num_rows

    return replace(source, batches=batches)


def _scans_of(source: TableSource, names: list[str]) -> dict[str, list[NumberFormatScan]]:
    """Return the ways in which the text of columns is numbers."""
    scans = {name: [NumberFormatScan(mark) for mark in UNCLEAR] for name in names}
    none = np.empty(0, np.uint64)
    for batch in source.batches(names):
        for name, ways in scans.items():
            values = without_blanks(column_of(batch, name))
            if values.null_count < len(values):
                numbers = try_numbers(values)
                scans[name] = [scan for scan in ways if scan.add(values, numbers, none, 0)]
        if not any(scans.values()):
            break
    return scans


def _signs_of(scans: dict[str, list[NumberFormatScan]]) -> dict[str, str]:
    """Return the signs of columns whose text is numbers for certain, but for plain ones."""
    certain = {name: [s.sign for s in ways if s.sign is not None] for name, ways in scans.items()}
    return {name: signs[0] for name, signs in certain.items() if signs}


def _check_clear(source: TableSource, scans: dict[str, list[NumberFormatScan]]) -> None:
    """Refuse columns of 1.234 alone beside decimal commas, where points may part thousands."""
    unclear = [n for n, ways in scans.items() if ways and ways[0].are_bare and ways[-1].is_unclear]
    others = [name for name in source.names if name not in scans]
    if not unclear or not others:
        return
    commas = [n for n, sign in _signs_of(_scans_of(source, others)).items() if COMMA in sign]
    if commas:
        raise DataError(
            f"{source.where}: column {unclear[0]!r} holds numbers as 1.234, beside columns with "
            f"decimal commas, as {commas[0]!r}; {WRITE_EITHER}."
        )
