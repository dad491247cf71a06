"""What shows a fit: bars in a terminal, a widget or lines in a notebook, the dashboard's page."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from rich.console import Console

from daskls.estimators.console import progress_bars
from daskls.run.client import current_client, in_task
from daskls.run.progress import OnCut, Progress

log = logging.getLogger("daskls")

__all__ = ["View", "fit_view"]

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
    """The listeners of a fit; None where nobody looks."""

    on_progress: Callable[[Progress], None] | None = None
    on_cut: OnCut | None = None


@contextmanager
def fit_view(
    estimator: str, shape: tuple[int, int], store: Path, client: Any, verbose: int
) -> Iterator[View]:
    """Yield what tells those who watch a fit how far it is.

    Parameters
    ----------
    estimator : str
    shape : (int, int). Rows and features.
    store : Path. The model's folder.
    client : distributed client, or None for the current scheduler
    verbose : int. Above 0, progress is shown here; on the dashboard it is shown anyway.
    """
    client = _client_with_page(client)
    is_notebook = verbose > 0 and Console().is_jupyter
    if verbose > 0 and client is None and "distributed" not in sys.modules:
        _say_once(ON_THREADS, verbose)
    with progress_bars(show=verbose > 0 and not is_notebook) as bars:
        if client is None and not is_notebook:
            yield View(bars)
            return
        # Here, so that other fits do not load it.
        from daskls.live.fit import LiveFit
        from daskls.live.record import FitRecord, Header

        record = FitRecord(Header(estimator, *shape))
        fronts = [_notebook_front(verbose)] if is_notebook else []
        if client is not None:
            fronts.append(_page_front(store, client, verbose))
        with LiveFit(record, store, fronts, lambda text: _say_once(text, verbose)) as live:

            def on_progress(progress: Progress) -> None:
                live.on_progress(progress)
                if bars is not None:
                    bars(progress)

            yield View(on_progress, live.on_cut)


def _client_with_page(client: Any) -> Any:
    """Return the client whose scheduler may show the fit, or None."""
    if not dask.config.get(SETTING, True) or in_task():
        # A fit that is a task is one of many.
        return None
    client = current_client(client)
    return None if client is None or client.asynchronous else client


def _notebook_front(verbose: int) -> Any:
    """Return a widget below the cell that runs, or lines where there is none to be had."""
    try:
        from daskls.live.widget import Widget
    except ImportError:
        from daskls.live.lines import Lines

        _say_once(NO_WIDGET, verbose)
        return Lines()
    widget = Widget()
    widget.display()
    return widget


def _page_front(store: Path, client: Any, verbose: int) -> Any:
    """Return what tells the scheduler."""
    from daskls.live.dashboard import Dashboard
    from daskls.live.fit import read_bundles

    def read() -> Any:
        return read_bundles(store, lambda first, last: False)

    return Dashboard(str(store), client, read, lambda text: _say(text, verbose))


def _say(text: str, verbose: int) -> None:
    """Tell a person who wants to be told; else the log."""
    if verbose > 0:
        print(text, file=sys.stderr)
    else:
        log.info(text)


def _say_once(text: str, verbose: int) -> None:
    """Tell what was not told yet in this process."""
    if text not in _said:
        _said.add(text)
        _say(text, verbose)
