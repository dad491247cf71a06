"""Reading a store's files: plain files inside the store, of a size that is known before."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import numpy as np

from daskls.errors import DamageError, StoreError
from daskls.records import FloatArray

__all__ = [
    "MALFORMED",
    "check_inside",
    "damaged",
    "find_size",
    "is_absent",
    "list_folder",
    "malformed_is_damage",
    "open_file",
    "read_into",
    "read_whole",
]

# What opening a path says where something else than a file that can be read is there.
NOT_A_FILE = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
    *(errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG),
)
# What Python raises where values are not of the kind or the number that was written.
MALFORMED = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError),
    *(RecursionError, MemoryError),
)


def damaged(path: Path, why: str) -> DamageError:
    """Return the error of a damaged file: it names the file, what is wrong, and what to do."""
    return DamageError(
        f"The store's file {path} is damaged: {why}. Copy the model again; or call fit again with "
        "the same data, parameters and store: what is damaged is removed, and only that is "
        "trained again.",
        str(path),
        why,
    )


@contextmanager
def malformed_is_damage(path: Path) -> Iterator[None]:
    """Turn what the parsing of a file's values raises into an error that names the file."""
    try:
        yield
    except MALFORMED as error:
        raise damaged(
            path, f"its values are malformed ({type(error).__name__}: {error})"
        ) from error


def check_inside(path: Path, root: Path) -> None:
    """Refuse a path that links lead out of the store; the store itself may lie behind a link.

    Raises
    ------
    DamageError
    """
    if _has_no_links(os.fspath(path), os.fspath(root)):
        return
    real, base = os.path.realpath(path), os.path.realpath(root)
    if os.path.commonpath([real, base]) != base:
        raise damaged(path, f"it is a link out of the store, to {real}")


def _has_no_links(path: str, root: str) -> bool:
    """Whether a path goes down from the root by names alone, none of them a link.

    Most paths do, and each file that is read is asked for: this takes a look at each folder below
    the root, where resolving both paths takes one at each folder above it too.
    """
    if not path.startswith(root + os.sep):
        return False
    names = path[len(root) + 1 :].split(os.sep)
    if os.pardir in names:
        return False
    for name in names:
        root = f"{root}{os.sep}{name}"
        if os.path.islink(root):
            return False
    return True


def find_size(path: Path, root: Path) -> int:
    """Return the size of a plain file of a store, which is not opened.

    Raises
    ------
    DamageError : it is missing, a link out of the store, or no plain file
    StoreError : the system refuses to look at it
    """
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            check_inside(path, root)
            status = os.stat(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise damaged(path, "it is no plain file")
    return status.st_size


@contextmanager
def open_file(path: Path, root: Path) -> Iterator[FileIO]:
    """Yield a plain file of a store, open for reading and not buffered.

    Raises
    ------
    DamageError, StoreError : as `find_size`
    """
    # Before it is opened: to open a pipe may wait for ever, to open a device may move it.
    find_size(path, root)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        yield file


def is_absent(path: Path) -> bool:
    """Whether nothing has this name; what may not be looked at counts as there."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def list_folder(path: Path) -> list[str]:
    """Return the names in a folder; none where there is no folder.

    Raises
    ------
    StoreError : when it may not be read
    """
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError | ValueError) -> StoreError:
    """Return the error of a file that cannot be opened: missing is damage, forbidden is not."""
    if isinstance(error, FileNotFoundError):
        return damaged(path, "it is missing")
    if isinstance(error, ValueError) or error.errno in NOT_A_FILE:
        return damaged(path, str(error))
    return StoreError(
        f"{path} cannot be read ({error.strerror}). Give this process the right "
        "to read it, or check the disk."
    )


def read_into(file: FileIO, path: Path, values: FloatArray) -> None:
    """Fill an array with the bytes at the file's position, in as many reads as it takes.

    Raises
    ------
    DamageError : the file ends before
    """
    view = values.view(np.uint8).reshape(-1).data
    filled = 0
    while filled < len(view):
        try:
            n_read = file.readinto(view[filled:])
        except OSError as error:
            raise _unreadable(path, error) from error
        if not n_read:
            raise damaged(path, f"it ends {len(view) - filled} bytes too early")
        filled += n_read


def read_whole(path: Path, root: Path, most: int) -> bytes:
    """Return a file's bytes.

    Raises
    ------
    DamageError : as `open_file`, and where it has more bytes than any such file
    """
    size = find_size(path, root)
    if size > most:
        raise damaged(path, f"it has {size} bytes, and at most {most} are expected")
    content = np.empty(size, np.uint8)
    with open_file(path, root) as file:
        read_into(file, path, content)
    return content.tobytes()
