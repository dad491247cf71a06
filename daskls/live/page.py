"""The page ``/daskls`` of the Dask dashboard; it runs on the scheduler and needs bokeh."""

import time
from functools import partial
from typing import Any
from weakref import WeakSet

from bokeh.models import Div
from bokeh.server.tornado import BokehTornado
from distributed.dashboard.core import BokehApplication
from distributed.dashboard.scheduler import template_variables
from tornado.ioloop import IOLoop

from daskls.live.view import fit_html

# Longer than the interval between messages: the scheduler itself computes each update.
UPDATE_MS = 2000
# The largest number of task names to list: those of a fit and Dask's own.
MAX_NAMES = 16
BEFORE_FITS = "<h3>daskls</h3><p>No fit has run yet. The next one shows here.</p>"

_served: "WeakSet[Any]" = WeakSet()


def add_page(scheduler: Any, path: str, board: Any) -> str | None:
    """Serve a board, whose ``records`` are shown; return the page's path, None if there is none."""
    application = scheduler.http_application
    dashboard = next((a for a in application.applications if isinstance(a, BokehTornado)), None)
    if dashboard is None:
        return None
    prefix = str(dashboard.prefix)
    if scheduler not in _served:
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
        _served.add(scheduler)
    return f"{prefix.rstrip('/')}{path}"


def live_doc(board: Any, scheduler: Any, extra: dict[str, Any], doc: Any) -> None:
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
