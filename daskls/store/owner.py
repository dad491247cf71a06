"""The process and the machine that write a store, and whether it still runs."""

import json
import os
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import psutil

__all__ = ["Owner", "find_machine", "find_start"]


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
