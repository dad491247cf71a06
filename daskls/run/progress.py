"""Progress of a stage, seen from the store: it works with every scheduler."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from daskls.errors import StoreError
from daskls.records import Reals

if TYPE_CHECKING:
    from daskls.partition.base import Partition

__all__ = ["SPARED", "STAGE_LABELS", "OnCut", "Progress", "StageClock", "watch"]

# Often enough for a bar that moves, seldom enough for a shared file system.
PROGRESS_INTERVAL_S = 0.25
# How many times the processor time of a look passes before the next.
SPARED = 200
# What a person reads of each stage, and in what it is counted.
STAGE_LABELS = {
    "sample": "sampling blocks",
    "regions": "collecting blocks of some regions",
    "scale": "choosing the scale of features",
    "regroup": "regrouping blocks",
    "gather": "gathering rows",
    "select": "choosing parameters",
    "cover": "covering rows",
    "draw": "drawing rows",
    "subsamples": "training subsamples",
    "search": "training samples",
    "train": "training cells",
    "calibrate": "fitting probabilities",
    "predict": "predicting blocks",
    "convert": "converting rows",
    "write": "writing rows",
}
# Called with the partition, the sampled rows that it was cut by, and the names of their features.
OnCut = Callable[["Partition", Reals, Sequence[str]], None]


@dataclass(frozen=True)
class Progress:
    """``done`` of ``total`` blocks or cells of a stage; ``done`` is None while it is unknown."""

    stage: str
    done: int | None
    total: int


class StageClock:
    """Seconds that each stage took, in ``seconds``; hands each stage on to `watch`."""

    def __init__(
        self, on_progress: Callable[[Progress], None] | None, on_cut: OnCut | None = None
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._on_progress = on_progress
        self._on_cut = on_cut

    def tell_cut(self, partition: "Partition", X: Reals, names: Sequence[str]) -> None:
        """Pass the partition to the listener, which draws it."""
        if self._on_cut is not None:
            self._on_cut(partition, X, names)

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
        wait = PROGRESS_INTERVAL_S
        while not stopped.wait(wait):
            began = time.thread_time()
            # Of a store that is gone nothing can be counted; the work itself says so.
            with suppress(OSError, StoreError):
                report(Progress(stage, count() if count else None, total))
            # Of many bundles each look takes its time.
            wait = max(PROGRESS_INTERVAL_S, SPARED * (time.thread_time() - began))

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
