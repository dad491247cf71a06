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
import dask.array as da
import numpy as np
from dask.delayed import Delayed

from daskls.errors import DasklsError, DataError, listed
from daskls.records import AnyArray, Int64
from daskls.sources.arrow import import_arrow, index_of, of_part
from daskls.sources.base import TableSource, batch_rows, check_unique
from daskls.sources.files import open_typed
from daskls.sources.header import TableHints
from daskls.store.dataset import WRITE_AGAIN
from daskls.store.errors import disk_errors

DASK, DASK_SERIES = "dask.DataFrame", "dask.Series"
# The remedy where a lazy frame is not the same at each reading.
ONE_FRAME = (
    "Pass both as one frame, as in fit(X, NAME); or compute both once, together, with dask.persist "
    "or to_parquet, as a Dask DataFrame may have another order each time it is computed."
)


@dataclass(frozen=True)
class TableKind:
    """A class of frames; "frame" if NumPy can make an array of it, as scikit-learn does."""

    kind: Literal["frame", "table", "dask table"]
    where: str
    open: Callable[[Any, Path, str], TableSource]


def frame_name(X: Any) -> str | None:
    """Return the package and class of an object, as "pandas.DataFrame"; None of a delayed one."""
    # A delayed object seems to have every attribute.
    if isinstance(X, Delayed):
        return None
    kind = type(X)
    if dask.is_dask_collection(X) and hasattr(X, "npartitions") and hasattr(X, "columns"):
        # Scalars and an index have columns, too.
        return DASK if X.ndim == 2 else DASK_SERIES if kind.__name__ == "Series" else None
    return f"{kind.__module__.split('.')[0]}.{kind.__name__}"


def find_frame(X: Any) -> TableKind | None:
    return FRAMES.get(frame_name(X) or "")


def open_frame(X: Any, scratch: Path) -> TableSource:
    frame = find_frame(X)
    assert frame is not None
    return frame.open(X, scratch, frame.where)


def all_columns(X: Any) -> list[Any]:
    # `columns` of an Arrow table holds the columns themselves.
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return [] if names is None or callable(names) else list(names)


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns; None if they are not text, a DataError for a mix."""
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


def boxes_of(*frames: Any) -> da.Array:
    """Return Dask frames as an array of their partitions, which Dask may merge anew otherwise."""
    boxes = frames[0].map_partitions(
        boxed, *frames[1:], align_dataframes=False, meta=np.empty((0, len(frames)), object)
    )
    # Of `dask.dataframe.from_delayed` and ``loc[a:b]`` the graph has aliases under other keys than
    # their own, which get lost where Dask fuses tasks ("Missing dependency").
    graph = {
        key: task.target if hasattr(task, "target") and task.key != key else task
        for key, task in boxes.__dask_graph__().items()
    }
    return da.Array(graph, boxes.name, boxes.chunks, meta=boxes._meta)


def boxed(*parts: Any) -> AnyArray:
    box = np.empty((1, len(parts)), object)
    for i, part in enumerate(parts):
        box[0, i] = part
    return box


def count_rows(boxes: da.Array, frame: Any) -> Any:
    with told(frame, "A partition"):
        return boxes.map_blocks(_count_rows, dtype=np.int64).compute()


def as_array(values: Any) -> Any:
    """Return a Dask series as a Dask array, whose chunk sizes are computed; others unchanged."""
    if frame_name(values) != DASK_SERIES:
        return values
    boxes = boxes_of(values)
    # Of text and of categories that of the values, which are no longer in an array of pandas.
    dtype = np.asarray(values._meta).dtype
    chunks = (tuple(count_rows(boxes, values)[:, 0].tolist()),)
    return boxes.map_blocks(_values_of, chunks=chunks, drop_axis=1, dtype=dtype)


def with_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Join a Dask DataFrame and labels that are a Dask series; rows are paired by position."""
    if frame_name(X) != DASK:
        return X, y
    if frame_name(y) == DASK and len(y.columns) == 1:
        y = y[y.columns[0]]
    if frame_name(y) != DASK_SERIES:
        return X, y
    import dask.dataframe

    name = y.name if isinstance(y.name, str) and y.name not in X.columns else "label"
    if name in X.columns:
        raise DataError(
            f"X has a column {name!r} already, which y would be; name the column of X that holds "
            "the labels, as in fit(X, NAME)."
        )
    rows, labels, lengths, n_labels = _parts_of(X, y)
    if lengths.sum() != n_labels.sum():
        raise DataError(
            f"X has {lengths.sum()} rows, and y {n_labels.sum()} labels. Pass one label per row."
        )
    # Not X.assign: where divisions are unknown, Dask pairs the rows by a hash of their index.
    stops, ends, pair = np.cumsum(lengths), np.cumsum(n_labels), dask.delayed(pair_rows, pure=True)
    pairs = []
    for part, stop, length in zip(rows, stops.tolist(), lengths.tolist(), strict=True):
        # At least one partition of labels, which gives the type of none.
        first = min(int(np.searchsorted(ends, stop - length, "right")), len(n_labels) - 1)
        last = max(int(np.searchsorted(ends, stop)), first)
        start = stop - length - int(ends[first] - n_labels[first])
        pairs.append(pair(part, labels[first : last + 1], start, length, name))
    meta = X._meta.assign(**{name: y._meta})
    return dask.dataframe.from_delayed(pairs, meta=meta, verify_meta=False), name


def _parts_of(X: Any, y: Any) -> tuple[list[Any], list[Any], Int64, Int64]:
    """Return the partitions of X and of y, delayed, in boxes, and their lengths."""
    boxes = [boxes_of(frame) for frame in (X, y)]
    if boxes[0].numblocks == boxes[1].numblocks:
        # Together, so that columns of one frame are read once.
        both = boxes_of(X, y)
        lengths = count_rows(both, X)
        if np.array_equal(*lengths.T):
            parts = both.to_delayed().ravel().tolist()
            return parts, parts, *lengths.T
    rows, labels = (array.to_delayed().ravel().tolist() for array in boxes)
    return rows, labels, *(count_rows(array, X)[:, 0] for array in boxes)


def pair_rows(box: AnyArray, boxes: list[AnyArray], start: int, length: int, name: str) -> Any:
    """Return a partition of X with its labels as a column; they begin at ``start`` in ``boxes``."""
    from dask.dataframe.dispatch import concat

    rows, all_labels = box[0, 0], concat([part[0, -1] for part in boxes])
    labels = all_labels.iloc[start : start + length]
    begin = f"from index {rows.index[0]} on" if len(rows) else "without rows"
    if not len(rows) == len(labels) == length:
        raise DataError(
            f"A partition of X, {begin}, has {len(rows)} rows, and its partition of y "
            f"{len(labels)} labels; both had {length} at the first reading. {ONE_FRAME}"
        )
    index, other = rows.index, labels.index
    # Parts of partitions may have the same numbers by chance, where each partition counts its own.
    is_whole = len(all_labels) == length and index.is_unique and not index.equals(other)
    if is_whole and not len(index.symmetric_difference(other, False)):
        raise DataError(
            f"A partition of X, {begin}, and its partition of y have the same index in "
            f"different orders, so that rows would get the labels of other rows. {ONE_FRAME}"
        )
    return rows.assign(**{name: labels.set_axis(index)})


def _count_rows(boxes: AnyArray) -> AnyArray:
    return np.array([[len(box) for box in row] for row in boxes], np.int64)


def _values_of(boxes: AnyArray) -> AnyArray:
    return np.asarray(boxes[0, 0])


def _open_arrow(table: Any, scratch: Path, where: str) -> TableSource:
    def batches(names: list[str]) -> Iterator[Any]:
        rows = batch_rows(len(names))
        for start in range(0, table.num_rows, rows):
            yield table.select(names).slice(start, rows)

    index = index_of(table.schema)
    return TableSource(where, table.schema, batches, table.num_rows, index=index)


def _open_batch(batch: Any, scratch: Path, where: str) -> TableSource:
    return _open_arrow(import_arrow().Table.from_batches([batch]), scratch, where)


def _open_polars(frame: Any, scratch: Path, where: str) -> TableSource:
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
    return open_typed([path], TableHints(), where)


def _open_pandas(frame: Any, scratch: Path, where: str) -> TableSource:
    """Open a pandas DataFrame; one slice of rows is converted to Arrow at a time."""

    def batches(names: list[str]) -> Iterator[Any]:
        rows = batch_rows(len(names))
        for start in range(0, len(frame), rows):
            yield _from_pandas(frame.iloc[start : start + rows][names], where)

    schema = _from_pandas(frame, where, schema_only=True)
    return TableSource(where, schema, batches, len(frame))


def _from_pandas(frame: Any, where: str, *, schema_only: bool = False) -> Any:
    arrow = import_arrow()
    check_unique(list(frame.columns), where)
    frame = _intervals_as_text(frame)
    odd = [name for name in frame.columns if not isinstance(name, str)]
    if odd:
        raise DataError(
            f"{where} has a column named {odd[0]!r} ({type(odd[0]).__name__}); columns are known "
            "by names that are text. Convert them with X.columns = X.columns.astype(str)."
        )
    if sparse_columns(frame):
        raise sparse_error(where, sparse_columns(frame))
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
    reason = str(error.args[0]).rstrip(".")
    return DataError(
        f"{where} has a column {name!r} that is neither numbers nor text nor categories: {reason}. "
        "Give it values of one kind, as text with .astype(str)."
    )


def _intervals_as_text(frame: Any) -> Any:
    """Return a DataFrame in which intervals, as of ``pandas.cut``, are spelled as text."""
    kinds = [getattr(getattr(kind, "categories", None), "dtype", kind) for kind in frame.dtypes]
    for name, dtype, kind in zip(frame.columns, frame.dtypes, kinds, strict=True):
        if str(kind).startswith("interval"):
            values = frame[name]
            is_plain = kind is dtype
            text = values.astype("category") if is_plain else values
            frame = frame.assign(**{name: text.cat.rename_categories(str)})
    return frame


def sparse_columns(frame: Any) -> list[Any]:
    kinds = getattr(frame, "dtypes", None)
    named = kinds.items() if kinds is not None and hasattr(kinds, "items") else ()
    return [name for name, kind in named if hasattr(kind, "fill_value")]


def sparse_error(where: str, names: list[Any]) -> DataError:
    return DataError(
        f"{where} has sparse columns, but dense ones are required: {listed([*map(repr, names)])}. "
        "Make them dense, as by X[names] = X[names].sparse.to_dense(), or get_dummies(..., "
        "sparse=False)."
    )


def _open_dask(frame: Any, scratch: Path, where: str) -> TableSource:
    """Open a Dask DataFrame; one partition is in memory at a time."""
    # Of objects the meta does not know the type, and has a value of none.
    objects = [name for name, kind in frame.dtypes.items() if str(kind) == "object"]
    meta = frame._meta_nonempty.assign(**dict.fromkeys(objects))
    schema = _from_pandas(meta, where, schema_only=True)

    def batches(names: list[str]) -> Iterator[Any]:
        for i, part in enumerate(frame[names].to_delayed()):
            what = f"Partition {i} of {where}"
            with told(frame, what):
                (rows,) = dask.compute(part)
                rows = rows[names]
            yield of_part(_from_pandas(rows, what), f"partition {i}")

    return TableSource(where, schema, batches)


@contextmanager
def told(frame: Any, what: str) -> Iterator[None]:
    """Turn the errors of what a user's Dask frame makes into one that names the partition."""
    try:
        yield
    except DasklsError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, KeyError):
            _check_columns_of_parts(frame)
        if "Metadata mismatch" in str(error):
            # That of from_delayed, which knows no partition.
            message = " ".join(word for word in str(error).split() if not word.startswith("+-"))
            raise DataError(
                f"A partition of the Dask DataFrame is not what its meta declares: {message} Give "
                "the partitions these types, or from_delayed another meta, or verify_meta=False."
            ) from error
        raise DataError(
            f"{what} cannot be computed: {type(error).__name__}: {error}. "
            "X.partitions[i].compute() shows partition i alone."
        ) from error


def _check_columns_of_parts(frame: Any) -> None:
    for i, names in enumerate(dask.compute(*map(dask.delayed(list), frame.to_delayed()))):
        lacking = [name for name in getattr(frame, "columns", ()) if name not in names]
        if lacking:
            raise DataError(
                f"Partition {i} of the Dask DataFrame has no column {lacking[0]!r}, which its "
                f"meta declares; its columns are {listed(names)}. Partitions of one table have "
                "the same columns."
            ) from None


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
