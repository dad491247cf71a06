"""A fit in HTML, for the dashboard's page and for notebooks: its numbers, and its map as SVG."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from daskls.live.record import SIDE, FitRecord, Map, Measure, Stage
from daskls.run.progress import format_seconds

# The colors of the map's regions: not trained yet; trained, without an error; their borders.
WAITING, TRAINED, LINE = "#ffffff", "#9db7cf", "#8a8f98"
COLORS = "White: not trained yet; pale blue: trained, where no error is measured."
_VIRIDIS = (
    "440154 471669 472a79 433c84 3c4d8a 355d8c 2e6c8e 287a8e 23898d "
    "1e978a 20a585 2eb27c 45bf6f 64cb5d 88d547 afdc2e d7e219 fde724"
)
_STOPS = np.array([list(bytes.fromhex(color)) for color in _VIRIDIS.split()])
_PLACES = np.linspace(0, len(_STOPS) - 1, 256)
_RGB = np.stack([np.interp(_PLACES, range(len(_STOPS)), part) for part in _STOPS.T], axis=1)
# Of errors, from 0 to that of the last color.
PALETTE = [f"#{bytes(rgb).hex()}" for rgb in _RGB.round().astype(np.uint8)]
# The quantile of the regions' errors at which the colors end.
BELOW_TOP = 0.98
# Pixels: the side of the map, the margins on its left and above it, the whole picture.
SQUARE, LEFT, TOP, WIDTH, HEIGHT = 350, 54, 8, 514, 392
# Letters of a name that fit along a side.
LETTERS_ALONG = 60


def top_error(errors: Sequence[float | None], measure: Measure) -> float | None:
    """Return the error of the last color: not the largest one, as a few may lie far beyond."""
    known = [error for error in errors if error is not None]
    if not known:
        return None
    top, step = float(np.quantile(known, BELOW_TOP)), 0.01
    if not measure.is_share and top > 0:
        # These errors may be of any size: round to their first digit.
        step = float(10.0 ** np.floor(np.log10(top)))
    # Rounded, so that not all colors change with each cell.
    return max(float(np.ceil(top / step)) * step, step)


def color_of(n_cells: int, error: float | None, top: float | None) -> str:
    """Return a region's color; ``top`` is the error of the last color."""
    if error is None:
        return TRAINED if n_cells else WAITING
    return PALETTE[min(int(error / (top or 1.0) * 255), 255)]


def _numbers(record: FitRecord, now: float, tasks: Sequence[tuple[str, int, int]]) -> str:
    stages, lines = list(record.stages.values()), []
    running = [stage for stage in stages if stage.ended is None]
    left = running[-1].left_s(now) if running else None
    if record.ended:
        lines.append(f"The fit has {escape(record.ended)}.")
    elif left is not None:
        lines.append(f"Time left in this stage: <b>{format_seconds(left)}</b>")
    if record.error is not None:
        measure, so_far = record.measure, "" if record.ended else " so far"
        name = measure.mean_name[:1].upper() + measure.mean_name[1:]
        lines.append(f"{name}{so_far}: <b>{measure.format_mean(record.error)}</b>")
    if tasks and not record.ended:
        counts = ", ".join(f"{escape(name)} {done}/{total}" for name, done, total in tasks)
        small = "color:#555;font-size:11px"
        lines.append(f"<span style='{small}'>Tasks so far, in their order: {counts}</span>")
    return (
        f"<h3 style='margin:4px 0'>{escape(record.title)}</h3>"
        f"<table>{''.join(_stage_html(stage, now) for stage in stages)}</table>"
        + "".join(f"<div style='margin-top:4px'>{line}</div>" for line in lines)
    )


def _stage_html(stage: Stage, now: float) -> str:
    look = "width:120px;height:12px;accent-color:#31688e"
    bar = f"<progress value='{stage.done or 0}' max='{stage.total or 1}' style='{look}'></progress>"
    counted = f"{stage.done:,} of {stage.total:,}" if stage.done is not None else f"{stage.total:,}"
    texts = {"left": (escape(stage.label), bar)}
    texts["right"] = counted, format_seconds(stage.seconds(now))
    style = "padding:1px 10px 1px 0;white-space:nowrap;text-align:"
    cells = (f"<td style='{style}{side}'>{own}</td>" for side in texts for own in texts[side])
    return f"<tr>{''.join(cells)}</tr>"


def fit_html(
    record: FitRecord, now: float, tasks: Sequence[tuple[str, int, int]] = (), *, scale: float = 1.0
) -> str:
    """Return the numbers of a fit, the link of its page if it is not on it, and its map."""
    link = "" if record.link is None else escape(record.link)
    link = link and f"On the dashboard: <a href='{link}' target='_blank'>{link}</a>"
    parts = [f"<div style='max-width:470px'>{_numbers(record, now, tasks)}{link}</div>"]
    if record.map is not None:
        note = f"{escape(record.map.note)}. {COLORS}"
        style = "max-width:420px;color:#555;font-size:11px"
        parts.append(
            f"<div>{_map_svg(record, record.map, scale)}<div style='{style}'>{note}</div></div>"
        )
    style = "font:13px/1.45 system-ui,sans-serif;color:#222;background:#fff;padding:8px 10px"
    return f"<div style='{style};display:flex;flex-wrap:wrap;gap:18px'>{''.join(parts)}</div>"


def _map_svg(record: FitRecord, drawn: Map, scale: float) -> str:
    (cells, errors), measure = record.regions(), record.measure
    top = top_error(errors, measure)
    # The map's units grow upward, those of a picture downward.
    regions = "".join(
        f'<path d="M{" ".join(f"{x} {SIDE - y}" for x, y in polygon)}z" '
        f'fill="{color_of(n_cells, error, top)}">'
        f"<title>{_tell(n_cells, error, measure)}</title></path>"
        for polygon, n_cells, error in zip(drawn.polygons, cells, errors, strict=True)
    )
    view = f'viewBox="0 0 {SIDE} {SIDE}" x="{LEFT}" y="{TOP}" width="{SQUARE}" height="{SQUARE}"'
    line = f'stroke="{LINE}" stroke-width="{1 if len(drawn.polygons) > 800 else 2}"'
    bottom, right, middle = TOP + SQUARE, LEFT + SQUARE, LEFT + SQUARE / 2
    across, up = drawn.names
    texts: list[Any] = [(middle, bottom + 28, across), (12, TOP + SQUARE / 2, up, "middle", True)]
    if drawn.limits is not None:
        places = (LEFT, bottom + 14), (right, bottom + 14), (LEFT - 4, bottom), (LEFT - 4, TOP + 10)
        ends = (f"{end:.3g}" for side in drawn.limits for end in side)
        anchors = ("start", "end", "end", "end")
        texts += [(*own, *more) for own, *more in zip(places, ends, anchors, strict=True)]
    drawings = [f'<svg {view} overflow="visible" {line}>{regions}</svg>']
    if top is not None:
        # The color bar.
        step = SQUARE / len(PALETTE)
        drawings += [
            f'<rect x="{right + 14}" y="{bottom - (i + 1) * step:.2f}" width="12" '
            f'height="{step + 1:.2f}" fill="{color}"/>'
            for i, color in enumerate(PALETTE)
        ]
        for share, down in ((0, 0), (0.5, 4), (1, 9)):
            error = measure.factor * share * top
            told = f"{error:.1f} %" if measure.is_share else f"{error:.2g}"
            texts.append((right + 30, TOP + SQUARE * (1 - share) + down, told, "start"))
        texts.append((right + 86, TOP + SQUARE / 2, measure.axis_label, "middle", True))
    size = f'width="{scale * WIDTH:g}" style="max-width:100%" viewBox="0 0 {WIDTH} {HEIGHT}"'
    written = "".join(_text(*own) for own in texts)
    return f'<svg {size} fill="#222" font-size="11">{"".join(drawings)}{written}</svg>'


def _tell(n_cells: int, error: float | None, measure: Measure) -> str:
    if not n_cells:
        return "not trained yet"
    measured = "" if error is None else f", {measure.name} {measure.format(error)}"
    return f"{n_cells} cell(s) trained{measured}"


def _text(x: float, y: float, words: str, anchor: str = "middle", turn: bool = False) -> str:
    turned = f' transform="rotate(-90 {x} {y})"' if turn else ""
    fit = f' textLength="{SQUARE}" lengthAdjust="spacingAndGlyphs"'
    squeezed = fit if len(words) > LETTERS_ALONG else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{turned}{squeezed}>{escape(words)}</text>'
