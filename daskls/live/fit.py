"""The live view of one fit: a thread that reads its store at intervals and updates the displays."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from daskls.errors import StoreError
from daskls.live.map import draw_map
from daskls.live.record import Bundles, FitRecord, count_leaves
from daskls.live.view import fit_html
from daskls.partition.base import Partition
from daskls.records import Reals, SolverSpec
from daskls.run.progress import REPORT_SPACING, Progress
from daskls.store.models import BundleModels, finished_bundles
from daskls.store.objects import Location

log = logging.getLogger("daskls")
# Seconds between two updates, at least.
VIEW_INTERVAL_S = 0.5


class LiveFit:
    """Shows the progress of a fit; an error in a display drops it and does not fail the fit.

    `show` of a display is called repeatedly from one thread, and once after the end; `reads` is
    whether it needs the results in the store.
    """

    def __init__(
        self, record: FitRecord, store: Location, displays: list[Any], say: Callable[[str], None]
    ) -> None:
        self.record, self._store, self._displays, self._say = record, store, displays, say
        self._cut: tuple[Partition, Reals, Sequence[str]] | None = None
        self._has_cells = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="daskls-live", daemon=True)

    def on_progress(self, progress: Progress) -> None:
        self.record.advance(progress.stage, progress.done, progress.total, time.time())

    def on_cut(self, partition: Partition, X: Reals, names: Sequence[str]) -> None:
        self._cut = partition, X, names
        self._has_cells = True

    def __enter__(self) -> "LiveFit":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self.record.end("finished" if kind is None else "stopped", time.time())
        self._try(self._draw)
        self._update()

    def _watch(self) -> None:
        wait = VIEW_INTERVAL_S
        while not self._stopped.wait(wait):
            # Not timed below: the map is drawn only once.
            self._try(self._draw)
            began = time.thread_time()
            self._update()
            # Costly updates come less often, so that they take a fixed share of a core at most.
            wait = max(VIEW_INTERVAL_S, REPORT_SPACING * (time.thread_time() - began))

    def _update(self) -> None:
        self._try(self._read)
        for display in list(self._displays):
            if not self._try(partial(display.show, self.record)):
                self._displays.remove(display)

    def _try(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except Exception as error:
            # Any error: no fit may fail because of its view.
            log.debug("a part of the live view failed", exc_info=True)
            self._say(f"Live view: {error or type(error).__name__}. The fit continues without it.")
            return False
        return True

    def _draw(self) -> None:
        cut, self._cut = self._cut, None
        if cut is not None and self._displays:
            self.record.set_map(draw_map(*cut))

    def _read(self) -> None:
        if self._has_cells and any(display.reads for display in self._displays):
            for bundle in read_bundles(self._store, set(self.record.known_bundles())):
                self.record.add_bundle(*bundle)


def read_bundles(store: Location, known: set[tuple[int, int]]) -> Bundles:
    """Return first leaf, last leaf and counts of each finished bundle that is not in ``known``."""
    bundles = []
    for first, last in finished_bundles(store):
        if (first, last) not in known:
            # The bundle may be removed while it is read; real damage is reported by the fit.
            with suppress(OSError, StoreError):
                table = BundleModels(store, first, last, SolverSpec()).report()
                bundles.append((first, last, count_leaves(table)))
    return bundles


class Notebook:
    """A display below the cell of a notebook in whose thread it is made."""

    reads = True

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._place = display(HTML(""), display_id=True)

    def show(self, record: FitRecord) -> None:
        self._place.update(self._html(fit_html(record, time.time())))
