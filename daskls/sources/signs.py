"""Numbers as people write them: "$1,234.50", "€ 5.50", "12 %", and blanks where there is none."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskls.records import Float64
from daskls.sources.arrow import as_text, compute_module, import_arrow, is_text, try_numbers

# A number with commas between thousands only, and with one sign, of a currency or of percent.
WRITTEN = (
    r"^(?P<minus>[+-]?)\s*(?P<before>\p{Sc}?)\s*(?P<inner>-?)"
    r"(?P<number>[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)"
    r"[\s\p{Zs}]*(?P<after>[\p{Sc}%]?)$"
)
# A separator that stands for thousands in one country and for the point in another. A comma does
# not where a sign is of countries with points, as prices have no three decimals.
UNCLEAR = r"^[^\d$£¥₹]?[1-9]\d{0,2},\d{3}$|^\D[1-9]\d{0,2}\.\d{3}$"
# Numbers that tell by their separator how their column is written, unless they are unclear. A bare
# 1.5 tells nothing: whether it is read beside others depends on where a batch ends.
TELLING = r"^\D.*[.,]|,"


def without_blanks(values: Any) -> Any:
    """Return values in which blank text is missing."""
    if not is_text(values.type):
        return values
    compute = compute_module()
    text = as_text(values)
    blank = compute.or_(compute.utf8_is_space(text), compute.equal(compute.binary_length(text), 0))
    return compute.if_else(blank, None, text) if compute.any(blank).as_py() else values


def unsigned(values: Any, sign: str) -> Any:
    """Return values in which numbers with a sign are bare; all others stay as they are."""
    if not is_text(values.type):
        return values
    compute = compute_module()
    signs, _, bare = _parts_of(values)
    return compute.coalesce(
        compute.if_else(compute.equal(signs, sign), bare, None), as_text(values)
    )


def _parts_of(values: Any) -> tuple[Any, Any, Any]:
    """Return signs, signs before numbers, and bare numbers; null where text is no number."""
    compute = compute_module()
    text = compute.utf8_trim_whitespace(as_text(values))
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
class SignScan:
    """What signs and separators the text of a column has, if all of it is numbers."""

    signs: set[str] = field(default_factory=set)
    is_telling: bool = False
    is_unclear: bool = False

    def add(self, values: Any) -> tuple[Any, Float64] | None:
        """Return the numbers of a batch, bare and as float64; None if some text is none."""
        compute = compute_module()
        signs, written, bare = _parts_of(values)
        bare = compute.coalesce(bare, as_text(values))
        found = try_numbers(bare)
        # "nan" is no number among others that are text.
        if found is None or np.isnan(found).sum() > values.null_count:
            return None
        self.signs.update(
            compute.fill_null(signs.filter(values.is_valid()), "").unique().to_pylist()
        )
        unclear = compute.match_substring_regex(written, UNCLEAR)
        telling = compute.match_substring_regex(written, TELLING)
        self.is_unclear |= bool(compute.any(unclear).as_py())
        self.is_telling |= bool(compute.any(compute.and_not(telling, unclear)).as_py())
        return bare, found

    @property
    def sign(self) -> str | None:
        """The sign of all numbers, "" for none; None for bare numbers and where it is unclear."""
        is_clear = self.is_telling or not (self.is_unclear or "" in self.signs)
        return next(iter(self.signs)) if is_clear and len(self.signs) == 1 else None

    @property
    def are_bare(self) -> bool:
        return self.signs == {""} and not self.is_telling and not self.is_unclear
