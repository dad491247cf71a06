"""The scheduler in use: what it offers and how to run on it."""

import logging
import signal
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import psutil
from dask.system import CPU_COUNT

from daskls.errors import StoreError
from daskls.plan import Resources

__all__ = [
    "compute",
    "compute_blocks",
    "current_client",
    "find_resources",
    "find_slots",
    "free_nbytes",
    "probe_store",
    "run_each",
]

# What a worker holds before its first task: the interpreter and its imports, measured.
BASELINE_NBYTES = 200 << 20
# Distributed pauses a worker at 80 % of its limit.
USABLE = 0.8
# Without a limit, leave the machine this share for everything else.
LOCAL_SHARE = 0.6


def current_client(client: Any = None) -> Any:
    """Return the given client, or the current one, or None: then a local scheduler runs."""
    if client is not None:
        return client
    if "distributed" in str(dask.config.get("scheduler", "")) or _has_default_client():
        from distributed import default_client

        return default_client()
    return None


def _has_default_client() -> bool:
    """Whether dask.compute would go to a distributed client; does not import distributed."""
    import sys

    client_module = sys.modules.get("distributed.client")
    if client_module is None or dask.config.get("scheduler", None) is not None:
        return False
    try:
        client_module.default_client()
    except ValueError:
        return False
    return True


def compute(collections: Sequence[Any], client: Any = None) -> tuple[Any, ...]:
    """Compute on the given client, else on the current scheduler."""
    if client is None:
        return tuple(dask.compute(*collections))
    return tuple(client.gather(client.compute(list(collections))))


def run_each(task: Callable[..., Any], items: Sequence[Any], job: Any, client: Any = None) -> None:
    """Call ``task(item, job)`` on every item, in their order; the results are small and dropped.

    Parameters
    ----------
    task : function. Its name is what the dashboard shows.
    items : sequence
    job : what all of them need: handles and parameters
    """
    run = dask.delayed(task, pure=False)
    # Two equal fits may run at once, each into its own store: their tasks must not be shared.
    call = uuid.uuid4().hex[:12]
    names = (f"{task.__name__}-{call}-{i:05d}" for i in range(len(items)))
    tasks = [run(item, job, dask_key_name=name) for item, name in zip(items, names, strict=True)]
    compute(tasks, client)


def compute_blocks(blocks: da.Array, client: Any = None) -> list[Any]:
    """Return the blocks of one column of blocks, in order, each fetched as soon as it is done.

    A finished result that waited on its worker would be lost, and computed again, if the worker
    died.
    """
    client = current_client(client)
    (fused,) = dask.optimize(blocks)
    tasks = fused.to_delayed(optimize_graph=False).ravel().tolist()
    if client is None:
        return list(dask.compute(*tasks, optimize_graph=False))
    from distributed import as_completed

    futures = client.compute(tasks, optimize_graph=False)
    places = {future.key: i for i, future in enumerate(futures)}
    waiting = as_completed(futures, loop=client.loop, with_results=True)
    # The one reference to a future is now in `waiting`, which drops it with its result.
    del futures
    results: list[Any] = [None] * len(tasks)
    for future, result in waiting:
        results[places[future.key]] = result
    return results


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


def read_probe(path: str) -> str | None:
    """Return what the probe file says as this worker sees it, or None."""
    probe = Path(path)
    return probe.read_text() if probe.exists() else None


def probe_store(store: Path, client: Any = None) -> None:
    """Check that every worker reads what the client writes in the store.

    Raises
    ------
    StoreError : when a worker does not see the store
    """
    store.mkdir(parents=True, exist_ok=True)
    client = current_client(client)
    if client is None:
        return
    probe = store / f".probe-{uuid.uuid4().hex}"
    probe.write_text(probe.name)
    try:
        blind = [w for w, text in client.run(read_probe, str(probe)).items() if text != probe.name]
    finally:
        probe.unlink()
    if blind:
        raise StoreError(
            f"{len(blind)} worker(s), {blind[0]} first, cannot read {store}: workers and client "
            "share no such path. Set store= (or Dask's temporary-directory) to a folder that all "
            "of them share."
        )


def _quiet_logs() -> None:
    """Silence distributed: a program tells what happened in one sentence, its logs in pages."""
    for name in ("distributed", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def connect(address: str, timeout_s: float) -> Iterator[Any]:
    """Yield a client of a running scheduler.

    Raises
    ------
    OSError : when the scheduler does not answer
    """
    import distributed

    _quiet_logs()
    with distributed.Client(address, timeout=timeout_s) as client:
        yield client


@contextmanager
def start_cluster(
    n_workers: int | None, threads_per_worker: int, memory_limit: str, dashboard: str | None
) -> Iterator[Any]:
    """Start a local cluster for a program and yield its client; both end with the context.

    Parameters
    ----------
    n_workers : int, or None for one a core
    threads_per_worker : int
    memory_limit : str, as "2GiB" or "auto". Of each worker.
    dashboard : address to serve the dashboard at, or None for a free port of this machine
    """
    import distributed

    _quiet_logs()
    with (
        distributed.LocalCluster(
            n_workers=n_workers or CPU_COUNT,
            threads_per_worker=threads_per_worker,
            memory_limit=memory_limit,
            # None would ask for port 8787 all the same, and warn where it is taken.
            dashboard_address=dashboard or "127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.register_plugin(_interrupt_shield())
        yield client


def _interrupt_shield() -> Any:
    """Return a plugin that keeps Ctrl-C, which a terminal sends to all processes, from workers.

    The program's own process gets it too, and ends them in good order.
    """
    import distributed

    class IgnoreInterrupts(distributed.WorkerPlugin):  # type: ignore[misc]
        """Ignores SIGINT in a worker process."""

        def setup(self, worker: Any) -> None:
            """Run in the worker's main thread."""
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return IgnoreInterrupts()
