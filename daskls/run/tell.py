"""Telling a cluster's scheduler what its workers have trained: counts of leaves, no rows.

A worker sends at most one message a second to one topic, of which a scheduler keeps a bounded
number of messages.
"""

import threading
import time
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from daskls.records import CellReport, Mask, Table
from daskls.run.client import in_task

__all__ = ["COUNTED", "TELL_S", "TOPIC", "LeafCounts", "count_leaves", "find_pure", "tell_cells"]

TOPIC = "daskls"
# Seconds between two messages of one worker, or of a client.
TELL_S = 1.0
# Leaf by leaf: its number, its cells, their rows, those of cells whose error was measured, those of
# cells of one class or one number, and the rows that were wrong, or sums of squared errors.
COUNTED = ("leaf", "cells", "rows", "measured", "pure", "wrong")
LeafCounts = list[list[float]]


def count_leaves(table: Table) -> LeafCounts:
    """Return the sums of each column in `COUNTED` over the cells of each leaf: a list a name."""
    leaves, own = np.unique(table["leaf"], return_inverse=True)
    rows, errors = table["n_rows"].astype(np.float64), table["validation_error"]
    weights = (
        np.ones(len(rows)),
        rows,
        rows * np.isfinite(errors),
        rows * find_pure(table),
        rows * np.nan_to_num(errors),
    )
    counted = (np.bincount(own, weights=weight, minlength=len(leaves)) for weight in weights)
    return [leaves.tolist(), *(numbers.tolist() for numbers in counted)]


def find_pure(table: Table) -> Mask:
    """Return which cells hold one class, or one number, and answer it without an error.

    A regressor counts no classes: of its cells all but those of one number are trained.
    """
    pure: Mask = np.where(table["n_classes"] == 0, table["n_trained"] == 0, table["n_classes"] == 1)
    return pure


def tell_cells(root: str, first: int, last: int, reports: Iterable[CellReport]) -> None:
    """Tell the scheduler of a bundle that this task has written; nothing outside of a cluster.

    Parameters
    ----------
    root : str. The store of the fit, by which listeners know it.
    first, last : int. The bundle.
    reports : iterable of CellReport
    """
    if not in_task():
        return
    from distributed import get_worker

    table = np.array([report.as_tuple() for report in reports], CellReport.dtype())
    _teller_of(get_worker()).tell([root, first, last, count_leaves(table)])


class _Teller:
    """The messages of one worker that wait for their second."""

    def __init__(self, worker: Any) -> None:
        # A value that held its key would keep the worker.
        self._worker = ref(worker)
        self._loop = worker.loop
        self._lock = threading.Lock()
        self._waiting: list[Any] = []
        self._is_due = False
        self._sent = -TELL_S

    def tell(self, message: Any) -> None:
        """Send a message with the next ones, as soon as the last were sent a second ago."""
        with self._lock:
            self._waiting.append(message)
            if self._is_due:
                return
            self._is_due = True
            wait = max(self._sent + TELL_S - time.monotonic(), 0.0)
        self._loop.add_callback(self._loop.call_later, wait, self.flush)

    def flush(self) -> None:
        """Send what waits, on the worker's loop."""
        with self._lock:
            messages, self._waiting, self._is_due = self._waiting, [], False
            self._sent = time.monotonic()
        worker = self._worker()
        if worker is not None:
            worker.log_event(TOPIC, {"bundles": messages})


_tellers: "WeakKeyDictionary[Any, _Teller]" = WeakKeyDictionary()
_tellers_lock = threading.Lock()


def _teller_of(worker: Any) -> _Teller:
    """Return the teller of a worker; several workers may share a process."""
    with _tellers_lock:
        return _tellers.setdefault(worker, _Teller(worker))
