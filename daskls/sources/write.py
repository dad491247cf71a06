"""Writing rows: a source as a data set on Zarr, and predictions as a CSV or Parquet file."""

import csv
import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import DataError, StoreError
from daskls.records import INEXACT, AnyArray, first_inexact
from daskls.sources.arrow import PartTypes, as_numbers, column_of, import_arrow, is_number
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
from daskls.sources.encoding import News, TableEncoding
from daskls.sources.labels import raw_labels
from daskls.sources.scan import scan_labels
from daskls.sources.statistics import CrossFit
from daskls.store.arrays import PREDICT_AGAIN, ArrayHandle, find_array
from daskls.store.dataset import Dataset, DatasetWriter
from daskls.store.errors import disk_errors, exists_already
from daskls.store.folder import link_once
from daskls.store.objects import Objects, open_store

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
    own = [name for name in (label, encoding.weight) if name is not None]

    def blocks() -> Iterator[Block]:
        first, news = 0, News()
        # A column of weights may be a feature, too.
        for batch in source.batches(list(dict.fromkeys([*encoding.column_names, *own]))):
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


def plain(source: TableSource, options: ReadOptions) -> Features:
    """Return a table's numeric columns as features; a first pass reads the label."""
    where, names = source.where, source.names
    is_text = source.has_header and not source.is_typed
    column = pick_label(names, options.label, where, source.likely_labels, is_text=is_text)
    label = None if column is None else names[column]
    wanted = source.feature_columns(without=[] if label is None else [label])
    if not wanted:
        raise DataError(
            f"{where} has no feature columns besides the label {label!r}; pass label='none' where "
            "that is a feature."
        )
    dtype = _plain_dtype(source, wanted) if options.dtype is None else options.dtype
    if label is None:
        n_rows, labels = _count_rows(source), None
    else:
        n_rows, labels = scan_labels(source, label, options.kind)

    def blocks() -> Iterator[Block]:
        first, types = 0, [PartTypes(where, name) for name in wanted]
        for batch in source.batches(wanted if label is None else [*wanted, label]):
            for own in types if source.is_typed else ():
                own.add(batch, first)
                own.check()
            columns = [
                _numbers(column_of(batch, name), name, first, where, dtype) for name in wanted
            ]
            y = None if label is None else raw_labels(column_of(batch, label), source)
            X = np.column_stack(columns)
            yield X if source.is_typed else narrowed(X, dtype, where), y, None
            first += batch.num_rows

    # Names that only number the columns come from a file without a header.
    own = None if not source.is_typed and names == list(map(str, range(len(names)))) else wanted
    return Features(where, n_rows, len(wanted), dtype, own, labels, blocks)


def _count_rows(source: TableSource) -> int:
    """Return the number of rows of a table, reading a column if necessary."""
    if source.n_rows is not None:
        return source.n_rows
    return sum(batch.num_rows for batch in source.batches(source.names[:1]))


def _plain_dtype(source: TableSource, names: list[str]) -> np.dtype[Any]:
    """Return a dtype that holds every column; float32 for a table of text."""
    if not source.is_typed:
        return np.dtype(np.float32)
    types, dtypes = import_arrow().types, []
    for name in names:
        kind = source.schema.field(name).type
        if not is_number(kind) and not types.is_boolean(kind):
            raise DataError(
                f"{source.where}, column {name!r}: type {kind} is not numeric; drop it, or name "
                "the label column with `label`. `fit` takes categories as they are."
            )
        is_decimal = types.is_decimal(kind)
        dtypes.append(np.dtype(np.float64 if is_decimal else kind.to_pandas_dtype()))
    return feature_dtype(np.result_type(*dtypes), source.where)


def _numbers(values: Any, name: str, first_row: int, where: str, dtype: np.dtype[Any]) -> AnyArray:
    """Return a column of a batch as numbers, of its own type if it is numeric."""
    if values.null_count:
        row = first_row + int(np.argmax(np.asarray(values.is_null())))
        raise DataError(
            f"{where}, column {name!r}, row {row} (the first is 0): no value; remove such rows."
        )
    types = import_arrow().types
    if types.is_boolean(values.type):
        values = values.cast(import_arrow().uint8())
    is_kept = types.is_integer(values.type) and dtype.kind in "iu"
    if is_kept or types.is_floating(values.type):
        numbers: AnyArray = values.to_numpy(zero_copy_only=False)
        return numbers
    return as_numbers(values, name, first_row, where)


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


def _check_room(features: Features, dtype: np.dtype[Any], folder: Objects) -> None:
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
