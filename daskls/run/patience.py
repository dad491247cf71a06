"""Whether a cluster still makes progress, and the error that is raised when it does not."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

import dask
from dask.utils import parse_timedelta

from daskls._version import __version__
from daskls.errors import ClusterError
from daskls.run.held import give_back

__all__ = [
    "Patience",
    "ask_scheduler",
    "cluster_error",
    "is_loss",
    "is_unread",
    "losses_told",
    "patience_s",
    "tell_workers",
    "unread_error",
]

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
