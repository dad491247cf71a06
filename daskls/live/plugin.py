"""The scheduler's side of the page: a plugin that receives messages of workers and clients.

Functions here run on the scheduler, on its loop, one after the other.
"""

from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

from daskls.live.page import board_of
from daskls.live.record import FitRecord, Header, Map
from daskls.run.client import TOPIC, LeafCounts

PLUGIN_NAME = "daskls"


class LivePlugin(SchedulerPlugin):  # type: ignore[misc]
    """Hands what is told to the board, while some fit is on it."""

    name = PLUGIN_NAME

    def __init__(self, scheduler: Any) -> None:
        self.scheduler, self.board = scheduler, board_of(scheduler)

    def log_event(self, topic: str, msg: Any) -> None:
        """As of `SchedulerPlugin`: called with every message of every topic."""
        if topic == TOPIC and isinstance(msg, dict):
            self.board.take(msg)

    def remove_client(self, scheduler: Any, client: str) -> None:
        """As of `SchedulerPlugin`: a client that is gone ends its fits."""
        for fit in [fit for fit, (_, own) in self.board.fits.items() if own == client]:
            self.board.end(fit, "stopped")
        drop_if_idle(scheduler)


def announce(
    fit: str,
    client: str,
    header: tuple[Any, ...],
    drawn: dict[str, Any] | None,
    bundles: list[tuple[int, int, LeafCounts]],
    dask_scheduler: Any = None,
) -> tuple[str | None, str]:
    """Put a fit on the board, or add to what it says of one.

    Parameters
    ----------
    fit : str. Its store.
    client : str. The id of the client that fits.
    header : the values of `Header`
    drawn : dict. What `Map.to_json` gave; None while there is no picture.
    bundles : list of (first, last, counts). What the store held before this fit.

    Returns
    -------
    path : str, or None. Of the page.
    why_not : str. What it would need.
    """
    try:
        # Here, as it needs bokeh.
        from daskls.live.page import add_page
    except ImportError as error:
        return None, f"the scheduler lacks bokeh ({error})"
    path = add_page(dask_scheduler)
    if path is None:
        return None, "the scheduler has no dashboard"
    dask_scheduler.add_plugin(LivePlugin(dask_scheduler), idempotent=True, name=PLUGIN_NAME)
    fits = board_of(dask_scheduler).fits
    if fit not in fits:
        fits[fit] = FitRecord(Header(*header)), client
    record, _ = fits[fit]
    if drawn is not None:
        record.set_map(Map(**drawn))
    for bundle in bundles:
        record.add_bundle(*bundle)
    return path, ""


def find_told(fit: str, dask_scheduler: Any = None) -> list[tuple[int, int]]:
    """Return the first and last leaf of each bundle that the board knows of a fit."""
    fits = board_of(dask_scheduler).fits
    return fits[fit][0].told() if fit in fits else []


def retire(
    fit: str,
    how: str,
    bundles: list[tuple[int, int, LeafCounts]],
    dask_scheduler: Any = None,
) -> None:
    """Take a fit off the board; the last one takes the plugin with it.

    Parameters
    ----------
    fit : str
    how : "finished" or "stopped"
    bundles : list of (first, last, counts). What the store holds and no worker has told: of its
        last second, or before it was lost.
    """
    board = board_of(dask_scheduler)
    if fit in board.fits:
        for bundle in bundles:
            board.fits[fit][0].add_bundle(*bundle)
    board.end(fit, how)
    drop_if_idle(dask_scheduler)


def drop_if_idle(scheduler: Any) -> None:
    """Remove the plugin where no fit is on the board."""
    if not board_of(scheduler).fits and PLUGIN_NAME in scheduler.plugins:
        scheduler.remove_plugin(PLUGIN_NAME)
