"""Comma (or semicolon, or tab) separated text, with or without a header line."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from daskls.datasets.readers._labels import scan_of
from daskls.datasets.readers._table import Block, Options, Table, pick_label, usual_names
from daskls.errors import DataError
from daskls.records import AnyArray, Float64

__all__ = ["open_csv"]


@dataclass(frozen=True)
class _Layout:
    """The format of the lines of one file."""

    path: Path
    delimiter: str
    names: list[str]
    has_header: bool
    label: int | None

    @property
    def features(self) -> list[str]:
        """Names of the feature columns."""
        return [name for i, name in enumerate(self.names) if i != self.label]


@contextmanager
def open_csv(path: Path, options: Options) -> Iterator[Table]:
    """Open a text table; the first pass checks columns and labels, the second reads numbers."""
    try:
        layout = _find_layout(path, options)
        n_rows, labels = 0, None if layout.label is None else scan_of(options.kind)
        for line, fields in _lines(layout):
            n_rows += 1
            if labels is not None and layout.label is not None:
                labels.add_text(fields[layout.label].strip(), f"{path}, line {line}")
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text fields: {error}.") from error
    dtype = np.dtype(np.float32) if options.dtype is None else options.dtype

    def blocks(block_rows: int) -> Iterator[Block]:
        lines = _lines(layout)
        while block := list(islice(lines, block_rows)):
            yield _split_block(layout, block, dtype)

    yield Table(
        n_rows,
        len(layout.features),
        dtype,
        layout.features if layout.has_header else None,
        None if labels is None else labels.finish(),
        blocks,
    )


def _find_layout(path: Path, options: Options) -> _Layout:
    """Find delimiter, header and label column from the first two lines."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        start = file.readline()
        delimiter = max(",;\t", key=start.count)
        file.seek(0)
        head = list(islice(filter(None, csv.reader(file, delimiter=delimiter)), 2))
    if not head:
        raise DataError(f"{path} is empty.")
    first = [field.strip() for field in head[0]]
    label = _guess_label(first, options.label, path)
    if label is not None and len(first) < 2:
        raise DataError(f"{path} has one column, the label, and no features; pass label='none'.")
    has_header = _is_header(first, head[1] if len(head) > 1 else None, label, path)
    names = first if has_header else [str(i) for i in range(len(first))]
    return _Layout(path, delimiter, names, has_header, pick_label(names, options.label, path))


def _guess_label(first: list[str], label: str | int | None, path: Path) -> int | None:
    """The label's column before it is known whether the first line holds names."""
    # "2" as an index comes first: without a header, a field of the first line may be 2 too.
    if isinstance(label, str) and label.lstrip("-").isdecimal():
        with suppress(IndexError):
            return range(len(first))[int(label)]
    if label is None:
        # Not chosen yet: without names, a label in words is the last field as a rule.
        usual = usual_names(first)
        return first.index(usual[0]) if usual else len(first) - 1
    return pick_label(first, label, path)


def _is_header(first: list[str], second: list[str] | None, label: int | None, path: Path) -> bool:
    """Whether the first line holds names: none of its features is a number."""
    numeric = [_is_number(field) for i, field in enumerate(first) if i != label]
    if not any(numeric):
        return True
    if not all(numeric):
        bad = next(field for i, field in enumerate(first) if i != label and not _is_number(field))
        raise DataError(
            f"{path}, line 1: {bad!r} is not a number, but other fields are; "
            "the line is neither a header nor a row. Correct it."
        )
    # Features named 0, 1, .. and a label named in words: the labels below it are numbers.
    if label is None or second is None or label >= len(second):
        return False
    return not _is_number(first[label]) and _is_number(second[label])


def _is_number(field: str) -> bool:
    """Whether a field is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def _lines(layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Every row's fields and line number; blank lines are skipped."""
    n_columns = len(layout.names)
    with layout.path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=layout.delimiter)
        rows = filter(None, reader)
        if layout.has_header:
            next(rows)
        for fields in rows:
            if len(fields) != n_columns:
                raise DataError(
                    f"{layout.path}, line {reader.line_num}: {len(fields)} columns, "
                    f"but line 1 has {n_columns}; correct or remove the line."
                )
            yield reader.line_num, fields


def _split_block(
    layout: _Layout, block: list[tuple[int, list[str]]], dtype: np.dtype[Any]
) -> Block:
    """Numbers and label texts of some lines."""
    labels = None
    if layout.label is not None:
        labels = [fields.pop(layout.label).strip() for _, fields in block]
    fields = chain.from_iterable(fields for _, fields in block)
    n_features = len(layout.features)
    try:
        X = np.fromiter(map(_number, fields), np.float64, len(block) * n_features)
    except ValueError as error:
        raise _bad_field(layout, block) from error
    return _narrow(X.reshape(len(block), n_features), dtype), labels


def _number(field: str) -> float:
    """A field's number; Python's digit groups ("1_000") are none."""
    if "_" in field:
        raise ValueError(field)
    return float(field)


def _narrow(X: Float64, dtype: np.dtype[Any]) -> AnyArray:
    """Numbers in the stored type; integers only where nothing is lost."""
    if dtype.kind == "f":
        return X
    whole = X.astype(np.int64)
    if not np.array_equal(whole, X):
        raise DataError(f"Some features are not integers, so they do not fit dtype {dtype}.")
    return whole if dtype.kind == "i" else whole.astype(np.uint64)


def _bad_field(layout: _Layout, block: list[tuple[int, list[str]]]) -> DataError:
    """The error that names the first field that is not a number."""
    for line, fields in block:
        for name, field in zip(layout.features, fields, strict=True):
            if not _is_number(field):
                return DataError(
                    f"{layout.path}, line {line}, column {name!r}: {field!r} is not a number; "
                    "correct or remove the line."
                )
    return DataError(f"{layout.path}: a field is not a number.")
