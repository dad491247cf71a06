"""Asking the workers of a cluster, beside their tasks; workers lost meanwhile are no error."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from daskls._version import __version__
from daskls.errors import ClusterError
from daskls.run.client import current_client
from daskls.run.patience import Patience, ask_scheduler, losses_told, patience_s

__all__ = ["ask_workers", "find_running", "losses_made_good", "wait_for_worker"]

log = logging.getLogger("daskls")

# Seconds that a worker has for its answer: its first one waits for its imports.
WORKER_ANSWER_S = 30.0
# Seconds between two looks for a worker.
WORKER_LOOK_S = 0.2


def wait_for_worker(client: Any) -> dict[str, dict[str, Any]]:
    """Return the scheduler's description of each running worker, once there is one.

    Raises
    ------
    ClusterError : when none comes in time, or all stay paused
    """
    patience = Patience(client)
    wanted: Any = None
    while not (running := find_running(client)):
        # Some clusters start workers only where there is a task for them.
        with losses_told(client):
            wanted = wanted or client.submit(int, pure=False)
        patience.check()
        time.sleep(WORKER_LOOK_S)
    return running


def find_running(client: Any) -> dict[str, dict[str, Any]]:
    """Return the scheduler's description of each running worker, by address."""
    found = ask_scheduler(client)
    workers = {} if found is None else found[0]
    return {w: at for w, at in workers.items() if at["status"] == "running"}


@contextmanager
def losses_made_good(client: Any) -> Iterator[None]:
    """Log that all is well where a fit ended well though workers were lost.

    Distributed logs each loss, some as errors, and not what became of it.
    """
    client = current_client(client)
    before = _addresses(client)
    yield
    after = _addresses(client)
    lost = before - after
    # A scheduler that does not answer tells nothing.
    if after and lost:
        log.warning(
            "%d of %d worker(s) left the cluster during the fit (%s first): what they had not "
            "finished ran again, and the model is the same. Nothing is to be done.",
            len(lost),
            len(before),
            min(lost),
        )


def _addresses(client: Any) -> set[str]:
    """Return the addresses of a client's workers; none where there is no client, or no answer."""
    found = None if client is None else ask_scheduler(client)
    return set() if found is None else set(found[0])


def ask_workers(client: Any, question: Callable[..., Any], *args: Any) -> dict[str, Any]:
    """Return the result of ``question(*args)`` in each running worker, by address.

    Workers that are lost before they answer are left out; where all are, others are waited for.

    Parameters
    ----------
    client : distributed client
    question : function of a module. It runs beside the worker's tasks, so it must be quick.
    args : its arguments

    Raises
    ------
    ClusterError : when no worker answers in time, or one cannot import daskls
    """
    deadline = time.monotonic() + patience_s()
    while True:
        workers = list(wait_for_worker(client))
        with losses_told(client):
            replies = client.sync(_ask_all, client, workers, question, args)
        for address, reply in replies.items():
            # Unpickling the question fails; the scheduler hands its text on.
            if isinstance(reply, Exception) and "No module named" in str(reply):
                raise ClusterError(
                    f"The worker {address} cannot import daskls ({reply}). Install daskls "
                    f"{__version__} and what it needs on every worker, or stop that one."
                )
            if isinstance(reply, Exception) and not isinstance(reply, (OSError, TimeoutError)):
                raise reply
        answers = {w: r for w, r in replies.items() if not isinstance(r, Exception)}
        if answers:
            return answers
        if time.monotonic() > deadline:
            raise ClusterError(
                f"None of {len(workers)} worker(s), {workers[0]} first, answered within "
                f"{patience_s():g} s (Dask's setting daskls.patience). See whether they still run."
            )


async def _ask_all(
    client: Any, workers: list[str], question: Callable[..., Any], args: tuple[Any, ...]
) -> dict[str, Any]:
    """Ask all workers at once; an answer is an exception where none came."""

    async def ask(address: str) -> Any:
        # One call a worker: a silent one costs its own answer, not those of the others.
        asked = client.run(question, *args, workers=[address], on_error="return", asynchronous=True)
        try:
            found = await asyncio.wait_for(asked, min(WORKER_ANSWER_S, patience_s()))
        except (OSError, TimeoutError) as error:
            return error
        return found[address]

    return dict(zip(workers, await asyncio.gather(*map(ask, workers)), strict=True))
