"""The column of labels: named by the user, or found by its usual name with a warning."""

from typing import Any

from daskls.datasets.readers._labels import LabelScan, RawLabels
from daskls.datasets.readers._table import listed, take_usual
from daskls.errors import DataError
from daskls.records import Labels
from daskls.tables.arrow import as_text, is_text
from daskls.tables.source import TableSource

__all__ = ["add_labels", "pick_label_column", "raw_labels"]


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
        raise DataError(
            f"{source.where} has no column {label!r}; its {len(names)} columns are: "
            f"{listed(names)}."
        )
    return label


def add_labels(scan: LabelScan, values: Any, source: TableSource, name: str, row: int) -> None:
    """Take the labels of a batch.

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
