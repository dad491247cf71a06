"""Progress of a fit: bars in a terminal, a picture in a notebook, the dashboard's page."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
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

from daskls.cluster import current_client, in_task
from daskls.records import MeasuredAs
from daskls.run.progress import STAGE_LABELS, OnCut, Progress
from daskls.store.objects import BaseStore

log = logging.getLogger("daskls")

# Dask's setting: whether fits show on the dashboard.
SETTING = "daskls.live"
ON_THREADS = (
    "The fit runs in this process; with a distributed Client it is also shown on the dashboard's "
    "page /daskls."
)
# Messages that are shown once in a process, and were.
_shown: set[str] = set()


@contextmanager
def progress_bars(*, show: bool = True) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a listener that draws one bar per stage, with the time left; None if not shown."""
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
    with Bars(*columns, console=Console(stderr=True)) as bars:

        def listen(progress: Progress) -> None:
            if progress.stage not in tasks:
                label = STAGE_LABELS.get(progress.stage, progress.stage)
                tasks[progress.stage] = bars.add_task(label, total=progress.total)
            # Without a count the bar pulses until the stage ends.
            total = progress.total if progress.done is not None else None
            bars.update(tasks[progress.stage], completed=progress.done or 0, total=total)

        yield listen


def say(lines: Iterable[str]) -> None:
    """Print lines; what the terminal cannot show, as the letters of a name, is escaped."""
    known = getattr(sys.stdout, "encoding", None) or "utf-8"
    print("\n".join(lines).encode(known, "backslashreplace").decode(known))


def rows_done(
    stage: str, on_progress: Callable[[Progress], None] | None
) -> Callable[[int, int | None], None] | None:
    if on_progress is None:
        return None
    report = on_progress

    def on_rows(done: int, total: int | None) -> None:
        report(Progress(stage, done if total else None, total or done))

    return on_rows


@dataclass(frozen=True)
class FitCallbacks:
    on_progress: Callable[[Progress], None] | None = None
    on_cut: OnCut | None = None


@contextmanager
def fit_view(
    estimator: str,
    shape: tuple[int, int],
    target: MeasuredAs,
    store: BaseStore,
    client: Any,
    verbose: int,
) -> Iterator[FitCallbacks]:
    """Yield the callbacks that report a fit's progress, shown here if ``verbose``."""
    is_notebook = verbose > 0 and Console().is_jupyter
    messages = _Messages(verbose > 0, sys.stdout if is_notebook else sys.stderr)
    client = _client_with_page(client, messages)
    with progress_bars(show=verbose > 0 and not is_notebook) as bars:
        if client is None and not is_notebook:
            yield FitCallbacks(bars)
            return
        # Imported here so that other fits do not load the live view.
        from daskls.live.fit import LiveFit, Notebook
        from daskls.live.record import FitRecord

        title = f"{estimator}: {shape[0]:,} rows, {shape[1]} features"
        # The last name of its store, by which fits of one kind are told apart.
        name = store.where().rstrip("/").rpartition("/")[2]
        record = FitRecord(f"{title}, in {name}" if name else title, target)
        displays: list[Any] = [Notebook()] if is_notebook else []
        if client is not None:
            # The notebook's display shows the link to the page itself: output that a thread prints
            # may not reach the cell.
            displays.append(_dashboard(store, client, log.info if is_notebook else messages.show))
        with LiveFit(record, store, displays, messages.show_once) as live:

            def on_progress(progress: Progress) -> None:
                live.on_progress(progress)
                if bars is not None:
                    bars(progress)

            yield FitCallbacks(on_progress, live.on_cut)


class _Messages:
    def __init__(self, is_verbose: bool, file: TextIO) -> None:
        self._is_verbose, self._file = is_verbose, file

    def show(self, text: str) -> None:
        if self._is_verbose:
            print(text, file=self._file)
        else:
            log.info(text)

    def show_once(self, text: str) -> None:
        """Show a message, unless this process has shown it before."""
        if text not in _shown:
            _shown.add(text)
            self.show(text)


def _client_with_page(client: Any, messages: _Messages) -> Any:
    if not dask.config.get(SETTING, True) or in_task():
        # A fit that runs inside a task is one of many.
        return None
    client = current_client(client)
    if client is None and dask.config.get("scheduler", None) is None:
        # A user who chose a scheduler need not be told.
        messages.show_once(ON_THREADS)
    return client


def _dashboard(store: BaseStore, client: Any, say: Callable[[str], None]) -> Any:
    from daskls.live.dashboard import Dashboard
    from daskls.live.fit import read_bundles

    return Dashboard(store.where(), client, partial(read_bundles, store), say)
