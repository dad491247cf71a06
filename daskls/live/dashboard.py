"""Both sides of the page ``/daskls``: the client sends messages, the scheduler receives them."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakKeyDictionary

from distributed.diagnostics.plugin import SchedulerPlugin

from daskls.live.record import TOPIC, Bundles, FitRecord, Map
from daskls.live.view import fit_html
from daskls.records import MeasuredAs

PATH = "/daskls"
# Seconds between two messages of a client, and before the first: a shorter fit ends before anyone
# has opened the page.
EVENT_INTERVAL_S = 1.0
# Seconds within which the scheduler must answer.
ANSWER_S = 10.0
# Longer than the interval between messages: the scheduler itself computes each update.
UPDATE_MS = 2000
# The largest number of task names to list: those of a fit and Dask's own.
MAX_NAMES = 16
BEFORE_FITS = "<h3>daskls</h3><p>No fit has run yet. The next one shows here.</p>"


class Dashboard:
    """Shows a fit on the scheduler's page; workers report their cells themselves."""

    reads = False

    def __init__(
        self, fit: str, client: Any, read: Callable[[Any], Bundles], say: Callable[[str], None]
    ) -> None:
        self._fit, self._client, self._read, self._say = fit, client, read, say
        self._began, self._sent = time.monotonic(), 0.0
        self._is_announced = self._has_map = False
        self._stages: dict[str, Any] = {}

    def show(self, record: FitRecord) -> None:
        now = time.monotonic()
        if record.ended is None and min(now - self._sent, now - self._began) >= EVENT_INTERVAL_S:
            self._sent = now
            if not self._is_announced or (record.map is not None and not self._has_map):
                self._announce(record)
            self._send_stages(record)
        elif record.ended is not None and self._is_announced:
            self._send_stages(record)
            # Bundles that no worker reported come from the store.
            reported = set(map(tuple, self._run(find_reported, self._fit)))
            self._run(retire, self._fit, record.ended, self._read(reported))

    def _announce(self, record: FitRecord) -> None:
        """Put the fit on the board; LookupError where the scheduler has no page."""
        drawn = record.map
        known = [] if drawn is None else self._read(set())
        about = record.title, record.target, drawn, known
        path, why_not = self._run(announce, self._fit, self._client.id, *about)
        if path is None:
            raise LookupError(f"there is no page {PATH}, as {why_not}")
        self._has_map = drawn is not None
        if not self._is_announced:
            self._is_announced = True
            record.link = page_link(self._client.dashboard_link, path)
            self._say(f"Live view: {record.link}")

    def _send_stages(self, record: FitRecord) -> None:
        now, new = time.time(), []
        for stage in list(record.stages.values()):
            counts = stage.done, stage.total
            if self._stages.get(stage.name) != counts:
                self._stages[stage.name] = counts
                # Durations, not times of day: the scheduler's clock may differ.
                new.append([self._fit, stage.name, *counts, stage.seconds(now)])
        if new:
            log = self._client.scheduler.log_event
            message = {"stages": new}
            self._client.sync(log, topic=TOPIC, msg=message, callback_timeout=ANSWER_S)

    def _run(self, task: Callable[..., Any], *args: Any) -> Any:
        """Call a function on the scheduler; LookupError where it has no live view."""
        try:
            return self._client.run_on_scheduler(task, *args, callback_timeout=ANSWER_S)
        except ModuleNotFoundError as error:
            raise LookupError(
                f"there is no page {PATH}, as the scheduler cannot import daskls.live ({error})"
            ) from error


def page_link(dashboard_link: str | None, path: str) -> str:
    """Return the URL of the page, given Dask's link to its own dashboard.

    Dask's link lacks the scheduler's own prefix, but has that of a proxy:

    >>> page_link("http://127.0.0.1:8787/status", "/mine/daskls")
    'http://127.0.0.1:8787/mine/daskls'
    >>> page_link("https://hub.org/user/ann/proxy/8787/status", "/daskls")
    'https://hub.org/user/ann/proxy/8787/daskls'
    """
    link = urlsplit(dashboard_link or "")
    before, prefix = link.path.rpartition("/")[0], path.rpartition("/")[0]
    place = path.removeprefix(prefix) if before.endswith(prefix) else path
    return urlunsplit((link.scheme, link.netloc, before + place, "", ""))


# ---- on the scheduler ----


class DashboardPlugin(SchedulerPlugin):  # type: ignore[misc]
    """The fits that the page shows; a plugin, which hears of them, while any runs."""

    name = "daskls"

    def __init__(self) -> None:
        self.fits: dict[str, tuple[FitRecord, str]] = {}
        self.last: FitRecord | None = None
        self.is_served = False

    @property
    def records(self) -> list[FitRecord]:
        """The fits to show: all that run, else the last one."""
        running = [record for record, _ in self.fits.values()]
        return running or ([] if self.last is None else [self.last])

    def log_event(self, topic: str, msg: Any) -> None:
        """Record a message from a worker or a client; Dask calls it with those of every topic."""
        if topic != TOPIC or not isinstance(msg, dict):
            return
        for root, first, last, counts in msg.get("bundles", ()):
            if root in self.fits:
                self.fits[root][0].add_bundle(first, last, counts)
        for root, name, done, total, seconds in msg.get("stages", ()):
            if root in self.fits:
                self.fits[root][0].advance(name, done, total, time.time(), seconds)

    def remove_client(self, scheduler: Any, client: str) -> None:
        """The fits of a client that has gone end."""
        for fit in [fit for fit, (_, owner) in self.fits.items() if owner == client]:
            self.end(fit, "stopped", scheduler)

    def end(self, fit: str, how: str, scheduler: Any) -> None:
        if fit in self.fits:
            self.last, _ = self.fits.pop(fit)
            self.last.end(how, time.time())
        if not self.fits and self.name in scheduler.plugins:
            scheduler.remove_plugin(self.name)


_plugins: "WeakKeyDictionary[Any, DashboardPlugin]" = WeakKeyDictionary()


def plugin_of(scheduler: Any) -> DashboardPlugin:
    """Return a scheduler's board, the same one at every call."""
    return _plugins.setdefault(scheduler, DashboardPlugin())


def announce(
    fit: str,
    client: str,
    title: str,
    target: MeasuredAs,
    drawn: Map | None,
    bundles: Bundles,
    dask_scheduler: Any = None,
) -> tuple[str | None, str]:
    """Put a fit on the board; return the path of the page, or why there is none."""
    board = plugin_of(dask_scheduler)
    try:
        path = add_page(dask_scheduler, PATH, board)
    except ImportError as error:
        return None, f"the scheduler lacks bokeh ({error})"
    if path is None:
        return None, "the scheduler has no dashboard"
    dask_scheduler.add_plugin(board, idempotent=True, name=board.name)
    record, _ = board.fits.setdefault(fit, (FitRecord(title, target), client))
    if drawn is not None:
        record.set_map(drawn)
    for bundle in bundles:
        record.add_bundle(*bundle)
    return path, ""


def find_reported(fit: str, dask_scheduler: Any = None) -> list[tuple[int, int]]:
    """Return the first and last leaf of each bundle of a fit that the board has counted."""
    fits = plugin_of(dask_scheduler).fits
    return fits[fit][0].known_bundles() if fit in fits else []


def retire(fit: str, how: str, bundles: Bundles, dask_scheduler: Any = None) -> None:
    """Take a fit off the board, with the bundles in its store that no worker has reported."""
    board = plugin_of(dask_scheduler)
    if fit in board.fits:
        for bundle in bundles:
            board.fits[fit][0].add_bundle(*bundle)
    board.end(fit, how, dask_scheduler)


def add_page(scheduler: Any, path: str, board: DashboardPlugin) -> str | None:
    """Serve a board, return the page's path, None if there is none."""
    from bokeh.server.tornado import BokehTornado
    from distributed.dashboard.core import BokehApplication
    from distributed.dashboard.scheduler import template_variables
    from tornado.ioloop import IOLoop

    application = scheduler.http_application
    dashboard = next((a for a in application.applications if isinstance(a, BokehTornado)), None)
    if dashboard is None:
        return None
    prefix = str(dashboard.prefix)
    if not board.is_served:
        variables = template_variables(scheduler)
        page = BokehApplication(
            {path: partial(live_doc, board)}, scheduler, prefix=prefix, template_variables=variables
        )
        # The dashboard's own pages share this list of links.
        if path.strip("/") not in variables["pages"]:
            variables["pages"].append(path.strip("/"))
        application.add_application(page)
        page.initialize(IOLoop.current())
        page.start()
        board.is_served = True
    return f"{prefix.rstrip('/')}{path}"


def live_doc(board: DashboardPlugin, scheduler: Any, extra: dict[str, Any], doc: Any) -> None:
    from bokeh.models import Div
    from distributed.dashboard.components.scheduler import BOKEH_THEME, env

    doc.title = "daskls"
    shown = Div(text=BEFORE_FITS, sizing_mode="stretch_width", disable_math=True)

    def update() -> None:
        """Show the fits as they are now; of ended ones the text stays, and nothing is sent."""
        now, tasks = time.time(), count_tasks(scheduler)
        fits = [fit_html(record, now, tasks, scale=1.2) for record in board.records]
        shown.text = "".join(fits) or BEFORE_FITS

    update()
    doc.add_root(shown)
    doc.template = env.get_template("simple.html")
    doc.template_variables.update(extra)
    doc.theme = BOKEH_THEME
    doc.add_periodic_callback(update, UPDATE_MS)


def count_tasks(scheduler: Any) -> list[tuple[str, int, int]]:
    """Return (name, done, total) of the last `MAX_NAMES` names that ran."""
    counted = []
    # Dask adds prefixes as they come, which is the order of a fit's stages.
    for name, prefix in scheduler.task_prefixes.items():
        done, now = prefix.state_counts["memory"], prefix.states
        open_ = sum(now[state] for state in ("waiting", "queued", "no-worker", "processing"))
        if done + open_:
            counted.append((str(name), done, done + open_))
    return counted[-MAX_NAMES:]
