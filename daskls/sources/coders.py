"""Labels of any kind to class codes, by the distinct values of a first reading; or numbers."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from daskls.errors import DataError
from daskls.records import Codes, Float64, Labels, TargetKind

__all__ = [
    "SCAN_ROWS",
    "LabelCoder",
    "LabelScan",
    "NumberCoder",
    "NumberScan",
    "RawLabels",
    "scan_of",
]

MAX_CLASSES = 65_536
# Labels that a scan reads at once.
SCAN_ROWS = 65_536

RawLabels: TypeAlias = Labels | list[str]


@dataclass(frozen=True)
class LabelCoder:
    """Sorted classes, and the code of every label as the file spells it."""

    classes: list[Any]
    codes: dict[Any, int]
    dtype: ClassVar[str] = "int32"

    def encode(self, labels: RawLabels) -> Codes:
        """Class codes of raw labels; each must be one that the scan saw."""
        try:
            if isinstance(labels, list):
                return np.fromiter(map(self.codes.__getitem__, labels), np.int32, len(labels))
            values, inverse = np.unique(labels, return_inverse=True)
            codes = np.array([self.codes[value] for value in values.tolist()], np.int32)
            return codes[inverse]
        except KeyError as error:
            raise DataError(
                f"Label {error.args[0]!r} was not in the file at the first reading; "
                "do not change the file while it is converted."
            ) from error


class LabelScan:
    """Collects the distinct labels of a file, one block at a time."""

    def __init__(self) -> None:
        self._values: set[Any] = set()
        self._is_text = False

    def add(self, labels: Labels, first_row: int) -> None:
        """Take a block of typed labels; its first one belongs to row `first_row`."""
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            row = first_row + int(np.argmin(np.isfinite(labels)))
            raise DataError(
                f"The label of row {row} (the first is 0) is {labels[row - first_row]}; "
                "remove such rows, or give them a label."
            )
        if labels.dtype.kind not in "biufU":
            raise DataError(f"Labels have type {labels.dtype}; they must be numbers or text.")
        self._take(np.unique(labels).tolist())

    def add_text(self, label: str, where: str) -> None:
        """Take one label as text from a text file; `where` names its line."""
        if label in self._values:
            return
        if label.lower() in ("", "nan", "na", "null"):
            raise DataError(f"{where}: the label is {label!r}; remove such rows.")
        self._is_text = True
        self._take([label])

    def _take(self, values: list[Any]) -> None:
        """Add distinct values, up to a bound that no class label reaches."""
        self._values.update(values)
        if len(self._values) > MAX_CLASSES:
            raise DataError(
                f"There are more than {MAX_CLASSES} different labels, so they are no classes; "
                "name the label column with `label`."
            )

    def finish(self) -> LabelCoder:
        """Sort the classes and give each its code."""
        meanings = _read_texts(self._values) if self._is_text else _tidy(self._values)
        classes = sorted(set(meanings.values()))
        code_of = {value: code for code, value in enumerate(classes)}
        return LabelCoder(classes, {raw: code_of[value] for raw, value in meanings.items()})


@dataclass(frozen=True)
class NumberCoder:
    """Numbers of a regression, as float64."""

    classes: None = None
    dtype: ClassVar[str] = "float64"

    def encode(self, labels: RawLabels) -> Float64:
        """Numbers of raw labels, which the scan has seen."""
        return np.array(labels, np.float64)


class NumberScan:
    """Checks the numbers of a file, one block at a time; the interface of `LabelScan`."""

    def add(self, numbers: Labels, first_row: int) -> None:
        """Take a block of typed numbers; its first one belongs to row `first_row`."""
        if numbers.dtype.kind not in "iuf":
            raise DataError(
                f"The column of targets has type {numbers.dtype}; a regressor needs numbers. Use a "
                "classifier where these are classes."
            )
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            row = first_row + int(np.argmin(np.isfinite(numbers)))
            raise DataError(
                f"The target of row {row} (the first is 0) is {numbers[row - first_row]}; remove "
                "such rows."
            )

    def add_text(self, number: str, where: str) -> None:
        """Take one number as text from a text file; `where` names its line."""
        try:
            # Python reads "1_0" as 10; nobody who writes it in a data file means that.
            is_finite = "_" not in number and math.isfinite(float(number))
        except ValueError:
            is_finite = False
        if not is_finite:
            raise DataError(
                f"{where}: the target is {number!r}, but a regressor needs numbers. Remove such "
                "rows, or use a classifier where these are classes."
            )

    def finish(self) -> NumberCoder:
        """Return what reads the numbers."""
        return NumberCoder()


def scan_of(kind: TargetKind) -> LabelScan | NumberScan:
    """Return what a first reading of a column of labels, or of numbers, adds to."""
    return LabelScan() if kind == "classes" else NumberScan()


def _tidy(values: set[Any]) -> dict[Any, Any]:
    """Each value as its class: floats without a fraction, all of them, are integers."""
    if all(isinstance(value, float) and value.is_integer() for value in values):
        return {value: int(value) for value in values}
    return {value: value for value in values}


def _read_texts(texts: set[str]) -> dict[Any, Any]:
    """Texts as bools, integers or floats where all of them are; so "1" and "+1" are one class."""
    if texts <= {"True", "False"}:
        return {text: text == "True" for text in texts}
    # Python reads "1_0" as 10; nobody who writes it in a data file means that.
    if not any("_" in text for text in texts):
        for kind in (int, float):
            try:
                numbers = {text: kind(text) for text in texts}
            except ValueError:
                continue
            if all(math.isfinite(number) for number in numbers.values()):
                tidy = _tidy(set(numbers.values()))
                return {text: tidy[number] for text, number in numbers.items()}
    return {text: text for text in texts}
