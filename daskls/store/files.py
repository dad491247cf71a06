"""Local files, written whole or not at all."""

import errno
import os
import shutil
import threading
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.records import FloatArray

__all__ = [
    "local_path",
    "no_space_is_store_error",
    "open_numpy",
    "read_npz",
    "replace_file",
    "replace_folder",
]


def local_path(location: str | os.PathLike[str], *, what: str = "store") -> Path:
    """Return the absolute local path of a path or ``file://`` URL.

    Raises
    ------
    StoreError : for a URL of another kind. The exchange needs positioned reads and atomic
        renames, which a local or a shared file system has and an object store has not.
    """
    text = os.fspath(location)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    elif "://" in text:
        raise StoreError(
            f"The {what} {text!r} is a URL; daskls writes to a local or shared file system only. "
            "Give a path that the client and all workers share."
        )
    return Path(text).absolute()


@contextmanager
def no_space_is_store_error(path: Path) -> Iterator[None]:
    """Turn a full disk into a `StoreError` that says what is kept and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StoreError(
            f"No space left on the disk of {path} ({error.strerror}); what is finished is kept. "
            "Free some space, or set Dask's temporary-directory to a larger disk, then call fit "
            "again on the same store: only unfinished tasks run."
        ) from error


_loading = threading.Lock()


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that takes its place at the end, atomically.

    If the body fails, the temporary file is removed and ``path`` is as it was.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with no_space_is_store_error(path):
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def open_numpy(path: Path, mmap_mode: Any = None) -> Iterator[Any]:
    """Yield an archive of named arrays, closed at the end; or an array, mapped into memory.

    One thread of a process at a time. numpy parses headers with `ast.literal_eval`, and CPython
    3.11 counts the depth of its parser for all threads together (its issue 106905): two at once
    may fail with "AST constructor recursion depth mismatch".
    """
    with _loading:
        if mmap_mode is not None:
            yield np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
            return
        # numpy would leave the file of a damaged archive open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as opened:
            yield opened


def read_npz(path: Path, names: Iterable[str]) -> dict[str, FloatArray]:
    """Read some of the arrays of a file that a fit keeps between its tasks.

    Raises
    ------
    StoreError : when it is missing or damaged
    """
    try:
        with open_numpy(path) as arrays:
            return {name: arrays[name] for name in names}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise StoreError(
            f"The fit's file {path} is missing or damaged ({error}). Remove it, then call fit "
            "again on the same store: only what is missing is done."
        ) from error


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """As `replace_file` for a folder; if another task was first, its result stays."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with no_space_is_store_error(path):
            yield temporary
            try:
                temporary.rename(path)
            except OSError as error:
                # The task ran twice; both wrote the same models.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
