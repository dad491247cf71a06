"""Where a command runs: a running scheduler, a local cluster, or threads of this process."""

import logging
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Annotated, Any

import typer

from daskls.errors import ParameterError

CONNECT_TIMEOUT_S = 10
# For data up to this size, some 50,000 rows of ten features, processes may take longer to start
# than to fit. A small data set is one chunk of 4 MiB.
THREADS_NBYTES = 8 << 20

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
Address = Annotated[str | None, typer.Option(metavar="ADDRESS")]


@dataclass(frozen=True)
class ClusterOptions:
    """Where a command runs.

    Parameters
    ----------
    scheduler : Address of a running scheduler, such as tcp://host:8786.
    workers : Processes of a local cluster; 0: threads, no cluster. If not given, one per core, or
        threads for data of up to 8 MiB.
    threads_per_worker : Threads of each local worker.
    memory_limit : Memory of each local worker, such as 2GiB; auto: its share of the machine.
    dashboard : Serve the local cluster's dashboard, such as :8787.
    """

    scheduler: Address = None
    workers: Annotated[int | None, typer.Option(min=0)] = None
    threads_per_worker: Annotated[int, typer.Option(min=1)] = 1
    memory_limit: str = "auto"
    dashboard: Address = None

    def __post_init__(self) -> None:
        if self.scheduler is not None and self.workers is not None:
            raise typer.BadParameter("--scheduler and --workers exclude each other")
        try:
            _ = self.limit_nbytes
        except ValueError as error:
            raise typer.BadParameter(
                f"--memory-limit {self.memory_limit!r} is not a size; write it as 2GiB"
            ) from error

    @property
    def limit_nbytes(self) -> int | None:
        """The bytes of ``memory_limit``; None where it is a share of the machine."""
        if self.memory_limit == "auto":
            return None
        from dask.utils import parse_bytes

        return int(parse_bytes(self.memory_limit))


@contextmanager
def open_client(where: ClusterOptions, data: str | None = None) -> Iterator[Any]:
    """Yield a client, or None where this process's threads do: for few rows, unless asked where."""
    if where.workers == 0 or (where == ClusterOptions() and data is not None and _is_small(data)):
        from concurrent.futures import ThreadPoolExecutor

        import dask

        from daskls.run.resources import find_slots

        # Dask's own pool never stops a thread that Ctrl-C interrupted as it started, and the
        # process would wait for it; shutting down a pool of our own stops all threads.
        pool = ThreadPoolExecutor(find_slots())
        with pool, dask.config.set(scheduler="threads", pool=pool):
            yield None
        return
    import distributed

    from daskls.workers import check_limit

    for name in ("distributed", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if where.scheduler is not None:
        _check_tls(where.scheduler)
        with distributed.Client(where.scheduler, timeout=CONNECT_TIMEOUT_S) as client:
            yield client
        return
    # A worker with too little memory would die as it starts, again and again.
    check_limit(where.limit_nbytes, "Each worker would have")
    with _start_cluster(where) as client:
        if where.dashboard is not None:
            typer.echo(f"Dashboard: {client.dashboard_link}", err=True)
        yield client


def _is_small(path: str) -> bool:
    """Whether a path holds few bytes; False for a URL, which is not opened."""
    from daskls.sources.formats import open_source

    nbytes = None if "://" in path else open_source(path).nbytes
    return nbytes is not None and nbytes <= THREADS_NBYTES


def _check_tls(address: str) -> None:
    import distributed

    settings = distributed.Security().get_connection_args("client")
    if address.startswith("tls://") and not settings.get("ssl_context"):
        raise ParameterError(
            f"The scheduler {address} asks for TLS, but Dask has no certificates. It takes them "
            "from its configuration: distributed.comm.tls.ca-file, .client.cert and .client.key "
            "(in a file in ~/.config/dask, or in the environment as "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...__TLS__CLIENT__CERT and "
            "...__TLS__CLIENT__KEY)."
        )


@contextmanager
def _start_cluster(where: ClusterOptions) -> Iterator[Any]:
    """Start a local cluster, of one worker per core unless given; yield its client."""
    import distributed
    from dask.system import CPU_COUNT

    class IgnoreInterrupts(distributed.WorkerPlugin):  # type: ignore[misc]
        """Lets workers ignore Ctrl-C: the program closes them cleanly."""

        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    started = ExitStack()
    try:
        # A cluster that is only half started cannot be closed cleanly.
        with held_interrupts():
            cluster = distributed.LocalCluster(
                n_workers=where.workers or CPU_COUNT,
                threads_per_worker=where.threads_per_worker,
                memory_limit=where.memory_limit,
                # With None Dask would ask for port 8787, and warn where it is taken.
                dashboard_address=where.dashboard or "127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
            started.enter_context(cluster)
            client = started.enter_context(distributed.Client(cluster))
            client.register_plugin(IgnoreInterrupts())
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
