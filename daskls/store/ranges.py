"""Ranges of rows of an array on disk, read without the rest of their chunks.

Zarr reads a chunk whole. Where a chunk's file is the rows themselves, one after the other, a range
of them is a range of bytes.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BytesCodec
from zarr.core.metadata.v2 import ArrayV2Metadata
from zarr.storage import LocalStore

from daskls.errors import DamageError, StoreError
from daskls.records import AnyArray
from daskls.store.folder import Folder
from daskls.store.sources import plain_size

__all__ = ["read_range", "unit_rows"]


def unit_rows(array: "zarr.Array[Any]") -> int:
    """Return how many rows are read together: 1 where a range of any rows can be read alone."""
    if not array.chunks or not array.chunks[0]:
        return 1
    return 1 if _stored_dtype(array) is not None else int(array.chunks[0])


def _stored_dtype(array: "zarr.Array[Any]") -> np.dtype[Any] | None:
    """Return the type of the values in a chunk's file, if the file is these and nothing else."""
    dtype = np.dtype(array.dtype)
    if not isinstance(array.store_path.store, LocalStore) or dtype.kind not in "biuf":
        return None
    metadata = array.metadata
    if isinstance(metadata, ArrayV2Metadata):
        packed = metadata.compressor is not None or metadata.filters
        return None if packed or metadata.order != "C" else dtype
    if len(metadata.codecs) != 1 or not isinstance(metadata.codecs[0], BytesCodec):
        return None
    endian = metadata.codecs[0].endian
    # Newer Zarr gives a word, older an enumeration of words.
    word = "<" if endian is None else getattr(endian, "value", endian)
    stored: np.dtype[Any] = dtype.newbyteorder(word)
    return stored


def read_range(array: "zarr.Array[Any]", start: int, stop: int) -> AnyArray | None:
    """Return rows start .. stop - 1; None where the array does not lie in files of plain rows.

    Raises
    ------
    StoreError : a chunk's file that is not of its size, or no file
    """
    dtype = _stored_dtype(array)
    if dtype is None or start == stop:
        return None
    out = np.empty((stop - start, *array.shape[1:]), np.dtype(array.dtype))
    folder, inside_of = Folder(str(array.store_path.store.root)), array.store_path.path
    for name, first, last, target in _parts(array, start, stop):
        key = f"{inside_of}/{name}" if inside_of else name
        rows = _read_part(folder, key, array.chunks, dtype, first, last)
        if rows is None:
            # Zarr's answer for a chunk that was never written.
            rows = np.full((last - first, *array.chunks[1:]), array.fill_value or 0, dtype)
        # A chunk at an edge is stored whole, beyond the array's end too.
        inside = tuple(slice(s.stop - s.start) for s in target[1:])
        out[target] = rows[(slice(None), *inside)]
    return out


def _parts(
    array: "zarr.Array[Any]", start: int, stop: int
) -> Iterator[tuple[str, int, int, tuple[slice, ...]]]:
    """Yield each chunk of the rows: its key, its first and last row, and where these go."""
    height = array.chunks[0]
    sizes = list(zip(array.chunks[1:], array.shape[1:], strict=True))
    across = [range(math.ceil(n / c)) for c, n in sizes]
    for down in range(start // height, math.ceil(stop / height)):
        low, high = max(start, down * height), min(stop, (down + 1) * height)
        for indices in product(*across):
            beside = [
                slice(i * c, min((i + 1) * c, n)) for i, (c, n) in zip(indices, sizes, strict=True)
            ]
            key = array.metadata.encode_chunk_key((down, *indices))
            target = (slice(low - start, high - start), *beside)
            yield key, low - down * height, high - down * height, target


def _read_part(
    folder: Folder, key: str, chunks: tuple[int, ...], dtype: np.dtype[Any], first: int, last: int
) -> AnyArray | None:
    """Read rows of one chunk's file; None if there is no file."""
    row_nbytes = dtype.itemsize * math.prod(chunks[1:])
    path, size, nbytes = folder.where(key), plain_size(folder, key), row_nbytes * chunks[0]
    if size is None:
        return None
    if size != nbytes:
        raise StoreError(
            f"{path} has {size} bytes and its chunk {nbytes}: it is truncated or damaged. Write "
            "the array again."
        )
    rows = np.empty((last - first, *chunks[1:]), dtype)
    try:
        with folder.reading(key) as reader:
            reader.fill(rows, first * row_nbytes)
    except DamageError as error:
        raise StoreError(f"Cannot read {path}: {error.why}. Write it again.") from error
    return rows
