"""Resources of a fit: slots, and memory of a task, as reported by the workers."""

from dataclasses import dataclass, field
from typing import Any

import dask
from dask.system import CPU_COUNT
from dask.utils import parse_bytes

from daskls.errors import MemoryPlanError, ParameterError
from daskls.plan import Resources
from daskls.records import MIB
from daskls.run.client import current_client
from daskls.run.held import BASELINE_NBYTES, HeldMemory, available_nbytes, report_held
from daskls.run.workers import ask_workers, wait_for_worker

__all__ = ["check_limit", "find_resources", "find_slots", "free_nbytes", "resources_of"]

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
