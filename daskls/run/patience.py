"""Whether a cluster still makes progress, and the error that is raised when it does not.

Memory that a worker's process holds beside its tasks, and its release.
"""

import gc
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from ctypes import CDLL
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import dask
import psutil
from dask.utils import parse_timedelta

from daskls._version import __version__
from daskls.errors import ClusterError
from daskls.store.caches import drop_caches

# What a process holds when its first tasks have loaded all that they need, measured.
BASELINE_NBYTES = 200 << 20
# A process that holds no more than this above it has no garbage worth a look at all its objects,
# which takes as long as some cells of a fit.
SPARED_NBYTES = 32 << 20
# What this process held when it was last asked between tasks.
_at_rest = BASELINE_NBYTES


@dataclass(frozen=True)
class HeldMemory:
    """A worker's report: its process, the memory that it holds, free memory, the modules it loaded.

    Workers that are threads of one process share it, and what it holds.
    """

    process: tuple[str, int]
    nbytes: int
    free_nbytes: int
    has_svc: bool


def report_held(dask_worker: Any = None) -> HeldMemory:
    """Return the memory that a worker's process holds, after it released what it can.

    What its tasks hold at this moment they give back: with some running, it is what the process
    held when none was, as far as is known.
    """
    global _at_rest
    give_back()
    nbytes = _own_nbytes()
    if dask_worker is not None and dask_worker.state.executing_count:
        nbytes = min(nbytes, _at_rest)
    else:
        _at_rest = nbytes
    process = socket.gethostname(), os.getpid()
    return HeldMemory(process, nbytes, available_nbytes(), "sklearn.svm" in sys.modules)


def give_back() -> None:
    """Drop this process's caches, and return free pages to the system."""
    drop_caches()
    _trim()
    if _own_nbytes() > BASELINE_NBYTES + SPARED_NBYTES:
        gc.collect()
        _trim()


def _own_nbytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _trim() -> None:
    """Give pages back to the system that hold nothing."""
    if sys.platform == "linux":
        # Only glibc keeps freed pages, and only it has the function.
        trim = getattr(CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def available_nbytes() -> int:
    """Return the free memory of this machine, or of its container."""
    return int(min(psutil.virtual_memory().available, _machine_nbytes()))


@cache
def _machine_nbytes() -> int:
    """Return what this machine, or its container, has in all: what distributed makes of it.

    Its file is run alone: without a client nothing else of the package is wanted, and to load all
    of it takes as long as some cells of a fit.
    """
    if "distributed" in sys.modules:
        from distributed.system import MEMORY_LIMIT

        return int(MEMORY_LIMIT)
    package = find_spec("distributed")
    assert package is not None, "distributed is a requirement"
    assert package.origin is not None, "distributed is a requirement"
    return int(run_path(str(Path(package.origin).with_name("system.py")))["MEMORY_LIMIT"])


# How long a cluster may do nothing: what a person waits before looking into it.
DEFAULT_PATIENCE = "60s"
# Seconds without a result after which the scheduler is asked how its workers are, and again.
SCHEDULER_LOOK_S = 1.0
# Seconds that it has for its answer.
SCHEDULER_ANSWER_S = 10.0
# Seconds that workers have to do what they are told.
TOLD_S = 5.0
CALL_AGAIN = "Finished tasks are kept: call it again, with the same store= if it is a fit."


def patience_s() -> float:
    """Return how many seconds a cluster may do nothing: Dask's setting ``daskls.patience``."""
    return float(parse_timedelta(dask.config.get("daskls.patience", DEFAULT_PATIENCE), default="s"))


def cluster_error(what: str) -> ClusterError:
    """Return the error for work that the cluster ended, with the remedy."""
    return ClusterError(f"{what.rstrip('. ')}. {CALL_AGAIN}")


def is_loss(error: BaseException) -> bool:
    """Whether a task failed because of the cluster, not in its own work."""
    from distributed import scheduler
    from distributed.comm import CommClosedError

    lost = scheduler.KilledWorker, scheduler.NoValidWorkerError, scheduler.NoWorkerError
    return isinstance(error, (CancelledError, CommClosedError, *lost))


def is_unread(error: BaseException) -> bool:
    """Whether the scheduler could not unpickle the tasks, which it does before a worker has any."""
    # Dask has no class of its own for it.
    return isinstance(error, RuntimeError) and "deserialization of the task graph" in str(error)


def unread_error(client: Any, error: BaseException) -> ClusterError:
    """Return the error for tasks that the scheduler could not unpickle, with the remedy."""
    why = error.__cause__ or "another version, or nothing, of what tasks are made of"
    return ClusterError(
        f"The scheduler {client.scheduler.address} cannot read the tasks ({why}). Install daskls "
        f"{__version__} and what it needs where the scheduler runs too, in the versions of the "
        "client and the workers, and start it again."
    )


@contextmanager
def losses_told(client: Any) -> Iterator[None]:
    """Turn the errors of a client that lost its scheduler into a `ClusterError`.

    Raises
    ------
    ClusterError
    """
    from distributed.client import ClosedClientError

    try:
        yield
    except ClosedClientError as error:
        raise cluster_error("The client was closed") from error
    except (OSError, RuntimeError, AttributeError) as error:
        # A client that has closed has no scheduler and no loop; another has its own troubles.
        if client.status == "running":
            raise
        raise cluster_error("The cluster was closed, or its scheduler was lost") from error


class Patience:
    """Watches a client's cluster while its results are awaited.

    A worker that is heard from and processes a task is progress, however long the task; so is a
    cluster that is busy with tasks of others. The task that waits here does not count.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.limit_s = patience_s()
        self._moved = self._looked = time.monotonic()
        self._seen: dict[str, float] = {}
        self._found = "its scheduler does not answer"
        self._own = _own_key()

    def note(self) -> None:
        """Record that a result has come."""
        self._moved = self._looked = time.monotonic()

    def check(self) -> None:
        """Look at the cluster, at intervals.

        Raises
        ------
        ClusterError : when its client is closed, or it has done nothing for too long
        """
        if self.client.status in ("closing", "closed"):
            raise cluster_error("The cluster was closed, or its scheduler was lost")
        now = time.monotonic()
        # Where patience is short, several looks must fit into it.
        if now - self._looked < min(SCHEDULER_LOOK_S, self.limit_s / 4):
            return
        if self._works():
            self._moved = time.monotonic()
        self._looked = time.monotonic()
        if self._looked - self._moved > self.limit_s:
            raise cluster_error(
                f"The cluster did nothing for {self.limit_s:g} s (Dask's setting daskls.patience): "
                f"{self._found}"
            )

    def _works(self) -> bool:
        """Whether some worker was heard from since the last look and processes a task."""
        found = ask_scheduler(self.client, min(SCHEDULER_ANSWER_S, self.limit_s / 2))
        if found is None:
            return False
        workers, processing = found
        # The scheduler's times are compared with each other only: its clock need not be the
        # client's.
        before, self._seen = self._seen, {w: at["last_seen"] for w, at in workers.items()}
        running = [w for w, at in workers.items() if at["status"] == "running"]
        heard = [w for w in running if self._seen[w] != before.get(w)]
        self._found = _describe(workers, running, heard)
        if any(set(processing.get(w, ())) - {self._own} for w in heard):
            return True
        paused = [w for w, at in workers.items() if at["status"] == "paused"]
        if paused:
            # What they keep for tasks that may not come may be what pauses them.
            tell_workers(self.client, give_back, paused)
        return False


def ask_scheduler(client: Any, timeout_s: float = SCHEDULER_ANSWER_S) -> Any:
    """Return what `look` finds; None without an answer."""
    try:
        return client.sync(look, client, callback_timeout=timeout_s)
    except (OSError, TimeoutError, RuntimeError, AttributeError):
        # A client that closes at this moment has no scheduler, then no loop.
        return None


def tell_workers(client: Any, what: Callable[[], Any], workers: list[str] | None = None) -> None:
    """Call a function in the named workers, or in all; those that do not answer are left out."""
    with suppress(OSError, TimeoutError, RuntimeError, AttributeError):
        client.run(what, workers=workers, on_error="ignore", callback_timeout=TOLD_S)


async def look(client: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ask a client's scheduler for its workers, and for the keys that each of them processes."""
    identity = await client.scheduler.identity(n_workers=-1)
    return identity["workers"], await client.scheduler.processing(workers=None)


def _describe(workers: dict[str, Any], running: list[str], heard: list[str]) -> str:
    """Say in what state workers are that do nothing."""
    if not workers:
        return "it has no worker"
    paused = [w for w, at in workers.items() if at["status"] == "paused"]
    if paused and not heard:
        return (
            f"{len(paused)} of {len(workers)} worker(s) are paused, as their memory is nearly full "
            f"({', '.join(_held(w, workers[w]) for w in paused[:3])}); client.restart() gives it "
            "back, more memory for each worker prevents it"
        )
    silent = [w for w in running if w not in heard]
    if silent:
        return f"{len(silent)} of {len(workers)} worker(s), {silent[0]} first, do not answer"
    return f"its {len(workers)} worker(s) take no task of this work"


def _held(address: str, worker: dict[str, Any]) -> str:
    """Say what a worker holds."""
    held, limit = worker["metrics"].get("memory", 0), worker["memory_limit"] or 0
    return f"{address} holds {held >> 20} of {limit >> 20} MiB"


def _own_key() -> Any:
    """Return the key of the task that this thread runs, or None."""
    from distributed.worker import thread_state

    return getattr(thread_state, "key", None)
