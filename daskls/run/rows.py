"""Opens the rows of a fit or a prediction as aligned blocks, from any supported container.

Tasks read Zarr arrays themselves: a task gets a path and a range of rows. A NumPy array is written
to disk first, unless all tasks run in threads of this process: then they read it where it is.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.layers import ArrayBlockIdDep, ArrayChunkShapeDep

from daskls.cluster import in_threads
from daskls.errors import DasklsError, DataError, StoreError
from daskls.plan.exchange import BLOCK_NBYTES
from daskls.records import Labels, TargetKind
from daskls.run.blocks import (
    UNPACKED_COPIES,
    BlockRows,
    HeldArray,
    check_sizes,
    cut_chunks,
    from_handle,
    merge_chunks,
    row_chunks,
)
from daskls.run.labels import check_block, check_label_kind, check_values
from daskls.sources.formats import Source, open_source
from daskls.sources.frames import as_array
from daskls.store.arrays import ArrayHandle, save_array
from daskls.store.objects import Scratch, open_store
from daskls.targets import TARGET_DTYPES

# Chunks that must be computed or unpacked whole are cut into blocks above this size, which is
# Dask's default for chunks. Up to it a block is a whole chunk, so no features travel between
# tasks.
LARGE_NBYTES = 128 << 20


@contextmanager
def open_rows(
    X: Any,
    y: Any,
    sample_weight: Any,
    scratch: Scratch,
    kind: TargetKind = "classes",
    client: Any = None,
) -> Iterator[BlockRows]:
    """Align X, y and weights in blocks; files for workers are there while the context lasts."""
    check_array_expr()
    X = open_source(X)
    y, classes = find_labels(X, y)
    if isinstance(y.value, np.ndarray):
        _check_precision(y.value.dtype, "y")
        if kind == "classes":
            check_label_kind(y.value.dtype)
            # As codes, which are written to disk for the workers; text would travel in the graph.
            classes, codes = np.unique(y.value, return_inverse=True)
            y = Source(codes.astype(TARGET_DTYPES[kind]), "memory")
    # The most columns of y: a row has one label, but may have several numbers.
    most_y = 1 if kind == "classes" else None
    shared = None if in_threads(client) else scratch
    with scratch:
        source = _as_handle(X, shared, "X")
        whole = open_whole(source, BLOCK_NBYTES)
        blocks = cut_large(whole, BLOCK_NBYTES)
        n = blocks.shape[0]
        target = max(BLOCK_NBYTES // (blocks.shape[1] * blocks.dtype.itemsize), 1)
        chunks = merge_chunks(blocks.chunks[0], target)
        y_blocks, weights = _column(y, "y", n, shared, most_y), None
        if sample_weight is not None:
            name = "sample_weight"
            weights = _column(open_named(sample_weight, name), name, n, shared, 1)
        if n < 2:
            raise DataError(f"Found {n} row(s) in X; a fit needs at least 2.")
        is_read = source.handle is not None and blocks is whole and len(source.handle.shape) == 2
        yield BlockRows(
            blocks.rechunk({0: chunks}),
            y_blocks.rechunk({0: chunks}),
            None if weights is None else weights.rechunk({0: chunks}),
            classes,
            *_chunk_nbytes(X, whole, is_cut=blocks is not whole),
            _count_chunks(source.handle, whole),
            BLOCK_NBYTES,
            (source.handle if is_read else blocks, y_blocks, weights),
        )


def find_labels(X: Source, y: Any) -> tuple[Source, Labels | None]:
    """Return y, and the labels of its codes or None; without y, those of the data set X."""
    if y is not None:
        return open_named(y, "y"), None
    dataset = X.dataset
    if dataset is None:
        raise DataError("y is None, and X is no data set that holds one. Pass y.")
    if dataset.y is None:
        raise DataError(f"The data set {dataset.path} has no y; pass one.")
    classes = dataset.classes
    return open_source(dataset.y), None if classes is None else np.asarray(classes)


def _count_chunks(handle: ArrayHandle | None, whole: da.Array) -> int:
    """Return the number of chunks: of a Zarr array those on disk, of another those of its graph."""
    return len(whole.chunks[0]) if handle is None else -(-handle.shape[0] // handle.chunk_rows)


def _chunk_nbytes(source: Source, whole: da.Array, *, is_cut: bool) -> tuple[int, int]:
    nbytes = max(whole.chunks[0]) * whole.shape[1] * whole.dtype.itemsize
    # The bytes that a Dask array needs to compute a chunk are unknown.
    is_packed = nbytes > BLOCK_NBYTES and source.kind != "dask"
    return nbytes if is_cut else 0, nbytes * UNPACKED_COPIES if is_packed else 0


def _as_handle(source: Source, scratch: Scratch | None, name: str) -> Source:
    """Return a numeric NumPy array as what tasks read by rows, on disk if there is a place for it.

    Others are returned unchanged.
    """
    values = source.value
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
        return source
    _check_precision(values.dtype, name)
    row_nbytes = max(values.itemsize * math.prod(values.shape[1:]), 1)
    chunk_rows = max(BLOCK_NBYTES // row_nbytes, 1)
    if scratch is None:
        handle: ArrayHandle = HeldArray.of(values, name, chunk_rows)
    else:
        open_store(scratch.shared).make()
        handle = save_array(f"{scratch.shared}/{name}", values, chunk_rows)
    return Source(handle.path, "zarr", handle=handle)


def _column(
    source: Source, name: str, n: int, scratch: Scratch | None, most: int | None
) -> da.Array:
    """Return y or the weights as a Dask array (n, 1), or (n, t)."""
    column = open_column(_as_handle(source, scratch, name), name, most)
    if column.shape[0] != n:
        raise DataError(
            f"X and {name} have inconsistent numbers of samples: X has {n} rows, {name} has "
            f"{column.shape[0]}. Pass one value per row."
        )
    return column[:, None] if column.ndim == 1 else column


def open_column(source: Source, name: str, most: int | None = 1) -> da.Array:
    """Return y or the weights as (n,), or (n, t) of at most ``most`` columns."""
    column = _open(source, name, BLOCK_NBYTES)
    _check_precision(column.dtype, name)
    # The dtype of numbers is checked by the scan of y.
    column = column if most is None else _check_kind(column, name)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if most is None and column.ndim == 2 and column.shape[1]:
        return column.rechunk({1: -1})
    if column.ndim != 1:
        raise DataError(f"{name} must have 1 dimension, got shape {tuple(column.shape)}.")
    return column


def open_named(values: Any, name: str) -> Source:
    """Open y or the weights; the StoreError for text that is no path says how it was understood."""
    try:
        return open_source(values)
    except StoreError as error:
        raise StoreError(f"{name} was taken for a path: {error}") from error


def _check_kind(column: da.Array, name: str) -> da.Array:
    if name == "y":
        check_label_kind(column.dtype)
        # As objects, since a model stores its classes as JSON, which has no variable-width dtype.
        return column.astype(object) if column.dtype.kind == "T" else column
    if column.dtype.kind not in "biuf":
        raise DataError(
            f"{name} has dtype {column.dtype}, but weights are numbers. Pass one number per row."
        )
    return column


def open_whole(source: Source, nbytes: int) -> da.Array:
    """Return X with one block of columns; blocks of Zarr arrays have about ``nbytes``."""
    check_array_expr()
    X = _open(source, "X", nbytes)
    _check_precision(X.dtype, "X")
    if X.ndim != 2:
        raise DataError(
            f"X must have 2 dimensions (rows, features), got {X.ndim}. "
            "Reshape your data: one row with X.reshape(1, -1), one feature with X.reshape(-1, 1)."
        )
    check_width(X.shape)
    check_numeric(X.dtype)
    return X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X


def check_width(shape: tuple[int, ...]) -> None:
    if shape[1] == 0:
        raise DataError(
            f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is "
            "required: X needs at least one column."
        )


def check_numeric(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf":
        raise DataError(
            f"X must be numeric, got dtype {dtype}. Encode its columns as numbers first, "
            "for example with scikit-learn's OneHotEncoder."
        )


def cut_large(X: da.Array, nbytes: int) -> da.Array:
    """Cut chunks above `LARGE_NBYTES` into blocks, during which they stay in memory."""
    row_nbytes = max(X.dtype.itemsize * math.prod(X.shape[1:]), 1)
    above = LARGE_NBYTES // row_nbytes
    if max(X.chunks[0], default=0) <= above:
        return X
    chunks = cut_chunks(X.chunks[0], max(nbytes // row_nbytes, 1), above)
    return X.rechunk({0: chunks}, method="tasks")


def _open(source: Source, name: str, nbytes: int) -> da.Array:
    check_values(source.value, name)
    if source.kind in ("dask", "dask table"):
        lazy = as_array(source.value)
        if not isinstance(lazy, da.Array):
            raise DataError(
                f"{name} must be an array, got {type(lazy).__name__}. "
                "Convert a Dask DataFrame with .to_dask_array(lengths=True)."
            )
        return as_declared(lazy, name)
    if source.kind in ("table", "features"):
        raise DataError(
            f"{name} is the path of a file, {source.where}; an array or a data set is needed here. "
            "Make a data set of it with `daskls convert`, or pass its rows as an array."
        )
    handle = source.handle
    if handle is not None:
        if not handle.shape:
            raise DataError(f"{name} at {handle.path} is a single value; it must have rows.")
        check_sizes(handle, name, nbytes)
        chunks = row_chunks(handle, nbytes)
        array = from_handle(handle, chunks)
        return array if len(handle.shape) == 2 else array[:, 0]
    return da.from_zarr(source.array) if source.kind == "zarr" else da.asarray(source.value)


def as_declared(array: da.Array, name: str) -> da.Array:
    """Return a Dask array whose blocks are checked as they are computed."""
    # Dask marks unknown sizes by NaN.
    if any(size != size for sizes in array.chunks for size in sizes):
        try:
            array = array.compute_chunk_sizes()
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(
                f"{name} has chunks of unknown sizes, and its blocks are not arrays of "
                f"{array.ndim} dimensions, as it declares: {error}. Let the function that makes "
                "the blocks return such arrays."
            ) from error
    axes = tuple(range(array.ndim))
    return da.blockwise(
        check_block,
        axes,
        array,
        axes,
        ArrayChunkShapeDep(array.chunks),
        axes,
        ArrayBlockIdDep(array.chunks),
        axes,
        what=name,
        align_arrays=False,
        declared=array.dtype,
        dtype=array.dtype,
        meta=np.empty((0,) * array.ndim, array.dtype),
    )


def _check_precision(dtype: np.dtype[Any], name: str) -> None:
    """Raise DataError for floats of more than 64 bits, which neither Zarr nor the solvers take."""
    if dtype.kind == "f" and dtype.itemsize > 8:
        raise DataError(
            f"{name} has dtype {dtype}, which neither Zarr nor the solvers support; float64 is the "
            "widest that is accepted. Cast it with .astype(np.float64)."
        )


def check_array_expr() -> None:
    if da.ARRAY_EXPR_ENABLED or dask.config.get("array.query-planning", None):
        raise DasklsError(
            "Dask's array expressions are on (array.query-planning=True) and daskls cannot build "
            "its graphs with them. Set array.query-planning to False before dask.array is "
            "imported."
        )
