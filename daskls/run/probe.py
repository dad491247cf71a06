"""Whether workers see the store and the data of a fit; blind workers are excluded from the fit."""

import os
import socket
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from daskls.errors import StoreError
from daskls.run.client import current_client
from daskls.run.patience import give_back, tell_workers
from daskls.run.workers import ask_workers, check_limit, find_running, wait_for_worker
from daskls.sources.door import open_source
from daskls.store.artifacts import Location, is_bucket, open_store


@dataclass(frozen=True)
class Marks:
    """What a worker must see: what the client keeps in the store, and the paths of the data."""

    store: str
    probe: str
    data: tuple[str, ...]

    def unseen(self) -> str | None:
        """Return the first that this process does not see, or None: the store, or a path."""
        try:
            open_store(self.store).read(self.probe, 0)
        except StoreError as error:
            # Of a folder it is enough that it is not there; a bucket says what is wrong.
            return f"{self.store} ({error})" if is_bucket(self.store) else self.store
        return next((path for path in self.data if not os.path.exists(path)), None)


@dataclass(eq=False)
class Sight:
    """The marks of a fit, and the workers that do not see them."""

    marks: Marks
    client: Any
    blind: set[str] = field(default_factory=set)

    def allowed(self) -> list[str] | None:
        """Return the workers that tasks may run on; None: any."""
        if not self.blind:
            return None
        return [w for w in find_running(self.client) if w not in self.blind]

    def look(self) -> list[str]:
        """Return, and note, newly found workers that do not see all, with their hosts.

        Raises
        ------
        StoreError : when no worker sees all, or the client does not
        """
        answers = ask_workers(self.client, find_unseen, self.marks)
        blind = {w: answer for w, answer in answers.items() if answer is not None}
        new = [self.describe(w, *blind[w]) for w in blind if w not in self.blind]
        self.blind |= blind.keys()
        if new and len(blind) == len(answers):
            raise self.error(new)
        return new

    def describe(self, worker: str, host: str, path: str) -> str:
        """Name a worker and what it does not see."""
        return f"{worker} on {host} cannot read {path}"

    def error(self, blind: list[str]) -> StoreError:
        """Return the error that names blind workers."""
        # The client made the probe: if it does not see it either, something removed it.
        if self.marks.unseen() is not None:
            return StoreError(
                f"The store {self.marks.store} or the data ({self.marks.unseen()}) was removed "
                "while a fit used it. Fit again, and let nothing remove it."
            )
        return StoreError(
            f"{len(blind)} worker(s) and the client share no such path: {blind[0]}. Keep the "
            "data, and store= (or Dask's temporary-directory), in a folder that all of them share."
        )

    def exclude_blind(self) -> None:
        """Find workers that do not see all, while others do; warn of them.

        Raises
        ------
        StoreError : as `look`
        """
        for worker in self.look():
            warnings.warn(
                f"The worker {worker}; its tasks go to others. Stop it, or let it share the path.",
                UserWarning,
                stacklevel=2,
            )


def find_unseen(marks: Marks) -> tuple[str, str] | None:
    """Return this worker's host and the first path that it does not see, or None."""
    path = marks.unseen()
    return None if path is None else (socket.gethostname(), path)


# Of the context, not of the process: fits in several threads have different stores.
_sight: ContextVar[Sight | None] = ContextVar("_sight", default=None)


def current_sight() -> Sight | None:
    """Return the sight of the fit that this thread runs, if its tasks run on a cluster."""
    return _sight.get()


@contextmanager
def shared_with_workers(
    store: Location, sources: tuple[Any, ...], client: Any = None
) -> Iterator[None]:
    """Check that every worker sees the store and the data; tasks check it again while this lasts.

    Parameters
    ----------
    store : path, URL or Backend. The model's; made if it does not exist.
    sources : X, y and weights, or handles on them: those that are on Zarr count
    client : distributed client, or None for the current scheduler

    Raises
    ------
    StoreError : when a worker does not see them
    MemoryPlanError : when a worker is too small to load what tasks need
    """
    client = current_client(client)
    shared = open_store(store)
    shared.make()
    if client is None:
        yield
        return
    given = (open_source(source) for source in sources if source is not None)
    data = tuple(path for path in (source.local_path for source in given) if path is not None)
    probe = f".probe-{uuid.uuid4().hex}"
    marks = Marks(shared.where(), probe, data)
    shared.put(probe, b"")
    sight = Sight(marks, client)
    token = _sight.set(sight)
    try:
        # First, as to load daskls for an answer would kill a worker that is too small.
        for address, worker in wait_for_worker(client).items():
            check_limit(worker["memory_limit"], f"The worker {address} has")
        blind = sight.look()
        if blind:
            raise sight.error(blind)
        yield
        tell_workers(client, give_back)
    finally:
        _sight.reset(token)
        # A store that was removed meanwhile has no probe either.
        shared.drop(probe)


def guarded(task: Callable[..., Any]) -> Callable[..., Any]:
    """Return the task, which on a cluster first checks that its worker sees the fit's files."""
    sight = _sight.get()
    return task if sight is None else Guarded(task, sight.marks)


class Guarded:
    """A task that does not begin on a worker which joined the fit and sees another disk.

    There it would find no store, or begin a new one that is never read.
    """

    def __init__(self, task: Callable[..., Any], marks: Marks) -> None:
        self.task, self.marks = task, marks
        self.__name__ = task.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task, if its worker sees what the fit writes."""
        path = self.marks.unseen()
        if path is not None:
            raise StoreError(
                f"The worker {_own_address()} on {socket.gethostname()} cannot read {path}. Keep "
                "the data, and store= (or Dask's temporary-directory), in a folder that all "
                "workers share."
            )
        return self.task(*args, **kwargs)


def _own_address() -> str:
    """Return the address of the worker that runs this task."""
    from distributed import get_worker

    return str(get_worker().address)
