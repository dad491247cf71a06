"""The column of labels: named by the user, or found by its usual name with a warning."""

from typing import Any

from daskls.errors import DataError
from daskls.records import Labels
from daskls.sources.arrow import as_text, is_text
from daskls.sources.base import TableSource, column_error, listed, take_usual
from daskls.sources.coders import LabelScan, NumberScan, RawLabels

__all__ = [
    "add_labels",
    "asked_label_column",
    "check_no_feature",
    "pick_label_column",
    "raw_labels",
]


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
