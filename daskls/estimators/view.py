"""Displays of a fit: bars in a terminal, a widget or lines in a notebook, the dashboard's page.

Progress on a terminal or in a notebook.
"""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

import dask
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from daskls.plan.bill import format_seconds
from daskls.records import MeasuredAs
from daskls.run.client import current_client, in_task
from daskls.run.progress import STAGE_LABELS, OnCut, Progress
from daskls.store.backend import Backend

# No stage is called so.
WHOLE_FIT = ""


@contextmanager
def progress_bars(
    *, show: bool = True, console: Console | None = None
) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a listener that draws one bar a stage, with the time left; None if not shown."""
    if not show:
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Bars(*columns, console=console or Console(stderr=True)) as bars:

        def tell_all(left_s: float) -> None:
            """Show what is left of the whole, below its stages."""
            if WHOLE_FIT in tasks:
                bars.remove_task(tasks[WHOLE_FIT])
            told = f"the whole fit: {format_seconds(left_s)} left, expected"
            tasks[WHOLE_FIT] = bars.add_task(told, total=None)

        def listen(progress: Progress) -> None:
            if progress.stage not in tasks:
                label = STAGE_LABELS.get(progress.stage, progress.stage)
                tasks[progress.stage] = bars.add_task(label, total=progress.total)
            # Without a count the bar pulses until the stage ends.
            total = progress.total if progress.done is not None else None
            bars.update(tasks[progress.stage], completed=progress.done or 0, total=total)
            if progress.left_s is not None:
                tell_all(progress.left_s)

        yield listen


log = logging.getLogger("daskls")


# Dask's setting: whether fits show on the dashboard.
SETTING = "daskls.live"
ON_THREADS = (
    "The fit runs in this process; with a distributed Client it has a page /daskls on the "
    "dashboard, too."
)
NO_WIDGET = (
    "Progress is told in lines: for a live view in notebooks run `pip install daskls[notebooks]`."
)
# What is said once in a process.
_said: set[str] = set()


@dataclass(frozen=True)
class View:
    """The listeners of a fit; None where progress is not shown."""

    on_progress: Callable[[Progress], None] | None = None
    on_cut: OnCut | None = None


@contextmanager
def fit_view(
    estimator: str,
    shape: tuple[int, int],
    target: MeasuredAs,
    store: Backend,
    client: Any,
    verbose: int,
) -> Iterator[View]:
    """Yield the callbacks that report a fit's progress.

    Parameters
    ----------
    estimator : str
    shape : (int, int). Rows and features.
    target : "classes", "numbers" or "levels". What is learned.
    store : Backend. The model's.
    client : distributed client, or None for the current scheduler
    verbose : int. Above 0, progress is shown here; on the dashboard it is shown anyway.
    """
    is_notebook = verbose > 0 and Console().is_jupyter
    tell = _Teller(verbose > 0, sys.stdout if is_notebook else sys.stderr)
    client = _client_with_page(client, tell)
    with progress_bars(show=verbose > 0 and not is_notebook) as bars:
        if client is None and not is_notebook:
            yield View(bars)
            return
        # Here, so that other fits do not load it.
        from daskls.live.fit import LiveFit
        from daskls.live.record import FitRecord, Header

        record = FitRecord(Header(estimator, *shape, target))
        fronts = [_notebook_front(tell)] if is_notebook else []
        if client is not None:
            # A notebook's front has the link in it: what a thread prints may not reach its cell.
            fronts.append(_page_front(store, client, log.info if is_notebook else tell.say))
        with LiveFit(record, store, fronts, tell.say_once) as live:

            def on_progress(progress: Progress) -> None:
                live.on_progress(progress)
                if bars is not None:
                    bars(progress)

            yield View(on_progress, live.on_cut)


class _Teller:
    """Tells a person who wants to be told, else the log.

    Parameters
    ----------
    is_loud : bool
    file : where to print. What comes by stderr is red in notebooks.
    """

    def __init__(self, is_loud: bool, file: TextIO) -> None:
        self._is_loud, self._file = is_loud, file

    def say(self, text: str) -> None:
        """Tell."""
        if self._is_loud:
            print(text, file=self._file)
        else:
            log.info(text)

    def say_once(self, text: str) -> None:
        """Tell what was not told yet in this process."""
        if text not in _said:
            _said.add(text)
            self.say(text)


def _client_with_page(client: Any, tell: _Teller) -> Any:
    """Return the client whose scheduler may show the fit, or None."""
    if not dask.config.get(SETTING, True) or in_task():
        # A fit that is a task is one of many.
        return None
    client = current_client(client)
    if client is None and dask.config.get("scheduler", None) is None:
        # Whoever chose threads knows.
        tell.say_once(ON_THREADS)
    return None if client is None or client.asynchronous else client


def _notebook_front(tell: _Teller) -> Any:
    """Return a widget below the cell that runs, or lines where there is none to be had."""
    try:
        from daskls.live.widget import Widget
    except ImportError:
        from daskls.live.lines import Lines

        tell.say_once(NO_WIDGET)
        return Lines()
    widget = Widget()
    widget.display()
    return widget


def _page_front(store: Backend, client: Any, say: Callable[[str], None]) -> Any:
    """Return what tells the scheduler."""
    from daskls.live.dashboard import Dashboard
    from daskls.live.fit import read_bundles

    return Dashboard(store.where(), client, partial(read_bundles, store), say)
