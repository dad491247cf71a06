"""The owner's file of a store in a folder: how it is taken, renewed and taken over.

Two contenders never both get it. The file appears with its content under an unused name, by a hard
link. To take a file over, a contender first renames it aside, which only one can do, and puts it
back if it is not the one that was examined. Contenders on one machine do so one at a time. Ages are
differences between two files of the folder's own disk, whose clock need not be this machine's.
"""

import errno
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from daskls.store.backend import MAX_OWNER_NBYTES, Backend, OwnerArtifact
from daskls.store.files import disk_errors

AnyPath = TypeVar("AnyPath", str, Path)
# Errors of disks without hard links.
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
# How often, and how long, a contender waits for another one on its machine.
N_LOCK_TRIES, LOCK_PAUSE_S = 20, 0.05
# A contender takes moments: an older file was left by one that was killed.
LEFTOVER_S = 60.0


class OwnedFolder(Backend):
    """The part of a folder's back end that handles the owner's file."""

    root: str

    def take(self, key: str, content: bytes) -> bool:
        """Link a file of this contender to the owner's name, if nobody has that name."""
        with disk_errors(self.root, self.then), self._own_file(key, content) as mine:
            with _one_at_a_time(self.root):
                is_ours = _claim(mine, Path(self.where(key)))
            if is_ours:
                self._clean(key, _mtime_ns(mine))
        return is_ours

    def examine(self, key: str) -> OwnerArtifact | None:
        path = self.where(key)
        with disk_errors(path, self.then):
            return _read(Path(path))

    def age(self, key: str, seen: OwnerArtifact) -> float:
        """Compare its modification time, the stamp, with that of a new file."""
        assert isinstance(seen.stamp, int)
        with disk_errors(self.root, self.then), self._own_file(key, b"") as mine:
            return (_mtime_ns(mine) - seen.stamp) / 1e9

    def renew(self, key: str, content: bytes) -> bool:
        path = Path(self.where(key))
        with disk_errors(path, self.then):
            found = _read(path)
            is_ours = found is not None and found.content == content
            if is_ours:
                os.utime(path)
        return is_ours

    def take_over(self, key: str, seen: OwnerArtifact, content: bytes) -> bool:
        """Rename the examined file aside, then take the name as `take` does."""
        path = Path(self.where(key))
        with disk_errors(self.root, self.then), self._own_file(key, content) as mine:
            aside = mine.with_suffix(".old")
            with _one_at_a_time(self.root):
                is_ours = set_aside(path, aside, lambda at: _read(at) == seen, _claim)
                aside.unlink(missing_ok=True)
                is_ours = is_ours and _claim(mine, path)
            if is_ours:
                self._clean(key, _mtime_ns(mine))
        return is_ours

    def give_back(self, key: str, content: bytes) -> None:
        path = Path(self.where(key))
        with disk_errors(path, self.then):
            found = _read(path)
            if found is not None and found.content == content:
                path.unlink()

    @contextmanager
    def _own_file(self, key: str, content: bytes) -> Iterator[Path]:
        """Yield a new file that belongs to this contender alone."""
        mine = Path(f"{self.where(key)}.{uuid.uuid4().hex}.new")
        try:
            mine.write_bytes(content)
            yield mine
        finally:
            # A disk that cannot be written to allows no removal either.
            with suppress(OSError):
                mine.unlink()

    def _clean(self, key: str, now_ns: int) -> None:
        for path in Path(self.root).glob(f"{key}.*"):
            with suppress(FileNotFoundError):
                if now_ns - _mtime_ns(path) > LEFTOVER_S * 1e9:
                    path.unlink()


def set_aside(
    path: AnyPath,
    aside: AnyPath,
    is_seen: Callable[[AnyPath], bool],
    put_back: Callable[[AnyPath, AnyPath], object],
) -> bool:
    """Rename what is at a path aside; False, and it is put back, if it is not what was seen.

    Only one contender can rename it. The caller removes what is aside.
    """
    # Checked before the rename as well: others find nothing while it is aside.
    if not is_seen(path):
        return False
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return False
    is_ours = is_seen(aside)
    if not is_ours:
        # Another contender was faster, or the owner renewed it.
        put_back(aside, path)
    return is_ours


@contextmanager
def _one_at_a_time(folder: str) -> Iterator[None]:
    """Let contenders on one machine wait for each other, where the system supports it."""
    descriptor = None
    try:
        # Windows and some network file systems cannot lock a folder, and the wait is bounded in
        # case its holder is suspended. The renames are safe without the lock.
        with suppress(OSError, ImportError):
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY)
            for _ in range(N_LOCK_TRIES):
                with suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(LOCK_PAUSE_S)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def link_once(source: str | Path, target: str | Path) -> bool | None:
    """Give a file a second name; False if the name is taken, None on a disk without hard links."""
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return None
    return True


def _claim(source: Path, target: Path) -> bool:
    """Give a contender's file the owner's name; False if the name is taken."""
    is_ours = link_once(source, target)
    if is_ours is not None:
        return is_ours
    # Without links the file is empty for a moment; an empty file counts as owned by somebody.
    try:
        with target.open("xb") as file:
            file.write(source.read_bytes())
    except FileExistsError:
        return False
    return True


def _read(path: Path) -> OwnerArtifact | None:
    """Return an owner's artifact; None if there is none."""
    try:
        # Opened before `fstat`: a network file system asks its server when a file is opened.
        with path.open("rb") as file:
            return OwnerArtifact(file.read(MAX_OWNER_NBYTES), os.fstat(file.fileno()).st_mtime_ns)
    except FileNotFoundError:
        return None


def _mtime_ns(path: Path) -> int:
    return path.stat().st_mtime_ns
