"""The progress of a fit: timed stages, the share that is done, and the expected time left.

What is done is counted from the store, which works with every scheduler.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from daskls.errors import StoreError
from daskls.records import Reals

if TYPE_CHECKING:
    from daskls.partition.base import Partition

# Finished stages correct the estimate for the others once they were expected to take this many
# seconds; by at most this factor, as one odd stage says little about the others.
KNOWN_S, MOST_OFF = 2.0, 4.0
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
    "convert": "converting rows",
    "write": "writing rows",
}


@dataclass(frozen=True)
class Progress:
    """The progress of a stage, in blocks or cells.

    ``done`` is None where it is unknown. ``left_s`` are the expected seconds until the fit ends;
    None where it has no bill.
    """

    stage: str
    done: int | None
    total: int
    left_s: float | None = None


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
        self._expected: Expectation | None = None

    @property
    def is_watched(self) -> bool:
        """Whether progress is reported to anyone."""
        return self._on_progress is not None

    def expect(self, stages: Sequence[tuple[str, float]]) -> None:
        """Set the stages to come, names and expected seconds, from a bill."""
        self._expected = Expectation(stages)

    def _report(self, first_done: int | None) -> Callable[[Progress], None] | None:
        """Return the listener; with a bill, one that adds the expected seconds left."""
        expected, report = self._expected, self._on_progress
        if expected is None or report is None:
            return report

        def hand_on(progress: Progress) -> None:
            share = _share_of(progress, first_done)
            left_s = expected.left_s(share, time.perf_counter())
            report(replace(progress, left_s=left_s))

        return hand_on

    def report_cut(self, partition: "Partition", X: Reals, names: Sequence[str]) -> None:
        """Pass the partition to the listener that draws it, if there is one."""
        if self._on_cut is not None:
            self._on_cut(partition, X, names)

    @contextmanager
    def stage(self, name: str, total: int, count: Callable[[], int] | None) -> Iterator[None]:
        """Time one stage and report its progress; see `watch`."""
        started = time.perf_counter()
        if self._expected is not None:
            self._expected.begin(name, started)
        # What an earlier fit has done is excluded, as it says nothing about the pace of this one.
        first_done = count() if count is not None and self._expected is not None else None
        with watch(name, total, count, self._report(first_done)):
            yield
        self.seconds[name] = time.perf_counter() - started


def _share_of(progress: Progress, first_done: int | None) -> float | None:
    """Return the share that is done of what a stage found to do; None where it is unknown."""
    if progress.done is None or first_done is None or first_done >= progress.total:
        return None
    return (progress.done - first_done) / (progress.total - first_done)


@contextmanager
def watch(
    stage: str,
    total: int,
    count: Callable[[], int] | None,
    on_progress: Callable[[Progress], None] | None,
) -> Iterator[None]:
    """Report a stage's progress while the body runs; do nothing without ``on_progress``.

    Parameters
    ----------
    stage : str
    total : int. Blocks or cells of the stage.
    count : counts what is done from markers in the store; None if the stage leaves none
    on_progress : called at the beginning, then from a thread, and at the end with ``total`` done
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


class Expectation:
    """The expected seconds of a fit's stages, corrected by what finished stages took.

    Parameters
    ----------
    stages : sequence of (str, float). Names and expected seconds in order; names may repeat.
    """

    def __init__(self, stages: Sequence[tuple[str, float]]) -> None:
        self._stages = list(stages)
        # The running stage, -1 before the first, and when it began.
        self._at, self._began = -1, 0.0
        self._expected_s = self._taken_s = 0.0

    def begin(self, name: str, now: float) -> None:
        """Record that a stage begins and that those before it are over; ignore unknown stages."""
        names = [own for own, _ in self._stages]
        if name not in names[self._at + 1 :]:
            return
        following = names.index(name, self._at + 1)
        if self._at >= 0:
            self._expected_s += sum(s for _, s in self._stages[self._at : following])
            self._taken_s += now - self._began
        self._at, self._began = following, now

    @property
    def factor(self) -> float:
        """The time that stages take, in units of the expected time."""
        return _factor(self._expected_s, self._taken_s)

    def left_s(self, share: float | None, now: float) -> float:
        """Return the expected seconds until all stages are over.

        ``share`` is the share of the running stage that is done; None: unknown.
        """
        following = sum(seconds for _, seconds in self._stages[self._at + 1 :])
        if self._at < 0:
            return following
        taken, factor = now - self._began, self.factor
        own = factor * self._stages[self._at][1] - taken
        if own < 0.0:
            # The running stage takes longer than expected, and so will the others.
            expected_s = self._expected_s + self._stages[self._at][1]
            own, factor = 0.0, max(_factor(expected_s, self._taken_s + taken), factor)
        after = factor * following
        # The last stage is most of a fit, and its progress is counted. Its own pace gets the more
        # weight the more of it is done.
        if share and 0.0 < share <= 1.0 and self._at == len(self._stages) - 1:
            by_pace = taken * (1.0 - share) / share
            own = share * by_pace + (1.0 - share) * own
        return after + own


def _factor(expected_s: float, taken_s: float) -> float:
    """Return the time that finished stages took, in units of the expected time."""
    if expected_s < KNOWN_S:
        return 1.0
    return min(max(taken_s / expected_s, 1 / MOST_OFF), MOST_OFF)
