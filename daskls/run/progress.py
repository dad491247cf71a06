"""Progress of a stage, seen from the store: it works with every scheduler."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from daskls.errors import StoreError

__all__ = ["Progress", "StageClock", "watch"]

PROGRESS_INTERVAL_S = 0.25


@dataclass(frozen=True)
class Progress:
    """``done`` of ``total`` blocks or cells of a stage; ``done`` is None while it is unknown."""

    stage: str
    done: int | None
    total: int


class StageClock:
    """Seconds that each stage took, in ``seconds``; hands each stage on to `watch`."""

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self.seconds: dict[str, float] = {}
        self._on_progress = on_progress

    @contextmanager
    def stage(self, name: str, total: int, count: Callable[[], int] | None) -> Iterator[None]:
        """Time one stage and report its progress; see `watch`."""
        started = time.perf_counter()
        with watch(name, total, count, self._on_progress):
            yield
        self.seconds[name] = time.perf_counter() - started


@contextmanager
def watch(
    stage: str,
    total: int,
    count: Callable[[], int] | None,
    on_progress: Callable[[Progress], None] | None,
) -> Iterator[None]:
    """Report a stage's progress while the body runs; nothing is reported if nobody listens.

    Parameters
    ----------
    stage : str
    total : int. Blocks or cells of the stage.
    count : counts what is done, from the markers in the store; None if the stage leaves none
    on_progress : called from a thread, and at the end with everything done
    """
    if on_progress is None:
        yield
        return
    report = on_progress
    stopped = threading.Event()

    def poll() -> None:
        while not stopped.wait(PROGRESS_INTERVAL_S):
            # Of a store that is gone nothing can be counted; the work itself says so.
            with suppress(OSError, StoreError):
                report(Progress(stage, count() if count else None, total))

    report(Progress(stage, count() if count else None, total))
    thread = threading.Thread(target=poll, name=f"daskls-{stage}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        # No late count may follow the last report.
        thread.join()
    report(Progress(stage, total, total))
