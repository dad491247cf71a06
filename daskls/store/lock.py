"""One fit at a time on a store: its file ``.owner`` says which process is writing it.

The file says host, process and since when, and its time is renewed while the fit runs. On the same
machine an owner is gone when its process is; of another machine one only sees that the file grows
old. Ages are taken between two files of the store's own disk, whose clock need not be this
machine's.

Two contenders never both get it. The file appears with its content under an unused name, by a hard
link. A dead owner's file is first renamed aside, which one contender can do, and put
back if it is not the file that was examined. Contenders of one machine do so one after the other.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from daskls.errors import StoreError
from daskls.store.files import disk_errors
from daskls.store.folder import NO_LINKS
from daskls.store.owner import Owner, find_machine, find_start
from daskls.store.removal import is_being_removed

__all__ = ["BEAT_S", "OWNER", "STALE_S", "check_owner", "own_store"]

OWNER = ".owner"
# How often a fit renews its file, and after how long without that a fit of another machine may
# take the store over.
BEAT_S = 5.0
STALE_S = 60.0
# Contenders that come between another's steps.
N_TRIES = 20
PAUSE_S = 0.05
MAX_NBYTES = 4096

# The fits of this process that own a store or try to, by token. A fork has a copy of it, but
# another number.
_locks: dict[str, "StoreLock"] = {}


@dataclass(frozen=True)
class Found:
    """An owner's file as it was read."""

    content: bytes
    mtime_ns: int

    @property
    def owner(self) -> Owner | None:
        """Who it names, if it can be read."""
        return Owner.parse(self.content)


class StoreLock:
    """One fit's hold on a store, or its attempt to get it."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.path = store / OWNER
        self.me = Owner.here()
        self.owns = False
        self._stopped = threading.Event()

    def _own_file(self, kind: str) -> Path:
        """Return a path of this fit alone."""
        return self.store / f"{OWNER}.{self.me.token}.{kind}"

    # Taking

    def acquire(self) -> None:
        """Take the store, or refuse.

        Raises
        ------
        StoreError : when another fit owns it, or the disk refuses
        """
        # Before the file appears: an owner of this process that is not listed here counts as gone.
        _locks[self.me.token] = self
        mine = self._own_file("new")
        with disk_errors(self.store):
            self.store.mkdir(parents=True, exist_ok=True)
            try:
                mine.write_text(json.dumps(asdict(self.me)))
                with _one_by_one(self.store):
                    self._take(mine)
                self._clean(_read_time(mine))
            finally:
                _drop(mine)
        self.owns = True
        threading.Thread(target=self._beat, name="daskls-owner", daemon=True).start()

    def _take(self, mine: Path) -> None:
        """Give this fit's file the owner's name, if nobody alive has it."""
        for _ in range(N_TRIES):
            if _claim(mine, self.path):
                return
            found = _read(self.path)
            # It was given back, or set aside, between the two looks.
            if found is None:
                continue
            age_s = (_read_time(mine) - found.mtime_ns) / 1e9
            if is_alive(found.owner, age_s):
                raise StoreError(_refusal(self.store, found.owner, age_s))
            self._set_aside(found)
        raise StoreError(
            f"Several fits are taking the store {self.store} over from one that ended. Call fit "
            "again once; one fit at a time writes a store."
        )

    def _set_aside(self, expected: Found) -> None:
        """Take a dead owner's file away, unless it is another one by now."""
        aside = self._own_file("old")
        try:
            self.path.rename(aside)
        except FileNotFoundError:
            return
        if _read(aside) != expected:
            # Somebody was quicker, or the owner woke up.
            _claim(aside, self.path)
        aside.unlink()

    def _clean(self, now_ns: int) -> None:
        """Remove what contenders that were killed left; those that live are done in moments."""
        for path in self.store.glob(f"{OWNER}.*"):
            with suppress(FileNotFoundError):
                if now_ns - _read_time(path) > STALE_S * 1e9:
                    path.unlink()

    # Holding

    def _is_mine(self) -> bool:
        """Whether the owner's file is this fit's."""
        found = _read(self.path)
        return found is not None and found.owner == self.me

    def _beat(self) -> None:
        """Renew the file's time until the end."""
        while not self._stopped.wait(BEAT_S):
            # A disk that fails for a moment, or a store that is gone: the fit itself finds out,
            # when it sets the marker at the latest.
            with suppress(OSError):
                if self._is_mine():
                    os.utime(self.path)

    def check(self) -> None:
        """Make sure that the store is still this fit's.

        Raises
        ------
        StoreError : when it was removed or taken over
        """
        for _ in range(N_TRIES):
            with suppress(OSError):
                if self._is_mine():
                    return
            # A contender may have it in its hands, and puts it back.
            time.sleep(PAUSE_S)
        with disk_errors(self.path):
            raise StoreError(self._loss())

    def _loss(self) -> str:
        """Say what became of the store."""
        found = _read(self.path)
        if found is not None:
            who = found.owner or "another fit"
            return (
                f"The store {self.store} was taken over by {who}, as this fit had given no sign of "
                f"life for {STALE_S:g} s (a suspended machine, or a disk out of reach). What this "
                "one finished is kept; wait for the other, then call fit again."
            )
        if (self.store / "zarr.json").exists():
            return (
                f"Something removed the file {self.path}, which keeps other fits from this store. "
                "Call fit again: what is finished is kept, and only the rest runs."
            )
        return (
            f"The store {self.store} was removed while fit was writing it. Let nothing remove it, "
            "then call fit again: it begins anew."
        )

    # Giving back

    def release(self) -> None:
        """Give the store back; nothing happens in a fork, or where it is another's by now."""
        if os.getpid() != self.me.pid:
            return
        self._stopped.set()
        self.owns = False
        # A file that cannot be removed now is known as that of a fit which ended.
        with suppress(OSError):
            if self._is_mine():
                self.path.unlink()
        _locks.pop(self.me.token, None)


def is_alive(owner: Owner | None, age_s: float) -> bool:
    """Return whether an owner still writes.

    Parameters
    ----------
    owner : Owner, or None of a file that cannot be read
    age_s : float. Seconds since its last sign of life.
    """
    if owner is not None and owner.machine == find_machine():
        start = find_start(owner.pid)
        if owner.pid == os.getpid() and start == owner.started:
            return owner.token in _locks
        if start != "":
            return start == owner.started
    return age_s < STALE_S


def _refusal(store: Path, owner: Owner | None, age_s: float) -> str:
    """Say who writes the store, and how to go on."""
    who = owner or f"who, the file {OWNER} does not say"
    return (
        f"Another fit is writing the store {store}: {who}; its last sign of life was "
        f"{max(age_s, 0):.0f} s ago. Wait until it ends, or end it, then call fit again: what is "
        "finished is kept. A process that is gone loses the store at once on its own machine, "
        f"elsewhere {STALE_S:g} s after its last sign."
    )


@contextmanager
def _one_by_one(store: Path) -> Iterator[None]:
    """Let contenders of one machine wait for each other, where the system has a way."""
    folder = None
    try:
        # Not on Windows, nor of a folder on some network file systems; nobody waits for a process
        # that was stopped in here. The renames are safe all the same.
        with suppress(OSError, ImportError):
            import fcntl

            folder = os.open(store, os.O_RDONLY)
            for _ in range(N_TRIES):
                with suppress(BlockingIOError):
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(PAUSE_S)
        yield
    finally:
        if folder is not None:
            os.close(folder)


def _claim(source: Path, target: Path) -> bool:
    """Give a file a second name that nobody has yet; False if somebody has it."""
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # Without links it is empty for a moment, which counts as owned by somebody.
        try:
            with target.open("xb") as file:
                file.write(source.read_bytes())
        except FileExistsError:
            return False
    return True


def _read(path: Path) -> Found | None:
    """Read an owner's file; None if there is none."""
    try:
        # Opened first: a network file system asks its server at that moment.
        with path.open("rb") as file:
            return Found(file.read(MAX_NBYTES), os.fstat(file.fileno()).st_mtime_ns)
    except FileNotFoundError:
        return None


def _read_time(path: Path) -> int:
    """Return a file's time, in nanoseconds of the disk's clock."""
    return path.stat().st_mtime_ns


def _drop(path: Path) -> None:
    """Remove a file, if it can be: where nothing can be written nothing can be removed."""
    with suppress(OSError):
        path.unlink()


def check_owner(store: Path) -> None:
    """Make sure that this process's fit still owns a store, where one does.

    Raises
    ------
    StoreError : when it lost it
    """
    for lock in list(_locks.values()):
        if lock.owns and lock.store == store:
            lock.check()


@contextmanager
def own_store(store: Path) -> Iterator[None]:
    """Keep all other fits from a store while the body runs; made if it does not exist.

    Parameters
    ----------
    store : Path

    Raises
    ------
    StoreError : when another fit owns it; when it was removed or taken over while the body ran,
        in place of any error that followed
    """
    lock = StoreLock(store)
    try:
        lock.acquire()
        try:
            yield
            lock.check()
        except Exception as error:
            _raise_loss(lock, error)
            raise
    finally:
        lock.release()


def _raise_loss(lock: StoreLock, error: Exception) -> None:
    """Raise what became of the store where it is the reason for an error."""
    try:
        is_being_removed(lock.path, error)
        lock.check()
    except StoreError as loss:
        # What the fit was about to write may have made the folder of a removed store anew.
        with suppress(OSError):
            lock.store.rmdir()
        raise loss from error
