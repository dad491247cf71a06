"""The result of every reader: the sizes of a table, its classes, and its rows in blocks."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from daskls.datasets.readers._labels import LabelCoder, RawLabels
from daskls.errors import DataError
from daskls.records import AnyArray

__all__ = ["Block", "Options", "Table", "feature_dtype", "pick_label"]

Block: TypeAlias = tuple[AnyArray, RawLabels | None]

LABEL_NAMES = ("y", "label", "target")


@dataclass(frozen=True)
class Options:
    """The request of `convert`'s caller, and a folder for temporary files."""

    label: str | int | None
    split: str | None
    dtype: np.dtype[Any] | None
    n_features: int | None
    scratch: str | os.PathLike[str]


@dataclass(frozen=True)
class Table:
    """A table whose first pass is done: sizes and classes are known, rows are not held.

    `blocks(m)` reads the rows from the start, at most m at a time, in row order.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    feature_names: list[str] | None
    labels: LabelCoder | None
    blocks: Callable[[int], Iterator[Block]]


def pick_label(names: list[str], label: str | int | None, path: Path) -> int | None:
    """The label's column: by name, by index, or the usual names, then the last; None for "none"."""
    if label == "none":
        return None
    if label is None:
        return next((names.index(n) for n in LABEL_NAMES if n in names), len(names) - 1)
    if label in names:
        return names.index(str(label))
    try:
        index = int(label)
        return range(len(names))[index]
    except (ValueError, IndexError) as error:
        shown = ", ".join(names[:20]) + (", .." if len(names) > 20 else "")
        raise DataError(
            f"{path} has no column {label!r}; its {len(names)} columns are: {shown}."
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
