"""The time that a fit has left: as its bill expects of each stage, corrected by what they took."""

import time
from collections.abc import Sequence

__all__ = ["Expectation"]

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
