"""The fits that a scheduler's page shows; needs no bokeh, so that clients can import it."""

import time
from typing import Any
from weakref import WeakKeyDictionary

from daskls.live.record import FitRecord

PATH = "/daskls"


class Board:
    def __init__(self) -> None:
        self.fits: dict[str, tuple[FitRecord, str]] = {}
        self.last: FitRecord | None = None

    @property
    def records(self) -> list[FitRecord]:
        """The fits to show: all that run, else the last one."""
        running = [record for record, _ in self.fits.values()]
        return running or ([] if self.last is None else [self.last])

    def take(self, message: dict[str, Any]) -> None:
        """Record a message from a worker or a client; messages about other fits are ignored."""
        for root, first, last, counts in message.get("bundles", ()):
            if root in self.fits:
                self.fits[root][0].add_bundle(first, last, counts)
        for root, *stage in message.get("stages", ()):
            name, done, total, seconds = stage
            if root in self.fits:
                self.fits[root][0].advance(name, done, total, time.time(), seconds)

    def end(self, fit: str, how: str) -> None:
        if fit in self.fits:
            self.last, _ = self.fits.pop(fit)
            self.last.end(how, time.time())


_boards: "WeakKeyDictionary[Any, Board]" = WeakKeyDictionary()


def board_of(scheduler: Any) -> Board:
    """Return a scheduler's board, the same one at every call."""
    return _boards.setdefault(scheduler, Board())
