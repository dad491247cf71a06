"""Local files, written whole or not at all."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daskls.errors import StoreError

__all__ = ["local_path", "no_space_is_store_error", "replace_file", "replace_folder"]


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
