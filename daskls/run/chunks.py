"""Rows of blocks: chunks merged where they are small, cut where they are large, or refused."""

import math
from collections.abc import Sequence

import numpy as np

from daskls.errors import DataError, MemoryPlanError
from daskls.run.resources import free_nbytes
from daskls.store.arrays import ArrayHandle

__all__ = ["UNPACKED_COPIES", "check_sizes", "cut_chunks", "merge_chunks", "row_chunks"]

# Peak of unpacking a chunk of Zarr, in chunks: packed, unpacked, and copied to where it belongs.
UNPACKED_COPIES = 3
# No label is longer; and no graph of more blocks is built, which are 2 TiB.
MAX_VALUE_NBYTES = 1 << 20
MAX_BLOCKS = 1 << 17


def merge_chunks(chunks: Sequence[int], max_rows: int) -> tuple[int, ...]:
    """Merge neighboring chunks as long as the sum is at most ``max_rows`` rows.

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
    """Cut chunks of more than ``above`` rows into near-equal ones of at most ``rows``.

    >>> cut_chunks([3, 10, 4], 4, 5)
    (3, 4, 3, 3, 4)
    """
    return tuple(
        part for chunk in chunks for part in (_parts(chunk, rows) if chunk > above else (chunk,))
    )


def _parts(n_rows: int, most: int) -> list[int]:
    """Return as few near-equal parts as the most rows of one allow, the larger ones first."""
    n_parts = -(-n_rows // most)
    return [n_rows // n_parts + (i < n_rows % n_parts) for i in range(n_parts)]


def row_chunks(handle: ArrayHandle, nbytes: int) -> tuple[int, ...]:
    """Return blocks of about ``nbytes``: of whole chunks, or of parts that are read alone."""
    n, chunk, unit = handle.shape[0], handle.chunk_rows, handle.unit_rows
    row_nbytes = max(np.dtype(handle.dtype).itemsize * math.prod(handle.shape[1:]), 1)
    rows = max(nbytes // (row_nbytes * chunk), 1) * chunk
    whole = tuple(min(rows, n - start) for start in range(0, n, rows)) or (0,)
    if row_nbytes * chunk <= nbytes:
        return whole
    # No block reaches over the end of a chunk: what is read by Zarr is read once.
    part = max(nbytes // (row_nbytes * unit), 1) * unit
    return tuple(min(part, rows - at) for rows in whole for at in range(0, rows, part)) or (0,)


def check_sizes(handle: ArrayHandle, name: str, nbytes: int) -> None:
    """Refuse an array whose metadata imply more memory than is free, before any is allocated.

    Raises
    ------
    DataError : values that are too large
    MemoryPlanError : a chunk that no task could unpack, or more blocks than a graph may have
    """
    itemsize, what = np.dtype(handle.dtype).itemsize, f"{name} at {handle.path}"
    if itemsize > MAX_VALUE_NBYTES:
        raise DataError(
            f"{what} holds values of {itemsize} bytes each (dtype {handle.dtype}), and at most "
            f"{MAX_VALUE_NBYTES} are taken. Write it with a smaller dtype."
        )
    row_nbytes = itemsize * math.prod(handle.shape[1:])
    unpacked = UNPACKED_COPIES * row_nbytes * handle.unit_rows
    # What a fit's tasks may use is in its plan; this is for columns and predictions too.
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
            f"{what} has shape {handle.shape}: {n_blocks} blocks of {nbytes >> 20} MiB, and a "
            f"graph may have {MAX_BLOCKS}. Take part of its rows, or of its columns."
        )
