"""What the current scheduler offers to a fit: slots, and memory a task."""

from typing import Any

import dask
import psutil
from dask.system import CPU_COUNT

from daskls.graph.client import current_client
from daskls.plan import Resources

__all__ = ["find_resources", "find_slots", "free_nbytes"]

# What a worker holds before its first task: the interpreter and its imports, measured.
BASELINE_NBYTES = 200 << 20
# Distributed pauses a worker at 80 % of its limit.
USABLE = 0.8
# Without a limit, leave the machine this share for everything else.
LOCAL_SHARE = 0.6


def find_resources(client: Any = None) -> Resources:
    """Return how many tasks run at once and what each may use; the smallest worker decides."""
    client = current_client(client)
    if client is None:
        slots = find_slots()
        return Resources(slots, free_nbytes() // slots)
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers:
        return Resources(1, free_nbytes())
    return Resources(
        sum(worker["nthreads"] for worker in workers),
        min(_task_nbytes(worker, len(workers)) for worker in workers),
    )


def free_nbytes() -> int:
    """Return what this process may plan with: a share of what is free, in a container too."""
    from distributed.system import MEMORY_LIMIT

    return int(min(psutil.virtual_memory().available, MEMORY_LIMIT) * LOCAL_SHARE)


def _task_nbytes(worker: dict[str, Any], n_workers: int) -> int:
    """Return what one task of a worker may use; without a limit, workers share this machine."""
    limit = worker["memory_limit"] or psutil.virtual_memory().total * LOCAL_SHARE / n_workers
    return max(int((limit * USABLE - BASELINE_NBYTES) / worker["nthreads"]), 0)


def find_slots() -> int:
    """Return the number of threads or processes of the local scheduler."""
    scheduler = dask.config.get("scheduler", None)
    if scheduler in ("sync", "synchronous", "single-threaded"):
        return 1
    workers = dask.config.get("num_workers", None)
    return int(workers) if workers else int(CPU_COUNT)
