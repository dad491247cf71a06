"""The progress of a fit: timed stages, and the share of each that is done, by the store."""

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

# Seconds between two reports: short enough for a moving bar, long enough for a shared file system.
PROGRESS_INTERVAL_S = 0.25
# At least this many times the CPU time of a report passes before the next one.
REPORT_SPACING = 200
# The text that people read for each stage; it names what is counted.
STAGE_LABELS = {
    "sample": "sampling blocks",
    "regions": "collecting blocks of some regions",
    "scale": "choosing the scale of features",
    "regroup": "regrouping blocks",
    "merge": "merging blocks",
    "gather": "gathering rows",
    "link": "linking near rows",
    "select": "choosing parameters",
    "cover": "covering rows",
    "draw": "drawing rows",
    "subsamples": "training subsamples",
    "search": "training samples",
    "train": "training cells",
    "calibrate": "fitting probabilities",
    "threshold": "scoring held-out rows",
    "intervals": "predicting held-out rows",
    "predict": "predicting blocks",
    "order": "ordering answers of blocks",
    "convert": "converting rows",
    "write": "writing rows",
}


@dataclass(frozen=True)
class Progress:
    """The progress of a stage, in blocks or cells; ``done`` is None where it is unknown."""

    stage: str
    done: int | None
    total: int


# Called with the partition, the sampled rows that define it, and the names of their features.
OnCut = Callable[["Partition", Reals, Sequence[str]], None]


class StageClock:
    """Times the stages of a fit, in ``seconds`` by name, and reports their progress."""

    def __init__(
        self, on_progress: Callable[[Progress], None] | None, on_cut: OnCut | None = None
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._on_progress = on_progress
        self._on_cut = on_cut

    def report_cut(self, partition: "Partition", X: Reals, names: Sequence[str]) -> None:
        if self._on_cut is not None:
            self._on_cut(partition, X, names)

    @contextmanager
    def stage(self, name: str, total: int, count: Callable[[], int] | None) -> Iterator[None]:
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
    """Report a stage's progress from a thread while the body runs, if `on_progress` is given.

    `count` counts what is done by the keys in the store; None if the stage leaves none.
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
            # If the store is gone, the work itself will raise the error.
            with suppress(OSError, StoreError):
                report(Progress(stage, count() if count else None, total))
            # Counting many bundles takes time.
            wait = max(PROGRESS_INTERVAL_S, REPORT_SPACING * (time.thread_time() - began))

    report(Progress(stage, count() if count else None, total))
    thread = threading.Thread(target=poll, name=f"daskls-{stage}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        # Joined, so that no late count follows the last report.
        thread.join()
    report(Progress(stage, total, total))


def format_seconds(seconds: float) -> str:
    """Format a time for people.

    >>> format_seconds(4.2), format_seconds(75), format_seconds(3720)
    ('4 s', '1 min 15 s', '1 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
