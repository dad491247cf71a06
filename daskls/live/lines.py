"""Progress as plain lines of text, where nothing better can be shown."""

import time
from collections.abc import Callable

from daskls.live.record import FitRecord, Stage
from daskls.plan.bill import format_seconds

# Seconds between two lines about one stage.
LINE_S = 10.0


class Lines:
    """A front that writes a line when a stage begins, every `LINE_S` seconds, and when it ends.

    Parameters
    ----------
    write : called with each line
    """

    draws, reads = False, True

    def __init__(self, write: Callable[[str], None] = print) -> None:
        self._write = write
        self._shown: dict[str, tuple[float, bool]] = {}
        self._is_titled = self._is_linked = False

    def show(self, record: FitRecord) -> None:
        """Implement `Front.show`."""
        now = time.time()
        if not self._is_titled:
            self._is_titled = True
            self._write(str(record.header))
        if record.link is not None and not self._is_linked:
            self._is_linked = True
            self._write(f"On the dashboard: {record.link}")
        for stage in list(record.stages.values()):
            shown, was_ended = self._shown.get(stage.name, (-LINE_S, False))
            is_ended = stage.ended is not None
            if (is_ended and not was_ended) or (not is_ended and now - shown >= LINE_S):
                self._shown[stage.name] = now, is_ended
                self._write(format_line(record, stage, now))


def format_line(record: FitRecord, stage: Stage, now: float) -> str:
    """Return one line about a stage.

    >>> from daskls.live.record import FitRecord, Header
    >>> record = FitRecord(Header("VoronoiSVC", 1000, 2))
    >>> record.advance("train", 0, 40, now=0.0)
    >>> record.advance("train", 10, 40, now=5.0)
    >>> format_line(record, record.stages["train"], now=5.0)
    'training cells: 10 of 40, 5 s, 15 s left'
    """
    counted = "" if stage.done is None else f"{stage.done:,} of "
    parts = [f"{counted}{stage.total:,}", format_seconds(stage.seconds(now))]
    left, in_all = stage.left_s(now), record.left_in_all_s(now)
    if in_all is not None:
        parts.append(f"{format_seconds(in_all)} left in all")
    elif left:
        parts.append(f"{format_seconds(left)} left")
    if stage.name == "train" and record.error is not None:
        mean = record.measure.format_mean(record.error)
        parts.append(f"{record.measure.mean_name} so far {mean}")
    return f"{stage.label}: {', '.join(parts)}"
