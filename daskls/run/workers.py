"""Asking the workers of a cluster, beside their tasks; workers lost meanwhile are no error.

Resources of a fit: slots, and memory of a task, as reported by the workers.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dask
from dask.system import CPU_COUNT
from dask.utils import parse_bytes

from daskls._version import __version__
from daskls.errors import ClusterError, MemoryPlanError, ParameterError
from daskls.plan import Resources
from daskls.records import MIB
from daskls.run.client import current_client
from daskls.run.patience import (
    BASELINE_NBYTES,
    HeldMemory,
    Patience,
    ask_scheduler,
    available_nbytes,
    losses_told,
    patience_s,
    report_held,
)

log = logging.getLogger("daskls")

# Seconds that a worker has for its answer: its first one waits for its imports.
WORKER_ANSWER_S = 30.0
# Seconds between two looks for a worker.
WORKER_LOOK_S = 0.2


def wait_for_worker(client: Any) -> dict[str, dict[str, Any]]:
    """Return the scheduler's description of each running worker, once there is one.

    Raises
    ------
    ClusterError : when none comes in time, or all stay paused
    """
    patience = Patience(client)
    wanted: Any = None
    while not (running := find_running(client)):
        # Some clusters start workers only where there is a task for them.
        with losses_told(client):
            wanted = wanted or client.submit(int, pure=False)
        patience.check()
        time.sleep(WORKER_LOOK_S)
    return running


def find_running(client: Any) -> dict[str, dict[str, Any]]:
    """Return the scheduler's description of each running worker, by address."""
    found = ask_scheduler(client)
    workers = {} if found is None else found[0]
    return {w: at for w, at in workers.items() if at["status"] == "running"}


@contextmanager
def losses_made_good(client: Any) -> Iterator[None]:
    """Log that all is well where a fit ended well though workers were lost.

    Distributed logs each loss, some as errors, and not what became of it.
    """
    client = current_client(client)
    before = _addresses(client)
    yield
    after = _addresses(client)
    lost = before - after
    # A scheduler that does not answer tells nothing.
    if after and lost:
        log.warning(
            "%d of %d worker(s) left the cluster during the fit (%s first): what they had not "
            "finished ran again, and the model is the same. Nothing is to be done.",
            len(lost),
            len(before),
            min(lost),
        )


def _addresses(client: Any) -> set[str]:
    """Return the addresses of a client's workers; none where there is no client, or no answer."""
    found = None if client is None else ask_scheduler(client)
    return set() if found is None else set(found[0])


def ask_workers(client: Any, question: Callable[..., Any], *args: Any) -> dict[str, Any]:
    """Return the result of ``question(*args)`` in each running worker, by address.

    Workers that are lost before they answer are left out; where all are, others are waited for.

    Parameters
    ----------
    client : distributed client
    question : function of a module. It runs beside the worker's tasks, so it must be quick.
    args : its arguments

    Raises
    ------
    ClusterError : when no worker answers in time, or one cannot import daskls
    """
    deadline = time.monotonic() + patience_s()
    while True:
        workers = list(wait_for_worker(client))
        with losses_told(client):
            replies = client.sync(_ask_all, client, workers, question, args)
        for address, reply in replies.items():
            # Unpickling the question fails; the scheduler hands its text on.
            if isinstance(reply, Exception) and "No module named" in str(reply):
                raise ClusterError(
                    f"The worker {address} cannot import daskls ({reply}). Install daskls "
                    f"{__version__} and what it needs on every worker, or stop that one."
                )
            if isinstance(reply, Exception) and not isinstance(reply, (OSError, TimeoutError)):
                raise reply
        answers = {w: r for w, r in replies.items() if not isinstance(r, Exception)}
        if answers:
            return answers
        if time.monotonic() > deadline:
            raise ClusterError(
                f"None of {len(workers)} worker(s), {workers[0]} first, answered within "
                f"{patience_s():g} s (Dask's setting daskls.patience). See whether they still run."
            )


async def _ask_all(
    client: Any, workers: list[str], question: Callable[..., Any], args: tuple[Any, ...]
) -> dict[str, Any]:
    """Ask all workers at once; an answer is an exception where none came."""

    async def ask(address: str) -> Any:
        # One call a worker: a silent one costs its own answer, not those of the others.
        asked = client.run(question, *args, workers=[address], on_error="return", asynchronous=True)
        try:
            found = await asyncio.wait_for(asked, min(WORKER_ANSWER_S, patience_s()))
        except (OSError, TimeoutError) as error:
            return error
        return found[address]

    return dict(zip(workers, await asyncio.gather(*map(ask, workers)), strict=True))


# Distributed pauses a worker at 80 % of its limit: beyond that no task would start.
USABLE = 0.8
# Without a limit, leave the machine this share for everything else.
LOCAL_SHARE = 0.6


@dataclass(eq=False)
class Process:
    """A process of workers: their addresses, slots, and the smallest of their limits."""

    held: HeldMemory
    workers: list[str] = field(default_factory=list)
    n_slots: int = 0
    limit: float = float("inf")

    @property
    def baseline(self) -> int:
        """Bytes that it holds, or will as soon as it has begun."""
        return max(self.held.nbytes, BASELINE_NBYTES)

    def task_nbytes(self, n_beside: int) -> int:
        """Return what one task may use, with ``n_beside`` processes on the machine."""
        free = self.held.free_nbytes * LOCAL_SHARE / n_beside
        if self.limit < float("inf"):
            free = self.limit * USABLE - self.baseline
        return max(int(free / self.n_slots), 0)


def find_resources(client: Any = None) -> Resources:
    """Return how many tasks run at once and what each may use; the fullest worker decides.

    On a cluster the workers report the memory that they hold after releasing their caches.

    Raises
    ------
    ClusterError : when no worker answers
    """
    client = current_client(client)
    if client is None:
        slots = find_slots()
        return Resources(slots, free_nbytes() // slots)
    workers = wait_for_worker(client)
    answers = ask_workers(client, report_held)
    processes = _group(answers, workers)
    hosts = [process.held.process[0] for process in processes]
    task_nbytes = [
        process.task_nbytes(hosts.count(host))
        for process, host in zip(processes, hosts, strict=True)
    ]
    fullest = processes[task_nbytes.index(min(task_nbytes))]
    return Resources(
        sum(process.n_slots for process in processes),
        min(task_nbytes),
        _describe(fullest),
        all(process.held.has_svc for process in processes),
    )


def resources_of(
    n_workers: int, threads_per_worker: int = 1, memory_limit: int | str | None = None
) -> Resources:
    """Return what a cluster offers that need not exist, of workers alike that have just begun.

    Parameters
    ----------
    n_workers : int, >= 1
    threads_per_worker : int, >= 1
    memory_limit : int, str as "2GiB", or None for a share of this machine's memory

    Raises
    ------
    ParameterError : no workers, no threads, or a limit that is no size
    """
    if n_workers < 1 or threads_per_worker < 1:
        raise ParameterError(
            f"workers={n_workers} of {threads_per_worker} thread(s) run nothing; give 1 of each at "
            "the least."
        )
    slots = n_workers * threads_per_worker
    if memory_limit is None:
        return Resources(slots, free_nbytes() // slots)
    try:
        limit = parse_bytes(memory_limit)
    except ValueError as error:
        raise ParameterError(
            f"memory_limit={memory_limit!r} is not a size; write it as 2GiB."
        ) from error
    free = max(int(limit * USABLE) - BASELINE_NBYTES, 0)
    return Resources(slots, free // threads_per_worker)


def _group(answers: dict[str, HeldMemory], workers: dict[str, Any]) -> list[Process]:
    """Return the processes of workers that answered."""
    processes: dict[tuple[str, int], Process] = {}
    # In the scheduler's order, for a sentence that is the same each time.
    for address, held in answers.items():
        worker = workers.get(address, {})
        process = processes.setdefault(held.process, Process(held))
        process.workers.append(address)
        process.n_slots += worker.get("nthreads", 1)
        process.limit = min(process.limit, worker.get("memory_limit") or float("inf"))
    return list(processes.values())


def _describe(process: Process) -> str:
    """Say what a process of workers holds from before; nothing where that is little."""
    if process.limit == float("inf") or process.held.nbytes <= BASELINE_NBYTES:
        return ""
    return (
        f"The worker {process.workers[0]} holds {process.held.nbytes // MIB} MiB of "
        f"{int(process.limit) // MIB} MiB already: client.restart() gives back what earlier work "
        "left in it."
    )


def check_limit(limit: int | None, whose: str) -> None:
    """Refuse a worker's memory limit that what daskls loads would fill.

    Parameters
    ----------
    limit : int, or None or 0 for no limit
    whose : str. How the sentence begins.

    Raises
    ------
    MemoryPlanError
    """
    if limit and limit * USABLE <= BASELINE_NBYTES:
        raise MemoryPlanError(
            f"{whose} a memory limit of {limit // MIB} MiB, of which Dask lets {USABLE:.0%} be "
            f"used, but a worker holds about {BASELINE_NBYTES // MIB} MiB before its first task; "
            "give each worker 512 MiB or more."
        )


def free_nbytes() -> int:
    """Return the memory that this process may plan with: a share of the free memory."""
    return int(available_nbytes() * LOCAL_SHARE)


def find_slots() -> int:
    """Return the number of threads or processes of the local scheduler."""
    scheduler = dask.config.get("scheduler", None)
    if scheduler in ("sync", "synchronous", "single-threaded"):
        return 1
    workers = dask.config.get("num_workers", None)
    return int(workers) if workers else int(CPU_COUNT)
