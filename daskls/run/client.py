"""The client of a fit, local clusters for programs, and events about trained cells."""

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import Any
from weakref import WeakKeyDictionary, ref

import dask
import numpy as np
from dask.system import CPU_COUNT

from daskls.errors import ClusterError, ParameterError
from daskls.records import CellReport, Mask, Table

# The topic of events on the scheduler.
TOPIC = "daskls"
# Seconds between two events of one worker, or of a client.
EVENT_INTERVAL_S = 1.0
# Per leaf: its number, its cells, their rows, the rows of cells whose error was measured, those of
# cells of one class or one number, and the rows that were wrong, or sums of squared errors.
COUNTED = ("leaf", "cells", "rows", "measured", "pure", "wrong")
# One list per name in `COUNTED`, each with one value per leaf.
LeafCounts = list[list[float]]


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
            "The client is closed, or of the process that this one was forked from, so no task can "
            "run on its cluster. Make a new distributed.Client; with store= a fit resumes from its "
            "finished tasks."
        )
    return client


def _find_client() -> Any:
    """Return the client that dask.compute would use, or None; does not import distributed."""
    scheduler = dask.config.get("scheduler", None)
    if scheduler is not None and "distributed" not in str(scheduler):
        return None
    if in_task():
        from distributed import get_client

        return get_client()
    if scheduler is not None:
        from distributed import default_client

        try:
            return default_client()
        except ValueError as error:
            raise ClusterError(
                f"Dask's setting scheduler is {scheduler!r}, but this process has no open client; "
                "one of the process that it was forked from does not count. Make a "
                'distributed.Client, or set dask.config.set(scheduler="threads").'
            ) from error
    client_module = sys.modules.get("distributed.client")
    if client_module is None:
        return None
    try:
        return client_module.default_client()
    except ValueError:
        return None


def in_task() -> bool:
    worker_module = sys.modules.get("distributed.worker")
    if worker_module is None:
        return False
    try:
        worker_module.get_worker()
    except ValueError:
        return False
    return True


@contextmanager
def slot_left() -> Iterator[None]:
    """Free this task's slot while it waits for other tasks, which may need it."""
    if not in_task():
        yield
        return
    from distributed import worker_client

    with worker_client():
        yield


@contextmanager
def connect(address: str, timeout_s: float) -> Iterator[Any]:
    import distributed

    quiet_logs()
    if address.startswith("tls://") and not distributed.Security().get_connection_args(
        "client"
    ).get("ssl_context"):
        raise ParameterError(
            f"The scheduler {address} asks for TLS, but Dask has no certificates. It takes them "
            "from its configuration: distributed.comm.tls.ca-file, .client.cert and .client.key "
            "(in a file in ~/.config/dask, or in the environment as "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...__TLS__CLIENT__CERT and "
            "...__TLS__CLIENT__KEY)."
        )
    with distributed.Client(address, timeout=timeout_s) as client:
        yield client


@contextmanager
def start_cluster(
    n_workers: int | None, threads_per_worker: int, memory_limit: str, dashboard: str | None
) -> Iterator[Any]:
    """Start a local cluster of one worker per core, unless given; yield its client."""
    import distributed

    quiet_logs()
    started = ExitStack()
    try:
        # A cluster that is only half started cannot be closed cleanly.
        with held_interrupts():
            cluster = distributed.LocalCluster(
                n_workers=n_workers or CPU_COUNT,
                threads_per_worker=threads_per_worker,
                memory_limit=memory_limit,
                # With None Dask would ask for port 8787, and warn where it is taken.
                dashboard_address=dashboard or "127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
            started.enter_context(cluster)
            client = started.enter_context(distributed.Client(cluster))
            client.register_plugin(_interrupt_shield())
        yield client
    finally:
        # Nor can a cluster whose closing was interrupted by a second Ctrl-C.
        with held_interrupts():
            started.close()


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Defer Ctrl-C until the body is done; processes started in it never see it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started now: the first process that Python spawns would start it, and that lifts the mask.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt_shield() -> Any:
    """Return a plugin that lets workers ignore Ctrl-C: the program closes them cleanly."""
    import distributed

    class IgnoreInterrupts(distributed.WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return IgnoreInterrupts()


def quiet_logs() -> None:
    for name in ("distributed", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def report_cells(root: str, first: int, last: int, reports: Iterable[CellReport]) -> None:
    """Report a bundle that this task has written to the scheduler, under the fit's store."""
    if not in_task():
        return
    from distributed import get_worker

    table = np.array([report.as_tuple() for report in reports], CellReport.dtype())
    _sender_of(get_worker()).send([root, first, last, count_leaves(table)])


def count_leaves(table: Table) -> LeafCounts:
    leaves, own = np.unique(table["leaf"], return_inverse=True)
    rows, errors = table["n_rows"].astype(np.float64), table["validation_error"]
    weights = (
        np.ones(len(rows)),
        rows,
        rows * np.isfinite(errors),
        rows * find_single_class(table),
        rows * np.nan_to_num(errors),
    )
    counted = (np.bincount(own, weights=weight, minlength=len(leaves)) for weight in weights)
    return [leaves.tolist(), *(numbers.tolist() for numbers in counted)]


def find_single_class(table: Table) -> Mask:
    """Return which cells hold a single class or number, which they predict without an error."""
    pure: Mask = np.where(table["n_classes"] == 0, table["n_trained"] == 0, table["n_classes"] == 1)
    return pure


class _Sender:
    """Collects the messages of one worker and sends them in one event, at most once per second."""

    def __init__(self, worker: Any) -> None:
        # A weak reference, as the worker is the key in `_senders`: a strong one in the value would
        # keep it alive.
        self._worker = ref(worker)
        self._loop = worker.loop
        self._lock = threading.Lock()
        self._waiting: list[Any] = []
        self._is_due = False
        self._sent = -EVENT_INTERVAL_S

    def send(self, message: Any) -> None:
        with self._lock:
            self._waiting.append(message)
            if self._is_due:
                return
            self._is_due = True
            wait = max(self._sent + EVENT_INTERVAL_S - time.monotonic(), 0.0)
        self._loop.add_callback(self._loop.call_later, wait, self.flush)

    def flush(self) -> None:
        """Send all messages that wait; runs on the worker's loop."""
        with self._lock:
            messages, self._waiting, self._is_due = self._waiting, [], False
            self._sent = time.monotonic()
        worker = self._worker()
        if worker is not None:
            worker.log_event(TOPIC, {"bundles": messages})


# By worker, as several workers may share a process.
_senders: "WeakKeyDictionary[Any, _Sender]" = WeakKeyDictionary()
_senders_lock = threading.Lock()


def _sender_of(worker: Any) -> _Sender:
    with _senders_lock:
        return _senders.setdefault(worker, _Sender(worker))
