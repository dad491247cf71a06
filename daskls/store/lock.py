"""One fit at a time on a store: its artifact ``.owner`` says which process is writing it.

It says host, process and since when, and is renewed while the fit runs. On the same machine an
owner is gone when its process is; of another machine one only sees that the artifact grows old. How
one of two contenders gets it, and how old it is, is the back end's: see `store/backend.py`.

The process and the machine that write a store, and whether it still runs.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import psutil

from daskls.errors import StoreError
from daskls.store.artifacts import Location, is_being_removed, open_store
from daskls.store.backend import Backend
from daskls.store.flat import DESCRIPTION


@dataclass(frozen=True)
class Owner:
    """A process that writes a store.

    Attributes
    ----------
    host : str. For people: two machines may have the same name.
    machine : str. Where ``pid`` means a process: see `find_machine`.
    pid : int
    started : str. When the process began, which distinguishes it from a later one of the same
        number.
    since : float. When it took the store, in seconds since 1970.
    token : str. Names one fit.
    """

    host: str
    machine: str
    pid: int
    started: str
    since: float
    token: str

    @classmethod
    def parse(cls, content: bytes) -> "Owner | None":
        """Return the owner that a file names, or None if it is damaged or not yet written."""
        try:
            owner = cls(**json.loads(content))
        except (ValueError, TypeError):
            return None
        kinds = (str, str, int, str, float, str)
        values = asdict(owner).values()
        known = all(type(v) is kind for v, kind in zip(values, kinds, strict=True))
        # The system takes 0 and negative numbers for groups of processes.
        return owner if known and 0 < owner.pid < 1 << 31 else None

    @classmethod
    def here(cls) -> "Owner":
        """Return this process, and a new token."""
        pid = os.getpid()
        start = find_start(pid) or ""
        return cls(socket.gethostname(), find_machine(), pid, start, time.time(), uuid.uuid4().hex)

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host}, since {since}"


@cache
def find_machine() -> str:
    """Return a name of the machine's run and of the space of process numbers in it.

    Containers share the boot's id with their host and may share its name, but not its processes.
    """
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return f"{socket.gethostname()} {uuid.getnode():x}"


def find_start(pid: int) -> str | None:
    """Return when a process of this machine began; None if it is gone, "" if that is hidden."""
    if not Path("/proc/self/stat").exists():
        try:
            return repr(psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:
            return None
        except psutil.AccessDenied:
            return ""
    try:
        # In ticks since boot: a time of day moves when the clock is set. The name, which stands in
        # parentheses, may hold anything.
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if _is_hidden(pid) else None
    # A zombie writes no more.
    return None if words[0] in "ZX" else f"{words[19]} ticks"


def _is_hidden(pid: int) -> bool:
    """Whether a process is there though /proc does not show it, as under ``hidepid``."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


OWNER = ".owner"
# How often a fit renews its artifact, and after how long without that a fit of another machine may
# take the store over.
BEAT_S = 5.0
STALE_S = 60.0
# Contenders that come between another's steps.
N_TRIES = 20
PAUSE_S = 0.05

# The fits of this process that own a store or try to, by token. A fork has a copy of it, but
# another number.
_locks: dict[str, "StoreLock"] = {}


class StoreLock:
    """One fit's hold on a store, or its attempt to get it."""

    def __init__(self, store: Backend) -> None:
        self.store = store
        self.me = Owner.here()
        self.content = json.dumps(asdict(self.me)).encode()
        self.owns = False
        self._stopped = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="daskls-owner", daemon=True)

    # Taking

    def acquire(self) -> None:
        """Take the store, or refuse.

        Raises
        ------
        StoreError : when another fit owns it, or the disk refuses
        """
        # Before it appears: an owner of this process that is not listed here counts as gone.
        _locks[self.me.token] = self
        self.store.make()
        self._take()
        self.owns = True
        self._beating.start()

    def _take(self) -> None:
        """Become the owner, if nobody alive is."""
        for _ in range(N_TRIES):
            if self.store.take(OWNER, self.content):
                return
            held = self.store.examine(OWNER)
            # It was given back, or is being taken over, between the two looks.
            if held is None:
                continue
            owner, age_s = Owner.parse(held.content), self.store.age(OWNER, held)
            if is_alive(owner, age_s):
                raise StoreError(_refusal(self.store, owner, age_s))
            if self.store.take_over(OWNER, held, self.content):
                return
        raise StoreError(
            f"Several fits are taking the store {self.store} over from one that ended. Call fit "
            "again once; one fit at a time writes a store."
        )

    # Holding

    def _beat(self) -> None:
        """Renew the artifact until the end."""
        while not self._stopped.wait(BEAT_S):
            # A disk that fails for a moment, or a store that is gone: the fit itself finds out,
            # when it sets the marker at the latest.
            with suppress(StoreError):
                self.store.renew(OWNER, self.content)

    def check(self) -> None:
        """Make sure that the store is still this fit's.

        Raises
        ------
        StoreError : when it was removed or taken over
        """
        for _ in range(N_TRIES):
            with suppress(StoreError):
                held = self.store.examine(OWNER)
                if held is not None and held.content == self.content:
                    return
            # A contender may have it in its hands, and puts it back.
            time.sleep(PAUSE_S)
        raise StoreError(self._loss())

    def _loss(self) -> str:
        """Say what became of the store."""
        held = self.store.examine(OWNER)
        if held is not None:
            who = Owner.parse(held.content) or "another fit"
            return (
                f"The store {self.store} was taken over by {who}, as this fit had given no sign of "
                f"life for {STALE_S:g} s (a suspended machine, or a disk out of reach). What this "
                "one finished is kept; wait for the other, then call fit again."
            )
        if self.store.exists(DESCRIPTION):
            return (
                f"Something removed the file {self.store.where(OWNER)}, which keeps other fits "
                "from this store. Call fit again: what is finished is kept, and only the rest runs."
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
        if self._beating.ident is not None:
            # A renewal that is under way would come after the end.
            self._beating.join(BEAT_S)
        # What cannot be removed now is known as that of a fit which ended.
        with suppress(StoreError):
            self.store.give_back(OWNER, self.content)
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


def _refusal(store: Backend, owner: Owner | None, age_s: float) -> str:
    """Say who writes the store, and how to go on."""
    who = owner or f"who, the file {OWNER} does not say"
    return (
        f"Another fit is writing the store {store}: {who}; its last sign of life was "
        f"{max(age_s, 0):.0f} s ago. Wait until it ends, or end it, then call fit again: what is "
        "finished is kept. A process that is gone loses the store at once on its own machine, "
        f"elsewhere {STALE_S:g} s after its last sign."
    )


def check_owner(store: Location) -> None:
    """Make sure that this process's fit still owns a store, where one does.

    Raises
    ------
    StoreError : when it lost it
    """
    where = open_store(store).where()
    for lock in list(_locks.values()):
        if lock.owns and lock.store.where() == where:
            lock.check()


@contextmanager
def own_store(store: Location) -> Iterator[None]:
    """Keep all other fits from a store while the body runs; made if it does not exist.

    Parameters
    ----------
    store : path, URL or Backend

    Raises
    ------
    StoreError : when another fit owns it; when it was removed or taken over while the body ran,
        in place of any error that followed
    """
    lock = StoreLock(open_store(store))
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
        is_being_removed(lock.store, OWNER, error)
        lock.check()
    except StoreError as loss:
        # What the fit was about to write may have made the folder of a removed store anew.
        lock.store.unmake()
        raise loss from error
