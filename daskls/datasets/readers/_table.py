"""The result of every reader: the sizes of a table, its classes, and its rows in blocks."""

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from daskls.datasets.readers._labels import LabelCoder, NumberCoder, RawLabels
from daskls.errors import DataError
from daskls.records import AnyArray, TargetKind

__all__ = [
    "Block",
    "Options",
    "Table",
    "feature_dtype",
    "listed",
    "pick_label",
    "take_usual",
    "usual_names",
]

Block: TypeAlias = tuple[AnyArray, RawLabels | None]

USUAL_NAMES = ("y", "label", "target", "class")
N_LISTED = 20


@dataclass(frozen=True)
class Options:
    """The request of `convert`'s caller, and a folder for temporary files."""

    label: str | int | None
    split: str | None
    dtype: np.dtype[Any] | None
    n_features: int | None
    scratch: str | os.PathLike[str]
    kind: TargetKind = "classes"


@dataclass(frozen=True)
class Table:
    """A table whose first pass is done: sizes and classes are known, rows are not held.

    `blocks(m)` reads the rows from the start, at most m at a time, in row order.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    feature_names: list[str] | None
    labels: LabelCoder | NumberCoder | None
    blocks: Callable[[int], Iterator[Block]]


def listed(names: list[str]) -> str:
    """The names of columns as one line, the first ones only if they are many."""
    return ", ".join(names[:N_LISTED]) + (", ..." if len(names) > N_LISTED else "")


def usual_names(names: list[str]) -> list[str]:
    """The columns that are called as labels usually are."""
    return [name for name in names if name.strip().lower() in USUAL_NAMES]


def take_usual(names: list[str], where: str, call: str, remedy: str = "") -> str:
    """The one column that is called as labels usually are; a warning says so.

    Parameters
    ----------
    names : list of str. All columns.
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


def pick_label(names: list[str], label: str | int | None, path: Path) -> int | None:
    """The label's column: by name, by index, or by a usual name of labels; None for "none"."""
    if label == "none":
        return None
    if label is None:
        remedy = "; --label none, or label='none', where there is none"
        return names.index(take_usual(names, str(path), "label=NAME", remedy))
    if label in names:
        return names.index(str(label))
    try:
        index = int(label)
        return range(len(names))[index]
    except (ValueError, IndexError) as error:
        raise DataError(
            f"{path} has no column {label!r}; its {len(names)} columns are: {listed(names)}."
        ) from error


def feature_dtype(dtype: np.dtype[Any], path: Path) -> np.dtype[Any]:
    """The type in which features of a type are stored: integers and floats as they are."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype.kind in "iu":
        return dtype.newbyteorder("=")
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    raise DataError(f"The features in {path} have type {dtype}; they must be numbers.")
