"""Rows of blocks: chunks merged where they are small, cut where they are large."""

import math
from collections.abc import Sequence

import numpy as np

from daskls.store.arrays import ArrayHandle

__all__ = ["cut_chunks", "merge_chunks", "row_chunks"]


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
