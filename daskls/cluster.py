"""Runs tasks on the current Dask scheduler, and waits for their results."""

import logging
import os
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import dask
import dask.threaded
from dask.base import named_schedulers

from daskls.blas import undisturbed
from daskls.errors import ClusterError, DasklsError, ParameterError, StoreError
from daskls.store.objects import Location, open_store
from daskls.workers import (
    SHARE_FOLDER,
    ClusterStore,
    StoreProbe,
    WorkerWatch,
    as_cluster_errors,
    ask_scheduler,
    ask_to_give_back,
    check_limit,
    find_loss,
    wait_for_worker,
)

log = logging.getLogger("daskls")
# How often a task runs again after an error that daskls did not raise: enough to bridge a disk or a
# network that fails for a moment. Dask's ``retries=`` would repeat what daskls refuses, such as a
# NaN, and spend its tries on a worker that does not see the store.
RETRIES = 2
# Seconds of one wait for a result; between two waits the cluster is checked.
WAIT_S = 0.1


# ---- the client ----


def current_client(client: Any = None) -> Any:
    """Return the given client, the current one, or None, which stands for a local scheduler.

    ClusterError where it is closed, or Dask's configuration asks for one and there is none.
    """
    if client is None:
        client = _find_client()
    elif not hasattr(client, "scheduler_info"):
        example = client if isinstance(client, str) else "tcp://host:8786"
        raise ParameterError(
            f"client is {client!r}; it must be a distributed Client or None. Connect first: "
            f"client=distributed.Client({example!r})."
        )
    if client is not None and client.asynchronous:
        raise ParameterError(
            "The client is asynchronous: its methods return coroutines, which fit does not await. "
            "Pass a synchronous one, client=distributed.Client(address); from a coroutine call fit "
            "in a thread, await asyncio.to_thread(model.fit, X, y), so that the event loop runs on."
        )
    if client is not None and client.status in ("closing", "closed"):
        raise ClusterError(
            "The client is closed, or belongs to the process that this one was forked from, so "
            "no task can run on its cluster. Make a new distributed.Client; with store= a fit "
            "resumes from its finished tasks."
        )
    return client


def _find_client() -> Any:
    """Return the client that dask.compute would use, or None."""
    scheduler = dask.config.get("scheduler", None)
    is_wanted = scheduler is not None and "distributed" in str(scheduler)
    # Whoever has a client has imported distributed, which takes a moment.
    if not is_wanted and (scheduler is not None or "distributed" not in sys.modules):
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError as error:
        if not is_wanted:
            return None
        raise ClusterError(
            f"Dask's setting scheduler is {scheduler!r}, but this process has no open client (a "
            "client from before a fork does not count). Make a distributed.Client, or set "
            'dask.config.set(scheduler="threads").'
        ) from error


def in_task() -> bool:
    worker_module = sys.modules.get("distributed.worker")
    if worker_module is None:
        return False
    try:
        worker_module.get_worker()
    except ValueError:
        return False
    return True


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


# ---- tasks ----


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
    lazy_values = [collections[i] for i in lazy]
    for index, result in stream(lazy_values, client, optimize_graph=optimize_graph):
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


def run_each(
    task: Callable[..., Any], items: Sequence[Any], *shared: Any, client: Any
) -> tuple[Any, ...]:
    """Call ``task(item, *shared)`` on every item, in order."""
    return compute_each(task, [(item, *shared) for item in items], client)


def compute_each(
    task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], client: Any = None
) -> tuple[Any, ...]:
    run = dask.delayed(RetriedTask(task), pure=False)
    # Two equal fits may run at once, each into its own store: they must not share tasks. The
    # number keeps the order: Dask sorts tasks that are alike by their keys.
    call = uuid.uuid4().hex[:12]
    tasks = [
        run(*args, dask_key_name=f"{task.__name__}-{call}-{i:05d}")
        for i, args in enumerate(arguments)
    ]
    return compute(tasks, client)


def stream(
    collections: Sequence[Any], client: Any, *, optimize_graph: bool = True
) -> Iterator[tuple[int, Any]]:
    """Yield the index and the one value of each collection as soon as a cluster has computed it."""
    from distributed import worker_client

    if not collections:
        return
    with as_cluster_errors(client):
        work = _Computation(collections, client, optimize_graph)
        try:
            work.submit(range(len(collections)))
            # A task that waits for other tasks leaves its slot, which they may need.
            with worker_client() if in_task() else nullcontext():
                yield from work.results()
        finally:
            work.drop_all()


class _Computation:
    """Collections that a cluster computes; results are fetched before their workers can die."""

    def __init__(self, collections: Sequence[Any], client: Any, optimize_graph: bool) -> None:
        from distributed import as_completed

        self.collections, self.client, self.optimize_graph = collections, client, optimize_graph
        # Of each future the indices of its collections: equal ones share it.
        self._pending: dict[Any, list[int]] = {}
        self._tries: Counter[int] = Counter()
        self._completed = as_completed(loop=client.loop, with_results=True)
        self._patience, self._sharing = WorkerWatch(client), current_sharing()

    def submit(self, indices: Sequence[int]) -> None:
        futures = self.client.compute(
            [self.collections[i] for i in indices],
            optimize_graph=self.optimize_graph,
            # Inside a task: before other tasks like this one, which would otherwise all start, and
            # hold their memory, before the first could end.
            priority=int(in_task()),
            workers=None if self._sharing is None else self._sharing.allowed(),
        )
        for future, index in zip(futures, indices, strict=True):
            self._pending.setdefault(future, []).append(index)
        self._completed.update(set(futures))

    def results(self) -> Iterator[tuple[int, Any]]:
        while self._pending:
            again: list[int] = []
            batch = self._next()
            if batch:
                self._patience.note()
            elif self._patience.check():
                # Tasks that a paused worker has not begun go to one that runs.
                again = self.drop_all()
            for future, result in batch:
                if future not in self._pending:
                    # Dropped with all others, after one before it.
                    continue
                error = _error_of(future, result)
                if error is not None:
                    again += self._after(future, error)
                else:
                    yield from ((index, result) for index in self._drop(future))
            if again:
                # Not by `Client.retry`, which cannot keep a task from a worker. The new futures
                # have the keys of the old ones, which the client's loop must release first.
                self.client.sync(_turn)
                self.submit(again)

    def _next(self) -> list[tuple[Any, Any]]:
        completed = self._completed
        if not completed.has_ready():
            # `as_completed` itself waits for ever, or until a timeout counted from its beginning.
            with completed.thread_condition:
                completed.thread_condition.wait(WAIT_S)
        batch: list[tuple[Any, Any]] = completed.next_batch(block=False)
        return batch

    def _after(self, future: Any, error: BaseException) -> list[int]:
        """Return what to submit again after a failure; raise the error where nothing is."""
        loss = find_loss(self.client, error)
        if loss is not None:
            raise loss from error
        sharing = self._sharing if isinstance(error, (StoreError, OSError)) else None
        if sharing is not None and sharing.exclude_blind():
            # Whatever else fails on a worker that cannot see the fit's files counts as no try.
            return self.drop_all()
        index = self._pending[future][0]
        self._tries[index] += 1
        if isinstance(error, DasklsError) or self._tries[index] > RETRIES:
            raise error
        return self._drop(future)

    def _drop(self, *futures: Any) -> list[int]:
        indices = [index for future in futures for index in self._pending.pop(future)]
        for future in futures:
            future.release()
        return indices

    def drop_all(self) -> list[int]:
        self._completed.clear()
        return self._drop(*self._pending)


def _error_of(future: Any, result: Any) -> BaseException | None:
    """Return why a future failed, given what `as_completed` yields as its result."""
    if isinstance(result, CancelledError):
        return result
    if future.status != "error":
        return None
    _, error, traceback = result
    raised: BaseException = error.with_traceback(traceback)
    return raised


async def _turn() -> None:
    """Return once the client's loop has run all that was scheduled before."""


# ---- what a fit shares with its workers ----


# Per context, not per process, as fits in several threads have different stores.
_sharing: ContextVar[ClusterStore | None] = ContextVar("_sharing", default=None)


def current_sharing() -> ClusterStore | None:
    """Return what the fit in this thread shares; None if it runs without a cluster."""
    return _sharing.get()


@contextmanager
def shared_with_workers(
    store: Location, sources: tuple[Any, ...], client: Any = None
) -> Iterator[None]:
    """Check that every worker sees the store and local data, as each task of the body does."""
    client = current_client(client)
    shared = open_store(store)
    shared.make()
    if client is None:
        yield
        return
    paths = (source.local_path for source in sources if source is not None)
    marks = StoreProbe(
        shared.where(), f".probe-{uuid.uuid4().hex}", tuple(path for path in paths if path)
    )
    shared.put(marks.probe, b"")
    sharing = ClusterStore(marks, client)
    token = _sharing.set(sharing)
    try:
        # Before any question to the workers: loading daskls would kill a worker that is too small.
        for address, worker in wait_for_worker(client).items():
            check_limit(worker["memory_limit"], f"The worker {address} has")
        sharing.exclude_blind(at_start=True)
        yield
        ask_to_give_back(client)
    finally:
        _sharing.reset(token)
        # No error if the store was removed meanwhile, and the probe with it.
        shared.drop(marks.probe)


class RetriedTask:
    """A task that is done again if it was disturbed; it refuses to start on a blind worker.

    A worker may join during a fit: there the task would find no store.
    """

    def __init__(self, task: Callable[..., Any]) -> None:
        sharing = current_sharing()
        self.marks = None if sharing is None else sharing.marks
        self.task, self.__name__ = task, task.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        blindness = None if self.marks is None else self.marks.find_blindness()
        if blindness is not None:
            from distributed import get_worker

            raise StoreError(f"The worker {get_worker().address} {blindness}. {SHARE_FOLDER}")
        return undisturbed(self.task)(*args, **kwargs)


@contextmanager
def log_losses(client: Any) -> Iterator[None]:
    """Log that a fit is complete: distributed logs lost workers, but not what was done again."""
    client = current_client(client)
    if client is None:
        yield
        return
    before = set(ask_scheduler(client) or {})
    yield
    after = set(ask_scheduler(client) or {})
    lost = before - after
    # No workers also stand for a scheduler that does not answer.
    if after and lost:
        log.warning(
            "%d of %d worker(s) left the cluster during the fit (%s first): their unfinished tasks "
            "ran again, and the model is the same. No action is needed.",
            len(lost),
            len(before),
            min(lost),
        )
