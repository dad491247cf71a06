"""Apache Parquet, batch by batch. pyarrow is an optional dependency, imported when first needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from daskls.datasets.readers._labels import SCAN_ROWS, LabelScan, NumberScan, scan_of
from daskls.datasets.readers._table import Block, Options, Table, feature_dtype, pick_label
from daskls.errors import DataError
from daskls.records import AnyArray, TargetKind

__all__ = ["open_parquet"]


@contextmanager
def open_parquet(path: Path, options: Options) -> Iterator[Table]:
    """Open a Parquet file: numeric columns, one of which is the label."""
    pyarrow, parquet = _import_pyarrow()
    try:
        file = parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"{path} is not a Parquet file: {error}.") from error
    with file:
        names = list(file.schema_arrow.names)
        column = pick_label(names, options.label, path)
        label = None if column is None else names[column]
        features = [name for name in names if name != label]
        if not features:
            raise DataError(f"{path} has no feature columns besides the label {label!r}.")
        scan = None if label is None else _scan_labels(file, label, path, options.kind)

        def blocks(block_rows: int) -> Iterator[Block]:
            first = 0
            for batch in file.iter_batches(batch_size=block_rows):
                X = np.column_stack([_column(batch, name, first, path) for name in features])
                yield X, None if label is None else _column(batch, label, first, path)
                first += batch.num_rows

        yield Table(
            file.metadata.num_rows,
            len(features),
            _common_dtype(file, features, path),
            features,
            None if scan is None else scan.finish(),
            blocks,
        )


def _import_pyarrow() -> tuple[Any, Any]:
    """Import pyarrow, or say how to install it."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise DataError(
            "Reading Parquet needs pyarrow, which is not installed: pip install daskls[parquet]."
        ) from error
    return pyarrow, parquet


def _common_dtype(file: Any, features: list[str], path: Path) -> np.dtype[Any]:
    """The one type that holds every feature column."""
    empty = file.schema_arrow.empty_table()
    dtypes = []
    for name in features:
        dtype = empty.column(name).to_numpy().dtype
        if dtype.kind not in "biuf":
            raise DataError(
                f"{path}, column {name!r}: type {file.schema_arrow.field(name).type} is not "
                "numeric; drop it, or name the label column with `label`."
            )
        dtypes.append(dtype)
    return feature_dtype(np.result_type(*dtypes), path)


def _scan_labels(file: Any, label: str, path: Path, kind: TargetKind) -> LabelScan | NumberScan:
    """The distinct labels; only their column is read."""
    scan, first = scan_of(kind), 0
    for batch in file.iter_batches(batch_size=SCAN_ROWS, columns=[label]):
        scan.add(_column(batch, label, first, path), first)
        first += batch.num_rows
    return scan


def _column(batch: Any, name: str, first_row: int, path: Path) -> AnyArray:
    """One column of a batch; text becomes NumPy text, a null an error."""
    column = batch.column(name)
    if column.null_count:
        row = first_row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(
            f"{path}, column {name!r}, row {row} (the first is 0): no value; remove such rows."
        )
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype.kind == "O" else values
