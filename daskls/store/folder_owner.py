"""The owner of a folder: who gets its file, when it was renewed, and who takes it over.

Two contenders never both get it. The file appears with its content under an unused name, by a hard
link. A file that is taken over is first renamed aside, which one contender can do, and put back if
it is not the one that was examined. Contenders of one machine do so one after the other. Ages are
taken between two files of the folder's own disk, whose clock need not be this machine's.
"""

import errno
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daskls.store.backend import Backend, Held
from daskls.store.files import disk_errors

# What disks without hard links say.
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
MAX_NBYTES = 4096
# How often, and how long, a contender waits for another of its machine.
N_TURNS, TURN_S = 20, 0.05
# Contenders are done in moments: what is older was left by one that was killed.
LEFT_S = 60.0


class OwnedFolder(Backend):
    """The owner's part of a store in a folder.

    Attributes
    ----------
    root : str. The folder.
    """

    root: str

    def take(self, key: str, content: bytes) -> bool:
        """Give a file of this contender's own the owner's name, if nobody has it."""
        with disk_errors(self.root, self.then), self._own_file(key, content) as mine:
            with _one_by_one(self.root):
                is_ours = _claim(mine, Path(self.where(key)))
            if is_ours:
                self._clean(key, _time_of(mine))
        return is_ours

    def examine(self, key: str) -> Held | None:
        """Read the owner's file, and its time."""
        path = self.where(key)
        with disk_errors(path, self.then):
            return _read(Path(path))

    def age(self, key: str, held: Held) -> float:
        """Compare its time, the stamp, with that of a new file."""
        assert isinstance(held.stamp, int)
        with disk_errors(self.root, self.then), self._own_file(key, b"") as mine:
            return (_time_of(mine) - held.stamp) / 1e9

    def renew(self, key: str, content: bytes) -> bool:
        """Set the file's time."""
        path = Path(self.where(key))
        with disk_errors(path, self.then):
            found = _read(path)
            is_ours = found is not None and found.content == content
            if is_ours:
                os.utime(path)
        return is_ours

    def take_over(self, key: str, held: Held, content: bytes) -> bool:
        """Take the file that was examined away, then the name as by `take`."""
        path = Path(self.where(key))
        with disk_errors(self.root, self.then), self._own_file(key, content) as mine:
            with _one_by_one(self.root):
                is_ours = _set_aside(path, held, mine.with_suffix(".old")) and _claim(mine, path)
            if is_ours:
                self._clean(key, _time_of(mine))
        return is_ours

    def give_back(self, key: str, content: bytes) -> None:
        """Remove the file."""
        path = Path(self.where(key))
        with disk_errors(path, self.then):
            found = _read(path)
            if found is not None and found.content == content:
                path.unlink()

    @contextmanager
    def _own_file(self, key: str, content: bytes) -> Iterator[Path]:
        """Yield a new file of this contender alone."""
        mine = Path(f"{self.where(key)}.{uuid.uuid4().hex}.new")
        try:
            mine.write_bytes(content)
            yield mine
        finally:
            # Where nothing can be written nothing can be removed.
            with suppress(OSError):
                mine.unlink()

    def _clean(self, key: str, now_ns: int) -> None:
        """Remove what contenders that were killed left."""
        for path in Path(self.root).glob(f"{key}.*"):
            with suppress(FileNotFoundError):
                if now_ns - _time_of(path) > LEFT_S * 1e9:
                    path.unlink()


def _set_aside(path: Path, expected: Held, aside: Path) -> bool:
    """Take a file away, unless it is another one by now."""
    # A look first, as others miss the file while it is aside.
    if _read(path) != expected:
        return False
    try:
        path.rename(aside)
    except FileNotFoundError:
        return False
    is_expected = _read(aside) == expected
    if not is_expected:
        # Somebody was quicker, or the owner woke up.
        _claim(aside, path)
    aside.unlink()
    return is_expected


@contextmanager
def _one_by_one(folder: str) -> Iterator[None]:
    """Let contenders of one machine wait for each other, where the system has a way."""
    descriptor = None
    try:
        # Not on Windows, nor of a folder on some network file systems; nobody waits for a process
        # that was stopped in here. The renames are safe all the same.
        with suppress(OSError, ImportError):
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY)
            for _ in range(N_TURNS):
                with suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(TURN_S)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def link_once(source: str | Path, target: str | Path) -> bool | None:
    """Give a file a second name; False if somebody has it, None on a disk without hard links."""
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
    """Give a contender's file the owner's name; False if somebody has it."""
    is_ours = link_once(source, target)
    if is_ours is not None:
        return is_ours
    # Without links it is empty for a moment, which counts as owned by somebody.
    try:
        with target.open("xb") as file:
            file.write(source.read_bytes())
    except FileExistsError:
        return False
    return True


def _read(path: Path) -> Held | None:
    """Read an owner's file; None if there is none."""
    try:
        # Opened first: a network file system asks its server at that moment.
        with path.open("rb") as file:
            return Held(file.read(MAX_NBYTES), os.fstat(file.fileno()).st_mtime_ns)
    except FileNotFoundError:
        return None


def _time_of(path: Path) -> int:
    """Return a file's time, in nanoseconds of the disk's clock."""
    return path.stat().st_mtime_ns
