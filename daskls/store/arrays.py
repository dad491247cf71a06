"""Input arrays on disk, as handles that are passed to tasks."""

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.errors import UnstableSpecificationWarning
from zarr.storage import LocalStore

from daskls.errors import StoreError
from daskls.records import AnyArray
from daskls.store.artifacts import open_store, remote_errors, remove_begun, write_errors
from daskls.store.dataset import Dataset, open_dataset
from daskls.store.dataset_checks import check_there
from daskls.store.files import MALFORMED, disk_errors, expand_path
from daskls.store.sources import (
    OWN_ARRAY,
    open_array,
    own_codecs,
    read_errors,
    read_range,
    unit_rows,
    writable,
)

PREDICT_AGAIN = "predict again"
# What Zarr raises where no array is, or one that it cannot make out.
NO_ARRAY = (FileNotFoundError, NotADirectoryError, zarr.errors.ContainsGroupError, *MALFORMED)


@dataclass(frozen=True)
class ArrayHandle:
    """A Zarr array on disk: its path, and its sizes for planning.

    ``chunk_rows`` are the rows of a file, ``unit_rows`` those of it that are read together.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    chunk_rows: int
    unit_rows: int

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return np.dtype(self.dtype).itemsize

    def read(self, start: int, stop: int) -> AnyArray:
        """Return rows start .. stop - 1, C-contiguous; of a plain chunk no more than them.

        Raises
        ------
        StoreError : when the array is gone, or cannot be read
        """
        ends = start % self.chunk_rows, stop % self.chunk_rows if stop < self.shape[0] else 0
        with remote_errors(self.path), read_errors(self.path):
            array = self._open()
            rows = read_range(array, start, stop) if any(ends) else None
            rows = array[start:stop] if rows is None else rows
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
        """Write rows from ``start`` on; they must fill whole chunks, as only one task owns each.

        Raises
        ------
        StoreError : when the array is gone, or its disk refuses
        """
        with write_errors(self.path, PREDICT_AGAIN):
            zarr.open_array(writable(self.path), mode="r+")[start : start + len(values)] = values
            try:
                self.check_exists()
            except StoreError:
                # Removed meanwhile, by an interrupted call perhaps, and half of it made anew.
                self.delete()
                raise

    def check_exists(self) -> None:
        """Raise StoreError where the array is gone."""
        check_there(self.path, PREDICT_AGAIN)

    def count_chunks(self) -> int:
        """Return how many chunks are written."""
        return int(zarr.open_array(writable(self.path), mode="r").nchunks_initialized)

    def delete(self) -> None:
        """Remove the array."""
        open_store(self.path).drop("")


def _dtype(array: "zarr.Array[Any]") -> str:
    """Return the type of what is read: Zarr's own strings are objects to everything else."""
    return "|O" if array.dtype.kind == "T" else str(array.dtype.str)


def _handle(path: str, array: "zarr.Array[Any]") -> ArrayHandle:
    rows = array.shards or array.chunks
    chunk_rows = max(int(rows[0]), 1) if rows else 1
    return ArrayHandle(
        path, tuple(array.shape), _dtype(array), chunk_rows, min(unit_rows(array), chunk_rows)
    )


def shared_path(source: str | os.PathLike[str]) -> str:
    """Return a URL as it is and a path made absolute: workers may stand in other folders."""
    path = expand_path(source)
    return path if "://" in path else os.path.abspath(path)


def find_array(source: Any) -> ArrayHandle | None:
    """Return the handle of a Zarr array that is on disk; None for anything else.

    Parameters
    ----------
    source : zarr.Array, or path or URL of one

    Raises
    ------
    StoreError : when a path leads to no array, or cannot be opened
    """
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
    if isinstance(source, zarr.Array) and isinstance(source.store_path.store, LocalStore):
        return _handle(str(source.store_path.store.root / source.store_path.path), source)
    return None


def find_zarr(source: Any) -> tuple[ArrayHandle | None, Dataset | None]:
    """Return the handle of an array, or of the features of a data set, and that data set.

    Parameters
    ----------
    source : zarr.Array, or path or URL of one or of a data set

    Raises
    ------
    StoreError : when a path leads to neither, or cannot be opened
    """
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
    """Write an array from memory to disk so that every worker can read it."""
    # As Zarr gives them back, whatever the order of bytes was.
    dtype = values.dtype.newbyteorder("=")
    with write_errors(path):
        array = zarr.create_array(
            writable(path),
            shape=values.shape,
            dtype=dtype,
            chunks=(max(min(chunk_rows, len(values)), 1), *values.shape[1:]),
            # Not compressed, for any dtype: it is removed when the fit ends.
            compressors=own_codecs(np.dtype("f8")),
            zarr_format=3,
            **OWN_ARRAY,
        )
        array[...] = values
    return _handle(path, array)


@contextmanager
def new_output(
    path: str, shape: tuple[int, ...], dtype: str, chunk_rows: int
) -> Iterator[ArrayHandle]:
    """Yield a new array for predictions, which is removed if the body fails.

    Parameters
    ----------
    path : str. A path or a URL, where nothing is.
    shape : tuple of int. Rows first; a chunk has all columns.
    dtype : str
    chunk_rows : int. One task owns each chunk.

    Raises
    ------
    StoreError : when something is there, or the disk refuses
    """
    made, done = threading.Event(), threading.Event()
    found: list[ArrayHandle | BaseException] = []

    def create() -> None:
        try:
            _make_place(path)
            made.set()
            found.append(_create_array(path, shape, dtype, chunk_rows))
        except BaseException as error:
            found.append(error)
        finally:
            done.set()

    # Ctrl-C does not stop the thread: what it began is whole, and known, when this one goes on. A
    # daemon: the process does not wait for it where a second Ctrl-C ended the waiting here.
    thread = threading.Thread(target=create, name="daskls-output", daemon=True)
    try:
        thread.start()
        # Not join: where Ctrl-C comes into it, CPython 3.11 takes the thread for ended.
        done.wait()
        if isinstance(found[0], BaseException):
            raise found[0]
        yield found[0]
        found[0].check_exists()
    except BaseException:
        if thread.ident is not None:
            done.wait()
        if made.is_set():
            # Rows without an answer would read as the fill value.
            remove_begun(path)
        raise


def _make_place(path: str) -> None:
    """Make a folder that does not exist; of a URL, look that nothing is there."""
    store = open_store(path)
    is_free = store.local() is not None or not store.exists("")
    with disk_errors(path, PREDICT_AGAIN):
        if store.local() is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            try:
                Path(path).mkdir()
            except FileExistsError:
                is_free = False
    if not is_free:
        raise StoreError(f"{path} exists already; give another path or remove it first.")


def _create_array(path: str, shape: tuple[int, ...], dtype: str, chunk_rows: int) -> ArrayHandle:
    """Create an array without values."""
    with write_errors(path, PREDICT_AGAIN), warnings.catch_warnings():
        # Fixed-width text has no Zarr 3 specification yet; both that read it today agree on it.
        warnings.simplefilter("ignore", UnstableSpecificationWarning)
        array = zarr.create_array(
            writable(path),
            shape=shape,
            dtype=dtype,
            chunks=(max(chunk_rows, 1), *shape[1:]),
            compressors=own_codecs(np.dtype(dtype)),
            zarr_format=3,
            **OWN_ARRAY,
        )
    return _handle(path, array)
