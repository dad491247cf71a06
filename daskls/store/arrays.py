"""Zarr arrays, as handles that tasks receive, on a disk or in a bucket.

An array that daskls wrote, in a data set or from memory, says so: every chunk of it exists and ends
in its checksum, and a missing one is damage. In other arrays a missing chunk is the fill value, as
Zarr defines it.
"""

import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.errors import ContainsGroupError, UnstableSpecificationWarning
from zarr.storage import LocalStore, ObjectStore, WrapperStore

from daskls.errors import StoreError
from daskls.records import AnyArray
from daskls.store.bucket import connect_below
from daskls.store.errors import MALFORMED, READ_AGAIN, as_store_error
from daskls.store.objects import DESCRIPTION, expand_path, is_bucket, open_store, write_errors

PREDICT_AGAIN = "predict again"
# The attribute of arrays that daskls wrote.
WHOLE = "every_chunk_is_written"
# Zarr's errors where there is nothing, or something of another kind; and where it cannot parse.
ABSENT = (FileNotFoundError, ValueError, KeyError, ContainsGroupError)
NO_ARRAY = (FileNotFoundError, NotADirectoryError, ContainsGroupError, *MALFORMED)


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
        with read_errors(self.path):
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
        with write_errors(self.path, PREDICT_AGAIN):
            if not open_store(self.path).exists(DESCRIPTION):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)

    def count_chunks(self) -> int:
        return int(zarr.open_array(writable(self.path), mode="r").nchunks_initialized)

    def delete(self) -> None:
        open_store(self.path).drop("")


def _dtype(array: "zarr.Array[Any]") -> str:
    """Return the dtype of the values read: NumPy sees Zarr's variable-length strings as objects."""
    return "|O" if array.dtype.kind == "T" else str(array.dtype.str)


def handle_of(path: str, array: "zarr.Array[Any]") -> ArrayHandle:
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
                return handle_of(path, open_array(path))
        except NO_ARRAY as error:
            raise StoreError(
                f"There is no Zarr array at {path!r}. Give the path of an array, or of a data set: "
                "a Zarr group with arrays X and y, as `daskls convert` writes it."
            ) from error
    if isinstance(source, zarr.Array):
        place, key = source.store_path.store, source.store_path.path
        if isinstance(place, LocalStore):
            return handle_of(str(place.root / key), source)
        if isinstance(place, ReadStore):
            return handle_of(f"{place.where}/{key}".rstrip("/"), source)
    return None


# Writing


def save_array(path: str, values: AnyArray, chunk_rows: int) -> ArrayHandle:
    # Zarr returns native byte order, whatever the input's was.
    dtype = values.dtype.newbyteorder("=")
    with write_errors(path):
        # Not compressed: it is removed when the fit ends.
        chunk_rows = min(chunk_rows, len(values))
        array = create_array(path, values.shape, dtype, chunk_rows, codecs=(Crc32cCodec(),))
        array[...] = values
    return handle_of(path, array)


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
        with write_errors(place.where, PREDICT_AGAIN):
            array = create_array(place.where, shape, np.dtype(dtype), chunk_rows)
        yield handle_of(place.where, array)


def create_array(
    path: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    chunk_rows: int,
    *,
    codecs: tuple[Any, ...] | None = None,
) -> "zarr.Array[Any]":
    """Create an array of daskls, whose chunks have all columns."""
    if codecs is None:
        # Compressing floats saves little and doubles the time.
        codecs = (*(() if dtype.kind == "f" else (ZstdCodec(level=0),)), Crc32cCodec())
    with warnings.catch_warnings():
        # Fixed-width text has no Zarr 3 specification yet; today's two readers agree on its format.
        warnings.simplefilter("ignore", UnstableSpecificationWarning)
        return zarr.create_array(
            writable(path),
            shape=shape,
            dtype=dtype,
            chunks=(max(chunk_rows, 1), *shape[1:]),
            compressors=codecs,
            zarr_format=3,
            attributes={WHOLE: True},
            # A chunk is written even if it holds only the fill value.
            config={"write_empty_chunks": True},
        )


def writable(path: str) -> Any:
    """Return a path or a URL in the form that Zarr opens for writing."""
    return ObjectStore(connect_below(path)) if is_bucket(path) else path


# Reading


class ReadStore(WrapperStore[Any]):  # type: ignore[misc]
    """Zarr data at a path or in a bucket.

    Attributes
    ----------
    is_whole : bool. Whether a missing chunk is damage; set once the array's attributes are read.
    """

    is_whole = False

    def __init__(self, path: str) -> None:
        self.where = path.rstrip("/")
        super().__init__(
            ObjectStore(connect_below(path), read_only=True)
            if is_bucket(path)
            else LocalStore(path, read_only=True)
        )

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return a file's bytes, or None."""
        return self._present(key, await super().get(key, *args, **kwargs))

    def get_sync(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return a file's bytes, or None."""
        return self._present(key, super().get_sync(key, *args, **kwargs))

    def _present(self, key: str, content: Any) -> Any:
        if content is None and self.is_whole:
            raise StoreError(
                f"The data file {self.where}/{key} is not read: the chunk is missing. Copy or "
                "write the data again."
            )
        return content


def readable(path: str) -> Any:
    """Return a path or a URL in the form that Zarr opens for reading."""
    return path if "://" in path and not is_bucket(path) else ReadStore(path)


def open_array(path: str) -> "zarr.Array[Any]":
    """Return an array for reading; Zarr's own error is raised if there is none."""
    array = zarr.open_array(store=readable(path), mode="r")
    store = array.store_path.store
    if isinstance(store, ReadStore):
        store.is_whole = array.attrs.get(WHOLE) is True
    return array


@contextmanager
def read_errors(path: str) -> Iterator[None]:
    """Turn errors about damaged chunks into a `StoreError`, and those of `remote_errors`."""
    with remote_errors(path):
        try:
            yield
        except MemoryError:
            raise
        except (*MALFORMED, OSError) as error:
            raise StoreError(
                f"{path} cannot be read ({type(error).__name__}: {str(error)[:200]}): it is "
                "damaged, or the disk failed. Copy or write the data again."
            ) from error


@contextmanager
def remote_errors(path: str) -> Iterator[None]:
    """Turn a driver's errors into one `StoreError`; an error of absence is raised unchanged.

    Each driver has its own errors for missing credentials, an unreachable network or a forbidden
    bucket; a local path has the system's.
    """
    remedy = "Check the path and who may read it."
    if "://" in path:
        remedy = (
            "Check the address, the network, and the credentials, which the driver takes from its "
            "own environment variables and files, on every worker."
        )
    try:
        yield
    except (StoreError, *ABSENT):
        if is_bucket(path):
            # Zarr takes a missing bucket for an empty one; this request fails with the real reason.
            open_store(path).exists("")
        raise
    except ImportError as error:
        raise StoreError(f"The driver for {path!r} is not installed: {error}.") from error
    except Exception as error:
        if not isinstance(error, OSError) and is_bucket(path):
            raise as_store_error(path, error, READ_AGAIN) from error
        if not isinstance(error, OSError) and "://" not in path:
            raise
        message = f"{type(error).__name__}: {str(error).rstrip('.')}"
        raise StoreError(f"Cannot open {path!r}: {message}. {remedy}") from error
