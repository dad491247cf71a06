"""Rows of all sources: a table of named columns, and a stream of features."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from daskls.errors import DataError, ParameterError, listed, warn_user
from daskls.records import (
    INEXACT,
    AnyArray,
    Codes,
    Float64,
    Keys,
    Labels,
    TargetKind,
    first_inexact,
)

# More different values are never classes.
MAX_CLASSES = 65_536
# Rows that a median is taken from: its rank is then within 1 % of the middle.
MEDIAN_SAMPLE = 8192
# Labels that a scan reads at once.
SCAN_ROWS = 65_536
# Values of a batch: 8 MiB of float64.
BATCH_FIELDS = 2**20
# Values of a block that is copied once more, or parsed in Python at some sixty bytes a field.
BLOCK_FIELDS = 2**18
# Names by which a column of labels is recognized.
USUAL_NAMES = ("y", "label", "target", "class")
# The names that Parquet files have for an index without one.
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
# A whole number as pandas writes it in a column that has gaps in some part.
WHOLE_FLOAT = re.compile(r"(-?\d+)\.0")
# A number with commas: "1,5", "1.000,5", "1,000", "1,000.5".
WITH_COMMA = re.compile(
    r"\s*[+-]?(\d+,\d*|,\d+|\d{1,3}([.\s']\d{3})+,\d*|\d{1,3}(,\d{3})+(\.\d*)?)([eE][+-]?\d+)?\s*"
)
WRITE_POINTS = "write 1,5 as 1.5 and 1,000 as 1000, where it is not certain which are meant"
WRITE_EITHER = "write 1.234 as 1234 or as 1,234, whichever is meant"

# Treatment of missing values, and of categories that no training row had.
Missing = Literal["auto", "refuse"]
Unknown = Literal["error", "zero"]
CHOICES = {"missing": ("auto", "refuse"), "unknown": ("zero", "error")}
# Labels as the source spells them: typed, or text of a text file.
RawLabels: TypeAlias = Labels | list[str]
# Features, labels as the source spells them, and weights; None for what the source does not hold.
Block: TypeAlias = tuple[AnyArray, RawLabels | None, AnyArray | None]


# Labels.


@dataclass(frozen=True)
class LabelCoder:
    classes: list[Any]
    codes: dict[Any, int]
    dtype: ClassVar[str] = "int32"

    def encode(self, labels: RawLabels) -> Codes:
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
    def __init__(self) -> None:
        self._values: set[Any] = set()
        self._is_text = False

    def add(self, labels: Labels, first_row: int, name: str = "y") -> None:
        """Add a block of typed labels of a column; the first one belongs to row `first_row`."""
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
        if label in self._values:
            return
        if label.lower() in ("", "nan", "na", "null"):
            raise DataError(f"{where}: the label is {label!r}; remove such rows.")
        self._is_text = True
        self._take([label])

    def _take(self, values: list[Any]) -> None:
        """Add distinct values; refuse more of them than classes can have."""
        self._values.update(values)
        if len(self._values) > MAX_CLASSES:
            raise DataError(
                f"There are more than {MAX_CLASSES} different labels, so they are not classes; "
                "name the label column with `label`."
            )

    def finish(self) -> LabelCoder:
        meanings = _read_texts(self._values) if self._is_text else _tidy(self._values)
        classes = sorted(set(meanings.values()))
        code_of = {value: code for code, value in enumerate(classes)}
        return LabelCoder(classes, {raw: code_of[value] for raw, value in meanings.items()})


@dataclass(frozen=True)
class NumberCoder:
    """The range of targets, which stay as they are."""

    low: float = 0.0
    high: float = 0.0
    classes: None = None
    dtype: ClassVar[str] = "float64"

    def encode(self, labels: RawLabels) -> Float64:
        return np.array(labels, np.float64)


class NumberScan:
    def __init__(self) -> None:
        self._low, self._high = np.inf, -np.inf

    def add(self, numbers: Labels, first_row: int, name: str = "y") -> None:
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
        place = first_inexact(numbers)
        if place is not None:
            raise DataError(
                f"The target {name!r} of row {first_row + place} (the first is 0) is "
                f"{numbers[place]}; {INEXACT}."
            )
        if len(numbers):
            self._take(float(numbers.min()), float(numbers.max()))

    def _take(self, low: float, high: float) -> None:
        self._low, self._high = min(self._low, low), max(self._high, high)

    def add_text(self, number: str, where: str) -> None:
        if WITH_COMMA.fullmatch(number):
            raise DataError(f"{where}: the target is {number!r}; {WRITE_POINTS}.")
        if not reads_as_number(number):
            raise DataError(
                f"{where}: the target is {number!r}, but a regressor needs numbers. Remove such "
                "rows, or use a classifier where these are classes."
            )
        if isinstance(_number(number), int) and int(number) != float(number):
            raise DataError(f"{where}: the target is {number}; {INEXACT}.")
        self._take(float(number), float(number))

    def finish(self) -> NumberCoder:
        return NumberCoder(self._low, self._high)


def reads_as_number(text: str) -> bool:
    """Whether a text of a data file is a finite number; "1_0", Python's 10, is none."""
    try:
        return "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


def scan_of(kind: TargetKind) -> LabelScan | NumberScan:
    return LabelScan() if kind == "classes" else NumberScan()


def _tidy(values: set[Any]) -> dict[Any, Any]:
    """Return the class of each value: numbers are integers if all are whole, else all floats."""
    if not any(isinstance(value, float) for value in values):
        return {value: value for value in values}
    kind = int if all(float(value).is_integer() for value in values) else float
    return {value: kind(value) for value in values}


def _read_texts(texts: set[str]) -> dict[Any, Any]:
    """A bool, an integer or a float if all texts are; so "1" and "+1" are one class."""
    if texts <= {"True", "False"}:
        return {text: text == "True" for text in texts}
    if all(map(reads_as_number, texts)):
        numbers = {text: _number(text) for text in texts}
        tidy = _tidy(set(numbers.values()))
        return {text: tidy[number] for text, number in numbers.items()}
    return one_spelling(texts)


def one_spelling(texts: set[str]) -> dict[str, str]:
    """Return "1" for "1.0" where both are among the texts, and other texts as they are."""
    matches = {text: WHOLE_FLOAT.fullmatch(text) for text in texts}
    return {t: whole[1] if whole and whole[1] in texts else t for t, whole in matches.items()}


def _number(text: str) -> int | float:
    """Return a number, exactly if it is whole."""
    try:
        return int(text)
    except ValueError:
        return float(text)


# Tables and features.


@dataclass(frozen=True)
class TableSource:
    """A table of named columns, which can be read more than once.

    `batches` yields Arrow batches of the columns named, in row order. Columns of `index` are read
    where a label, weights or a trained model name them, but are no features on their own. Without
    `has_header` the names are numbers. `keep` is what keeps its files.
    """

    where: str
    schema: Any
    batches: Callable[[list[str]], Iterator[Any]]
    n_rows: int | None = None
    is_typed: bool = True
    index: frozenset[str] = frozenset()
    has_header: bool = True
    keep: Any = None

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.schema.names]

    @property
    def likely_labels(self) -> list[str]:
        """The columns to guess the label from: an index only if no other has a usual name."""
        columns = [name for name in self.names if name not in self.index]
        return columns if usual_names(columns) else self.names

    def feature_columns(self, *, without: Collection[str]) -> list[str]:
        """Return the columns that become features, without the index and some others."""
        left_out = sorted(self.index.difference(without))
        named = [name for name in left_out if not UNNAMED_INDEX.fullmatch(name)]
        if "" in named:
            warn_user(
                f"The first column of {self.where} has no name: it is taken for an index and left "
                "out. Name it if it is a feature.",
                UserWarning,
            )
        elif named:
            warn_user(
                f"The index of {self.where} is left out: {listed(named)}. Write the DataFrame "
                "after reset_index() if it holds features.",
                UserWarning,
            )
        return [name for name in self.names if name not in self.index and name not in without]


@dataclass(frozen=True)
class Features:
    """The features and labels of a source: sizes, a coder of labels, and all rows in blocks.

    `table` is the encoding, as JSON values, by which models are to read tables; None if only the
    names of columns matter.
    """

    where: str
    n_rows: int | None
    n_features: int
    dtype: np.dtype[Any]
    names: list[str] | None
    labels: LabelCoder | NumberCoder | None
    blocks: Callable[[], Iterator[Block]]
    table: dict[str, Any] | None = None


@dataclass(frozen=True)
class TableOptions:
    """Treatment of missing values, of categories that no training row had, and of columns."""

    missing: Missing = "auto"
    unknown: Unknown = "zero"
    drop: Sequence[str] = ()
    weight: str | None = None

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ParameterError(f"{name} is {value!r}; it must be one of {choices}.")

    def check_unused(self, what: str) -> None:
        """Refuse options for ``what``, where columns are not encoded."""
        default = TableOptions()
        for name in ("unknown", "drop"):
            if getattr(self, name) != getattr(default, name):
                raise ParameterError(
                    f"{name}={getattr(self, name)!r} has no effect on {what}; it is for tables: "
                    "CSV and Parquet files, and DataFrames. Leave it out, or pass such a table."
                )


@dataclass(frozen=True)
class ReadOptions:
    """The parameters of `daskls.datasets.convert`; ``scratch`` is for temporary files."""

    label: str | int | None
    split: str | None
    dtype: np.dtype[Any] | None
    n_features: int | None
    scratch: Path
    kind: TargetKind = "classes"
    of_table: TableOptions = field(default_factory=TableOptions)


def check_unique(names: Sequence[Any], where: str) -> None:
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(
            f"{where} has more than one column {twice[0]!r}; rename them, as columns are known by "
            "their names."
        )


def check_same_columns(
    paths: Sequence[Path], names: Sequence[Sequence[str]], what: str = "the columns"
) -> None:
    """Refuse files of one table whose columns differ from the first file's; order is free."""
    for path, columns in zip(paths, names, strict=True):
        if set(columns) != set(names[0]):
            raise DataError(
                f"{path} has {what} {listed(columns)}, and {paths[0]} has {listed(names[0])}. "
                "Files of one table have the same columns."
            )


def batch_rows(n_columns: int, n_fields: int = BATCH_FIELDS) -> int:
    return max(1, n_fields // max(n_columns, 1))


def column_error(where: str, name: Any, names: Sequence[str], *, is_text: bool) -> DataError:
    line = " If its first line is not that of the names, remove what stands above it." * is_text
    return DataError(
        f"{where} has no column {name!r}; its {len(names)} columns are: {listed(names)}.{line}"
    )


def usual_names(names: Sequence[str]) -> list[str]:
    return [name for name in names if name.strip().lower() in USUAL_NAMES]


def guess_label(names: Sequence[str], where: str, call: str, remedy: str = "") -> str:
    """Return the only column that has a usual name of labels, with a warning."""
    usual = usual_names(names)
    if len(usual) != 1:
        problem = f"several usual names ({', '.join(usual)})" if usual else "no usual name"
        raise DataError(
            f"{where} has {problem} for a column of labels ({', '.join(USUAL_NAMES)}); its "
            f"{len(names)} columns are: {listed(names)}. Name it: --label NAME, or {call}{remedy}."
        )
    named = call.replace("NAME", repr(usual[0]))
    warn_user(
        f"No label column was named; it is {usual[0]!r}. To be sure, name it: --label {usual[0]}, "
        f"or {named}.",
        UserWarning,
    )
    return usual[0]


def pick_label(
    names: Sequence[str],
    label: str | int | None,
    where: str,
    likely: Sequence[str] = (),
    *,
    is_text: bool = False,
) -> int | None:
    """Return the index of the label's column; None for "none"."""
    if label == "none":
        return None
    if label is None:
        remedy = "; --label none, or label='none', where there is none"
        return list(names).index(guess_label(likely or names, where, "label=NAME", remedy))
    if label in names:
        return list(names).index(str(label))
    try:
        return range(len(names))[int(label)]
    except (ValueError, IndexError) as error:
        raise column_error(where, label, names, is_text=is_text) from error


def feature_dtype(dtype: np.dtype[Any], where: Any) -> np.dtype[Any]:
    """Return the dtype that features are stored in: integers as they are, bools as uint8."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype.kind in "iu":
        return dtype.newbyteorder("=")
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    raise DataError(f"The features in {where} have type {dtype}; they must be numbers.")


def narrowed(X: AnyArray, dtype: np.dtype[Any], where: Any) -> AnyArray:
    """DataError where some are not integers, or too large for the dtype."""
    if dtype.kind == "f":
        return X
    with np.errstate(invalid="ignore"):
        whole = X.astype(dtype)
    if not np.array_equal(whole, X):
        raise DataError(
            f"Some features in {where} are not integers that fit {dtype}. Choose a wider type, or "
            "float32."
        )
    return whole


@dataclass
class MedianSample:
    """The values of the rows with the least keys, which do not depend on the batches."""

    keys: Keys = field(default_factory=lambda: np.empty(0, np.uint64))
    values: Float64 = field(default_factory=lambda: np.empty(0))

    def add(self, keys: Keys, values: Float64) -> None:
        added = ~np.isnan(values)
        if len(self.keys) >= MEDIAN_SAMPLE:
            added &= keys < self.keys.max()
        keys, values = np.r_[self.keys, keys[added]], np.r_[self.values, values[added]]
        least = np.argsort(keys, kind="stable")[:MEDIAN_SAMPLE]
        self.keys, self.values = keys[least], values[least]

    def median(self) -> float:
        """Return the median; 0 if there are no finite values."""
        finite = self.values[np.isfinite(self.values)]
        return float(np.median(finite)) if len(finite) else 0.0
