"""The column of labels: named by the user, or found by its usual name with a warning.

What a column holds that is to be learned, where nobody says so: classes, or numbers.

Text, booleans and categories are classes, fractions are numbers. Whole numbers of a table are
classes if they are few, or if each has rows enough; those of a data set on Zarr always were.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.records import AnyArray, Labels, TargetKind
from daskls.sources.arrow import as_text, column_of, is_category, is_number, is_text, try_numbers
from daskls.sources.base import (
    LabelScan,
    NumberScan,
    RawLabels,
    TableSource,
    column_error,
    listed,
    take_usual,
    usual_names,
)


def pick_label_column(source: TableSource, label: str | None, *, required: bool) -> str | None:
    """Return the column of labels: the named one, or the one with a usual name of labels.

    Warns
    -----
    UserWarning : where it was not named, with its name

    Raises
    ------
    DataError : no such column; none or several of the usual names
    """
    names = source.names
    if label is None:
        return take_usual(names, source.where, "fit(X, NAME)") if required else None
    if label not in names:
        raise column_error(source.where, label, names)
    return label


def asked_label_column(source: TableSource, label: str | None, trained: str | None) -> str:
    """Return the column that a table is scored by: the named one, or that of the training table.

    It is never guessed: a feature may have a usual name of labels.

    Raises
    ------
    DataError : none is known, or it is not there
    """
    known = label or trained
    if known is not None and known in source.names:
        return known
    lacks = "may hold its labels in any column" if known is None else f"has no column {known!r}"
    raise DataError(
        f"{source.where} {lacks}; its {len(source.names)} columns are: {listed(source.names)}. "
        f"{'' if label or known is None else 'The training table had its labels there. '}"
        "Name the column that holds the labels: --label NAME, or score(X, NAME)."
    )


def check_no_feature(label: str, features: list[str]) -> None:
    """Refuse a feature as the column of labels.

    Raises
    ------
    DataError
    """
    if label in features:
        raise DataError(
            f"The label {label!r} is a feature that the model was trained on. Name the column that "
            "holds the labels: --label NAME, or score(X, NAME)."
        )


def add_labels(
    scan: LabelScan | NumberScan, values: Any, source: TableSource, name: str, row: int
) -> None:
    """Take the labels, or the numbers, of a batch.

    Raises
    ------
    DataError : a missing label, dates, or more values than classes may have
    """
    if values.null_count:
        first = row + values.is_null().to_pylist().index(True)
        raise DataError(
            f"{source.where}: the label {name!r} of row {first} (the first is 0) is missing; "
            "remove such rows, or give them a label."
        )
    if not source.is_typed:
        for label in values.unique().to_pylist():
            scan.add_text(label.strip(), f"{source.where}, from row {row} on")
        return
    scan.add(_typed(values), row)


def raw_labels(values: Any, source: TableSource) -> RawLabels:
    """Return the labels of a batch as the scan saw them."""
    if not source.is_typed:
        return [label.strip() for label in values.to_pylist()]
    return _typed(values)


def _typed(values: Any) -> Labels:
    """Return labels as NumPy holds them."""
    labels: Labels
    if is_text(values.type):
        labels = as_text(values).to_numpy(zero_copy_only=False).astype(str)
    else:
        labels = values.to_numpy(zero_copy_only=False)
    return labels


# Whole numbers of so many different values are classes; of more, if each has so many rows.
FEW_CLASSES, CLASS_ROWS = 10, 10
# Of more different values there are no classes.
MOST_CLASSES = 65_536
SCANNED_ROWS = 65_536


def kind_of_values(parts: Iterable[AnyArray]) -> tuple[TargetKind, str]:
    """Return what numbers in parts are, and why, as of a table.

    Examples
    --------
    >>> kind_of_values([np.array([0.5, 1.0])])
    ('numbers', 'it holds fractions')
    >>> kind_of_values([np.arange(5), np.arange(5)])
    ('classes', 'it holds 5 whole numbers')
    >>> kind_of_values([np.arange(50)])
    ('numbers', 'it holds 50 whole numbers, some in 1 row')
    """
    counts: Counter[float] = Counter()
    for values in parts:
        own = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        if values.dtype.kind == "f" and (own != np.floor(own)).any():
            return "numbers", "it holds fractions"
        found, n_rows = np.unique(own, return_counts=True)
        counts.update(dict(zip(found.tolist(), n_rows.tolist(), strict=True)))
        if len(counts) > MOST_CLASSES:
            return "numbers", f"it holds more than {MOST_CLASSES:,} whole numbers"
    told = f"it holds {len(counts):,} whole numbers"
    if len(counts) <= FEW_CLASSES:
        return "classes", told
    least = min(counts.values())
    if least >= CLASS_ROWS:
        return "classes", f"{told}, each in {least:,} rows or more"
    return "numbers", f"{told}, some in {least} row{'s' * (least > 1)}"


def kind_of_column(source: TableSource, label: str) -> tuple[TargetKind, str]:
    """Return what a column of a table is, and why; it is read alone, if its type does not tell."""
    kind = source.schema.field(label).type
    if source.is_typed and (is_category(kind) or not is_number(kind)):
        return "classes", f"it holds {kind}"

    def parts() -> Iterable[AnyArray]:
        for batch in source.batches([label]):
            numbers = try_numbers(column_of(batch, label))
            if numbers is None:
                raise _TextError
            yield numbers

    try:
        return kind_of_values(parts())
    except _TextError:
        return "classes", "it holds text"


class _TextError(Exception):
    """A column of a text file holds what is no number."""


def kind_of_arrays(path: str, label: str | None) -> tuple[TargetKind, str]:
    """Return what the labels of a file of arrays are, and why; without labels classes."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as found:
            named = [label] if label else [*usual_names(list(found)), "y_train"]
            y = next((found[name] for name in named if name in found), None)
    elif suffix == ".npy":
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
        is_number = label is not None and label.lstrip("-").isdigit()
        y = np.asarray(rows[:, int(label)]) if is_number and label else None
    else:
        y = _first_words(path)
    if y is None or y.dtype.kind not in "fiu":
        return "classes", "it holds no numbers"
    return kind_of_values([y])


def _first_words(path: str) -> AnyArray | None:
    """Return the labels of a LIBSVM file; None where they are no numbers."""
    with Path(path).open(encoding="utf-8") as file:
        words = [line.split(None, 1)[0] for line in file if line.strip()]
    try:
        return np.array(words, np.float64)
    except ValueError:
        return None


def kind_of_data(dataset: Any) -> tuple[TargetKind, str]:
    """Return what y of a data set on Zarr is, and why: whole numbers are classes."""
    if dataset.y is None or dataset.classes is not None or dataset.y.dtype.kind != "f":
        return "classes", "y holds classes"
    for start in range(0, dataset.n_rows, SCANNED_ROWS):
        own = np.asarray(dataset.y[start : start + SCANNED_ROWS])
        own = own[np.isfinite(own)]
        if (own != np.floor(own)).any():
            return "numbers", "y holds fractions"
    return "classes", "y holds whole numbers"
