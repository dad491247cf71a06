"""The workers of a cluster: what they do, answer, and see, and how they are lost."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import dask
from dask.utils import parse_timedelta

from daskls._version import __version__
from daskls.errors import ClusterError, MemoryPlanError, StoreError, warn_user
from daskls.records import MIB
from daskls.store.caches import BASELINE_NBYTES, give_back
from daskls.store.objects import is_bucket, open_store

# How long a cluster may be idle: about as long as a person waits before looking into it.
DEFAULT_PATIENCE = "60s"
# Seconds between two looks at a cluster that gives no results, or has no worker.
CHECK_S, WORKER_CHECK_S = 1.0, 0.2
# Seconds that the scheduler has to answer, and a worker; its first answer includes its imports.
SCHEDULER_ANSWER_S, WORKER_ANSWER_S = 10.0, 30.0
# Seconds that workers have for what can do without their answer.
WORKER_CALL_S = 5.0
# The usable share of a worker's limit: distributed pauses it at 80 %, and starts no task then.
USABLE = 0.8
CALL_AGAIN = "Finished tasks are kept: call it again, with the same store= if it is a fit."
SHARE_FOLDER = (
    "Keep the data, and store= (or Dask's temporary-directory), in a folder that all workers share."
)
# Of the tasks that a worker holds, the states of those that have work to do. A task that waits for
# tasks of its own, as a fit in a task does, is in none of them.
AT_WORK = ("executing", "ready", "constrained", "waiting", "fetch", "flight")


class WorkerWatch:
    """Watches the cluster of a client that waits for results.

    A worker that was heard from since the last progress, and executes a task, is progress. While no
    worker is silent, so is one that runs and holds tasks; else they may wait for the silent one's
    data. Dask's own limits see less: ``no-workers-timeout`` no paused worker, and ``worker-ttl`` a
    silent one after five minutes; neither sees a scheduler that does not answer.
    """

    def __init__(self, client: Any) -> None:
        self.client, self.limit_s = client, patience_s()
        self._progressed = self._checked = time.monotonic()
        # When the scheduler had last heard from each worker at the last progress. By its own clock,
        # which may differ from ours.
        self._seen: dict[str, float] = {}

    def note(self) -> None:
        self._progressed = self._checked = time.monotonic()

    def check(self) -> bool:
        """Return whether tasks wait on paused workers while others have none: submit them again.

        ClusterError where the client is closed, or its cluster idle for too long.
        """
        if self.client.status in ("closing", "closed"):
            raise cluster_error("The cluster was closed, or its scheduler was lost")
        # Several checks must fit into the limit, even where it is short.
        if time.monotonic() - self._checked < min(CHECK_S, self.limit_s / 4):
            return False
        state, is_stuck = self._poll()
        self._checked = time.monotonic()
        if state is None:
            self._progressed = self._checked
        idle_s = self._checked - self._progressed
        if idle_s > self.limit_s:
            raise cluster_error(
                f"The cluster did nothing for {self.limit_s:g} s (Dask's setting daskls.patience): "
                f"{state}"
            )
        return is_stuck and idle_s > self.limit_s / 4

    def _poll(self) -> tuple[str | None, bool]:
        """Return why there is no progress, None if there is; and what `check` returns."""
        workers = ask_scheduler(self.client, min(SCHEDULER_ANSWER_S, self.limit_s / 2))
        if workers is None:
            return "its scheduler does not answer", False
        seen = {w: at["last_seen"] for w, at in workers.items()}
        self._seen = self._seen or seen
        silent = [w for w in workers if seen[w] == self._seen.get(w)]
        here = _own_worker()
        # Without the task that waits here.
        executing = {w for w, at in workers.items() if _n_tasks(at, "executing") > (w == here)}
        at_work = {w for w, at in workers.items() if _n_tasks(at, *AT_WORK) > (w == here)}
        running = [w for w, at in workers.items() if at["status"] == "running"]
        if executing - set(silent) or (not silent and at_work & set(running)):
            self._seen = seen
            return None, False
        paused = [w for w, at in workers.items() if at["status"] == "paused"]
        held = [w for w in paused if w in at_work]
        if paused:
            # Caches for tasks to come may be what fills the memory of paused workers.
            ask_to_give_back(self.client, paused)
        full = held or ([] if running else paused)
        is_stuck = bool(held and running and not silent)
        return _describe(workers, silent, full, len(paused)), is_stuck


def patience_s() -> float:
    """Return how many seconds a cluster may be idle: Dask's setting ``daskls.patience``."""
    return float(parse_timedelta(dask.config.get("daskls.patience", DEFAULT_PATIENCE), default="s"))


def _describe(workers: dict[str, Any], silent: list[str], full: list[str], n_paused: int) -> str:
    if not workers:
        return "it has no worker"
    if full:
        return (
            f"{n_paused} of {len(workers)} worker(s) are paused, as their memory is nearly full "
            f"({', '.join(_memory_of(w, workers[w]) for w in full[:3])}); "
            "client.restart() gives it back, more memory for each worker prevents it"
        )
    if silent:
        return f"{len(silent)} of {len(workers)} worker(s), {silent[0]} first, do not answer"
    return f"none of its {len(workers)} worker(s) can run these tasks"


def _own_worker() -> str | None:
    """Return the worker whose slot the task that waits here takes; None if it takes none."""
    module = sys.modules.get("distributed.worker")
    key = None if module is None else getattr(module.thread_state, "key", None)
    if module is None or key is None:
        return None
    worker = module.get_worker()
    task = worker.state.tasks.get(key)
    # One that left its slot runs on, but is not executing.
    return str(worker.address) if task is not None and task.state == "executing" else None


def _n_tasks(worker: dict[str, Any], *states: str) -> int:
    counts = worker["metrics"].get("task_counts", {})
    return sum(counts.get(state, 0) for state in states)


def _memory_of(address: str, worker: dict[str, Any]) -> str:
    held, limit = worker["metrics"].get("memory", 0), worker["memory_limit"] or 0
    return f"{address} holds {held >> 20} of {limit >> 20} MiB"


# ---- questions ----


def ask_scheduler(client: Any, timeout_s: float = SCHEDULER_ANSWER_S) -> dict[str, Any] | None:
    """Return the scheduler's description of each worker, by address; None if it is silent."""
    # A client that is closing loses its scheduler, then its loop.
    with suppress(OSError, RuntimeError, AttributeError):
        identity = client.scheduler.identity
        answer: dict[str, Any] = client.sync(identity, n_workers=-1, callback_timeout=timeout_s)
        return dict(answer["workers"])
    return None


def find_running(client: Any) -> dict[str, Any]:
    """Return the scheduler's description of each running worker, by address."""
    workers = ask_scheduler(client) or {}
    return {w: at for w, at in workers.items() if at["status"] == "running"}


def wait_for_worker(client: Any) -> dict[str, Any]:
    """Return the scheduler's description of each running worker, once there is one."""
    patience = WorkerWatch(client)
    wanted: Any = None
    while not (running := find_running(client)):
        # A task, as adaptive clusters start workers only for tasks.
        with as_cluster_errors(client):
            wanted = wanted or client.submit(int, pure=False)
        patience.check()
        time.sleep(WORKER_CHECK_S)
    return running


def ask_workers(client: Any, question: Callable[..., Any], *args: Any) -> dict[str, Any]:
    """Return ``question(*args)`` of each running worker, by address; lost ones are left out.

    It runs beside the worker's tasks, so it must be quick.
    """
    deadline, timeout_s = time.monotonic() + patience_s(), min(WORKER_ANSWER_S, patience_s())
    while True:
        workers = list(wait_for_worker(client))
        with as_cluster_errors(client):
            check_versions(client, workers, timeout_s)
            replies = client.sync(_ask_each, client, workers, timeout_s, question, *args)
        answers = {w: reply for w, reply in replies.items() if not isinstance(reply, OSError)}
        for address, answer in answers.items():
            # Where what daskls needs is missing, the question is not unpickled.
            if isinstance(answer, Exception) and "No module named" in str(answer):
                raise _unfit(address, f"cannot import daskls ({answer})")
            if isinstance(answer, Exception):
                raise answer
        if answers:
            return answers
        if time.monotonic() > deadline:
            raise ClusterError(
                f"None of {len(workers)} worker(s), {workers[0]} first, answered within "
                f"{patience_s():g} s (Dask's setting daskls.patience). See whether they still run."
            )


async def _ask_each(
    client: Any, workers: list[str], timeout_s: float, question: Callable[..., Any], *args: Any
) -> dict[str, Any]:
    """Ask all workers at once; of one that does not answer the answer is an OSError."""

    async def ask(address: str) -> Any:
        # One call per worker, so that a silent one does not delay the answers of others.
        reply = client.run(question, *args, workers=[address], on_error="return", asynchronous=True)
        try:
            return (await asyncio.wait_for(reply, timeout_s))[address]
        except OSError as error:
            return error

    return dict(zip(workers, await asyncio.gather(*map(ask, workers)), strict=True))


# Of each client the workers that are known to have this version of daskls.
_alike: "WeakKeyDictionary[Any, set[str]]" = WeakKeyDictionary()


def check_versions(client: Any, workers: Iterable[str], timeout_s: float = WORKER_CALL_S) -> None:
    """Refuse workers without this version of daskls: Dask would close each, and wait for others.

    Those that do not answer in time pass.
    """

    def find_version() -> str:
        # Pickled by value, as it is no module's own: another version may lack this one.
        from daskls._version import __version__

        return __version__

    known = _alike.setdefault(client, set())
    replies = client.sync(_ask_each, client, [*set(workers) - known], timeout_s, find_version)
    for address, version in sorted(replies.items()):
        if version == __version__:
            known.add(address)
        elif not isinstance(version, OSError):
            is_told = isinstance(version, str)
            has = f"has daskls {version}" if is_told else f"cannot import daskls ({version})"
            raise _unfit(address, has)


def _unfit(address: str, has: str) -> ClusterError:
    return ClusterError(
        f"The worker {address} {has}. Install daskls {__version__} and its requirements on "
        "every worker, as on the client, or stop that worker."
    )


def ask_to_give_back(client: Any, workers: list[str] | None = None) -> None:
    """Call `give_back` in the given workers, or in all; ignore those that do not answer."""
    with suppress(OSError, RuntimeError, AttributeError):
        client.run(give_back, workers=workers, on_error="ignore", callback_timeout=WORKER_CALL_S)


# ---- the store of a fit, as workers see it ----


@dataclass(frozen=True)
class StoreProbe:
    """The paths a worker must see: the store with the client's probe, an empty file; local data."""

    store: str
    probe: str
    data: tuple[str, ...]

    def unseen(self) -> str | None:
        try:
            open_store(self.store).read(self.probe, 0)
        except StoreError as error:
            # Of a folder the path says enough; for a bucket the error gives the reason.
            return f"{self.store} ({error})" if is_bucket(self.store) else self.store
        return next((path for path in self.data if not os.path.exists(path)), None)

    def find_blindness(self) -> str | None:
        """Return what this process cannot read, as the end of a sentence on its worker."""
        path = self.unseen()
        return None if path is None else f"on {socket.gethostname()} cannot read {path}"


class ClusterStore:
    """A fit's store and data on a cluster, and the blind workers, which get none of its tasks."""

    def __init__(self, marks: StoreProbe, client: Any) -> None:
        self.marks, self.client = marks, client
        self.blind: set[str] = set()

    def allowed(self) -> list[str] | None:
        if not self.blind:
            return None
        return [w for w in find_running(self.client) if w not in self.blind]

    def exclude_blind(self, *, at_start: bool = False) -> bool:
        """Leave blind workers out, with a warning; return whether there are new ones.

        StoreError if all are blind, or one at the start.
        """
        answers = ask_workers(self.client, self.marks.find_blindness)
        blind = {w: f"{w} {said}" for w, said in answers.items() if said is not None}
        new = [said for worker, said in blind.items() if worker not in self.blind]
        self.blind |= blind.keys()
        if new and (at_start or len(blind) == len(answers)):
            raise self._error(new)
        for said in new:
            warn_user(
                f"The worker {said}; its tasks go to others. Stop it, or let it share the path.",
                UserWarning,
            )
        return bool(new)

    def _error(self, blind: list[str]) -> StoreError:
        # The client put the probe: if it cannot see it either, something removed it.
        gone = self.marks.unseen()
        if gone is not None:
            return StoreError(
                f"The store {self.marks.store} or the data ({gone}) was removed while "
                "a fit used it. Fit again, and let nothing remove it."
            )
        return StoreError(
            f"{len(blind)} worker(s) cannot see what the client sees: {blind[0]}. {SHARE_FOLDER}"
        )


def check_limit(limit: int | None, whose: str) -> None:
    """Raise MemoryPlanError if the imports of daskls would fill a worker's memory limit."""
    if limit and limit * USABLE <= BASELINE_NBYTES:
        raise MemoryPlanError(
            f"{whose} a memory limit of {limit // MIB} MiB, of which Dask lets {USABLE:.0%} be "
            f"used, but a worker holds about {BASELINE_NBYTES // MIB} MiB before its first task; "
            "give each worker 512 MiB or more."
        )


# ---- losses ----


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


def find_loss(client: Any, error: BaseException) -> ClusterError | None:
    """Return the error to raise where the cluster failed, not the code of a task; else None."""
    from distributed import scheduler
    from distributed.comm import CommClosedError

    # Distributed has no class for this one: the tasks never came to a worker.
    if isinstance(error, RuntimeError) and "deserialization of the task graph" in str(error):
        why = error.__cause__ or "packages that the tasks need are missing there, or differ"
        return ClusterError(
            f"The scheduler {client.scheduler.address} cannot read the tasks ({why}). Install "
            f"daskls {__version__} and what it needs where the scheduler runs too, in the versions "
            "of the client and the workers, and start it again."
        )
    if isinstance(error, scheduler.KilledWorker):
        return cluster_error(
            f"The cluster lost a task: {error} Such workers have usually run out of memory: "
            "give each worker more of it, or fewer threads, or pass X in smaller chunks"
        )
    if isinstance(error, CancelledError):
        return cluster_error(f"The cluster cancelled a task: {error}")
    if isinstance(error, (CommClosedError, scheduler.NoValidWorkerError, scheduler.NoWorkerError)):
        return cluster_error(f"The cluster lost a task: {error}")
    return None
