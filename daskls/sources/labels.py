"""The column of labels: which one it is, its raw values, and whether it holds classes or numbers.

Text, booleans and categories are classes, fractions are numbers. Whole numbers of a table are
classes if they are few, or if each has enough rows; those of a data set on Zarr always.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import DataError, counted, listed
from daskls.records import AnyArray, Labels, TargetKind
from daskls.sources.arrow import (
    PartTypes,
    as_text,
    column_of,
    is_category,
    is_number,
    is_text,
    try_numbers,
)
from daskls.sources.base import (
    MAX_CLASSES,
    SCAN_ROWS,
    LabelScan,
    NumberScan,
    RawLabels,
    TableSource,
    column_error,
    guess_label,
    pick_label,
)
from daskls.sources.header import open_lines
from daskls.sources.signs import with_numbers

# Whole numbers are classes if they have at most the first number of different values, or if each
# value has at least the second number of rows.
FEW_CLASSES, CLASS_ROWS = 10, 10


def pick_label_column(source: TableSource, label: str | None, *, required: bool) -> str | None:
    """Return the named column of labels or, if required, the only one with a usual name."""
    names = source.names
    if label is None:
        likely = source.likely_labels
        return guess_label(likely, source.where, "fit(X, NAME)") if required else None
    if label not in names:
        is_text = source.has_header and not source.is_typed
        raise column_error(source.where, label, names, is_text=is_text)
    return label


def asked_label_column(source: TableSource, label: str | None, trained: str | None) -> str:
    """Return the column to score a table by: named or trained on, but never guessed."""
    known = label or trained
    if known is not None and known in source.names:
        return known
    lacks = "has no known label column" if known is None else f"has no column {known!r}"
    raise DataError(
        f"{source.where} {lacks}; its {len(source.names)} columns are: {listed(source.names)}. "
        f"{'' if label or known is None else 'The training table had its labels there. '}"
        "Name the column that holds the labels: --label NAME, or score(X, NAME)."
    )


def check_no_feature(label: str, features: list[str]) -> None:
    if label in features:
        raise DataError(
            f"The label {label!r} is a feature that the model was trained on. Name the column that "
            "holds the labels: --label NAME, or score(X, NAME)."
        )


def add_labels(
    scan: LabelScan | NumberScan, batch: Any, source: TableSource, types: PartTypes, row: int
) -> None:
    name = types.name
    values = column_of(batch, name)
    if not len(values):
        # The type of an empty part may be any.
        return
    if values.null_count:
        first = row + values.is_null().to_pylist().index(True)
        raise DataError(
            f"{source.where}: the label {name!r} of row {first} (the first is 0) is missing; "
            "remove such rows, or give them a label."
        )
    if not source.is_typed and is_text(values.type):
        for label in values.unique().to_pylist():
            scan.add_text(label.strip(), f"{source.where}, column {name!r}, from row {row} on")
        return
    types.add(batch, row)
    types.check()
    scan.add(_typed(values), row, name)


def raw_labels(values: Any, source: TableSource) -> RawLabels:
    """Return the labels of a batch in the form in which the scan saw them."""
    if not source.is_typed and is_text(values.type):
        return [label.strip() for label in values.to_pylist()]
    return _typed(values)


def _typed(values: Any) -> Labels:
    labels: Labels
    if is_text(values.type):
        labels = as_text(values).to_numpy(zero_copy_only=False).astype(str)
    else:
        labels = values.to_numpy(zero_copy_only=False)
    return labels


# Classes or numbers.


def kind_of_values(parts: Iterable[AnyArray]) -> tuple[TargetKind, str]:
    """Whether the numbers of a table, in parts, are classes or numbers, and why.

    >>> kind_of_values([np.array([0.5, 1.0])])
    ('numbers', 'it holds fractions')
    >>> kind_of_values([np.arange(5), np.arange(5)])
    ('classes', 'it holds 5 whole numbers')
    >>> kind_of_values([np.arange(50)])
    ('numbers', 'it holds 50 whole numbers, some in 1 row')
    """
    counts: Counter[float] = Counter()
    for values in parts:
        finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        if values.dtype.kind == "f" and (finite != np.floor(finite)).any():
            return "numbers", "it holds fractions"
        numbers, n_rows = np.unique(finite, return_counts=True)
        counts.update(dict(zip(numbers.tolist(), n_rows.tolist(), strict=True)))
        if len(counts) > MAX_CLASSES:
            return "numbers", f"it holds more than {MAX_CLASSES:,} whole numbers"
    reason = f"it holds {counted(len(counts), 'whole number', 'whole numbers')}"
    if len(counts) <= FEW_CLASSES:
        return "classes", reason
    least = min(counts.values())
    if least >= CLASS_ROWS:
        return "classes", f"{reason}, each in {least:,} rows or more"
    return "numbers", f"{reason}, some in {least} row{'s' * (least > 1)}"


class _TextError(Exception):
    """A column of a text file holds a value that is not a number."""


def kind_of_column(source: TableSource, label: str) -> tuple[TargetKind, str]:
    """Return what a column of a table holds, and why; it is read if its type does not decide."""
    kind = source.schema.field(label).type
    if source.is_typed and (is_category(kind) or not is_number(kind)):
        return "classes", f"it holds {kind}"

    def parts(source: TableSource) -> Iterable[AnyArray]:
        for batch in source.batches([label]):
            numbers = try_numbers(column_of(batch, label))
            if numbers is None:
                raise _TextError
            yield numbers

    with suppress(_TextError):
        return kind_of_values(parts(source))
    bare = with_numbers(source, label, "numbers")
    return ("classes", "it holds text") if bare is source else kind_of_values(parts(bare))


def kind_of_arrays(path: str, label: str | None) -> tuple[TargetKind, str]:
    """Return what the labels of a file of arrays are, and why; classes if it has no labels."""
    suffix = Path(path).suffix.lower()
    try:
        if suffix not in (".npz", ".npy"):
            return kind_of_values(_first_words(path))
        y = _member(path, label) if suffix == ".npz" else _column(path, label)
        return ("classes", "it has no labels") if y is None else kind_of_values([_as_numbers(y)])
    except _TextError:
        return "classes", "it holds no numbers"


def _member(path: str, label: str | None) -> AnyArray | None:
    with np.load(path, allow_pickle=False) as arrays:
        name = label or ("y" if "X" in arrays else "y_train")
        y: AnyArray | None = arrays.get(name)
        return y


def _column(path: str, label: str | None) -> AnyArray | None:
    rows = np.load(path, mmap_mode="r", allow_pickle=False)
    if label in (None, "none") or rows.ndim != 2:
        return None
    place = pick_label([str(i) for i in range(rows.shape[1])], label, path)
    return None if place is None else np.asarray(rows[:, place])


def _as_numbers(y: AnyArray) -> AnyArray:
    if y.dtype.kind not in "fiu":
        raise _TextError
    return y


def _first_words(path: str) -> Iterator[AnyArray]:
    with open_lines(Path(path)) as file:
        lines = (line.partition("#")[0].split(None, 1) for line in file)
        words = (line[0] for line in lines if line)
        while block := list(islice(words, SCAN_ROWS)):
            try:
                yield np.array(block, np.float64)
            except ValueError as error:
                raise _TextError from error


def kind_of_data(dataset: Any) -> tuple[TargetKind, str]:
    """Return what y of a data set on Zarr holds, and why: whole numbers are classes."""
    if dataset.y is None or dataset.classes is not None or dataset.y.dtype.kind != "f":
        return "classes", "y holds classes"
    for start in range(0, dataset.n_rows, SCAN_ROWS):
        values = np.asarray(dataset.y[start : start + SCAN_ROWS])
        values = values[np.isfinite(values)]
        if (values != np.floor(values)).any():
            return "numbers", "y holds fractions"
    return "classes", "y holds whole numbers"
