"""Progress of a stage, seen from the store: it works with every scheduler.

The time that a fit has left: as its bill expects of each stage, corrected by what they took.
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

# What stages took tells how much faster or slower all is, once so many seconds of it were expected;
# within bounds, as one odd stage says little of the others.
KNOWN_S, MOST_OFF = 2.0, 4.0


class Expectation:
    """The expected seconds of stages in their order, of which some are over.

    Parameters
    ----------
    stages : sequence of (str, float). Names and seconds; a name may come again.
    now : float, or None for the present. Seconds on `time.perf_counter`'s clock.
    """

    def __init__(self, stages: Sequence[tuple[str, float]], now: float | None = None) -> None:
        self._stages = list(stages)
        # The stage that runs, and since when; before the first all is left.
        self._at, self._began = -1, time.perf_counter() if now is None else now
        self._expected_s = self._taken_s = 0.0

    def begin(self, name: str, now: float) -> None:
        """Note that a stage begins, and that those before it are over; others are not known."""
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
        """How many times what is expected the stages take."""
        return _factor(self._expected_s, self._taken_s)

    def left_s(self, share: float | None, now: float) -> float:
        """Return the seconds that are left of all stages.

        Parameters
        ----------
        share : float, or None where it is not known. Of the running stage that is done.
        now : float
        """
        following = sum(seconds for _, seconds in self._stages[self._at + 1 :])
        if self._at < 0:
            return following
        taken, factor = now - self._began, self.factor
        own = factor * self._stages[self._at][1] - taken
        if own < 0.0:
            # It takes longer than was expected: so will the others.
            expected_s = self._expected_s + self._stages[self._at][1]
            own, factor = 0.0, max(_factor(expected_s, self._taken_s + taken), factor)
        after = factor * following
        # The last stage is most of a fit, and counts what is left of it: the more is done, the more
        # its own pace says.
        if share and 0.0 < share <= 1.0 and self._at == len(self._stages) - 1:
            by_pace = taken * (1.0 - share) / share
            own = share * by_pace + (1.0 - share) * own
        return after + own


def _factor(expected_s: float, taken_s: float) -> float:
    """Return how many times what is expected stages take, by those that are over."""
    if expected_s < KNOWN_S:
        return 1.0
    return min(max(taken_s / expected_s, 1 / MOST_OFF), MOST_OFF)


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
    "intervals": "answering held-out rows",
    "predict": "predicting blocks",
    "convert": "converting rows",
    "write": "writing rows",
}
# Called with the partition, the sampled rows that it was cut by, and the names of their features.
OnCut = Callable[["Partition", Reals, Sequence[str]], None]


@dataclass(frozen=True)
class Progress:
    """``done`` of ``total`` blocks or cells of a stage; ``done`` is None while it is unknown.

    ``left_s`` are the expected seconds until the fit ends, where its bill was made.
    """

    stage: str
    done: int | None
    total: int
    left_s: float | None = None


class StageClock:
    """Seconds that each stage took, in ``seconds``; hands each stage on to `watch`."""

    def __init__(
        self, on_progress: Callable[[Progress], None] | None, on_cut: OnCut | None = None
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._on_progress = on_progress
        self._on_cut = on_cut
        self._expected: Expectation | None = None

    @property
    def is_watched(self) -> bool:
        """Whether anyone sees the progress."""
        return self._on_progress is not None

    def expect(self, stages: Sequence[tuple[str, float]]) -> None:
        """Take what a bill expects of the stages that are to come: names and seconds."""
        self._expected = Expectation(stages)

    def _report(self, first_done: int | None) -> Callable[[Progress], None] | None:
        """Return what hands progress on, with the seconds that are left where they are expected."""
        expected, report = self._expected, self._on_progress
        if expected is None or report is None:
            return report

        def hand_on(progress: Progress) -> None:
            share = _share_of(progress, first_done)
            left_s = expected.left_s(share, time.perf_counter())
            report(replace(progress, left_s=left_s))

        return hand_on

    def tell_cut(self, partition: "Partition", X: Reals, names: Sequence[str]) -> None:
        """Pass the partition to the listener, which draws it."""
        if self._on_cut is not None:
            self._on_cut(partition, X, names)

    @contextmanager
    def stage(self, name: str, total: int, count: Callable[[], int] | None) -> Iterator[None]:
        """Time one stage and report its progress; see `watch`."""
        started = time.perf_counter()
        if self._expected is not None:
            self._expected.begin(name, started)
        # What an earlier fit had done tells nothing of this one's pace.
        first_done = count() if count is not None and self._expected is not None else None
        with watch(name, total, count, self._report(first_done)):
            yield
        self.seconds[name] = time.perf_counter() - started


def _share_of(progress: Progress, first_done: int | None) -> float | None:
    """Return how much of a stage this fit has done of what it found to be done."""
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
