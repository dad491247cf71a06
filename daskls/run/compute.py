"""Runs tasks and waits for their results, for every caller and on every scheduler."""

import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

import dask
import dask.array as da
import dask.threaded
from dask.base import named_schedulers

from daskls.errors import DasklsError, StoreError
from daskls.run.client import current_client, in_task, slot_left
from daskls.run.patience import (
    Patience,
    as_cluster_errors,
    cluster_error,
    is_loss,
    is_unread,
    loss_of,
    unread_error,
)
from daskls.run.probe import Guarded, current_visibility

# How often a task runs again after an error that daskls did not raise. Lost workers, and workers
# that cannot see the store, do not count: Dask, or the next try, moves those tasks. Two retries
# bridge a disk or a network that fails for a moment; an error that persists is the task's own.
# Dask's ``retries=`` counts every error: it would repeat what daskls refuses, such as a NaN, and
# use its tries up on a worker that does not see the store, as nothing keeps the task from it: with
# one such worker of two and ``retries=2``, 4 or 5 of 20 tasks failed.
RETRIES = 2
# Seconds of one wait for a result; between two waits the cluster is checked.
WAIT_S = 0.1


def compute(
    collections: Sequence[Any], client: Any = None, *, optimize_graph: bool = True
) -> tuple[Any, ...]:
    """Return the values of Dask collections, in order; ClusterError where the cluster was lost."""
    client = current_client(client)
    if client is None:
        scheduler = local_scheduler()
        return tuple(dask.compute(*collections, optimize_graph=optimize_graph, scheduler=scheduler))
    results = list(collections)
    lazy = [i for i, value in enumerate(collections) if dask.is_dask_collection(value)]
    own = [collections[i] for i in lazy]
    for index, result in stream(own, client, optimize_graph=optimize_graph):
        results[lazy[index]] = result
    return tuple(results)


def local_scheduler() -> Any:
    """Return the scheduler that Dask would choose without a client: asking it loads distributed."""
    if "distributed" in sys.modules:
        return None
    name = dask.config.get("scheduler", None)
    if name is None:
        return dask.threaded.get
    return named_schedulers.get(name.lower()) if isinstance(name, str) else None


def in_threads(client: Any = None) -> bool:
    """Whether all tasks run in this process, and so see its memory."""
    here = (None, "threads", "threading", "sync", "synchronous", "single-threaded")
    return current_client(client) is None and dask.config.get("scheduler", None) in here


def run_each(task: Callable[..., Any], items: Sequence[Any], job: Any, client: Any = None) -> None:
    """Call ``task(item, job)`` on every item, in order."""
    compute_each(task, [(item, job) for item in items], client)


def compute_each(
    task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], client: Any = None
) -> tuple[Any, ...]:
    run = dask.delayed(Guarded(task), pure=False)
    # Two equal fits may run at once, each into its own store: they must not share tasks. The
    # number keeps the order: Dask sorts tasks that are alike by their keys.
    call = uuid.uuid4().hex[:12]
    tasks = [
        run(*own, dask_key_name=f"{task.__name__}-{call}-{i:05d}")
        for i, own in enumerate(arguments)
    ]
    return compute(tasks, client)


def compute_blocks(blocks: da.Array, client: Any = None) -> tuple[Any, ...]:
    (fused,) = dask.optimize(blocks)
    tasks = fused.to_delayed(optimize_graph=False).ravel().tolist()
    return compute(tasks, client, optimize_graph=False)


def stream(
    collections: Sequence[Any], client: Any, *, optimize_graph: bool = True
) -> Iterator[tuple[int, Any]]:
    """Yield the index and the one value of each collection as soon as a cluster has computed it."""
    if not collections:
        return
    with as_cluster_errors(client):
        work = _Work(collections, client, optimize_graph)
        try:
            work.submit(range(len(collections)))
            with slot_left():
                yield from work.results()
        finally:
            work.release()


class _Work:
    """Collections that a cluster computes; results are fetched before their workers can die."""

    def __init__(self, collections: Sequence[Any], client: Any, optimize_graph: bool) -> None:
        from distributed import as_completed

        self.collections, self.client, self.optimize_graph = collections, client, optimize_graph
        # Equal collections share a future.
        self._indices: dict[Any, list[int]] = {}
        self._tries = [0] * len(collections)
        # How many workers were excluded when each collection was submitted.
        self._n_blind = [0] * len(collections)
        self._waiting = as_completed(loop=client.loop, with_results=True)
        self._patience, self._visibility = Patience(client), current_visibility()

    def submit(self, indices: Sequence[int]) -> None:
        futures = self.client.compute(
            [self.collections[i] for i in indices],
            optimize_graph=self.optimize_graph,
            # Inside a task: before other tasks like this one, which would otherwise all start, and
            # hold their memory, before the first could end.
            priority=int(in_task()),
            workers=None if self._visibility is None else self._visibility.allowed(),
        )
        n_blind = 0 if self._visibility is None else len(self._visibility.blind)
        for future, index in zip(futures, indices, strict=True):
            self._n_blind[index] = n_blind
            self._indices.setdefault(future, []).append(index)
        self._waiting.update(set(futures))

    def results(self) -> Iterator[tuple[int, Any]]:
        while self._indices:
            failed: list[int] = []
            for future, result in self._next():
                indices = self._indices.pop(future)
                status = future.status
                future.release()
                if status == "error" or isinstance(result, CancelledError):
                    self._check_failure(indices[0], result)
                    failed += indices
                else:
                    yield from ((index, result) for index in indices)
            if failed:
                # Not by `Client.retry`, which cannot keep a task from the worker that it failed on.
                # The new futures have the keys of the old ones, which the loop must release first.
                self.client.sync(_turn)
                self.submit(failed)

    def _next(self) -> list[tuple[Any, Any]]:
        waiting = self._waiting
        if not waiting.has_ready():
            # `as_completed` itself waits for ever, or until a timeout counted from its beginning.
            with waiting.thread_condition:
                waiting.thread_condition.wait(WAIT_S)
        batch: list[tuple[Any, Any]] = waiting.next_batch(block=False)
        if batch:
            self._patience.note()
        elif self._patience.check():
            # What a paused worker has not begun goes to one that runs.
            indices = [index for own in self._indices.values() for index in own]
            self.release()
            self.client.sync(_turn)
            self.submit(indices)
        return batch

    def _check_failure(self, index: int, result: Any) -> None:
        if isinstance(result, CancelledError):
            raise cluster_error(f"The cluster cancelled a task: {result}")
        _, error, traceback = result
        if is_loss(error):
            raise cluster_error(f"The cluster lost a task: {loss_of(error)}") from error
        if is_unread(error):
            raise unread_error(self.client, error) from error
        # Not counted as a try, as the next one goes to workers that see the store.
        if self._is_blindness(index, error):
            return
        self._tries[index] += 1
        if isinstance(error, DasklsError) or self._tries[index] > RETRIES:
            raise error.with_traceback(traceback)

    def _is_blindness(self, index: int, error: BaseException) -> bool:
        """Whether a task failed because its worker, unlike others, cannot see the fit's files."""
        if self._visibility is None or not isinstance(error, (StoreError, OSError)):
            return False
        self._visibility.exclude_blind()
        return len(self._visibility.blind) > self._n_blind[index]

    def release(self) -> None:
        self._waiting.clear()
        for future in self._indices:
            future.release()
        self._indices = {}


def _leave_parent() -> None:
    """Let a forked child do without its parent's threads, for which Dask would wait for ever."""
    dask.threaded.default_pool = None
    dask.threaded.pools.clear()
    dask.threaded.pools_lock = threading.Lock()
    client_module = sys.modules.get("distributed.client")
    if client_module is not None:
        for client in client_module.Client._instances:
            client.status = "closed"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_parent)


async def _turn() -> None:
    """Return once the client's loop has run all that was scheduled before."""
