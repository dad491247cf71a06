"""Watches whether a cluster makes progress; the errors of lost clusters."""

import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

import dask
from dask.utils import parse_timedelta

from daskls._version import __version__
from daskls.errors import ClusterError
from daskls.store.caches import give_back

# How long a cluster may be idle: about as long as a person waits before looking into it.
DEFAULT_PATIENCE = "60s"
# Seconds without a result between two checks of the scheduler.
SCHEDULER_CHECK_S = 1.0
# Seconds without a heartbeat after which a worker counts as silent. Of many workers each sends one
# every few seconds: of n, 1 + n / 200.
SILENCE_S = 20.0
# Seconds that the scheduler has to answer.
SCHEDULER_ANSWER_S = 10.0
# Seconds that workers have to call a function.
WORKER_CALL_S = 5.0
CALL_AGAIN = "Finished tasks are kept: call it again, with the same store= if it is a fit."


class Patience:
    """Watches the cluster of a client that waits for results.

    A worker that sends heartbeats and processes a task counts as progress, but not the task that
    waits here. While another worker is silent, only executing tasks count: others may wait for its
    data. Dask's own limit, ``no-workers-timeout``, sees no paused or silent workers, nor a
    scheduler that does not answer.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.limit_s = patience_s()
        self._progressed = self._checked = time.monotonic()
        # Of each worker its last heartbeat by the scheduler's clock, and when it was first noted.
        self._heard: dict[str, tuple[float, float]] = {}
        self._state = "its scheduler does not answer"
        self._own = _own_key()
        # Whether tasks wait on paused workers while others have none.
        self._is_stuck = False

    def note(self) -> None:
        self._progressed = self._checked = time.monotonic()

    def check(self) -> bool:
        """Return whether tasks wait on paused workers while others have none: submit them again.

        The last check may be too fresh. ClusterError where the client is closed, or idle for too
        long.
        """
        if self.client.status in ("closing", "closed"):
            raise cluster_error("The cluster was closed, or its scheduler was lost")
        now = time.monotonic()
        # Several checks must fit into the limit, even where it is short.
        if now - self._checked < min(SCHEDULER_CHECK_S, self.limit_s / 4):
            return False
        if self._is_progressing():
            self._progressed = time.monotonic()
        self._checked = time.monotonic()
        if self._checked - self._progressed > self.limit_s:
            raise cluster_error(
                f"The cluster did nothing for {self.limit_s:g} s (Dask's setting daskls.patience): "
                f"{self._state}"
            )
        return self._is_stuck and self._checked - self._progressed > self.limit_s / 4

    def _is_progressing(self) -> bool:
        """Whether some worker was heard from since the last check and processes a task."""
        found = ask_scheduler(self.client, min(SCHEDULER_ANSWER_S, self.limit_s / 2))
        if found is None:
            return False
        workers, processing = found
        # Compared only with earlier times of the scheduler, whose clock may differ from ours.
        before, now = self._heard, time.monotonic()
        new = {w: (at["last_seen"], now) for w, at in workers.items()}
        self._heard = {
            w: before[w] if w in before and before[w][0] == new[w][0] else new[w] for w in new
        }
        running = [w for w, at in workers.items() if at["status"] == "running"]
        paused = [w for w, at in workers.items() if at["status"] == "paused"]
        held = [w for w in paused if set(processing.get(w, ())) - {self._own}]
        heard = [w for w in running if self._heard[w] is new[w]]
        # A paused worker ends what it has begun.
        ending = [w for w in held if self._heard[w] is new[w] and _n_executing(workers[w])]
        silence_s = min(SILENCE_S, self.limit_s / 2)
        silent = [w for w in running if now - self._heard[w][1] > silence_s]
        self._state = _describe(workers, heard, silent, paused, held)
        self._is_stuck = bool(held and heard and not silent)
        at_work = [w for w in heard if set(processing.get(w, ())) - {self._own}]
        if silent:
            at_work = [w for w in at_work if _n_executing(workers[w])]
        if at_work or ending:
            return True
        if paused:
            # Caches for tasks to come may be what fills the memory of paused workers.
            ask_to_give_back(self.client, paused)
        return False


def patience_s() -> float:
    """Return how many seconds a cluster may be idle: Dask's setting ``daskls.patience``."""
    return float(parse_timedelta(dask.config.get("daskls.patience", DEFAULT_PATIENCE), default="s"))


def _describe(
    workers: dict[str, Any],
    heard: list[str],
    silent: list[str],
    paused: list[str],
    held: list[str],
) -> str:
    if not workers:
        return "it has no worker"
    if held or (paused and not heard):
        return (
            f"{len(paused)} of {len(workers)} worker(s) are paused, as their memory is nearly full "
            f"({', '.join(_memory_of(w, workers[w]) for w in (held or paused)[:3])}); "
            "client.restart() gives it back, more memory for each worker prevents it"
        )
    if silent:
        return f"{len(silent)} of {len(workers)} worker(s), {silent[0]} first, do not answer"
    return f"none of its {len(workers)} worker(s) can run these tasks"


def _n_executing(worker: dict[str, Any]) -> int:
    return int(worker["metrics"].get("task_counts", {}).get("executing", 0))


def _memory_of(address: str, worker: dict[str, Any]) -> str:
    held, limit = worker["metrics"].get("memory", 0), worker["memory_limit"] or 0
    return f"{address} holds {held >> 20} of {limit >> 20} MiB"


def _own_key() -> Any:
    from distributed.worker import thread_state

    # `Worker.get_current_task` fails in a thread that a task has started.
    return getattr(thread_state, "key", None)


def ask_scheduler(client: Any, timeout_s: float = SCHEDULER_ANSWER_S) -> Any:
    """Return the scheduler's workers, and the keys that each processes; None if it is silent."""
    try:
        return client.sync(_ask, client, callback_timeout=timeout_s)
    except (OSError, TimeoutError, RuntimeError, AttributeError):
        # A client that is closing loses its scheduler, then its loop.
        return None


async def _ask(client: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    identity = await client.scheduler.identity(n_workers=-1)
    return identity["workers"], await client.scheduler.processing(workers=None)


def ask_to_give_back(client: Any, workers: list[str] | None = None) -> None:
    """Call `give_back` in the given workers, or in all; ignore those that do not answer."""
    with suppress(OSError, TimeoutError, RuntimeError, AttributeError):
        client.run(give_back, workers=workers, on_error="ignore", callback_timeout=WORKER_CALL_S)


@contextmanager
def as_cluster_errors(client: Any) -> Iterator[None]:
    from distributed.client import ClosedClientError

    try:
        yield
    except ClosedClientError as error:
        raise cluster_error("The client was closed") from error
    except (OSError, RuntimeError, AttributeError) as error:
        # Calls of a closed client fail in many ways, as it has no scheduler and no loop. Errors of
        # a running client have another cause.
        if client.status == "running":
            raise
        raise cluster_error("The cluster was closed, or its scheduler was lost") from error


def cluster_error(what: str) -> ClusterError:
    return ClusterError(f"{what.rstrip('. ')}. {CALL_AGAIN}")


def is_loss(error: BaseException) -> bool:
    """Whether a task failed because of the cluster, not in its own code."""
    from distributed import scheduler
    from distributed.comm import CommClosedError

    lost = scheduler.KilledWorker, scheduler.NoValidWorkerError, scheduler.NoWorkerError
    return isinstance(error, (CancelledError, CommClosedError, *lost))


def loss_of(error: BaseException) -> str:
    """Say why a task was lost; workers that end while they run it mostly run out of memory."""
    from distributed.scheduler import KilledWorker

    if not isinstance(error, KilledWorker):
        return str(error)
    return (
        f"{error} Mostly such workers run out of memory: give each worker more of it, or fewer "
        "threads, or pass X in smaller chunks."
    )


def is_unread(error: BaseException) -> bool:
    """Whether the scheduler failed to unpickle the tasks, before it sent them to workers."""
    # Distributed has no class for this error.
    return isinstance(error, RuntimeError) and "deserialization of the task graph" in str(error)


def unread_error(client: Any, error: BaseException) -> ClusterError:
    """Return the error for tasks that the scheduler could not unpickle, with the remedy."""
    why = error.__cause__ or "packages that the tasks need are missing there, or differ"
    return ClusterError(
        f"The scheduler {client.scheduler.address} cannot read the tasks ({why}). Install daskls "
        f"{__version__} and what it needs where the scheduler runs too, in the versions of the "
        "client and the workers, and start it again."
    )
