"""Zarr data of users, opened for reading and writing, on a disk or in a bucket.

An array that daskls wrote, in a data set or from memory, says so: every chunk of it exists and ends
in its checksum, and a missing one is damage. In other arrays a missing chunk is the fill value, as
Zarr defines it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.storage import LocalStore, ObjectStore, WrapperStore

from daskls.errors import StoreError
from daskls.store.bucket import connect_below
from daskls.store.errors import MALFORMED
from daskls.store.locations import is_bucket

# Keywords of `zarr.create_array` for the arrays that daskls writes; the attribute identifies them.
WHOLE = "every_chunk_is_written"
OWN_ARRAY: dict[str, Any] = {
    "attributes": {WHOLE: True},
    # Writes a chunk even if it holds only the fill value.
    "config": {"write_empty_chunks": True},
}


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
        return self._found(key, await super().get(key, *args, **kwargs))

    def get_sync(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return a file's bytes, or None."""
        return self._found(key, super().get_sync(key, *args, **kwargs))

    def _found(self, key: str, found: Any) -> Any:
        if found is None and self.is_whole:
            raise StoreError(
                f"The data file {self.where}/{key} is not read: the chunk is missing. Copy or "
                "write the data again."
            )
        return found


def open_array(path: str) -> "zarr.Array[Any]":
    """Return an array for reading; Zarr's own error is raised if there is none."""
    array = zarr.open_array(store=_readable(path), mode="r")
    store = array.store_path.store
    if isinstance(store, ReadStore):
        store.is_whole = array.attrs.get(WHOLE) is True
    return array


def open_zarr_group(path: str) -> zarr.Group:
    """Return a group for reading; Zarr's own error is raised if there is none."""
    return zarr.open_group(store=_readable(path), mode="r")


def _readable(path: str) -> Any:
    """Return a path or a URL in the form that Zarr opens for reading."""
    return path if "://" in path and not is_bucket(path) else ReadStore(path)


def writable(path: str) -> Any:
    """Return a path or a URL in the form that Zarr opens for writing."""
    return ObjectStore(connect_below(path)) if is_bucket(path) else path


@contextmanager
def read_errors(path: str) -> Iterator[None]:
    """Turn Zarr's errors about damaged chunks into a `StoreError`."""
    try:
        yield
    except (*MALFORMED, OSError) as error:
        if isinstance(error, MemoryError):
            raise
        raise StoreError(
            f"{path} cannot be read ({type(error).__name__}: {str(error)[:200]}): it is "
            "damaged, or the disk failed. Copy or write the data again."
        ) from error


def own_codecs(dtype: "np.dtype[Any]") -> tuple[Any, ...]:
    """Return the codecs of daskls' arrays: compressing floats saves little and doubles the time."""
    return (Crc32cCodec(),) if dtype.kind == "f" else (ZstdCodec(level=0), Crc32cCodec())
