"""The LIBSVM / SVMlight text format: a label, then `index:value` pairs, indices from 1 rising."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from operator import lt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from daskls.errors import DataError, ParameterError
from daskls.sources.base import BLOCK_FIELDS, Block, Features, ReadOptions, batch_rows, narrowed
from daskls.sources.coders import scan_of

__all__ = ["open_svmlight"]

PLAIN_PAIRS = re.compile(r"[^:\s]+(?:\s+[0-9]+:[^:\s_]+)*")


class _Line(NamedTuple):
    """One row of the file."""

    label: str
    columns: list[int]
    values: list[float]


@contextmanager
def open_svmlight(path: Path, options: ReadOptions) -> Iterator[Features]:
    """Open a sparse text file; the first pass finds its width and its labels."""
    with_y = _check_label(options.label)
    scan = scan_of(options.kind)
    n_rows = largest = 0
    try:
        for line, row in _rows(path):
            n_rows += 1
            largest = max(largest, row.columns[-1] + 1 if row.columns else 0)
            if with_y:
                scan.add_text(row.label, f"{path}, line {line}")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text: {error}.") from error
    n_features = largest if options.n_features is None else options.n_features
    if n_features < largest:
        raise ParameterError(f"n_features is {n_features}, but {path} has index {largest}.")
    dtype = np.dtype(np.float32) if options.dtype is None else options.dtype

    def blocks() -> Iterator[Block]:
        rows = (row for _, row in _rows(path))
        block_rows = batch_rows(n_features, BLOCK_FIELDS)
        while block := list(islice(rows, block_rows)):
            y = [row.label for row in block] if with_y else None
            yield _dense(block, n_features, dtype, path), y, None

    labels = scan.finish() if with_y else None
    yield Features(str(path), n_rows, n_features, dtype, None, labels, blocks)


def _check_label(label: str | int | None) -> bool:
    """Whether labels are kept; the format has them in one place only."""
    if label not in (None, "none"):
        raise ParameterError(
            f"label must be None or 'none' for a LIBSVM file, where it is first, got {label!r}."
        )
    return label is None


def _rows(path: Path) -> Iterator[tuple[int, _Line]]:
    """Every row and its line number; comments and blank lines are skipped."""
    with path.open(encoding="utf-8") as file:
        for line, text in enumerate(file, start=1):
            content = text.partition("#")[0].strip()
            if not content:
                continue
            try:
                yield line, _parse(content)
            except ValueError as error:
                raise DataError(f"{path}, line {line}: {error}; correct the line.") from error


def _parse(content: str) -> _Line:
    """One row: quickly where it has the plain form, as nearly all have."""
    if PLAIN_PAIRS.fullmatch(content):
        label, *tokens = content.replace(":", " ").split()
        columns = [int(index) - 1 for index in tokens[::2]]
        if not columns or (columns[0] >= 0 and all(map(lt, columns, columns[1:]))):
            return _Line(label, columns, [float(value) for value in tokens[1::2]])
    return _parse_pairs(content)


def _parse_pairs(content: str) -> _Line:
    """One row, pair by pair, or a ValueError that says what is wrong with it."""
    label, *pairs = content.split()
    if ":" in label:
        raise ValueError(f"starts with {label!r} where the label should be")
    columns, values, last = [], [], -1
    for pair in pairs:
        index, colon, value = pair.partition(":")
        if index == "qid":
            continue
        if not colon or not index.isdecimal() or "_" in value:
            raise ValueError(f"{pair!r} is not of the form index:value")
        column = int(index) - 1
        if column <= last:
            why = "indices start at 1" if column < 0 else "indices must rise"
            raise ValueError(f"index {index} is wrong: {why}")
        columns.append(column)
        values.append(float(value))
        last = column
    return _Line(label, columns, values)


def _dense(
    block: list[_Line], n_features: int, dtype: np.dtype[Any], path: Path
) -> np.ndarray[Any, Any]:
    """Some rows as a dense matrix."""
    X = np.zeros((len(block), n_features), np.float64 if dtype.kind != "f" else dtype)
    for row, (_, columns, values) in zip(X, block, strict=True):
        row[columns] = values
    return narrowed(X, dtype, path)
