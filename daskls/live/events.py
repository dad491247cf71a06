"""Events about trained cells, which workers send to the scheduler for its page."""

import threading
import time
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from daskls.cluster import in_task
from daskls.records import CellReport, Mask, Table

# The topic of events on the scheduler.
TOPIC = "daskls"
# Seconds between two events of one worker, or of a client.
EVENT_INTERVAL_S = 1.0
# Per leaf: its number, its cells, their rows, the rows of cells whose error was measured, those of
# cells of one class or one number, and the rows that were wrong, or sums of squared errors.
COUNTED = ("leaf", "cells", "rows", "measured", "pure", "wrong")
# One list per name in `COUNTED`, each with one value per leaf.
LeafCounts = list[list[float]]


def report_cells(root: str, first: int, last: int, reports: Iterable[CellReport]) -> None:
    """Report a bundle that this task has written to the scheduler, under the fit's store."""
    if not in_task():
        return
    from distributed import get_worker

    table = np.array([report.as_tuple() for report in reports], CellReport.dtype())
    _sender_of(get_worker()).send([root, first, last, count_leaves(table)])


def count_leaves(table: Table) -> LeafCounts:
    leaves, own = np.unique(table["leaf"], return_inverse=True)
    rows, errors = table["n_rows"].astype(np.float64), table["validation_error"]
    weights = (
        np.ones(len(rows)),
        rows,
        rows * np.isfinite(errors),
        rows * find_single_class(table),
        rows * np.nan_to_num(errors),
    )
    counted = (np.bincount(own, weights=weight, minlength=len(leaves)) for weight in weights)
    return [leaves.tolist(), *(numbers.tolist() for numbers in counted)]


def find_single_class(table: Table) -> Mask:
    """Return which cells hold a single class or number, which they predict without an error."""
    pure: Mask = np.where(table["n_classes"] == 0, table["n_trained"] == 0, table["n_classes"] == 1)
    return pure


class _Sender:
    """Collects the messages of one worker and sends them in one event, at most once per second."""

    def __init__(self, worker: Any) -> None:
        # A weak reference, as the worker is the key in `_senders`: a strong one in the value would
        # keep it alive.
        self._worker = ref(worker)
        self._loop = worker.loop
        self._lock = threading.Lock()
        self._waiting: list[Any] = []
        self._is_due = False
        self._sent = -EVENT_INTERVAL_S

    def send(self, message: Any) -> None:
        with self._lock:
            self._waiting.append(message)
            if self._is_due:
                return
            self._is_due = True
            wait = max(self._sent + EVENT_INTERVAL_S - time.monotonic(), 0.0)
        self._loop.add_callback(self._loop.call_later, wait, self.flush)

    def flush(self) -> None:
        """Send all messages that wait; runs on the worker's loop."""
        with self._lock:
            messages, self._waiting, self._is_due = self._waiting, [], False
            self._sent = time.monotonic()
        worker = self._worker()
        if worker is not None:
            worker.log_event(TOPIC, {"bundles": messages})


# By worker, as several workers may share a process.
_senders: "WeakKeyDictionary[Any, _Sender]" = WeakKeyDictionary()
_senders_lock = threading.Lock()


def _sender_of(worker: Any) -> _Sender:
    with _senders_lock:
        return _senders.setdefault(worker, _Sender(worker))
