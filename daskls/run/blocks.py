"""Aligned blocks of rows: how chunks are merged or cut to blocks, and one task per block."""

import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize

from daskls.cluster import RetriedTask, compute, current_sharing
from daskls.errors import DataError, MemoryPlanError
from daskls.gaps import Gaps
from daskls.memory import TaskSizes, assign_nbytes
from daskls.plan.exchange import BLOCK_NBYTES, block_nbytes
from daskls.records import AnyArray, Labels, SolverSpec
from daskls.run.resources import free_nbytes
from daskls.store.arrays import ArrayHandle

# Peak memory of unpacking a Zarr chunk, in chunks: packed, unpacked, and copied to its place.
UNPACKED_COPIES = 3
# The longest label, and the most blocks of a graph (2 TiB of data).
MAX_VALUE_NBYTES = 1 << 20
MAX_BLOCKS = 1 << 17


@dataclass(frozen=True, eq=False)
class BlockRows:
    """Blocks of rows. All arrays have the same blocks of rows and one block of columns.

    y is (n, 1), for numbers (n, t); `classes` are the labels of its codes, if it holds codes.
    `source_nbytes` of the largest chunk of X stay in memory while its blocks are used; unpacking
    one that is larger than a block takes `unpack_nbytes`. `sources` are X, y and weights before
    they became blocks, from which other blocks are made. `gaps` are known once X is read.
    """

    X: da.Array
    y: da.Array
    weights: da.Array | None = None
    classes: Labels | None = None
    source_nbytes: int = 0
    unpack_nbytes: int = 0
    n_chunks: int = 0
    least_nbytes: int = BLOCK_NBYTES
    sources: tuple[Any, da.Array, da.Array | None] | None = None
    gaps: Gaps | None = None

    def planned(self, task_nbytes: int, grids: Sequence[Sequence[int]] = ()) -> "BlockRows":
        """Return the rows in blocks of the size that suits a task, or of an earlier fit's grids."""
        row_nbytes = self.X.dtype.itemsize * self.n_features
        # The worst case, as more is not known yet: rows are scaled, and some have weight 0.
        sizes = TaskSizes(
            self.n_features, self.X.dtype.itemsize, 2, 2, SolverSpec(), 3, raw_nbytes=row_nbytes
        )
        for grid in grids:
            # Blocks that are now too large for a task are given up.
            if sum(grid) == self.n_rows and assign_nbytes(sizes, max(grid)) <= task_nbytes:
                return self._in_blocks(tuple(grid))
        nbytes = block_nbytes(self.n_rows * row_nbytes, task_nbytes, self.least_nbytes)
        return self._in_blocks(merge_chunks(self.X.chunks[0], max(nbytes // row_nbytes, 1)))

    def _in_blocks(self, chunks: tuple[int, ...]) -> "BlockRows":
        if chunks == self.X.chunks[0]:
            return self
        X, *columns = self.sources or (self.X, self.y, self.weights)
        # Rows on disk are read in the new blocks directly; others are rechunked.
        is_read = isinstance(X, ArrayHandle)
        y, weights = (None if column is None else column.rechunk({0: chunks}) for column in columns)
        X = from_handle(X, chunks) if is_read else X.rechunk({0: chunks}, method="tasks")
        return replace(self, X=X, y=y, weights=weights)

    @property
    def filling(self) -> Gaps | None:
        """The values that tasks fill in for missing ones; None where no row lacks any."""
        return self.gaps if self.gaps is not None and self.gaps.marked else None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1]) if self.gaps is None else self.gaps.n_features

    @property
    def n_blocks(self) -> int:
        return len(self.X.chunks[0])

    @property
    def block_rows(self) -> int:
        return int(max(self.X.chunks[0]))


@dataclass(frozen=True, eq=False)
class HeldArray(ArrayHandle):
    """An array of this process, in blocks as it would have on disk."""

    values: AnyArray
    token: str

    @classmethod
    def of(cls, values: AnyArray, name: str, chunk_rows: int) -> "HeldArray":
        dtype, rows = values.dtype.newbyteorder("="), min(chunk_rows, max(len(values), 1))
        return cls(name, values.shape, dtype.str, rows, rows, values, uuid.uuid4().hex)

    def read(self, start: int, stop: int) -> AnyArray:
        """Return a copy of rows, which the caller may change."""
        return np.array(self.values[start:stop], self.dtype, order="C")

    def __dask_tokenize__(self) -> tuple[str, str]:
        # To hash the values would take longer than to read them.
        return "daskls.HeldArray", self.token


def map_rows(
    task: Callable[..., Any], rows: BlockRows, *arrays: Any, client: Any = None, **kwargs: Any
) -> list[Any]:
    """Return ``task(*blocks, block_info=..., **kwargs)`` of every block, in order.

    Reading is fused into the task, so that features never travel between workers. Every task gets a
    copy of kwargs: handles and small records.
    """
    # The marks make keys unique to this fit. A scheduler that still knows a task of the same key
    # would run that one, which looks for the probe of another fit that may be over.
    sharing = current_sharing()
    marks = None if sharing is None else sharing.marks
    blocks = da.map_blocks(
        BoxedTask(RetriedTask(task)),
        *arrays,
        **kwargs,
        chunks=((1,) * rows.n_blocks, (1,)),
        dtype=object,
        # Without meta Dask would call the task on empty blocks to infer it.
        meta=np.empty((0, 0), object),
        name=f"{task.__name__}-{tokenize(task.__name__, arrays, kwargs, marks)}",
    )
    (fused,) = dask.optimize(blocks)
    tasks = fused.to_delayed(optimize_graph=False).ravel().tolist()
    return [box[0, 0] for box in compute(tasks, client, optimize_graph=False)]


class BoxedTask:
    """Wraps a task's result in a (1, 1) object array, as Dask wants blocks to be arrays."""

    def __init__(self, task: Callable[..., Any]) -> None:
        self.task = task
        self.__name__ = task.__name__

    def __call__(self, *blocks: Any, block_info: Any = None, **kwargs: Any) -> Any:
        box = np.empty((1, 1), object)
        box[0, 0] = self.task(*blocks, block_info=block_info, **kwargs)
        return box


def block_start(block_info: Any) -> tuple[int, int]:
    return block_info[0]["chunk-location"][0], block_info[0]["array-location"][0][0]


def from_handle(handle: ArrayHandle, row_chunks: tuple[int, ...]) -> da.Array:
    """Return the Dask array whose tasks read the handle's rows themselves."""
    width = handle.shape[1] if len(handle.shape) > 1 else 1
    return da.map_blocks(
        read_rows,
        handle,
        chunks=(row_chunks, (width,)),
        dtype=np.dtype(handle.dtype),
        # Without meta Dask would call the task on no rows to infer it.
        meta=np.empty((0, 0), handle.dtype),
    )


def read_rows(handle: ArrayHandle, block_info: Any = None) -> AnyArray:
    """Read the rows of one block, (m, d); one-dimensional arrays become (m, 1)."""
    start, stop = block_info[None]["array-location"][0]
    rows = handle.read(start, stop)
    return rows[:, None] if rows.ndim == 1 else rows


def row_chunks(handle: ArrayHandle, nbytes: int) -> tuple[int, ...]:
    """Return blocks of about ``nbytes``: whole chunks, or parts that can be read alone."""
    n, chunk, unit = handle.shape[0], handle.chunk_rows, handle.unit_rows
    row_nbytes = max(np.dtype(handle.dtype).itemsize * math.prod(handle.shape[1:]), 1)
    rows = max(nbytes // (row_nbytes * chunk), 1) * chunk
    whole = tuple(min(rows, n - start) for start in range(0, n, rows)) or (0,)
    if row_nbytes * chunk <= nbytes:
        return whole
    # No block crosses the end of a chunk, so that Zarr reads no part twice.
    part = max(nbytes // (row_nbytes * unit), 1) * unit
    return tuple(min(part, rows - at) for rows in whole for at in range(0, rows, part)) or (0,)


def merge_chunks(chunks: Sequence[int], max_rows: int) -> tuple[int, ...]:
    """Merge neighboring chunks while their sum is at most ``max_rows`` rows.

    >>> merge_chunks([1, 9, 4, 20, 3], 10)
    (10, 4, 20, 3)
    """
    merged = [0]
    for rows in chunks:
        if merged[-1] and merged[-1] + rows > max_rows:
            merged.append(0)
        merged[-1] += rows
    return tuple(merged)


def cut_chunks(chunks: Sequence[int], rows: int, above: int) -> tuple[int, ...]:
    """Cut chunks of more than ``above`` rows into near-equal parts of at most ``rows``.

    >>> cut_chunks([3, 10, 4], 4, 5)
    (3, 4, 3, 3, 4)
    """
    return tuple(
        part for chunk in chunks for part in (_parts(chunk, rows) if chunk > above else (chunk,))
    )


def _parts(n_rows: int, most: int) -> list[int]:
    """Return the fewest near-equal parts of at most ``most`` rows, the larger ones first."""
    n_parts = -(-n_rows // most)
    return [n_rows // n_parts + (i < n_rows % n_parts) for i in range(n_parts)]


def check_sizes(handle: ArrayHandle, name: str, nbytes: int) -> None:
    """Refuse an array whose metadata imply too much memory, before any is allocated."""
    itemsize, what = np.dtype(handle.dtype).itemsize, f"{name} at {handle.path}"
    if itemsize > MAX_VALUE_NBYTES:
        raise DataError(
            f"{what} holds values of {itemsize} bytes each (dtype {handle.dtype}), but at most "
            f"{MAX_VALUE_NBYTES} are supported. Write it with a smaller dtype."
        )
    row_nbytes = itemsize * math.prod(handle.shape[1:])
    unpacked = UNPACKED_COPIES * row_nbytes * handle.unit_rows
    # The memory of this process: the plan of a fit checks its tasks, but columns and predictions
    # have no plan.
    limit = free_nbytes()
    if unpacked > limit:
        raise MemoryPlanError(
            f"{what} has chunks of {row_nbytes * handle.unit_rows >> 20} MiB, and unpacking one "
            f"needs {unpacked >> 20} MiB, but {limit >> 20} MiB are free. Write it in "
            "smaller chunks, or use a machine with more memory."
        )
    n_blocks = handle.shape[0] * row_nbytes // nbytes
    if n_blocks > MAX_BLOCKS:
        raise MemoryPlanError(
            f"{what} has shape {handle.shape}: {n_blocks} blocks of {nbytes >> 20} MiB, but a "
            f"graph may have at most {MAX_BLOCKS}. Use only some of its rows or columns."
        )
