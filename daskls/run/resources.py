"""The slots of a scheduler, and the memory that a task may use on the fullest of its workers."""

import os
import socket
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import dask
import psutil
from dask.system import CPU_COUNT
from dask.utils import parse_bytes

from daskls.cluster import current_client
from daskls.errors import DasklsError, ParameterError
from daskls.plan.bundles import Resources
from daskls.records import MIB
from daskls.store.caches import BASELINE_NBYTES, give_back, resident_nbytes
from daskls.workers import USABLE, ask_scheduler, ask_workers, check_versions, wait_for_worker

# Without a limit, the share of free memory to plan with; the rest is for everything else.
LOCAL_SHARE = 0.6
# The memory of this process when it was last measured without a running task.
_idle_nbytes = BASELINE_NBYTES


@dataclass(frozen=True)
class WorkerMemory:
    """A worker's report on its process: bytes held without tasks, and free on its machine."""

    process: tuple[str, int]
    nbytes: int
    free_nbytes: int
    has_svc: bool


def report_held(dask_worker: Any = None) -> WorkerMemory:
    """Return the memory held once caches are released; with running tasks, at most as before."""
    global _idle_nbytes
    give_back()
    nbytes = resident_nbytes()
    if dask_worker is not None and dask_worker.state.executing_count:
        nbytes = min(nbytes, _idle_nbytes)
    else:
        _idle_nbytes = nbytes
    process = socket.gethostname(), os.getpid()
    return WorkerMemory(process, nbytes, available_nbytes(), "sklearn.svm" in sys.modules)


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


def find_resources(client: Any = None) -> Resources:
    """Return how many tasks run at once, and the memory of each on the fullest worker."""
    client = current_client(client)
    if client is None:
        slots = find_slots()
        return Resources(slots, free_nbytes() // slots)
    workers = wait_for_worker(client)
    answers = ask_workers(client, report_held)
    # Workers may be threads of one process.
    processes: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for address, held in answers.items():
        processes[held.process].append(address)
    n_on_host = Counter(host for host, _ in processes)
    resources = [
        _of_process(addresses, answers[addresses[0]], workers, n_on_host[host])
        for (host, _), addresses in processes.items()
    ]
    fullest = min(resources, key=lambda r: r.task_nbytes)
    return Resources(
        sum(r.n_slots for r in resources),
        fullest.task_nbytes,
        fullest.held,
        all(r.has_svc for r in resources),
    )


def _of_process(
    addresses: list[str], held: WorkerMemory, workers: dict[str, Any], n_beside: int
) -> Resources:
    """Return the resources of one of ``n_beside`` processes that share a machine."""
    infos = [workers[address] for address in addresses if address in workers]
    n_slots = sum(worker["nthreads"] for worker in infos) or 1
    limit = min((w["memory_limit"] for w in infos if w["memory_limit"]), default=None)
    if limit is None:
        return Resources(
            n_slots, int(held.free_nbytes * LOCAL_SHARE / n_beside / n_slots), "", held.has_svc
        )
    # The bytes that it will hold once its first tasks have run, if that is more.
    free = limit * USABLE - max(held.nbytes, BASELINE_NBYTES)
    said = ""
    if held.nbytes > BASELINE_NBYTES:
        said = (
            f"The worker {addresses[0]} holds {held.nbytes // MIB} MiB of {limit // MIB} MiB "
            "already: client.restart() gives back what earlier work left in it."
        )
    return Resources(n_slots, max(int(free / n_slots), 0), said, held.has_svc)


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


def answering_nbytes(client: Any = None) -> tuple[int, float]:
    """Return the bytes that a task, and a worker, may use to predict; no worker is waited for.

    ClusterError where a worker has another version of daskls.
    """
    try:
        client = current_client(client)
        workers = (client and ask_scheduler(client)) or {}
    except DasklsError:
        # Whoever computes the answers will meet the error.
        workers = {}
    if workers:
        check_versions(client, [w for w, at in workers.items() if at["status"] == "running"])
    room = [
        (int(at["memory_limit"] * USABLE) - BASELINE_NBYTES, at["nthreads"])
        for at in workers.values()
        if at["memory_limit"]
    ]
    if not room:
        return free_nbytes() // find_slots(), float("inf")
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
