"""Writing rows: a source as a data set on Zarr, and predictions as a CSV or Parquet file."""

import csv
import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import DataError, StoreError
from daskls.records import INEXACT, AnyArray, first_inexact
from daskls.sources.arrow import as_numbers, column_of, import_arrow, is_number
from daskls.sources.base import (
    Block,
    Features,
    LabelCoder,
    NumberCoder,
    ReadOptions,
    TableSource,
    feature_dtype,
    narrowed,
    pick_label,
)
from daskls.sources.encoding import TableEncoding, UnseenCounts
from daskls.sources.labels import raw_labels
from daskls.sources.scan import scan_table
from daskls.sources.signs import with_numbers
from daskls.sources.statistics import CrossFit
from daskls.store.arrays import PREDICT_AGAIN, ArrayHandle, find_array
from daskls.store.dataset import Dataset, DatasetWriter
from daskls.store.errors import disk_errors, exists_already
from daskls.store.folder import link_once
from daskls.store.objects import BaseStore, open_store

# The data set of the weights of rows, beside that of the rows.
WEIGHTS = "weights"
# Formats of predictions, by suffix.
ENDINGS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
# Predictions that are copied at once.
ANSWER_ROWS = 65_536

# Called with the number of rows done, and that of all rows if it is known.
RowsDone = Callable[[int, int | None], None]


# Data sets.


def encoded(
    source: TableSource,
    encoding: TableEncoding,
    *,
    label: str | None = None,
    labels: LabelCoder | NumberCoder | None = None,
    n_rows: int | None = None,
    with_names: bool = True,
    cross_fit: CrossFit | None = None,
) -> Features:
    """Return a table's features, encoded as a model needs them; `n_rows` is for progress.

    Training rows have their ``cross_fit``.
    """
    encoding.check_columns(source.names)
    extra = [name for name in (label, encoding.weight) if name is not None]

    def blocks() -> Iterator[Block]:
        first, news = 0, UnseenCounts()
        # A column of weights may be a feature, too.
        for batch in source.batches(list(dict.fromkeys([*encoding.column_names, *extra]))):
            y = None if label is None else raw_labels(column_of(batch, label), source)
            X, weights = encoding.encode(batch, first, news, cross_fit), None
            if encoding.weight is not None:
                weights = as_numbers(column_of(batch, encoding.weight), encoding.weight, first)
            yield X, y, weights
            first += batch.num_rows
        news.warn()

    names, dtype = encoding.feature_names, np.dtype(encoding.dtype)
    own_names = names if with_names else None
    return Features(source.where, n_rows, len(names), dtype, own_names, labels, blocks)


def columns_of(source: TableSource, options: ReadOptions) -> Features:
    """Return a table's columns as features, encoded as by a fit; a first pass reads them all."""
    where, names = source.where, source.names
    is_text = source.has_header and not source.is_typed
    column = pick_label(names, options.label, where, source.likely_labels, is_text=is_text)
    label = None if column is None else names[column]
    source = with_numbers(source, label, options.kind)
    scanned = scan_table(source, label, options.of_table, kind=options.kind)
    encoding = scanned.encoding
    dtype = _stored_dtype(source, encoding) if options.dtype is None else options.dtype
    # Wide, so that what a narrower dtype does not hold shows when it is stored.
    wide = replace(encoding, dtype="float64")
    features = encoded(
        source,
        wide,
        label=label,
        labels=scanned.labels,
        n_rows=scanned.n_rows,
        cross_fit=scanned.cross_fit,
    )

    def blocks() -> Iterator[Block]:
        for X, y, weights in features.blocks():
            yield narrowed(X, dtype, where), y, weights

    # Names that only number the columns come from a file without a header.
    feature_names = features.names if source.is_typed or encoding.has_header else None
    table = replace(encoding, dtype=str(dtype)) if dtype.kind == "f" else wide
    # Plain numbers are found by their names alone.
    are_plain = all(column.is_plain for column in encoding.columns)
    stored = None if are_plain else table.to_json()
    return replace(features, dtype=dtype, names=feature_names, table=stored, blocks=blocks)


def _stored_dtype(source: TableSource, encoding: TableEncoding) -> np.dtype[Any]:
    """Return a dtype that holds every column: of numbers alone their own, float32 for text."""
    if all(column.is_plain for column in encoding.columns) and not source.is_typed:
        return np.dtype(np.float32)
    types = import_arrow().types
    kinds = [source.schema.field(name).type for name in encoding.column_names]
    are_typed = all(is_number(kind) or types.is_boolean(kind) for kind in kinds)
    if not are_typed or any(column.fill is not None for column in encoding.columns):
        return np.dtype(encoding.dtype)
    dtypes = [float if types.is_decimal(kind) else kind.to_pandas_dtype() for kind in kinds]
    return feature_dtype(np.result_type(*dtypes), source.where)


def write_features(
    features: Features,
    target: str,
    *,
    dtype: np.dtype[Any] | None = None,
    chunk_rows: int | None = None,
    overwrite: bool = False,
    on_rows: RowsDone | None = None,
) -> Dataset:
    """Write features, and labels if there are any, as a data set; it appears whole or not at all.

    Weights go into another data set `WEIGHTS` beside it, as an array ``X`` of one column.
    """
    beside, dtype = os.path.dirname(target), features.dtype if dtype is None else dtype
    folder = open_store(beside)
    folder.make()
    _check_room(features, dtype, folder)
    labels, done, weights = features.labels, 0, None
    with ExitStack() as stack:
        writer = DatasetWriter(
            target,
            features.n_features,
            dtype,
            with_y=labels is not None,
            y_dtype="int32" if labels is None else labels.dtype,
            classes=None if labels is None else labels.classes,
            feature_names=features.names,
            table=features.table,
            source=Path(features.where).name,
            chunk_rows=chunk_rows,
            overwrite=overwrite,
        )
        stack.enter_context(writer)
        for X, raw, own_weights in features.blocks():
            place = None if dtype.kind != "f" else first_inexact(X)
            if place is not None:
                row, column = done + place // X.shape[1], place % X.shape[1]
                raise DataError(
                    f"{features.where} holds {X.flat[place]} in row {row} (the first is 0), column "
                    f"{column}; {INEXACT}."
                )
            y = None if labels is None or raw is None else labels.encode(raw)
            if own_weights is not None:
                if weights is None:
                    weights = DatasetWriter(f"{beside}/{WEIGHTS}", 1, "float64", with_y=False)
                    stack.enter_context(weights)
                weights.append(own_weights[:, None])
            for start in range(0, len(X), writer.chunk_rows):
                rows = slice(start, start + writer.chunk_rows)
                writer.append(X[rows], None if y is None else y[rows])
                done += len(X[rows])
                if on_rows is not None:
                    on_rows(done, features.n_rows)
        if features.n_rows not in (None, done):
            raise DataError(
                f"Read {done} rows of {features.where}, but {features.n_rows} at the first "
                "reading; do not change the file while it is read."
            )
    if on_rows is not None and features.n_rows is None and done:
        # The number of all rows is known only now.
        on_rows(done, done)
    return writer.close()


def _check_room(features: Features, dtype: np.dtype[Any], folder: BaseStore) -> None:
    """Refuse what the disk has no room for; sparse rows become many times larger when dense."""
    n_rows = features.n_rows or 0
    needed = n_rows * features.n_features * dtype.itemsize
    free = folder.free_nbytes()
    # Integers compress well, most floats hardly.
    if dtype.kind == "f" and needed > free:
        raise StoreError(
            f"No space left for {n_rows} rows of {features.n_features} features: they are "
            f"{needed >> 20} MiB of {dtype} as dense rows, and {free >> 20} MiB are free in "
            f"{folder}. Free some space, or give a larger disk; for sparse rows reduce the number "
            "of features first, as with scikit-learn's TruncatedSVD."
        )


# Predictions.


def prediction_format(path: str | os.PathLike[str]) -> str | None:
    """Return "csv" or "parquet" by a path's suffix; None for any other, which is a Zarr array.

    >>> prediction_format("out.csv"), prediction_format("out.zarr")
    ('csv', None)
    """
    name = Path(path).name.lower()
    return next((kind for end, kind in ENDINGS.items() if name.endswith(end)), None)


def write_predictions(source: str, target: Path, names: list[str]) -> int:
    """Copy predictions from a Zarr array to a CSV or Parquet file, whole or not at all."""
    array = find_array(source)
    if array is None:
        raise AssertionError(f"{source} is a path")
    partial = target.with_name(f".{os.getpid()}-{target.name}")
    write = _write_csv if prediction_format(target) == "csv" else _write_parquet
    with disk_errors(target, PREDICT_AGAIN):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(array, partial, names)
            # The target may have appeared meanwhile.
            if not link_once(str(partial), str(target)):
                raise exists_already(target)
        finally:
            partial.unlink(missing_ok=True)
    return array.shape[0]


def _blocks(array: ArrayHandle) -> Iterator[AnyArray]:
    for start in range(0, array.shape[0], ANSWER_ROWS):
        rows = array.read(start, min(start + ANSWER_ROWS, array.shape[0]))
        yield rows.reshape(len(rows), -1)


def _write_csv(array: ArrayHandle, path: Path, names: list[str]) -> None:
    """Write a header and the answers as text, a line per row, compressed if the name says so."""
    name = path.name.lower()
    delimiter = "\t" if ".tsv" in name else ","
    open_text: Callable[..., Any] = gzip.open if name.endswith(".gz") else open
    with open_text(path, "wt", newline="", encoding="utf-8") as file:
        table = csv.writer(file, delimiter=delimiter)
        table.writerow(names)
        for rows in _blocks(array):
            table.writerows(rows.tolist())


def _write_parquet(array: ArrayHandle, path: Path, names: list[str]) -> None:
    arrow = import_arrow()
    from pyarrow import parquet

    writer: Any = None
    try:
        for rows in _blocks(array):
            columns = [arrow.array(rows[:, i].tolist()) for i in range(len(names))]
            batch = arrow.table(columns, names=names)
            if writer is None:
                writer = parquet.ParquetWriter(path, batch.schema)
            writer.write_table(batch)
    finally:
        if writer is not None:
            writer.close()
