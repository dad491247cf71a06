"""The scheduler's side of the page: a plugin that receives messages from workers and clients.

Everything here runs on the scheduler's event loop, so that nothing needs a lock.
"""

from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

from daskls.live.board import board_of
from daskls.live.record import FitRecord, Header, Map
from daskls.run.client import TOPIC, LeafCounts

PLUGIN_NAME = "daskls"


class LivePlugin(SchedulerPlugin):  # type: ignore[misc]
    """Passes messages to the board while there is a fit on it."""

    name = PLUGIN_NAME

    def __init__(self, scheduler: Any) -> None:
        self.scheduler, self.board = scheduler, board_of(scheduler)

    def log_event(self, topic: str, msg: Any) -> None:
        """Override `SchedulerPlugin`: Dask calls it with every message of every topic."""
        if topic == TOPIC and isinstance(msg, dict):
            self.board.take(msg)

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Override `SchedulerPlugin`: the fits of a client that has gone end."""
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
    """Put a fit on the board, or add its map and bundles to the entry there.

    Parameters
    ----------
    fit : str. Its store.
    client : str. The id of the client that fits.
    header : the values of `Header`
    drawn : dict, as `Map.to_json` returns it; None while there is no map
    bundles : list of (first, last, counts). Those in the store already.

    Returns
    -------
    path : str, or None. The page's, if it can be served.
    why_not : str. Why it cannot.
    """
    try:
        # Here, because it needs bokeh, which a scheduler may lack.
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


def find_reported(fit: str, dask_scheduler: Any = None) -> list[tuple[int, int]]:
    """Return the first and last leaf of each bundle of a fit that the board has counted."""
    fits = board_of(dask_scheduler).fits
    return fits[fit][0].known_bundles() if fit in fits else []


def retire(
    fit: str,
    how: str,
    bundles: list[tuple[int, int, LeafCounts]],
    dask_scheduler: Any = None,
) -> None:
    """Take a fit off the board; with the last fit the plugin goes too.

    Parameters
    ----------
    fit : str. Its store.
    how : "finished" or "stopped"
    bundles : list of (first, last, counts). Those in the store that no worker has reported: the
        ones of a worker's last second, or of a worker that was lost before it reported.
    """
    board = board_of(dask_scheduler)
    if fit in board.fits:
        for bundle in bundles:
            board.fits[fit][0].add_bundle(*bundle)
    board.end(fit, how)
    drop_if_idle(dask_scheduler)


def drop_if_idle(scheduler: Any) -> None:
    """Remove the plugin if no fit is on the board."""
    if not board_of(scheduler).fits and PLUGIN_NAME in scheduler.plugins:
        scheduler.remove_plugin(PLUGIN_NAME)
