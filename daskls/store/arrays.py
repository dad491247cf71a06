"""Users' Zarr arrays, and predictions, as handles that tasks receive."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from zarr.errors import UnstableSpecificationWarning
from zarr.storage import LocalStore

from daskls.errors import StoreError
from daskls.records import AnyArray
from daskls.store.dataset import Dataset, open_dataset
from daskls.store.dataset_checks import check_there
from daskls.store.errors import MALFORMED
from daskls.store.locations import (
    expand_path,
    open_store,
    remote_errors,
    write_errors,
)
from daskls.store.sources import (
    OWN_ARRAY,
    ReadStore,
    open_array,
    own_codecs,
    read_errors,
    writable,
)

PREDICT_AGAIN = "predict again"
# What Zarr raises where there is no array, or one that it cannot parse.
NO_ARRAY = (FileNotFoundError, NotADirectoryError, zarr.errors.ContainsGroupError, *MALFORMED)


@dataclass(frozen=True)
class ArrayHandle:
    """A Zarr array on disk: its path, and its sizes for planning.

    ``chunk_rows`` is the number of rows in one file (a chunk or a shard); ``unit_rows`` of them are
    unpacked together.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    chunk_rows: int
    unit_rows: int

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    def read(self, start: int, stop: int) -> AnyArray:
        """Return rows start .. stop - 1, C-contiguous.

        Raises
        ------
        StoreError : when the array is gone, or cannot be read
        """
        with remote_errors(self.path), read_errors(self.path):
            rows = self._open()[start:stop]
        return np.ascontiguousarray(rows, np.dtype(self.dtype))

    def _open(self) -> "zarr.Array[Any]":
        try:
            array = open_array(self.path)
        except FileNotFoundError as error:
            raise StoreError(
                f"The array {self.path} is gone, or this process does not see it. Put it back, "
                "where the client and all workers share it."
            ) from error
        if tuple(array.shape) != self.shape or _dtype(array) != self.dtype:
            was = f"{self.dtype} {self.shape}"
            raise ValueError(f"it is {array.dtype} {array.shape}, and was {was}")
        return array

    def write(self, start: int, values: AnyArray) -> None:
        """Write rows from ``start`` on; they must fill whole chunks, as a task owns each chunk."""
        with write_errors(self.path, PREDICT_AGAIN):
            zarr.open_array(writable(self.path), mode="r+")[start : start + len(values)] = values
            try:
                self.check_exists()
            except StoreError:
                # Removed meanwhile, perhaps by an interrupted call; this write recreated a part.
                self.delete()
                raise

    def check_exists(self) -> None:
        check_there(self.path, PREDICT_AGAIN)

    def count_chunks(self) -> int:
        return int(zarr.open_array(writable(self.path), mode="r").nchunks_initialized)

    def delete(self) -> None:
        open_store(self.path).drop("")


def _dtype(array: "zarr.Array[Any]") -> str:
    """Return the dtype of the values read: NumPy sees Zarr's variable-length strings as objects."""
    return "|O" if array.dtype.kind == "T" else str(array.dtype.str)


def _handle(path: str, array: "zarr.Array[Any]") -> ArrayHandle:
    sizes = (array.shards or array.chunks, array.chunks)
    chunk_rows, unit_rows = (max(int(rows[0]), 1) if rows else 1 for rows in sizes)
    return ArrayHandle(path, tuple(array.shape), _dtype(array), chunk_rows, unit_rows)


def shared_path(source: str | os.PathLike[str]) -> str:
    """Return a URL unchanged and a path as absolute: workers may have other working directories."""
    path = expand_path(source)
    return path if "://" in path else os.path.abspath(path)


def find_array(source: Any) -> ArrayHandle | None:
    """Return the handle of a Zarr array on disk; None for anything else."""
    if isinstance(source, (str, os.PathLike)):
        path = shared_path(source)
        try:
            with remote_errors(path):
                return _handle(path, open_array(path))
        except NO_ARRAY as error:
            raise StoreError(
                f"There is no Zarr array at {path!r}. Give the path of an array, or of a data set: "
                "a Zarr group with arrays X and y, as `daskls convert` writes it."
            ) from error
    if isinstance(source, zarr.Array):
        place, key = source.store_path.store, source.store_path.path
        if isinstance(place, LocalStore):
            return _handle(str(place.root / key), source)
        if isinstance(place, ReadStore):
            return _handle(f"{place.where}/{key}".rstrip("/"), source)
    return None


def find_zarr(source: Any) -> tuple[ArrayHandle | None, Dataset | None]:
    """Return the handle of an array, or of a data set's features together with the data set."""
    if not isinstance(source, str | os.PathLike):
        return find_array(source), None
    path = shared_path(source)
    try:
        with remote_errors(path):
            return _handle(path, open_array(path)), None
    except NO_ARRAY:
        dataset = open_dataset(path)
        return find_array(dataset.X), dataset


def save_array(path: str, values: AnyArray, chunk_rows: int) -> ArrayHandle:
    # Zarr returns native byte order, whatever the input's was.
    dtype = values.dtype.newbyteorder("=")
    with write_errors(path):
        # Checksums but no compression, for any dtype: it is removed when the fit ends.
        codecs = own_codecs(np.dtype("f8"))
        array = _create_array(path, values.shape, dtype, min(chunk_rows, len(values)), codecs)
        array[...] = values
    return _handle(path, array)


@contextmanager
def new_output(
    path: str, shape: tuple[int, ...], dtype: str, chunk_rows: int
) -> Iterator[ArrayHandle]:
    """Yield a new array for predictions, which is at ``path`` once the body has filled it.

    Rows are the first axis; a chunk has all columns, and one task.
    """
    store = open_store(path)
    store.then = PREDICT_AGAIN
    with store.building() as place:
        yield _create_output(place.where, shape, dtype, chunk_rows)


def _create_output(path: str, shape: tuple[int, ...], dtype: str, chunk_rows: int) -> ArrayHandle:
    with write_errors(path, PREDICT_AGAIN), warnings.catch_warnings():
        # Fixed-width text has no Zarr 3 specification yet; today's two readers agree on its format.
        warnings.simplefilter("ignore", UnstableSpecificationWarning)
        codecs = own_codecs(np.dtype(dtype))
        array = _create_array(path, shape, dtype, chunk_rows, codecs)
    return _handle(path, array)


def _create_array(
    path: str,
    shape: tuple[int, ...],
    dtype: str | np.dtype[Any],
    chunk_rows: int,
    codecs: tuple[Any, ...],
) -> "zarr.Array[Any]":
    return zarr.create_array(
        writable(path),
        shape=shape,
        dtype=dtype,
        chunks=(max(chunk_rows, 1), *shape[1:]),
        compressors=codecs,
        zarr_format=3,
        **OWN_ARRAY,
    )
