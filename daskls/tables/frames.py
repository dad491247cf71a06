"""Tables in memory or behind Dask, as Arrow batches: pandas, Polars, Arrow, Dask, xarray; Parquet.

None of these packages is imported here: what is given brings its own.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
from dask.delayed import Delayed

from daskls.errors import DataError
from daskls.store.dataset import WRITE_AGAIN
from daskls.store.files import disk_errors
from daskls.tables.arrow import import_arrow
from daskls.tables.source import BATCH_FIELDS, TableSource, check_unique

__all__ = [
    "column_names",
    "is_array_like",
    "is_dask_frame",
    "is_frame",
    "open_frame",
    "open_parquet_files",
    "with_labels",
]

LAZY = "polars.LazyFrame"


def frame_kind(X: Any) -> str | None:
    """Return the package and class of a table, as "pandas.DataFrame"; None for anything else."""
    kind = type(X)
    package, name = kind.__module__.split(".")[0], kind.__name__
    # A delayed object has every attribute that it is asked for.
    if isinstance(X, Delayed):
        return None
    if dask.is_dask_collection(X) and hasattr(X, "npartitions") and hasattr(X, "columns"):
        return "dask.DataFrame"
    known = {
        "pandas": ("DataFrame",),
        "polars": ("DataFrame", "LazyFrame"),
        "pyarrow": ("Table", "RecordBatch"),
        "xarray": ("Dataset",),
    }
    return f"{package}.{name}" if name in known.get(package, ()) else None


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns that `open_frame` takes."""
    return frame_kind(X) is not None


def is_dask_frame(X: Any) -> bool:
    """Whether X is a Dask DataFrame, which is predicted lazily."""
    return frame_kind(X) == "dask.DataFrame"


def is_array_like(X: Any) -> bool:
    """Whether X is a frame in memory that NumPy takes as an array, as scikit-learn would."""
    return frame_kind(X) in ("pandas.DataFrame", "polars.DataFrame", "pyarrow.Table")


def column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a frame in memory."""
    # A table of Arrow calls the columns themselves so.
    return list(getattr(X, "column_names", X.columns))


def with_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Return a Dask DataFrame with its labels as a column, and the column's name.

    Anything else than labels that are a series of the same partitions is returned as it is.
    """
    if not is_dask_frame(X) or not hasattr(y, "to_frame") or not dask.is_dask_collection(y):
        return X, y
    name = y.name if isinstance(y.name, str) and y.name not in X.columns else "label"
    if name in X.columns:
        raise DataError(
            f"X has a column {name!r} already, which y would be; name the column of X that holds "
            "the labels, as in fit(X, NAME)."
        )
    return X.assign(**{name: y}), name


def open_frame(X: Any, scratch: Path) -> TableSource:
    """Open a table of any known package.

    Parameters
    ----------
    X : pandas, Polars or Dask DataFrame, Polars LazyFrame, Arrow table, xarray Dataset
    scratch : Path. A folder, for what has to be on disk first; the caller removes it.
    """
    kind = frame_kind(X)
    if kind == "pandas.DataFrame":
        return _open_pandas(X)
    if kind == "dask.DataFrame":
        return _open_dask(X)
    if kind == "xarray.Dataset":
        return _open_xarray(X)
    if kind == LAZY:
        path = scratch / "lazy.parquet"
        with disk_errors(path, WRITE_AGAIN):
            scratch.mkdir(parents=True, exist_ok=True)
            # Polars' own streaming engine keeps its memory bounded.
            X.sink_parquet(path)
        return open_parquet_files([path], "The LazyFrame")
    table = X.to_arrow() if kind == "polars.DataFrame" else X
    arrow = import_arrow()
    if isinstance(table, arrow.RecordBatch):
        table = arrow.Table.from_batches([table])
    return _open_arrow(table, f"The {kind}")


def _batch_rows(n_columns: int) -> int:
    """Return the rows of a batch."""
    return max(1, BATCH_FIELDS // max(n_columns, 1))


def _open_arrow(table: Any, where: str) -> TableSource:
    """Open an Arrow table."""

    def batches(names: list[str]) -> Iterator[Any]:
        rows = _batch_rows(len(names))
        for start in range(0, table.num_rows, rows):
            yield table.select(names).slice(start, rows)

    return TableSource(where, table.schema, batches, table.num_rows)


def _open_pandas(frame: Any) -> TableSource:
    """Open a pandas DataFrame; a slice of rows is turned into Arrow at a time."""

    def batches(names: list[str]) -> Iterator[Any]:
        rows = _batch_rows(len(names))
        for start in range(0, len(frame), rows):
            yield _from_pandas(frame.iloc[start : start + rows][names], "The DataFrame")

    schema = _from_pandas(frame, "The DataFrame", schema_only=True)
    return TableSource("The DataFrame", schema, batches, len(frame))


def _from_pandas(frame: Any, where: str, *, schema_only: bool = False) -> Any:
    """Return a pandas DataFrame as an Arrow table, or its schema."""
    arrow = import_arrow()
    check_unique(list(frame.columns), where)
    odd = [name for name in frame.columns if not isinstance(name, str)]
    if odd:
        raise DataError(
            f"{where} has a column named {odd[0]!r} ({type(odd[0]).__name__}); columns are known "
            "by names that are text. Convert them with X.columns = X.columns.astype(str)."
        )
    try:
        if schema_only:
            return arrow.Schema.from_pandas(frame, preserve_index=False)
        return arrow.Table.from_pandas(frame, preserve_index=False)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, arrow.ArrowNotImplementedError) as error:
        raise DataError(
            f"{where} has a column that is neither numbers nor text nor categories: {error}. "
            "Give each column values of one kind."
        ) from error


def _open_dask(frame: Any) -> TableSource:
    """Open a Dask DataFrame; one partition is in memory at a time."""
    where = "The Dask DataFrame"
    schema = _from_pandas(frame._meta_nonempty, where, schema_only=True)

    def batches(names: list[str]) -> Iterator[Any]:
        for part in frame[names].to_delayed():
            (rows,) = dask.compute(part)
            yield _from_pandas(rows, where)

    return TableSource(where, schema, batches)


def _open_xarray(dataset: Any) -> TableSource:
    """Open an xarray Dataset whose variables are columns along one dimension."""
    arrow = import_arrow()
    where = "The xarray Dataset"
    dims = {tuple(variable.dims) for variable in dataset.data_vars.values()}
    if len(dims) != 1 or len(next(iter(dims))) != 1:
        raise DataError(
            f"{where} has variables of the dimensions {sorted(map(list, dims))}; as a table each "
            "is a column, along one dimension that all share. Stack the others first "
            "(Dataset.stack), or pass a DataArray of rows and features with y."
        )
    ((dim,),) = dims
    names_of_all = [str(name) for name in dataset.data_vars]
    n_rows = int(dataset.sizes[dim])

    def batch(names: list[str], start: int, stop: int) -> Any:
        part = dataset[names].isel({dim: slice(start, stop)}).compute()
        return arrow.table({name: _plain(part[name].values) for name in names})

    def batches(names: list[str]) -> Iterator[Any]:
        rows = _batch_rows(len(names))
        for start in range(0, n_rows, rows):
            yield batch(names, start, start + rows)

    return TableSource(where, batch(names_of_all, 0, 1).schema, batches, n_rows)


def _plain(values: Any) -> Any:
    """Return values as Arrow takes them: text of fixed width as objects; NaN is missing."""
    arrow = import_arrow()
    values = values.astype(object) if values.dtype.kind in "UT" else values
    return arrow.array(values, from_pandas=True)


def open_parquet_files(paths: list[Path], where: str) -> TableSource:
    """Open Parquet files as one table, read in row groups of bounded batches."""
    arrow = import_arrow()
    from pyarrow import parquet

    try:
        schemas = [parquet.read_schema(path) for path in paths]
        n_rows = sum(parquet.read_metadata(path).num_rows for path in paths)
    except arrow.ArrowInvalid as error:
        raise DataError(f"{where} is not a Parquet file: {error}. Check the file.") from error
    for path, schema in zip(paths, schemas, strict=True):
        if set(schema.names) != set(schemas[0].names):
            raise DataError(
                f"{path} has the columns {', '.join(schema.names[:20])}, and {paths[0]} has "
                f"{', '.join(schemas[0].names[:20])}. Files of one table have the same columns."
            )

    def batches(names: list[str]) -> Iterator[Any]:
        for path in paths:
            with parquet.ParquetFile(path) as file:
                rows = _batch_rows(len(names))
                yield from file.iter_batches(batch_size=rows, columns=names)

    return TableSource(where, schemas[0], batches, n_rows)
