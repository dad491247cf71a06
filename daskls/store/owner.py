"""The owner of a store: one fit at a time writes it.

The object `OWNER` names the process that writes the store; it is put where there is none, and
renewed while the fit runs. On the same machine a process that is gone is replaced at once, on
another after `STALE_S` seconds without a renewal. All that fits write is the same whoever writes
it, so the owner only keeps one fit from cleaning up while another runs: one that lost its store
ends with a sentence. A lock of the system, as `filelock` takes, would not do: buckets have none,
some network file systems show it to one machine only, and it does not say who holds it.
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
from hashlib import sha256
from pathlib import Path

import psutil

from daskls.errors import DamageError, StoreError
from daskls.store.errors import MALFORMED, from_json
from daskls.store.objects import ROOT, BaseStore, Location, is_being_removed, open_store

OWNER, MAX_NBYTES = ".owner", 4096
# How often a fit renews its object, and how long after the last renewal a fit on another machine
# may take the store over.
BEAT_S = 5.0
STALE_S = 60.0
# Tries of a contender, as others may act between its steps.
N_TRIES = 5
# This process's fits that own a store or try to, by token. A fork has a copy, but another process
# number.
_fits: dict[str, "Ownership"] = {}


@contextmanager
def own_store(store: Location) -> Iterator[None]:
    """Keep all other fits from a store while the body runs; it is created if it does not exist.

    StoreError when another fit owns the store, or when it was removed or taken over while the body
    ran; then in place of any error that followed.
    """
    fit = Ownership(open_store(store))
    try:
        fit.acquire()
        try:
            yield
            fit.check()
        except Exception as error:
            try:
                # Only to wait: a store that is being removed may still hold its owner's file.
                is_being_removed(fit.store, OWNER, error)
                fit.check()
            except StoreError as loss:
                # The fit's last write may have recreated the folder of a removed store.
                fit.store.unmake()
                raise loss from error
            raise
    finally:
        fit.release()


def check_owner(store: Location) -> None:
    """Raise StoreError if this process's fit has lost the store."""
    where = open_store(store).where()
    for fit in list(_fits.values()):
        if fit.owns and fit.store.where() == where:
            fit.check()


@dataclass(frozen=True)
class Owner:
    """A process that writes a store.

    The host is for messages only: two machines may have the same name. `machine` is where ``pid``
    is valid; `started` distinguishes a later process of its number. `since` is in seconds since
    1970; the token identifies one fit.
    """

    host: str
    machine: str
    pid: int
    started: str
    since: float
    token: str

    @classmethod
    def parse(cls, content: bytes) -> "Owner | None":
        """Return the owner that an object names, or None if it is damaged or not yet written."""
        with suppress(*MALFORMED):
            owner = from_json(cls, json.loads(content))
            # The system takes 0 and negative numbers for process groups.
            return owner if 0 < owner.pid < 1 << 31 else None
        return None

    @classmethod
    def here(cls) -> "Owner":
        """Return an owner for this process, with a new token."""
        pid = os.getpid()
        start = find_start(pid) or ""
        return cls(socket.gethostname(), find_machine(), pid, start, time.time(), uuid.uuid4().hex)

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host}, since {since}"


class Ownership:
    """One fit's ownership of a store, or its attempt to get it."""

    def __init__(self, store: BaseStore) -> None:
        self.store = store
        self.me = Owner.here()
        self.content = json.dumps(asdict(self.me)).encode()
        self.owns = False
        self._stopped = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="daskls-owner", daemon=True)

    def acquire(self) -> None:
        """Take the store; StoreError when another fit owns it, or the disk refuses."""
        # Before the object appears: an owner in this process that is not listed counts as gone.
        _fits[self.me.token] = self
        self.store.make()
        self._take(OWNER)
        self.owns = True
        self._beating.start()

    def _take(self, key: str) -> None:
        """Put this fit's object under a key, in place of a dead fit's; StoreError if one lives."""
        for _ in range(N_TRIES):
            if self.store.put(key, self.content, create=True):
                return
            content = self._read(key)
            if content is None:
                continue
            self._check_dead(key, content)
            # Removing a dead fit's object takes the right to, an object named by its content: one
            # contender at a time holds it, and a later one finds another content.
            right = f"{OWNER}.{sha256(content).hexdigest()[:32]}"
            self._take(right)
            try:
                if self._read(key) == content:
                    self.store.drop(key)
            finally:
                self.store.drop(right)
        raise self._contended()

    def _check_dead(self, key: str, content: bytes) -> None:
        """Raise StoreError if the fit that an object names is alive."""
        owner, age_s = Owner.parse(content), self._age(key)
        if not is_alive(owner, age_s):
            return
        if key != OWNER:
            raise self._contended()
        who = owner or f"an unknown process (the file {OWNER} does not say which)"
        raise StoreError(
            f"Another fit is writing the store {self.store}: {who}; it last renewed "
            f"its ownership {max(age_s, 0):.0f} s ago. Wait until it ends, or end it, "
            "then call fit again: what is finished is kept. If its process is gone, a "
            "fit on the same machine takes the store at once, a fit elsewhere after "
            f"{STALE_S:g} s."
        )

    def _contended(self) -> StoreError:
        return StoreError(
            f"Several fits are taking the store {self.store} over from one that ended. Call fit "
            "again once; one fit at a time writes a store."
        )

    def _read(self, key: str = OWNER) -> bytes | None:
        """Return the content of an object, by default the owner's; None without one."""
        try:
            return self.store.read(key, MAX_NBYTES)
        except DamageError:
            return None if not self.store.exists(key) else b""

    def _age(self, key: str) -> float:
        """Return the seconds since an object was last put, by the store's own clock."""
        probe = f"{OWNER}.{uuid.uuid4().hex}"
        self.store.put(probe)
        try:
            now, then = self.store.modified(probe), self.store.modified(key)
        finally:
            self.store.drop(probe)
        if now is None:
            # The owner, as it cleans up, removes what it takes for a killed task's file.
            return 0.0
        return STALE_S if then is None else now - then

    def _beat(self) -> None:
        """Renew the object until `release`."""
        while not self._stopped.wait(BEAT_S):
            # The disk may fail for a moment. If the store is gone, the fit itself finds out, at the
            # latest when it marks the model complete.
            with suppress(StoreError):
                if self._read() == self.content:
                    self.store.put(OWNER, self.content)

    def check(self) -> None:
        """Raise StoreError if the store was removed or taken over."""
        content = self._read()
        if content == self.content:
            return
        if content is not None:
            who = Owner.parse(content) or "another fit"
            raise StoreError(
                f"The store {self.store} was taken over by {who}, as this fit had not renewed its "
                f"ownership for {STALE_S:g} s (a suspended machine, or an unreachable disk). What "
                "it finished is kept; wait for the other fit, then call fit again."
            )
        if self.store.exists(ROOT):
            raise StoreError(
                f"Something removed the file {self.store.where(OWNER)}, which keeps other fits "
                "from this store. Call fit again: what is finished is kept, and only the rest runs."
            )
        raise StoreError(
            f"The store {self.store} was removed while fit was writing it. Keep it in place, "
            "then call fit again: it begins anew."
        )

    def release(self) -> None:
        """Give the store back; does nothing in a fork, or if the store is another fit's by now."""
        if os.getpid() != self.me.pid:
            return
        self._stopped.set()
        self.owns = False
        if self._beating.ident is not None:
            # A renewal in progress would come after the object was given back.
            self._beating.join(BEAT_S)
        # An object that cannot be removed now is recognized as that of a fit that ended.
        with suppress(StoreError):
            if self._read() == self.content:
                self.store.drop(OWNER)
        _fits.pop(self.me.token, None)


def is_alive(owner: Owner | None, age_s: float) -> bool:
    """Whether an owner, None if it cannot be parsed, still writes; age since its last renewal."""
    if owner is not None and owner.machine == find_machine():
        start = find_start(owner.pid)
        if owner.pid == os.getpid() and start == owner.started:
            return owner.token in _fits
        if start != "":
            return start == owner.started
    return age_s < STALE_S


@cache
def find_machine() -> str:
    """Return a name of the machine's current boot and of the namespace of its process numbers.

    Containers share the boot's id with their host, and may share its name, but not its processes.
    """
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return f"{socket.gethostname()} {uuid.getnode():x}"


def find_start(pid: int) -> str | None:
    """Return when a process of this machine began; None if it is gone, "" if that is hidden."""
    try:
        if not Path("/proc/self/stat").exists():
            return repr(psutil.Process(pid).create_time())
        # In ticks since boot, which do not change when the clock is set. The process's name, in
        # parentheses, may contain anything.
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except psutil.AccessDenied:
        return ""
    except (OSError, psutil.NoSuchProcess):
        # Under ``hidepid``, /proc does not show a process that exists; nor does psutil.
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return ""
    # A zombie writes no more.
    return None if words[0] in "ZX" else f"{words[19]} ticks"
