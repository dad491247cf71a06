"""What every source of rows comes to: a table of named columns, and features that stream.

Labels of any kind to class codes, by the distinct values of a first reading; or numbers.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from daskls.errors import DataError
from daskls.records import AnyArray, Codes, Float64, Labels, TargetKind

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


# Values of a batch: 8 MiB of float64. Of a block that is copied once more, or parsed in Python at
# some sixty bytes a field, fewer.
BATCH_FIELDS, BLOCK_FIELDS = 2**20, 2**18
USUAL_NAMES = ("y", "label", "target", "class")
N_LISTED = 20

# Features, the labels as the source spells them, and weights; None of what it does not hold.
Block: TypeAlias = tuple[AnyArray, RawLabels | None, AnyArray | None]


@dataclass(frozen=True)
class TableSource:
    """A table of named columns, which can be read more than once.

    Attributes
    ----------
    where : str. What to call it in errors.
    schema : Arrow schema. Names and kinds of the columns.
    batches : called with names of columns; yields Arrow batches of them, in row order
    n_rows : int, or None where only reading tells
    is_typed : bool. Whether the kinds of the columns are known; else all are text.
    """

    where: str
    schema: Any
    batches: Callable[[list[str]], Iterator[Any]]
    n_rows: int | None = None
    is_typed: bool = True

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.schema.names]


@dataclass(frozen=True)
class Features:
    """Features of a source, with its labels: sizes are known, rows are not held.

    Attributes
    ----------
    where : str. What to call the source in errors, and in the data set that is made of it.
    n_rows : int, or None where only reading tells
    dtype : of the features
    names : list of str, one a feature, or None
    labels : what codes the labels, or None where there are none
    blocks : yields the rows in blocks, from the first on, in row order; can be called again
    """

    where: str
    n_rows: int | None
    n_features: int
    dtype: np.dtype[Any]
    names: list[str] | None
    labels: LabelCoder | NumberCoder | None
    blocks: Callable[[], Iterator[Block]]


@dataclass(frozen=True)
class ReadOptions:
    """What of a file is read, and how; `daskls.datasets.convert` says more.

    ``scratch`` is a folder for temporary files.
    """

    label: str | int | None
    split: str | None
    dtype: np.dtype[Any] | None
    n_features: int | None
    scratch: Path
    kind: TargetKind = "classes"


def listed(names: Sequence[str]) -> str:
    """The names of columns as one line, the first ones only if they are many."""
    return ", ".join(names[:N_LISTED]) + (", ..." if len(names) > N_LISTED else "")


def check_unique(names: Sequence[Any], where: str) -> None:
    """Refuse names of columns that do not tell these apart.

    Raises
    ------
    DataError
    """
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(
            f"{where} has more than one column {twice[0]!r}; rename them, as columns are known by "
            "their names."
        )


def check_same_columns(paths: Sequence[Path], names: Sequence[Sequence[str]]) -> None:
    """Refuse files of one table that have other columns than the first one, in any order.

    Raises
    ------
    DataError
    """
    for path, own in zip(paths, names, strict=True):
        if set(own) != set(names[0]):
            raise DataError(
                f"{path} has the columns {listed(own)}, and {paths[0]} has {listed(names[0])}. "
                "Files of one table have the same columns."
            )


def batch_rows(n_columns: int, n_fields: int = BATCH_FIELDS) -> int:
    """Return the rows of a batch of so many fields."""
    return max(1, n_fields // max(n_columns, 1))


def column_error(where: str, name: Any, names: Sequence[str]) -> DataError:
    """Return the error of a column that is not there."""
    return DataError(
        f"{where} has no column {name!r}; its {len(names)} columns are: {listed(names)}."
    )


def usual_names(names: Sequence[str]) -> list[str]:
    """The columns that are called as labels usually are."""
    return [name for name in names if name.strip().lower() in USUAL_NAMES]


def take_usual(names: Sequence[str], where: str, call: str, remedy: str = "") -> str:
    """The one column that is called as labels usually are; a warning says so.

    Parameters
    ----------
    names : all columns
    where : str. What to call the table.
    call : str. How the label is named in Python, with NAME in place of it.
    remedy : str. What else to do where there is none.

    Warns
    -----
    UserWarning

    Raises
    ------
    DataError : none or several are
    """
    usual = usual_names(names)
    if len(usual) != 1:
        found = f"several usual names ({', '.join(usual)})" if usual else "no usual name"
        raise DataError(
            f"{where} has {found} for a column of labels ({', '.join(USUAL_NAMES)}); its "
            f"{len(names)} columns are: {listed(names)}. Name it: --label NAME, or {call}{remedy}."
        )
    named = call.replace("NAME", repr(usual[0]))
    warnings.warn(
        f"No label column was named; it is {usual[0]!r}. To be sure, name it: --label {usual[0]}, "
        f"or {named}.",
        UserWarning,
        stacklevel=3,
    )
    return usual[0]


def pick_label(names: Sequence[str], label: str | int | None, where: str) -> int | None:
    """The label's column: by name, by index, or by a usual name of labels; None for "none".

    Raises
    ------
    DataError : no such column, or none of a usual name
    """
    if label == "none":
        return None
    if label is None:
        remedy = "; --label none, or label='none', where there is none"
        return list(names).index(take_usual(names, where, "label=NAME", remedy))
    if label in names:
        return list(names).index(str(label))
    try:
        return range(len(names))[int(label)]
    except (ValueError, IndexError) as error:
        raise column_error(where, label, names) from error


def feature_dtype(dtype: np.dtype[Any], where: Any) -> np.dtype[Any]:
    """The type in which features of a type are stored: integers and floats as they are.

    Raises
    ------
    DataError : neither
    """
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype.kind in "iu":
        return dtype.newbyteorder("=")
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    raise DataError(f"The features in {where} have type {dtype}; they must be numbers.")


def narrowed(X: AnyArray, dtype: np.dtype[Any], where: Any) -> AnyArray:
    """Numbers that were text as integers, where such are asked for and nothing is lost by it.

    Raises
    ------
    DataError : some are no integers, or too large for the type
    """
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
