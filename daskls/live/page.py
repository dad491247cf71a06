"""The page ``/daskls`` of the Dask dashboard; it runs on the scheduler and needs bokeh."""

import time
from html import escape
from typing import Any
from weakref import WeakSet

from bokeh.layouts import column, row
from bokeh.models import ColorBar, ColumnDataSource, Div, HoverTool, LinearColorMapper, Range1d
from bokeh.palettes import Viridis256
from bokeh.plotting import figure
from bokeh.server.tornado import BokehTornado
from distributed.dashboard.core import BokehApplication
from distributed.dashboard.scheduler import template_variables
from tornado.ioloop import IOLoop

from daskls.live.board import PATH, board_of
from daskls.live.record import SIDE, FitRecord, Map, Measure
from daskls.run.progress import format_seconds

# Longer than the interval between messages: the scheduler itself computes each update.
UPDATE_MS = 2000
# The largest number of task names to list: those of a fit and Dask's own.
MAX_NAMES = 16
BEFORE_FITS = "<h3>daskls</h3><p>No fit has run yet. The next one shows here.</p>"
WAITING, TRAINED, LINE = "#ffffff", "#9db7cf", "#8a8f98"

_served: "WeakSet[Any]" = WeakSet()


def add_page(scheduler: Any) -> str | None:
    application = scheduler.http_application
    dashboard = next((a for a in application.applications if isinstance(a, BokehTornado)), None)
    if dashboard is None:
        return None
    prefix = str(dashboard.prefix)
    if scheduler not in _served:
        variables = template_variables(scheduler)
        page = BokehApplication(
            {PATH: live_doc}, scheduler, prefix=prefix, template_variables=variables
        )
        # The dashboard's own pages share this list of links.
        if PATH.strip("/") not in variables["pages"]:
            variables["pages"].append(PATH.strip("/"))
        application.add_application(page)
        page.initialize(IOLoop.current())
        page.start()
        _served.add(scheduler)
    return f"{prefix.rstrip('/')}{PATH}"


def live_doc(scheduler: Any, extra: dict[str, Any], doc: Any) -> None:
    from distributed.dashboard.components.scheduler import BOKEH_THEME, env

    doc.title = "daskls"
    root = column(sizing_mode="stretch_width")
    view = PageView(scheduler, root)
    view.update()
    doc.add_root(root)
    doc.template = env.get_template("simple.html")
    doc.template_variables.update(extra)
    doc.theme = BOKEH_THEME
    doc.add_periodic_callback(view.update, UPDATE_MS)


class PageView:
    def __init__(self, scheduler: Any, root: Any) -> None:
        self.scheduler, self.root = scheduler, root
        self._shown: list[FitPart] = []
        root.children = [Div(text=BEFORE_FITS)]

    def update(self) -> None:
        records = board_of(self.scheduler).records
        if [part.record for part in self._shown] != records:
            known = {part.record: part for part in self._shown}
            self._shown = [known.get(record) or FitPart(record) for record in records]
            self.root.children = [part.root for part in self._shown]
        for part in self._shown:
            part.update(self.scheduler)


class FitPart:
    def __init__(self, record: FitRecord) -> None:
        self.record = record
        self._numbers = Div(width=470)
        self._note = Div(width=560, styles={"color": "#555", "font-size": "11px"})
        self._source = ColumnDataSource({name: [] for name in ("xs", "ys", "fill", "told")})
        self._mapper = LinearColorMapper(palette=Viridis256, low=0.0, high=1.0)
        self._picture: Any = None
        self._bar: Any = None
        self._version = -1
        self.root = row(self._numbers)

    def update(self, scheduler: Any) -> None:
        """Bring it up to date; send nothing once an ended fit has been shown."""
        record = self.record
        if record.ended is not None and self._version == record.version:
            return
        if record.map is not None and self._picture is None:
            self._picture = self._draw(record.map)
            self._note.text = escape(record.map.note)
            self.root.children = [self._numbers, column(self._picture, self._note)]
        numbers = record.snapshot(time.time())
        self._numbers.text = numbers_html(numbers, count_tasks(scheduler))
        if record.version != self._version and record.map is not None:
            self._color(numbers)
        self._version = record.version

    def _draw(self, drawn: Map) -> Any:
        """Return the picture of a map; the shapes of its regions are sent only once."""
        (left, right), (low, high) = drawn.limits or ((0.0, 1.0), (0.0, 1.0))
        xs = [[left + x / SIDE * (right - left) for x, _ in p] for p in drawn.polygons]
        ys = [[low + y / SIDE * (high - low) for _, y in p] for p in drawn.polygons]
        none = [""] * len(xs)
        self._source.data = {"xs": xs, "ys": ys, "fill": [WAITING] * len(xs), "told": none}
        picture = figure(
            width=560,
            height=480,
            x_range=Range1d(left, right),
            y_range=Range1d(low, high),
            x_axis_label=drawn.names[0],
            y_axis_label=drawn.names[1],
            tools="pan,wheel_zoom,reset",
            toolbar_location="above",
        )
        picture.xaxis.visible = picture.yaxis.visible = any(drawn.names)
        if drawn.limits is None:
            for axis in (*picture.xaxis, *picture.yaxis):
                axis.ticker = []
        picture.grid.visible = False
        picture.patches(
            "xs",
            "ys",
            source=self._source,
            fill_color="fill",
            line_color=LINE,
            line_width=0.3 if len(xs) > 800 else 0.7,
        )
        picture.add_tools(HoverTool(tooltips=[("", "@told")]))
        title = self.record.measure.label
        # Hidden until there are errors, without which its numbers mean nothing.
        self._bar = ColorBar(color_mapper=self._mapper, title=title, width=14, visible=False)
        picture.add_layout(self._bar, "right")
        return picture

    def _color(self, numbers: dict[str, Any]) -> None:
        cells, errors = numbers["region_cells"], numbers["region_errors"]
        most, measure = numbers["top_error"] or 1.0, self.record.measure
        self._mapper.high = measure.factor * most
        self._bar.visible = numbers["top_error"] is not None
        pairs = list(zip(cells, errors, strict=True))
        self._patch("fill", [_fill(*pair, most) for pair in pairs])
        self._patch("told", [_tooltip(*pair, measure) for pair in pairs])

    def _patch(self, name: str, values: list[str]) -> None:
        before = self._source.data[name]
        changes = [(i, value) for i, value in enumerate(values) if value != before[i]]
        if changes:
            self._source.patch({name: changes})


def _fill(n_cells: int, error: float | None, most: float) -> str:
    """Return a region's color; ``most`` is the error of the last color."""
    if error is None:
        return TRAINED if n_cells else WAITING
    return str(Viridis256[min(int(error / most * 255), 255)])


def _tooltip(n_cells: int, error: float | None, measure: Measure) -> str:
    if not n_cells:
        return "not trained yet"
    measured = "" if error is None else f", {measure.name} {measure.format(error)}"
    return f"{n_cells} cell(s) trained{measured}"


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


def numbers_html(numbers: dict[str, Any], tasks: list[tuple[str, int, int]]) -> str:
    parts = [f"<h3 style='margin:4px 0'>{escape(numbers['title'])}</h3><table>"]
    parts += [_stage_html(stage) for stage in numbers["stages"]]
    parts.append("</table>")
    if numbers["ended"]:
        parts.append(f"<p>The fit has {escape(numbers['ended'])}.</p>")
    elif numbers["left_s"] is not None:
        left = format_seconds(numbers["left_s"])
        parts.append(f"<p>Time left in this stage: <b>{left}</b></p>")
    if numbers["error"] is not None:
        so_far = "" if numbers["ended"] else " so far"
        error = f"<b>{escape(numbers['error_told'])}</b>"
        parts.append(f"<p>{escape(numbers['error_name'])}{so_far}: {error}</p>")
    if tasks and not numbers["ended"]:
        counts = ", ".join(f"{escape(name)} {done}/{total}" for name, done, total in tasks)
        parts.append(
            f"<p style='color:#555;font-size:11px'>Tasks so far, in their order: {counts}</p>"
        )
    return "".join(parts)


def _stage_html(stage: dict[str, Any]) -> str:
    total, done = stage["total"], stage["done"]
    share = 0.0 if done is None or not total else done / total
    counted = f"{total:,}" if done is None else f"{done:,} of {total:,}"
    bar = (
        "<div style='width:120px;height:9px;background:#e3e3e3'>"
        f"<div style='width:{share:.1%};height:9px;background:#31688e'></div></div>"
    )
    cells = (escape(stage["label"]), bar, counted, format_seconds(stage["seconds"]))
    inner = "".join(
        f"<td style='padding:1px 10px 1px 0;white-space:nowrap'>{c}</td>" for c in cells
    )
    return f"<tr>{inner}</tr>"
