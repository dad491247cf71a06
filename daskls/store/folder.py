"""A store in a folder of a local or shared file system: the only module that touches its files.

Files appear by an atomic rename, or by a hard link where only one of several writers may win. The
system is asked directly, and not through obstore: a process that has used obstore cannot be forked,
a read by position costs a 60th of its request, and a folder that was removed is not made again.
Before a file is opened it is checked to be a plain file inside the store.
"""

import errno
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import numpy as np

from daskls.errors import StoreError
from daskls.records import Bytes
from daskls.store.errors import damaged, disk_errors, exists_already
from daskls.store.objects import BaseStore, BuildLocation

# Errors of opening a path where there is no readable file.
NOT_A_FILE = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
    *(errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG),
)
# Names of files that are not yet whole.
STAGED = re.compile(r"\..*\.[0-9a-f]{32}")
# Removals in a row, and the pause after each.
N_REMOVALS, REMOVAL_S = 4, 0.05
# Errors of disks that cannot be waited for.
NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
# Errors of disks without hard links.
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


class Folder(BaseStore):
    """A store in a folder, which may lie behind a link."""

    def __init__(self, root: str) -> None:
        # With a trailing slash, a link would count as its target.
        self.root = root.rstrip("/") or root
        # Folders in it that no link leads out of: each is checked once, not for every file in it.
        self._inside = {""}

    def where(self, key: str = "") -> str:
        return f"{self.root}/{key}" if key else self.root

    def local(self, key: str = "") -> str:
        return self.where(key)

    # Writing

    def make(self) -> None:
        with disk_errors(self.root, self.then):
            os.makedirs(self.root, exist_ok=True)

    def unmake(self) -> None:
        with suppress(OSError):
            os.rmdir(self.root)

    @contextmanager
    def building(self, *, replaces: bool = False) -> Iterator[BuildLocation]:
        """Yield a folder beside this one, which is renamed at the end."""
        above, name = os.path.split(os.path.abspath(self.root))
        place = f"{above}/.{name}.{uuid.uuid4().hex}"
        if not replaces and self.exists(""):
            raise exists_already(self)

        def check() -> None:
            if not os.path.isdir(place):
                raise StoreError(f"{self} was removed while it was written; {self.then}.")

        try:
            with disk_errors(self.root, self.then):
                os.makedirs(place)
            yield BuildLocation(place, check)
            check()
            with disk_errors(self.root, self.then):
                self._rename(place, replaces)
        except BaseException as error:
            _remove_for_good(place)
            # It is the name of nothing that the caller knows.
            if isinstance(error, StoreError):
                error.args = (str(error).replace(place, self.root), *error.args[1:])
            raise

    def _rename(self, place: str, replaces: bool) -> None:
        """Give a folder this one's name; what has it is removed, if it is to be replaced."""
        old = f"{place}.old"
        if replaces and self.exists(""):
            os.rename(self.root, old)
        try:
            os.rename(place, self.root)
        except OSError as error:
            # Back to its place, unless another caller has put something there.
            with suppress(OSError):
                os.rename(old, self.root)
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            raise exists_already(self) from error
        _remove(old, strict=False)

    def put(self, key: str, *pieces: Any, create: bool = False, lasting: bool = False) -> bool:
        """Write a whole file; its folder is created if needed."""
        if create and os.path.lexists(self.where(key)):
            return False
        with self._temporary_beside(key) as temporary:
            with create_file(temporary) as file:
                for piece in pieces:
                    file.write(piece)
                if lasting:
                    _make_last(file)
            if create:
                return link_once(temporary, self.where(key))
            os.replace(temporary, self.where(key))
        return True

    @contextmanager
    def stream(self, key: str) -> Iterator[BinaryIO]:
        """Yield a temporary file that is renamed at the end."""
        with self._temporary_beside(key) as temporary:
            with create_file(temporary) as file:
                yield file
            os.replace(temporary, self.where(key))

    @contextmanager
    def _temporary_beside(self, key: str) -> Iterator[str]:
        """Yield a temporary path beside a file; nothing is left there at the end."""
        folder, _, name = key.rpartition("/")
        # As `STAGED` says.
        temporary = f"{self.where(folder)}/.{name}.{uuid.uuid4().hex}"
        try:
            with disk_errors(self.where(key), self.then):
                self._make_below(folder)
                yield temporary
        finally:
            # A disk that cannot be written to allows no removal either; the body's error counts.
            with suppress(OSError):
                os.unlink(temporary)

    def _make_below(self, folder: str) -> None:
        """Create a folder below the store's own, which a late task must not recreate."""
        if not folder or os.path.isdir(self.where(folder)):
            return
        path = self.root
        for name in folder.split("/"):
            path = f"{path}/{name}"
            # Another task may create it at the same moment.
            with suppress(FileExistsError):
                os.mkdir(path)

    def drop(self, *patterns: str, strict: bool = False) -> None:
        for key in self.find(*patterns):
            path = self.where(key)
            with disk_errors(path, self.then) if strict else suppress(OSError):
                _remove(path, strict=strict)

    def sweep(self) -> None:
        for key in self.sizes():
            if STAGED.fullmatch(key.rpartition("/")[2]):
                with suppress(OSError):
                    os.unlink(self.where(key))

    # Looking

    def exists(self, key: str) -> bool:
        try:
            os.lstat(self.where(key))
        except OSError as error:
            return not isinstance(error, FileNotFoundError | NotADirectoryError)
        return True

    def names(self, key: str = "") -> list[str]:
        try:
            return os.listdir(self.where(key))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _unreadable(self.where(key), error) from error

    def sizes(self, key: str = "") -> dict[str, int]:
        sizes = {}
        # By default os.walk treats a folder that cannot be read as empty.
        for at, _, names in os.walk(self.where(key), onerror=_raise):
            for path in (os.path.join(at, name) for name in names):
                # A file that is removed meanwhile is none.
                with suppress(FileNotFoundError):
                    sizes[path[len(self.root) + 1 :]] = os.lstat(path).st_size
        return dict(sorted(sizes.items()))

    def size(self, key: str) -> int:
        """Return the size of a plain file, without opening it."""
        # Checked before opening: opening a pipe may wait forever, opening a device may act on it.
        path, folder = self.where(key), key.rpartition("/")[0]
        try:
            if folder not in self._inside:
                self._check_inside(folder)
                self._inside.add(folder)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                self._check_inside(key)
                status = os.stat(path)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        if not stat.S_ISREG(status.st_mode):
            raise damaged(path, "it is no plain file")
        return status.st_size

    def free_nbytes(self) -> int:
        return shutil.disk_usage(self.root).free

    def stamp(self, key: str) -> tuple[int, int]:
        """Return a file's inode number and modification time."""
        try:
            status = os.stat(self.where(key))
        except OSError:
            # Opening the file will raise the reason.
            return 0, 0
        # Both, because a file system may reuse the inode number of a removed file.
        return status.st_ino, status.st_mtime_ns

    def modified(self, key: str) -> float | None:
        with disk_errors(self.where(key), self.then):
            try:
                return os.stat(self.where(key)).st_mtime_ns / 1e9
            except FileNotFoundError:
                return None

    def _check_inside(self, key: str) -> None:
        """Raise a `DamageError` if links lead a file, or a folder, out of the store."""
        real, base = os.path.realpath(self.where(key)), os.path.realpath(self.root)
        if os.path.commonpath([real, base]) != base:
            raise damaged(self.where(key), f"it is a link out of the store, to {real}")

    # Reading

    def head(self, key: str, most: int) -> tuple[Bytes, int]:
        with self._open(key) as descriptor:
            # Of the opened file: another may take its name at any moment.
            nbytes = os.fstat(descriptor).st_size
            return self._read(descriptor, key, 0, min(most, nbytes)), nbytes

    def range(self, key: str, start: int, stop: int) -> Bytes:
        with self._open(key) as descriptor:
            return self._read(descriptor, key, start, stop)

    @contextmanager
    def _open(self, key: str) -> Iterator[int]:
        """Yield the descriptor of a plain file."""
        self.size(key)
        path = self.where(key)
        try:
            # Not blocking, in case a pipe has replaced it since.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                yield descriptor
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error

    def _read(self, descriptor: int, key: str, start: int, stop: int) -> Bytes:
        """Return a range of a file, read without a buffer, which would read beyond it."""
        values = np.empty(stop - start, np.uint8)
        view, at = values.data, 0
        while at < len(view):
            n_read = os.preadv(descriptor, [view[at:]], start + at)
            if not n_read:
                raise damaged(self.where(key), f"it ends {len(view) - at} bytes too early")
            at += n_read
        return values


def _make_last(file: BinaryIO) -> None:
    """Wait until a file would survive a loss of power, where its disk can tell."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise


def _remove(path: str, *, strict: bool) -> None:
    # rmtree refuses links; a link is removed and its target stays.
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=not strict)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _remove_for_good(path: str) -> None:
    """Remove a folder although Zarr may still be writing to it.

    Of several files that it writes at once, the first failure is raised; the other writes continue
    for a moment, and would recreate the folder.
    """
    for _ in range(N_REMOVALS):
        with suppress(OSError):
            _remove(path, strict=False)
        time.sleep(REMOVAL_S)


def create_file(path: str) -> BinaryIO:
    return open(path, "wb")


def link_once(source: str, target: str) -> bool:
    """Give a file its final name; False if the name is taken."""
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # Of two concurrent writers both may win here; they write the same.
        if os.path.lexists(target):
            return False
        os.replace(source, target)
    return True


def _unreadable(path: str, error: OSError | ValueError) -> StoreError:
    """Return the error for a file that cannot be opened: missing is damage, forbidden is not."""
    if isinstance(error, FileNotFoundError):
        return damaged(path, "it is missing")
    if isinstance(error, ValueError) or error.errno in NOT_A_FILE:
        return damaged(path, str(error))
    return StoreError(
        f"{path} cannot be read ({error.strerror}). Give this process the right "
        "to read it, or check the disk."
    )


def _raise(error: OSError) -> None:
    """Raise the error of a folder that `os.walk` cannot read, unless there is none."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise _unreadable(str(error.filename), error) from error
