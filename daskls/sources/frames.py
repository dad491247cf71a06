"""Frames of pandas, Polars, Arrow, Dask and xarray, as tables of Arrow batches.

No such package is imported here: a frame of it exists only where it is loaded already.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import dask
from dask.delayed import Delayed

from daskls.errors import DataError, listed
from daskls.sources.arrow import import_arrow, index_of, of_part
from daskls.sources.base import TableSource, batch_rows, check_unique
from daskls.sources.files import open_parquet
from daskls.sources.header import Known
from daskls.store.dataset_checks import WRITE_AGAIN
from daskls.store.files import disk_errors

DASK = "dask.DataFrame"


@dataclass(frozen=True)
class TableKind:
    """A class of frames.

    Attributes
    ----------
    kind : as in `daskls.sources.door.Source`; "frame" if NumPy can make an array of it, as
        scikit-learn does
    where : str. Its name in errors.
    open : called with a frame, a folder for temporary files, and ``where``
    """

    kind: Literal["frame", "table", "dask table"]
    where: str
    open: Callable[[Any, Path, str], TableSource]


def frame_name(X: Any) -> str | None:
    """Return the package and class of an object, as "pandas.DataFrame"; None of a delayed one."""
    # A delayed object seems to have every attribute.
    if isinstance(X, Delayed):
        return None
    if dask.is_dask_collection(X) and hasattr(X, "npartitions") and hasattr(X, "columns"):
        return DASK
    kind = type(X)
    return f"{kind.__module__.split('.')[0]}.{kind.__name__}"


def find_frame(X: Any) -> TableKind | None:
    """Return the entry of a frame in `FRAMES`; None of anything else."""
    return FRAMES.get(frame_name(X) or "")


def open_frame(X: Any, scratch: Path) -> TableSource:
    """Open a frame of any class in `FRAMES`.

    Parameters
    ----------
    X : frame
    scratch : Path. A folder for temporary files, which the caller removes.
    """
    frame = find_frame(X)
    assert frame is not None
    return frame.open(X, scratch, frame.where)


def all_columns(X: Any) -> list[Any]:
    """Return the names of a frame's columns, text or not; none of an array."""
    # `columns` of an Arrow table holds the columns themselves.
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return [] if names is None or callable(names) else list(names)


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns, or None if there are none.

    Names that are not text, as the default numbers of pandas, count as none.

    Raises
    ------
    DataError : some names are text and others are not
    """
    names = all_columns(X)
    are_text = {isinstance(name, str) for name in names}
    if are_text == {True, False}:
        other = next(name for name in names if not isinstance(name, str))
        raise DataError(
            f"Feature names are only supported if all of them are text, but X has {other!r} "
            f"({type(other).__name__}) among them. Convert them with "
            "X.columns = X.columns.astype(str)."
        )
    return names if are_text == {True} else None


def with_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Join a Dask DataFrame and labels that are a Dask series; return it and the column's name.

    Any other X and y are returned as they are.

    Raises
    ------
    DataError : the labels' column would replace a column of X
    """
    if frame_name(X) != DASK or not hasattr(y, "to_frame") or not dask.is_dask_collection(y):
        return X, y
    name = y.name if isinstance(y.name, str) and y.name not in X.columns else "label"
    if name in X.columns:
        raise DataError(
            f"X has a column {name!r} already, which y would be; name the column of X that holds "
            "the labels, as in fit(X, NAME)."
        )
    return X.assign(**{name: y}), name


def _open_arrow(table: Any, scratch: Path, where: str) -> TableSource:
    """Open an Arrow table."""

    def batches(names: list[str]) -> Iterator[Any]:
        rows = batch_rows(len(names))
        for start in range(0, table.num_rows, rows):
            yield table.select(names).slice(start, rows)

    index = index_of(table.schema)
    return TableSource(where, table.schema, batches, table.num_rows, index=index)


def _open_batch(batch: Any, scratch: Path, where: str) -> TableSource:
    """Open an Arrow batch."""
    return _open_arrow(import_arrow().Table.from_batches([batch]), scratch, where)


def _open_polars(frame: Any, scratch: Path, where: str) -> TableSource:
    """Open a Polars DataFrame, whose columns are Arrow arrays already."""
    return _open_arrow(frame.to_arrow(), scratch, where)


def _open_lazy(frame: Any, scratch: Path, where: str) -> TableSource:
    """Open a Polars LazyFrame: Polars streams it to a file, in bounded memory."""
    path = scratch / "lazy.parquet"
    with disk_errors(path, WRITE_AGAIN):
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            frame.sink_parquet(path)
        except (import_module("polars").exceptions.PolarsError, FileNotFoundError) as error:
            raise DataError(
                f"{where} cannot be computed: {' '.join(str(error).split())}. Correct the query, "
                "or give its files columns of one type."
            ) from error
    return open_parquet([path], Known(), where)


def _open_pandas(frame: Any, scratch: Path, where: str) -> TableSource:
    """Open a pandas DataFrame; one slice of rows is converted to Arrow at a time."""

    def batches(names: list[str]) -> Iterator[Any]:
        rows = batch_rows(len(names))
        for start in range(0, len(frame), rows):
            yield _from_pandas(frame.iloc[start : start + rows][names], where)

    schema = _from_pandas(frame, where, schema_only=True)
    return TableSource(where, schema, batches, len(frame))


def _from_pandas(frame: Any, where: str, *, schema_only: bool = False) -> Any:
    """Return a pandas DataFrame as an Arrow table, or only its schema.

    Raises
    ------
    DataError : two columns of one name, a name that is not text, or a column of mixed types
    """
    arrow = import_arrow()
    check_unique(list(frame.columns), where)
    frame = _intervals_as_text(frame)
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
    except (arrow.ArrowException, TypeError) as error:
        if len(frame.columns) > 1:
            for name in frame.columns:
                # One column at a time, as most of these errors do not name theirs.
                _from_pandas(frame[[name]], where, schema_only=schema_only)
        raise _strange_column(where, frame.columns[0], error) from error


def _strange_column(where: str, name: str, error: Exception) -> DataError:
    """Return the error for a column that Arrow cannot take."""
    reason = str(error.args[0]).rstrip(".")
    return DataError(
        f"{where} has a column {name!r} that is neither numbers nor text nor categories: {reason}. "
        "Give it values of one kind, as text with .astype(str)."
    )


def _intervals_as_text(frame: Any) -> Any:
    """Return a DataFrame in which intervals, as of ``pandas.cut``, are spelled as text."""
    kinds = [getattr(getattr(kind, "categories", None), "dtype", kind) for kind in frame.dtypes]
    for name, own, kind in zip(frame.columns, frame.dtypes, kinds, strict=True):
        if str(kind).startswith("interval"):
            values = frame[name]
            is_plain = kind is own
            text = values.astype("category") if is_plain else values
            frame = frame.assign(**{name: text.cat.rename_categories(str)})
    return frame


def _open_dask(frame: Any, scratch: Path, where: str) -> TableSource:
    """Open a Dask DataFrame; one partition is in memory at a time."""
    # Of objects the meta does not know the type, and has a value of none.
    objects = [name for name, kind in frame.dtypes.items() if str(kind) == "object"]
    meta = frame._meta_nonempty.assign(**dict.fromkeys(objects))
    schema = _from_pandas(meta, where, schema_only=True)

    def batches(names: list[str]) -> Iterator[Any]:
        for i, part in enumerate(frame[names].to_delayed()):
            with known_columns(frame):
                (rows,) = dask.compute(part)
                rows = rows[names]
            yield of_part(
                _from_pandas(rows, f"Partition {i} of the Dask DataFrame"), f"partition {i}"
            )

    return TableSource(where, schema, batches)


@contextmanager
def known_columns(frame: Any) -> Iterator[None]:
    """Turn the error of a Dask frame's partition without a column into one that names both.

    Also that of ``from_delayed``, which knows no partition.
    """
    try:
        yield
    except ValueError as error:
        if "Metadata mismatch" not in str(error):
            raise
        found = " ".join(word for word in str(error).split() if not word.startswith("+-"))
        raise DataError(
            f"A partition of the Dask DataFrame is not what its meta declares: {found} Give the "
            "partitions these types, or from_delayed another meta, or verify_meta=False."
        ) from error
    except KeyError:
        for i, own in enumerate(dask.compute(*map(dask.delayed(list), frame.to_delayed()))):
            lacking = [name for name in frame.columns if name not in own]
            if lacking:
                raise DataError(
                    f"Partition {i} of the Dask DataFrame has no column {lacking[0]!r}, which its "
                    f"meta declares; its columns are {listed(own)}. Partitions of one table have "
                    "the same columns."
                ) from None
        raise


def _open_xarray(dataset: Any, scratch: Path, where: str) -> TableSource:
    """Open an xarray Dataset whose variables are columns along one dimension."""
    arrow = import_arrow()
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
        return arrow.table({name: _plain(part[name].values, name, where) for name in names})

    def batches(names: list[str]) -> Iterator[Any]:
        rows = batch_rows(len(names))
        for start in range(0, n_rows, rows):
            yield batch(names, start, start + rows)

    return TableSource(where, batch(names_of_all, 0, 1).schema, batches, n_rows)


def _plain(values: Any, name: str, where: str) -> Any:
    """Return values as an Arrow array: fixed-width text by way of objects, NaN as missing."""
    arrow = import_arrow()
    values = values.astype(object) if values.dtype.kind in "UT" else values
    try:
        return arrow.array(values, from_pandas=True)
    except arrow.ArrowException as error:
        raise _strange_column(where, name, error) from error


# By the names of package and class, so that no package has to be imported.
FRAMES = {
    "pandas.DataFrame": TableKind("frame", "The DataFrame", _open_pandas),
    "polars.DataFrame": TableKind("frame", "The polars.DataFrame", _open_polars),
    "polars.LazyFrame": TableKind("table", "The LazyFrame", _open_lazy),
    "pyarrow.Table": TableKind("frame", "The pyarrow.Table", _open_arrow),
    "pyarrow.RecordBatch": TableKind("table", "The pyarrow.RecordBatch", _open_batch),
    "xarray.Dataset": TableKind("table", "The xarray Dataset", _open_xarray),
    DASK: TableKind("dask table", "The Dask DataFrame", _open_dask),
}
