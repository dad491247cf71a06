"""A report as one file of HTML: pictures and style are in it, and nothing is fetched."""

import os
from base64 import b64encode
from collections.abc import Iterable
from html import escape
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from daskls._version import __version__
from daskls.errors import StoreError
from daskls.plotting.lazy import import_figure
from daskls.plotting.notes import Entries
from daskls.plotting.subject import Panel
from daskls.store.files import disk_errors

__all__ = ["page_of", "snippet_of", "write_new"]

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 1180px;
  margin: 1.5em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0.4em; } h2 { font-size: 1.05em; margin: 0 0 0.3em; }
.two, .panels { display: grid; gap: 1.2em 1.6em; grid-template-columns: 1fr 1fr; }
.panels { grid-template-columns: repeat(3, 1fr); }
@media (max-width: 850px) { .two, .panels { grid-template-columns: 1fr; } }
td { padding: 0.05em 1em 0.05em 0; vertical-align: top; } td:first-child { color: #555; }
figure { margin: 0; break-inside: avoid; } img { width: 100%; }
figcaption, footer { color: #555; font-size: 0.88em; }
.none { border: 1px solid #c9cdd2; padding: 3em 1em; text-align: center; }
.notes { border-left: 4px solid #d96a00; padding-left: 1em; }
@media print { body { margin: 0; font-size: 11px; max-width: none; }
  .panels { grid-template-columns: repeat(3, 1fr); } }
"""
# In a cell of a notebook, whose own style the rest is; the first of these that can be drawn.
SHOWN = ("partition", "grid", "errors")
SNIPPET = "display: flex; flex-wrap: wrap; gap: 1.5em; align-items: start; margin-top: 0.6em"
DPI = 130
SIZE, SMALL_SIZE = (4.6, 3.9), (3.2, 2.6)


def page_of(
    title: str, facts: Entries, parameters: Entries, notes: list[str], panels: list[Panel]
) -> str:
    """Return the page."""
    body = [
        f"<h1>{escape(title)}</h1>",
        '<div class="two">',
        f"<section><h2>Result</h2>{_table(facts)}</section>",
        f"<section><h2>Parameters</h2>{_table(parameters) or '<p>All by default.</p>'}</section>",
        "</div>",
        _notes(notes),
        f'<div class="panels">{"".join(map(_figure, panels))}</div>',
        f"<footer><p>daskls {escape(__version__)}</p></footer>",
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    opening = f'<!doctype html>\n<html lang="en"><head>{head}</head>'
    return f"{opening}\n<body>{''.join(body)}</body></html>\n"


def snippet_of(facts: Entries, panels: list[Panel]) -> str:
    """Return what the fit came to with the first picture there is; none without matplotlib."""
    picture = ""
    by_name = {panel.name: panel for panel in panels if panel.draw is not None}
    drawn = [by_name[name] for name in SHOWN if name in by_name]
    if drawn and find_spec("matplotlib"):
        title = escape(drawn[0].title)
        note = escape(drawn[0].note)
        source = f"data:image/png;base64,{_png(drawn[0], SMALL_SIZE)}"
        picture = f'<img alt="{title}: {note}" title="{note}" width="320" src="{source}">'
    return f'<div style="{SNIPPET}">{_table(facts)}{picture}</div>'


def write_new(path: str | os.PathLike[str], page: str) -> None:
    """Write a page to a file that does not exist yet.

    Raises
    ------
    StoreError : it exists, or the disk refuses
    """
    target = Path(path).expanduser()
    with disk_errors(target):
        try:
            with target.open("x", encoding="utf-8") as file:
                file.write(page)
        except FileExistsError as error:
            raise StoreError(
                f"{target} exists already; give another path or remove it first."
            ) from error


def _table(entries: Entries) -> str:
    """Return names and values as a table; nothing of none."""
    rows = (f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in entries)
    return f"<table>{''.join(rows)}</table>" if entries else ""


def _notes(notes: Iterable[str]) -> str:
    """Return what calls for a look."""
    told = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f'<section class="notes"><h2>Notes</h2>{told}</section><br>' if told else "<br>"


def _figure(panel: Panel) -> str:
    """Return one picture with its title and how to read it."""
    title, note = escape(panel.title), escape(panel.note)
    if panel.draw is None:
        return f'<figure><h2>{title}</h2><div class="none">{note}</div></figure>'
    picture = f'<img alt="{title}: {note}" src="data:image/png;base64,{_png(panel)}">'
    return f"<figure><h2>{title}</h2>{picture}<figcaption>{note}</figcaption></figure>"


def _png(panel: Panel, size: tuple[float, float] = SIZE) -> str:
    """Return the picture of a panel, of a size in inches, as text."""
    assert panel.draw is not None
    figure = import_figure()(figsize=size, layout="constrained")
    ax = figure.subplots()
    panel.draw(ax)
    ax.set_title("")
    content = BytesIO()
    figure.savefig(content, format="png", dpi=DPI)
    return b64encode(content.getvalue()).decode("ascii")
