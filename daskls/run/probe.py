"""Checks that workers see the store and the data of a fit; blind workers get none of its tasks.

The client puts a probe, an empty file, into the store; a worker that cannot read it is blind.
"""

import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from daskls.errors import StoreError, warn_user
from daskls.run.blas import undisturbed
from daskls.run.client import current_client
from daskls.run.patience import ask_to_give_back
from daskls.run.workers import ask_workers, check_limit, find_running, wait_for_worker
from daskls.sources.door import open_source
from daskls.store.objects import Location, is_bucket, open_store

SHARE_FOLDER = (
    "Keep the data, and store= (or Dask's temporary-directory), in a folder that all workers share."
)


@dataclass(frozen=True)
class Marks:
    """What a worker must see: the store with the client's probe, and the paths of the data."""

    store: str
    probe: str
    data: tuple[str, ...]

    def unseen(self) -> str | None:
        try:
            open_store(self.store).read(self.probe, 0)
        except StoreError as error:
            # Of a folder the path says enough; for a bucket the error gives the reason.
            return f"{self.store} ({error})" if is_bucket(self.store) else self.store
        return next((path for path in self.data if not os.path.exists(path)), None)


@dataclass(eq=False)
class Visibility:
    marks: Marks
    client: Any
    blind: set[str] = field(default_factory=set)

    def allowed(self) -> list[str] | None:
        if not self.blind:
            return None
        return [w for w in find_running(self.client) if w not in self.blind]

    def find_new_blind(self) -> list[str]:
        """Add workers that turn out to be blind; describe each of them. StoreError if all are."""
        answers = ask_workers(self.client, find_unseen, self.marks)
        blind = {w: answer for w, answer in answers.items() if answer is not None}
        new = [
            f"{worker} on {host} cannot read {path}"
            for worker, (host, path) in blind.items()
            if worker not in self.blind
        ]
        self.blind |= blind.keys()
        if new and len(blind) == len(answers):
            raise self.error(new)
        return new

    def error(self, blind: list[str]) -> StoreError:
        # The client put the probe: if it cannot see it either, something removed it.
        gone = self.marks.unseen()
        if gone is not None:
            return StoreError(
                f"The store {self.marks.store} or the data ({gone}) was removed while "
                "a fit used it. Fit again, and let nothing remove it."
            )
        return StoreError(
            f"{len(blind)} worker(s) cannot see what the client sees: {blind[0]}. {SHARE_FOLDER}"
        )

    def exclude_blind(self) -> None:
        for worker in self.find_new_blind():
            warn_user(
                f"The worker {worker}; its tasks go to others. Stop it, or let it share the path.",
                UserWarning,
            )


def find_unseen(marks: Marks) -> tuple[str, str] | None:
    path = marks.unseen()
    return None if path is None else (socket.gethostname(), path)


# Per context, not per process, as fits in several threads have different stores.
_visibility: ContextVar[Visibility | None] = ContextVar("_visibility", default=None)


def current_visibility() -> Visibility | None:
    """Return the visibility of the fit in this thread; None if it runs without a cluster."""
    return _visibility.get()


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
    given = (open_source(source) for source in sources if source is not None)
    data = tuple(path for path in (source.local_path for source in given) if path is not None)
    probe = f".probe-{uuid.uuid4().hex}"
    marks = Marks(shared.where(), probe, data)
    shared.put(probe, b"")
    visibility = Visibility(marks, client)
    token = _visibility.set(visibility)
    try:
        # Before any question to the workers: loading daskls would kill a worker that is too small.
        for address, worker in wait_for_worker(client).items():
            check_limit(worker["memory_limit"], f"The worker {address} has")
        blind = visibility.find_new_blind()
        if blind:
            raise visibility.error(blind)
        yield
        ask_to_give_back(client)
    finally:
        _visibility.reset(token)
        # No error if the store was removed meanwhile, and the probe with it.
        shared.drop(probe)


class Guarded:
    """A task that is done again if it was disturbed; it refuses to start on a blind worker.

    A worker may join during a fit: there the task would find no store.
    """

    def __init__(self, task: Callable[..., Any]) -> None:
        visibility = _visibility.get()
        self.marks = None if visibility is None else visibility.marks
        self.task, self.__name__ = task, task.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        path = None if self.marks is None else self.marks.unseen()
        if path is not None:
            from distributed import get_worker

            raise StoreError(
                f"The worker {get_worker().address} on {socket.gethostname()} cannot read {path}. "
                f"{SHARE_FOLDER}"
            )
        return undisturbed(self.task)(*args, **kwargs)
