"""A store in a folder of a local or shared file system: the only module that touches its files.

Files appear by an atomic rename, parts of several files by a rename of their folder, and markers by
a hard link, which only one of several writers gets. What is replaced is first renamed aside. Before
a file is opened it is checked to be a plain file inside the store.
"""

import errno
import fnmatch
import os
import shutil
import stat
import uuid
from collections.abc import Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from typing import Any, BinaryIO

import numpy as np

from daskls.errors import StoreError
from daskls.records import AnyArray
from daskls.store.backend import Backend, Reader
from daskls.store.files import damaged, disk_errors, exists_already
from daskls.store.folder_owner import OwnedFolder, link_once, set_aside

# Errors of opening a path where there is no readable file.
NOT_A_FILE = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
    *(errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG),
)


class Folder(OwnedFolder):
    """A store in a folder, which may lie behind a link."""

    def __init__(self, root: str) -> None:
        # With a trailing slash, a link would count as its target.
        self.root = root.rstrip("/") or root
        # Folders without links on their path: each is checked once, not for every file in it.
        self._plain = {""}

    def where(self, key: str = "") -> str:
        return f"{self.root}/{key}" if key else self.root

    def local(self, key: str = "") -> str:
        return self.where(key)

    # Writing

    def make(self, key: str = "") -> None:
        if key:
            self._make_folders(key)
            return
        with disk_errors(self.root, self.then):
            os.makedirs(self.root, exist_ok=True)

    def unmake(self) -> None:
        with suppress(OSError):
            os.rmdir(self.root)

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Create the folder, and those above it if needed."""
        with disk_errors(self.root, self.then):
            os.makedirs(os.path.dirname(self.root) or ".", exist_ok=True)
            try:
                os.mkdir(self.root)
            except FileExistsError as error:
                raise exists_already(self) from error
        yield

    def put(
        self, key: str, *pieces: Any, create: bool = False, instead_of: Hashable = None
    ) -> bool:
        """Write a whole file; its folder is created if needed."""
        self._make_folder_of(key)
        with self._temporary_beside(key) as temporary:
            write_file(temporary, *pieces)
            if create:
                if instead_of is not None:
                    self.drop_seen(key, key, instead_of)
                return place_once(temporary, self.where(key))
            os.replace(temporary, self.where(key))
        return True

    @contextmanager
    def stream(self, key: str) -> Iterator[BinaryIO]:
        """Yield a temporary file that is renamed at the end; its folder must exist."""
        with self._temporary_beside(key) as temporary:
            with create_file(temporary) as file:
                yield file
            os.replace(temporary, self.where(key))

    @contextmanager
    def _temporary_beside(self, key: str) -> Iterator[str]:
        """Yield a temporary path beside a file; nothing is left there at the end."""
        temporary = self._temporary(key)
        try:
            with disk_errors(self.where(key), self.then):
                yield temporary
        finally:
            # A disk that cannot be written to allows no removal either; the body's error counts.
            with suppress(OSError):
                os.unlink(temporary)

    def _temporary(self, key: str) -> str:
        folder, _, name = key.rpartition("/")
        return f"{self.where(folder)}/.{name}.{uuid.uuid4().hex}"

    def _make_folder_of(self, key: str) -> None:
        folder = key.rpartition("/")[0]
        if folder and not os.path.isdir(self.where(folder)):
            self._make_folders(folder)

    def _make_folders(self, folder: str) -> None:
        """Create a folder below the store's own, which a late task must not recreate."""
        with disk_errors(self.where(folder), self.then):
            _make_below(self.root, folder)

    @contextmanager
    def attempt(
        self, key: str, *, replace: bool = False, instead_of: Hashable = None
    ) -> Iterator["FolderAttempt"]:
        """Yield an attempt in a temporary folder, which is renamed when it is committed."""
        self._make_folder_of(key)
        attempt = FolderAttempt(self, key, self._temporary(key), replace, instead_of)
        try:
            with disk_errors(self.where(key), self.then):
                os.mkdir(attempt.path)
                yield attempt
        finally:
            shutil.rmtree(attempt.path, ignore_errors=True)

    def copy_from(self, source: Backend, keys: Iterable[str], last: str) -> bool:
        """Copy into a temporary folder, which is renamed at the end."""
        above, name = os.path.split(self.root)
        parent = Folder(above)
        parent.then = self.then
        parent.make()
        with parent.attempt(name) as attempt:
            for key in keys:
                attempt.write(key, source.read(key, source.size(key)))
            return place_once(attempt.path, self.root)

    def drop(self, *patterns: str, strict: bool = False) -> None:
        for key in self.find(*patterns):
            path = self.where(key)
            with disk_errors(path, self.then) if strict else suppress(OSError):
                _remove(path, strict=strict)

    def drop_seen(self, key: str, marker: str, seen: Hashable) -> None:
        """Remove a part or artifact if its marker has the stamp that was seen; None: any stamp."""
        path, aside = self.where(key), self._temporary(key)
        below = marker.removeprefix(key)
        # Not removed in place: another writer's marker may have come after a look at the old one,
        # and a crash would leave half of a part, which is damage.
        set_aside(path, aside, lambda at: seen in (None, _stamp(f"{at}{below}")), place_once)
        _remove(aside, strict=True)

    # Listing

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

    def below(self, key: str = "", skip: Collection[str] = ()) -> list[str]:
        found = []
        # By default os.walk treats a folder that cannot be read as empty.
        for at, folders, files in os.walk(self.where(key), onerror=_raise):
            folders[:] = [name for name in folders if not _matches(name, skip)]
            found += [os.path.join(at, name) for name in files if not _matches(name, skip)]
        return sorted(path[len(self.root) + 1 :] for path in found)

    def nbytes(self, key: str = "") -> int:
        """Return the bytes of a file, or of all files in a folder; 0 if there is none."""
        total = 0
        # Files that are removed meanwhile take no space.
        with suppress(FileNotFoundError, NotADirectoryError):
            is_folder = os.path.isdir(self.where(key))
            for file in self.below(key) if is_folder else [key]:
                total += os.lstat(self.where(file)).st_size
        return total

    def free_nbytes(self) -> int:
        return shutil.disk_usage(self.root).free

    def stamp(self, key: str) -> tuple[int, int]:
        """Return a file's inode number and modification time."""
        return _stamp(self.where(key))

    def size(self, key: str) -> int:
        """Return the size of a plain file, without opening it."""
        path = self.where(key)
        self._check_folders(key)
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                self._check_inside(path)
                status = os.stat(path)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        if not stat.S_ISREG(status.st_mode):
            raise damaged(path, "it is no plain file")
        return status.st_size

    def _check_folders(self, key: str) -> None:
        """Refuse a file whose folder lies outside the store, by links."""
        folder = key.rpartition("/")[0]
        if folder in self._plain:
            return
        names = folder.split("/")
        if os.pardir not in names and not any(
            os.path.islink(self.where("/".join(names[: i + 1]))) for i in range(len(names))
        ):
            self._plain.add(folder)
        else:
            self._check_inside(self.where(key))

    def _check_inside(self, path: str) -> None:
        """Raise a `DamageError` if links lead a path out of the store."""
        real, base = os.path.realpath(path), os.path.realpath(self.root)
        if os.path.commonpath([real, base]) != base:
            raise damaged(path, f"it is a link out of the store, to {real}")

    # Reading

    @contextmanager
    def reading(self, key: str) -> Iterator["FolderReader"]:
        """Yield a plain file, opened without a buffer."""
        # Checked before opening: opening a pipe may wait forever, opening a device may act on it.
        nbytes, path = self.size(key), self.where(key)
        try:
            # Not blocking, in case a pipe has replaced it since.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        # A buffer would read beyond the requested range.
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            yield FolderReader(file, path, nbytes)


class FolderAttempt:
    """A temporary folder that becomes a part."""

    prefix = ""

    def __init__(
        self, folder: Folder, key: str, path: str, replace: bool, instead_of: Hashable
    ) -> None:
        self._folder, self._key, self.path = folder, key, path
        self._replace, self._instead_of = replace, instead_of
        self._made = {""}

    def write(self, name: str, *pieces: Any) -> None:
        """Write a file; its folder is created if needed."""
        folder = name.rpartition("/")[0]
        if folder not in self._made:
            _make_below(self.path, folder)
            self._made.add(folder)
        write_file(f"{self.path}/{name}", *pieces)

    def commit(self, name: str, marker: bytes) -> bool:
        """Write the marker, then rename the folder; an existing part stays, or is replaced."""
        self.write(name, marker)
        if self._replace or self._instead_of is not None:
            # A folder with files cannot be renamed over. A crash in between leaves no part, which
            # counts as not written yet.
            seen = None if self._replace else self._instead_of
            self._folder.drop_seen(self._key, f"{self._key}/{name}", seen)
        return place_once(self.path, self._folder.where(self._key))


class FolderReader(Reader):
    def __init__(self, file: FileIO, name: str, nbytes: int) -> None:
        self._file, self.name, self.nbytes = file, name, nbytes
        self._at = 0

    def fill(self, values: AnyArray, at: int) -> None:
        view = values.view(np.uint8).reshape(-1).data
        filled = 0
        try:
            if at != self._at:
                self._file.seek(at)
            while filled < len(view):
                n_read = self._file.readinto(view[filled:])
                if not n_read:
                    raise damaged(self.name, f"it ends {len(view) - filled} bytes too early")
                filled += n_read
        except OSError as error:
            raise _unreadable(self.name, error) from error
        self._at = at + filled


def _make_below(path: str, folder: str) -> None:
    """Create a folder below an existing one; not by `os.makedirs`, which would create both."""
    for name in folder.split("/"):
        path = f"{path}/{name}"
        # Another task may create it at the same moment.
        with suppress(FileExistsError):
            os.mkdir(path)


def create_file(path: str) -> BinaryIO:
    return open(path, "wb")


def write_file(path: str, *pieces: Any) -> None:
    """Write bytes, or buffers one after the other, to a new file."""
    with create_file(path) as file:
        for piece in pieces:
            file.write(piece)


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        # Opening the file will raise the reason.
        return 0, 0
    # Both, because a file system may reuse the inode number of a removed file.
    return status.st_ino, status.st_mtime_ns


def _remove(path: str, *, strict: bool) -> None:
    # rmtree refuses links; a link is removed and its target stays.
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=not strict)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)


def place_once(source: str, target: str) -> bool:
    """Link a file, or rename a folder, to its final path; False if something is there."""
    if os.path.isdir(source):
        try:
            os.rename(source, target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True
    is_ours = link_once(source, target)
    if is_ours is None:
        # Without hard links, of two concurrent writers the later one's marker stays: the data that
        # it names exists as well.
        is_ours = not os.path.lexists(target)
        if is_ours:
            os.replace(source, target)
    return is_ours


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


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _raise(error: OSError) -> None:
    """Raise the error of a folder that `os.walk` cannot read."""
    raise error
