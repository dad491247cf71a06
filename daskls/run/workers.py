"""The resources of a fit, its slots and the memory of a task; and questions to workers."""

import asyncio
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import dask
import psutil
from dask.system import CPU_COUNT
from dask.utils import parse_bytes

from daskls._version import __version__
from daskls.errors import ClusterError, DasklsError, MemoryPlanError, ParameterError
from daskls.plan.bundles import Resources
from daskls.records import MIB
from daskls.run.client import current_client
from daskls.run.patience import (
    Patience,
    as_cluster_errors,
    ask_scheduler,
    patience_s,
)
from daskls.store.caches import BASELINE_NBYTES, give_back, resident_nbytes

log = logging.getLogger("daskls")
# Seconds that a worker has to answer; the first answer includes its imports.
WORKER_ANSWER_S = 30.0
# Seconds between two checks whether a worker has come.
WORKER_CHECK_S = 0.2
# The usable share of a worker's limit: distributed pauses it at 80 %, and starts no task then.
USABLE = 0.8
# Without a limit, the share of free memory to plan with; the rest is for everything else.
LOCAL_SHARE = 0.6
# The memory of this process when it was last measured without a running task.
_idle_nbytes = BASELINE_NBYTES


@dataclass(frozen=True)
class HeldMemory:
    """A worker's report on its process: bytes held without tasks, and free on its machine."""

    process: tuple[str, int]
    nbytes: int
    free_nbytes: int
    has_svc: bool


def report_held(dask_worker: Any = None) -> HeldMemory:
    """Return the memory held once caches are released; with running tasks, at most as before."""
    global _idle_nbytes
    give_back()
    nbytes = resident_nbytes()
    if dask_worker is not None and dask_worker.state.executing_count:
        nbytes = min(nbytes, _idle_nbytes)
    else:
        _idle_nbytes = nbytes
    process = socket.gethostname(), os.getpid()
    return HeldMemory(process, nbytes, available_nbytes(), "sklearn.svm" in sys.modules)


def available_nbytes() -> int:
    return int(min(psutil.virtual_memory().available, _machine_nbytes()))


@cache
def _machine_nbytes() -> int:
    """Return the total memory as distributed finds it, of which only ``system.py`` is run."""
    if "distributed" in sys.modules:
        from distributed.system import MEMORY_LIMIT

        return int(MEMORY_LIMIT)
    package = find_spec("distributed")
    assert package is not None, "distributed is a requirement"
    assert package.origin is not None, "distributed is a requirement"
    return int(run_path(str(Path(package.origin).with_name("system.py")))["MEMORY_LIMIT"])


@dataclass(eq=False)
class Process:
    held: HeldMemory
    workers: list[str] = field(default_factory=list)
    n_slots: int = 0
    limit: float = float("inf")

    @property
    def baseline(self) -> int:
        """The bytes that it holds, or will hold once its first tasks have run."""
        return max(self.held.nbytes, BASELINE_NBYTES)

    def task_nbytes(self, n_beside: int) -> int:
        """Return the bytes that a task may use if ``n_beside`` processes share the machine."""
        free = self.held.free_nbytes * LOCAL_SHARE / n_beside
        if self.limit < float("inf"):
            free = self.limit * USABLE - self.baseline
        return max(int(free / self.n_slots), 0)


def find_resources(client: Any = None) -> Resources:
    """Return how many tasks run at once, and the memory of each on the fullest worker."""
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
    """Return the resources of equal workers that have just started, by limits as "2GiB"."""
    if n_workers < 1 or threads_per_worker < 1:
        raise ParameterError(
            f"Got workers={n_workers} and threads_per_worker={threads_per_worker}; give at least "
            "1 of each."
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
    processes: dict[tuple[str, int], Process] = {}
    # In the scheduler's order, so that messages name the same worker each time.
    for address, held in answers.items():
        worker = workers.get(address, {})
        process = processes.setdefault(held.process, Process(held))
        process.workers.append(address)
        process.n_slots += worker.get("nthreads", 1)
        process.limit = min(process.limit, worker.get("memory_limit") or float("inf"))
    return list(processes.values())


def _describe(process: Process) -> str:
    """Describe the memory that a process holds from earlier work; "" where it is little."""
    if process.limit == float("inf") or process.held.nbytes <= BASELINE_NBYTES:
        return ""
    return (
        f"The worker {process.workers[0]} holds {process.held.nbytes // MIB} MiB of "
        f"{int(process.limit) // MIB} MiB already: client.restart() gives back what earlier work "
        "left in it."
    )


def check_limit(limit: int | None, whose: str) -> None:
    """Raise MemoryPlanError if the imports of daskls would fill a worker's memory limit."""
    if limit and limit * USABLE <= BASELINE_NBYTES:
        raise MemoryPlanError(
            f"{whose} a memory limit of {limit // MIB} MiB, of which Dask lets {USABLE:.0%} be "
            f"used, but a worker holds about {BASELINE_NBYTES // MIB} MiB before its first task; "
            "give each worker 512 MiB or more."
        )


def answering_nbytes(client: Any = None) -> tuple[int, float]:
    """Return the bytes that a task, and a worker, may use to predict; no worker is waited for."""
    slots = find_slots()
    try:
        found = ask_scheduler(current) if (current := current_client(client)) else None
    except DasklsError:
        # Whoever computes the answers will meet the error.
        found = None
    room = [
        (int(at["memory_limit"] * USABLE) - BASELINE_NBYTES, at["nthreads"])
        for at in (found[0].values() if found else ())
        if at["memory_limit"]
    ]
    if not room:
        return free_nbytes() // slots, float("inf")
    return max(min(nbytes // n for nbytes, n in room), 0), max(min(room)[0], 0)


def free_nbytes() -> int:
    return int(available_nbytes() * LOCAL_SHARE)


def find_slots() -> int:
    """Return the number of threads or processes of the local scheduler."""
    scheduler = dask.config.get("scheduler", None)
    if scheduler in ("sync", "synchronous", "single-threaded"):
        return 1
    workers = dask.config.get("num_workers", None)
    return int(workers) if workers else int(CPU_COUNT)


def wait_for_worker(client: Any) -> dict[str, dict[str, Any]]:
    """Return the scheduler's description of each running worker, by address, once there is one."""
    patience = Patience(client)
    wanted: Any = None
    while not (running := find_running(client)):
        # A task, as adaptive clusters start workers only for tasks.
        with as_cluster_errors(client):
            wanted = wanted or client.submit(int, pure=False)
        patience.check()
        time.sleep(WORKER_CHECK_S)
    return running


def find_running(client: Any) -> dict[str, dict[str, Any]]:
    """Return the scheduler's description of each running worker, by address."""
    found = ask_scheduler(client)
    workers = {} if found is None else found[0]
    return {w: at for w, at in workers.items() if at["status"] == "running"}


def ask_workers(client: Any, question: Callable[..., Any], *args: Any) -> dict[str, Any]:
    """Return ``question(*args)`` of each running worker, by address; lost ones are left out.

    It runs beside the worker's tasks, so it must be quick, and at the top level of a module.
    """
    deadline = time.monotonic() + patience_s()
    while True:
        workers = list(wait_for_worker(client))
        with as_cluster_errors(client):
            replies = client.sync(_ask_all, client, workers, question, args)
        for address, reply in replies.items():
            # A worker without daskls fails to unpickle the question; only the error's text arrives.
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
    """Ask all workers at once; a worker that does not answer has an exception as its answer."""

    async def ask(address: str) -> Any:
        # One call per worker, so that a silent one does not delay the answers of others.
        asked = client.run(question, *args, workers=[address], on_error="return", asynchronous=True)
        try:
            found = await asyncio.wait_for(asked, min(WORKER_ANSWER_S, patience_s()))
        except (OSError, TimeoutError) as error:
            return error
        return found[address]

    return dict(zip(workers, await asyncio.gather(*map(ask, workers)), strict=True))


@contextmanager
def log_losses(client: Any) -> Iterator[None]:
    """Log that a fit is complete: distributed logs lost workers, but not what was done again."""
    client = current_client(client)
    before = _addresses(client)
    yield
    after = _addresses(client)
    lost = before - after
    # An empty set also stands for a scheduler that does not answer.
    if after and lost:
        log.warning(
            "%d of %d worker(s) left the cluster during the fit (%s first): their unfinished tasks "
            "ran again, and the model is the same. No action is needed.",
            len(lost),
            len(before),
            min(lost),
        )


def _addresses(client: Any) -> set[str]:
    found = None if client is None else ask_scheduler(client)
    return set() if found is None else set(found[0])
