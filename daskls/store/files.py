"""Local files, written whole or not at all."""

import errno
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from daskls.errors import StoreError

__all__ = [
    "GO_ON",
    "disk_errors",
    "expand_path",
    "is_being_removed",
    "local_path",
    "make_folders",
    "remove_begun",
    "replace_file",
    "replace_folder",
    "write_file",
]

# Looks whether a folder that was removed has come back.
N_REMOVALS, REMOVAL_S = 4, 0.05


def expand_path(location: str | os.PathLike[str]) -> str:
    """Return a path with its ~ replaced and ``file://`` taken off; another URL as it is.

    A shell replaces ~ at the beginning of a word only, Python nowhere.
    """
    text = os.fspath(location).removeprefix("file://")
    return text if "://" in text else os.path.expanduser(text)


def local_path(location: str | os.PathLike[str], *, what: str = "store") -> Path:
    """Return the absolute local path of a path or ``file://`` URL.

    Raises
    ------
    StoreError : for a URL of another kind. The exchange needs positioned reads and atomic
        renames, which a local or a shared file system has and an object store has not.
    """
    text = expand_path(location)
    if "://" in text:
        raise StoreError(
            f"The {what} {text!r} is a URL; daskls writes to a local or shared file system only. "
            "Give a path that the client and all workers share."
        )
    return Path(text).absolute()


# What the system says, as what is wrong and what to do about it.
FULL = (
    "No space left on the disk of {path}",
    "Free some space, or give a path (for temporary stores: Dask's temporary-directory) on a "
    "larger disk",
)
READ_ONLY = ("{path} is on a read-only disk", "Give a path that can be written")
FORBIDDEN = (
    "This user may not write {path}",
    "Give it the right to write there, or give another path",
)
IN_THE_WAY = ("A file is in the way of {path}", "Give another path, or remove that file")
REMOVED = (
    "{path} is gone, or a folder above it is, or this machine does not see it",
    "Let nothing remove it while it is in use",
)
FAILED = ("The disk of {path} failed", "Check the disk, or the connection to it")
TOO_LARGE = (
    "{path} would hold a file larger than is allowed here",
    "Raise the limit (ulimit -f), or give a path on another disk",
)
TOO_MANY = (
    "Too many files are open to write {path}",
    "Raise the limit (ulimit -n), or let fewer tasks run at once",
)
OTHER = ("{path} cannot be written", "Mend that, or give another path")
REASONS = {
    **dict.fromkeys(("ENOSPC", "EDQUOT"), FULL),
    "EROFS": READ_ONLY,
    **dict.fromkeys(("EACCES", "EPERM"), FORBIDDEN),
    **dict.fromkeys(("ENOTDIR", "EISDIR", "EEXIST"), IN_THE_WAY),
    "ENOENT": REMOVED,
    **dict.fromkeys(("EIO", "ESTALE", "ENXIO", "ENODEV", "ENOTCONN", "ETIMEDOUT"), FAILED),
    "EFBIG": TOO_LARGE,
    **dict.fromkeys(("EMFILE", "ENFILE"), TOO_MANY),
}
# How often, and after what pause, one looks whether a file goes that is there.
MANY_LOOKS, FEW_LOOKS = 40, 6
LOOK_PAUSE_S = 0.05
GO_ON = "call fit again on the same store: what is finished is kept, and only the rest runs"


@contextmanager
def disk_errors(path: Path, then: str = GO_ON) -> Iterator[None]:
    """Turn what the system says against writing into a `StoreError` with its remedy.

    Parameters
    ----------
    path : Path. What is written.
    then : str. What to do once the remedy is applied.
    """
    try:
        yield
    except OSError as error:
        # zarr raises a FileNotFoundError of its own, without a number.
        number = errno.ENOENT if isinstance(error, FileNotFoundError) else error.errno
        what, remedy = REASONS.get(errno.errorcode.get(number or 0, ""), OTHER)
        reason = error.strerror or str(error)[:200]
        if error.filename not in (None, str(path)):
            reason += f": {error.filename}"
        raise StoreError(f"{what.format(path=path)} ({reason}). {remedy}, then {then}.") from error


def write_file(path: Path, *pieces: Any) -> None:
    """Write bytes, or buffers one after the other, into a new file."""
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that takes its place at the end, atomically.

    If the body fails, the temporary file is removed and ``path`` is as it was.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with disk_errors(path):
            yield temporary
            os.replace(temporary, path)
    finally:
        # Where nothing can be written nothing can be removed: the body's own error tells.
        with suppress(OSError):
            temporary.unlink()


def is_being_removed(path: Path, error: Exception) -> bool:
    """Return whether an error came of a file's being gone, or of its folder's going just now.

    Whoever removes a folder takes a while: what is missed first may be another file than this.
    """
    for number in range(_n_looks(error)):
        if number:
            time.sleep(LOOK_PAUSE_S)
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
    return False


def _n_looks(error: BaseException | None) -> int:
    """Return how often to look: longest where a file was missed, not at all for other reasons."""
    if not isinstance(error, OSError | StoreError):
        return 1
    while error is not None:
        if isinstance(error, FileNotFoundError):
            return MANY_LOOKS
        error = error.__cause__
    # The cause does not travel with an error from a worker.
    return FEW_LOOKS


def make_folders(root: Path, folder: Path) -> None:
    """Make a folder below ``root``, and those between; ``root`` itself must be there.

    A task that comes late, to a store that was removed, must not make half of it anew.

    Raises
    ------
    StoreError : when ``root`` is gone, or the disk refuses
    """
    with disk_errors(folder):
        for part in reversed(folder.relative_to(root).parents[:-1]):
            (root / part).mkdir(exist_ok=True)
        folder.mkdir(exist_ok=True)


@contextmanager
def replace_folder(path: Path, root: Path, then: str = GO_ON) -> Iterator[Path]:
    """As `replace_file` for a folder below ``root``; if another task was first, its result stays.

    Parameters
    ----------
    path : Path
    root : Path. Must be there, and stay; a folder between them is made.
    then : str. What to do after a mishap, as for `disk_errors`.

    Raises
    ------
    StoreError : when ``root`` is gone, or the disk refuses
    """
    make_folders(root, path.parent)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with disk_errors(path, then):
            temporary.mkdir()
            yield temporary
            try:
                temporary.rename(path)
            except OSError as error:
                # The task ran twice; both wrote the same models.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_begun(path: Path) -> None:
    """Remove a folder whose writing failed, for good.

    Of several files that Zarr writes at once the first failure comes back; the others go on for a
    moment, and would bring the folder back.
    """
    for _ in range(N_REMOVALS):
        shutil.rmtree(path, ignore_errors=True)
        time.sleep(REMOVAL_S)
