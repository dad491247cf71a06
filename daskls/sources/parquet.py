"""Parquet files as one table, read in row groups of bounded batches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daskls.errors import DataError
from daskls.sources.arrow import import_arrow
from daskls.sources.base import TableSource, batch_rows, check_same_columns

__all__ = ["open_parquet"]


def open_parquet(paths: list[Path], label: str | None, where: str) -> TableSource:
    """Open Parquet files as one table.

    Parameters
    ----------
    paths : list of Path. Read one after the other; columns are found by name in each.
    label : str or None. Of no use here: the files name their columns.
    where : str. What to call them in errors.

    Raises
    ------
    DataError : one is no such file, or has other columns
    """
    arrow = import_arrow()
    from pyarrow import parquet

    try:
        schemas = [parquet.read_schema(path) for path in paths]
        n_rows = sum(parquet.read_metadata(path).num_rows for path in paths)
    except arrow.ArrowInvalid as error:
        told = str(error).rstrip(".")
        raise DataError(f"{where} is not a Parquet file: {told}. Check the file.") from error
    check_same_columns(paths, [schema.names for schema in schemas])

    def batches(names: list[str]) -> Iterator[Any]:
        for path in paths:
            with parquet.ParquetFile(path) as file:
                yield from file.iter_batches(batch_size=batch_rows(len(names)), columns=names)

    return TableSource(where, schemas[0], batches, n_rows)
