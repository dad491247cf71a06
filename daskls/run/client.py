"""The client that tasks go to: the given one, the current one, or none; clusters of programs.

Telling a cluster's scheduler what its workers have trained: counts of leaves, no rows.

A worker sends at most one message a second to one topic, of which a scheduler keeps a bounded
number of messages.
"""

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


def current_client(client: Any = None) -> Any:
    """Return the given client, or the current one, or None: then a local scheduler runs.

    Inside a task that is the client of the task's worker, as for Dask's own computes.

    Raises
    ------
    ParameterError : when what is given is no client, or an asynchronous one
    ClusterError : when the client is closed
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
            "The client is asynchronous: its answers are coroutines, for which no fit waits. Give "
            "one that waits, client=distributed.Client(address); from a coroutine call fit in a "
            "thread, await asyncio.to_thread(model.fit, X, y), so that the loop goes on."
        )
    if client is not None and client.status in ("closing", "closed"):
        raise ClusterError(
            "The client is closed, so no task can run on its cluster. Make a new "
            "distributed.Client; with store= a fit resumes from its finished tasks."
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

        return default_client()
    client_module = sys.modules.get("distributed.client")
    if client_module is None:
        return None
    try:
        return client_module.default_client()
    except ValueError:
        return None


def in_task() -> bool:
    """Whether this thread runs a task of a distributed worker."""
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
    """Free this task's slot while it waits for other tasks; outside of tasks, do nothing.

    A task that waits for tasks in the slot which they need would wait for itself.
    """
    if not in_task():
        yield
        return
    from distributed import worker_client

    with worker_client():
        yield


def quiet_logs() -> None:
    """Silence distributed's logs: a program reports an error in one sentence."""
    for name in ("distributed", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def connect(address: str, timeout_s: float) -> Iterator[Any]:
    """Yield a client of a running scheduler.

    Raises
    ------
    OSError : when the scheduler does not answer
    ParameterError : when the address asks for TLS, for which Dask has no settings
    """
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
    """Start a local cluster for a program and yield its client; both end with the context.

    Parameters
    ----------
    n_workers : int, or None for one a core
    threads_per_worker : int
    memory_limit : str, as "2GiB" or "auto". Of each worker.
    dashboard : address to serve the dashboard at, or None for a free port of this machine
    """
    import distributed

    quiet_logs()
    started = ExitStack()
    try:
        # A cluster that is half started cannot be closed in good order.
        with held_interrupts():
            cluster = distributed.LocalCluster(
                n_workers=n_workers or CPU_COUNT,
                threads_per_worker=threads_per_worker,
                memory_limit=memory_limit,
                # None would ask for port 8787 all the same, and warn where it is taken.
                dashboard_address=dashboard or "127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
            started.enter_context(cluster)
            client = started.enter_context(distributed.Client(cluster))
            client.register_plugin(_interrupt_shield())
        yield client
    finally:
        # Nor can one whose closing was stopped half way, by a second Ctrl-C.
        with held_interrupts():
            started.close()


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait until the body is done; threads and processes begun in it never see it.

    A terminal sends it to all processes, and one that is still importing would end with a
    traceback. Windows has no such mask: there nothing changes.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The first process that Python spawns starts its resource tracker, which lifts the mask.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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


TOPIC = "daskls"
# Seconds between two messages of one worker, or of a client.
TELL_S = 1.0
# Leaf by leaf: its number, its cells, their rows, those of cells whose error was measured, those of
# cells of one class or one number, and the rows that were wrong, or sums of squared errors.
COUNTED = ("leaf", "cells", "rows", "measured", "pure", "wrong")
LeafCounts = list[list[float]]


def count_leaves(table: Table) -> LeafCounts:
    """Return the sums of each column in `COUNTED` over the cells of each leaf: a list a name."""
    leaves, own = np.unique(table["leaf"], return_inverse=True)
    rows, errors = table["n_rows"].astype(np.float64), table["validation_error"]
    weights = (
        np.ones(len(rows)),
        rows,
        rows * np.isfinite(errors),
        rows * find_pure(table),
        rows * np.nan_to_num(errors),
    )
    counted = (np.bincount(own, weights=weight, minlength=len(leaves)) for weight in weights)
    return [leaves.tolist(), *(numbers.tolist() for numbers in counted)]


def find_pure(table: Table) -> Mask:
    """Return which cells hold one class, or one number, and answer it without an error.

    A regressor counts no classes: of its cells all but those of one number are trained.
    """
    pure: Mask = np.where(table["n_classes"] == 0, table["n_trained"] == 0, table["n_classes"] == 1)
    return pure


def tell_cells(root: str, first: int, last: int, reports: Iterable[CellReport]) -> None:
    """Tell the scheduler of a bundle that this task has written; nothing outside of a cluster.

    Parameters
    ----------
    root : str. The store of the fit, by which listeners know it.
    first, last : int. The bundle.
    reports : iterable of CellReport
    """
    if not in_task():
        return
    from distributed import get_worker

    table = np.array([report.as_tuple() for report in reports], CellReport.dtype())
    _teller_of(get_worker()).tell([root, first, last, count_leaves(table)])


class _Teller:
    """The messages of one worker that wait for their second."""

    def __init__(self, worker: Any) -> None:
        # A value that held its key would keep the worker.
        self._worker = ref(worker)
        self._loop = worker.loop
        self._lock = threading.Lock()
        self._waiting: list[Any] = []
        self._is_due = False
        self._sent = -TELL_S

    def tell(self, message: Any) -> None:
        """Send a message with the next ones, as soon as the last were sent a second ago."""
        with self._lock:
            self._waiting.append(message)
            if self._is_due:
                return
            self._is_due = True
            wait = max(self._sent + TELL_S - time.monotonic(), 0.0)
        self._loop.add_callback(self._loop.call_later, wait, self.flush)

    def flush(self) -> None:
        """Send what waits, on the worker's loop."""
        with self._lock:
            messages, self._waiting, self._is_due = self._waiting, [], False
            self._sent = time.monotonic()
        worker = self._worker()
        if worker is not None:
            worker.log_event(TOPIC, {"bundles": messages})


_tellers: "WeakKeyDictionary[Any, _Teller]" = WeakKeyDictionary()
_tellers_lock = threading.Lock()


def _teller_of(worker: Any) -> _Teller:
    """Return the teller of a worker; several workers may share a process."""
    with _tellers_lock:
        return _tellers.setdefault(worker, _Teller(worker))
