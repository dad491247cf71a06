"""The text of a report: results, parameters, notes; and the report as one file of HTML."""

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from html import escape
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from daskls._version import __version__
from daskls.errors import listed
from daskls.live.record import mean_error
from daskls.plotting.evaluation import (
    SCALES,
    Panel,
    Subject,
)
from daskls.plotting.plane import import_matplotlib
from daskls.records import Float64
from daskls.run.confusion import Confusion, LevelScores, NumberScores
from daskls.solvers.registry import find_loss
from daskls.store.errors import disk_errors, exists_already
from daskls.store.reader import ModelReader
from daskls.targets import MOST_COLUMNS

# Names and values.
Entries = list[tuple[str, str]]
# Parameters that do not change the model.
NOT_OF_MODEL = ("client", "store", "verbose")
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
# A notebook shows the first of these panels that can be drawn.
SHOWN = ("partition", "grid", "errors")
# The only style in a notebook, which brings its own for the rest.
SNIPPET = "display: flex; flex-wrap: wrap; gap: 1.5em; align-items: start; margin-top: 0.6em"
DPI = 130
# Inches.
SIZE, SMALL_SIZE = (4.6, 3.9), (3.2, 2.6)


# Results


def find_facts(subject: Subject) -> Entries:
    reader, report, evaluation = subject.reader, subject.reader.report, subject.evaluation
    found = [
        ("rows trained on", f"{reader.meta['n_rows']:,} of {reader.meta['n_features']} features"),
        reader.target.describe(),
    ]
    if len(report):
        found.append(("cells", f"{len(report):,} with {int(report.n_support.sum()):,} rows kept"))
    error = mean_error(report)
    if error is not None:
        found.append((subject.measure.mean_name, subject.measure.format_mean(error)))
    if reader.resolved.summary:
        decision = str(reader.resolved.summary["decision"])
        found.append(("scale of features", SCALES.get(decision, decision)))
    found += _choice(reader)
    found += _guarantee(reader)
    if reader.stage_s:
        found.append(("seconds of the fit", f"{sum(reader.stage_s.values()):,.1f}"))
    return found if evaluation is None else [*found, *_scores(evaluation.scores)]


def _scores(found: Confusion | NumberScores | LevelScores) -> Entries:
    if isinstance(found, Confusion):
        n_rows, n_right = int(found.counts.sum()), int(found.counts.trace())
        return [("accuracy", f"{100 * (n_right / n_rows):.2f} % of {n_rows:,} other rows")]
    if isinstance(found, LevelScores):
        levels = ", ".join(f"{level:g}" for level in found.levels[:MOST_COLUMNS])
        return [
            ("D2", f"{found.d2.mean():.4f} of {found.n_rows:,} other rows"),
            (f"D2 at {levels}", _columns(found.d2, ".4f")),
            (f"share at or below {levels}", _columns(found.covered, ".4f")),
        ]
    mean = f"{found.r2.mean():.4f} of {found.n_rows:,} other rows"
    if len(found.r2) > 1:
        mean += f", the mean of {_columns(found.r2, '.4f')}"
    return [
        ("R2", mean),
        ("RMSE", _columns(found.rmse, ".4g")),
        ("mean absolute error", _columns(found.mae, ".4g")),
    ]


def _columns(values: Float64, form: str) -> str:
    """Return the values of columns; of many columns, the first ones."""
    return listed([f"{value:{form}}" for value in values], MOST_COLUMNS)


def _choice(reader: ModelReader) -> Entries:
    if not find_loss(reader.spec).is_global:
        return []
    chosen = reader.resolved.describe_choice(reader.target.kind)
    coding = reader.resolved.summary.get("coding", "none")
    return chosen if coding == "none" else [("coding of features", coding), *chosen]


def _guarantee(reader: ModelReader) -> Entries:
    if reader.interval is not None:
        return reader.interval.describe()
    bound = reader.false_alarm
    return [] if bound is None else bound.describe(reader.meta["classes"]["values"])


def find_parameters(estimator: Any) -> Entries:
    given, default = estimator.get_params(deep=False), type(estimator)().get_params(deep=False)
    return [
        (name, _short(value))
        for name, value in given.items()
        if name not in NOT_OF_MODEL and repr(value) != repr(default[name])
    ]


def _short(value: Any) -> str:
    """Return a value with four digits and six elements at most."""
    if isinstance(value, (list, tuple, np.ndarray)):
        shown = [_short(own) for own in list(value)[:6]]
        return f"[{', '.join(shown)}{', ...' if len(value) > 6 else ''}]"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def find_notes(subject: Subject) -> list[str]:
    """Return what the reader should check, each note with what to do."""
    # The warnings of the fit that can be derived from the model.
    advice = (message for _, message in subject.estimator._advice())
    return [*_unconverged(subject), *advice, *_caveats(subject)]


def _unconverged(subject: Subject) -> Iterator[str]:
    if not len(subject.reader.report):
        return
    n_open = int(subject.method.count_open(subject.reader.report))
    if n_open:
        yield f"{n_open:,} solves ended before tol was reached: scale the features, or raise tol."


def _caveats(subject: Subject) -> Iterator[str]:
    if subject.evaluation is None:
        figure = f"the {subject.measure.mean_name}"
        yield (
            f"No test set was given: {figure} is that of rows used to select the model, and so "
            "slightly optimistic."
        )
        return
    scores = subject.evaluation.scores
    # The model's classes come first.
    if isinstance(scores, Confusion) and len(scores.labels) > subject.reader.n_classes:
        n_unseen = len(scores.labels) - subject.reader.n_classes
        yield f"Classes of the test set that the model has not seen: {n_unseen}."


# HTML


def page_of(
    title: str, facts: Entries, parameters: Entries, notes: list[str], panels: list[Panel]
) -> str:
    """Return the report as a page that fetches nothing: style and pictures are inside."""
    body = [
        f"<h1>{escape(title)}</h1>",
        '<div class="two">',
        f"<section><h2>Result</h2>{_table(facts)}</section>",
        f"<section><h2>Parameters</h2>{_table(parameters) or '<p>All by default.</p>'}</section>",
        "</div>",
        _notes_html(notes),
        f'<div class="panels">{"".join(map(_figure, panels))}</div>',
        f"<footer><p>daskls {escape(__version__)}</p></footer>",
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    opening = f'<!doctype html>\n<html lang="en"><head>{head}</head>'
    return f"{opening}\n<body>{''.join(body)}</body></html>\n"


def snippet_of(facts: Entries, panels: list[Panel]) -> str:
    """Return the results and, if matplotlib is installed, the first panel of `SHOWN`."""
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
    target = Path(path).expanduser()
    with disk_errors(target, "write the report again"):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8") as file:
                file.write(page)
        except FileExistsError as error:
            raise exists_already(target) from error


def _table(entries: Entries) -> str:
    rows = (f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in entries)
    return f"<table>{''.join(rows)}</table>" if entries else ""


def _notes_html(notes: Iterable[str]) -> str:
    """Return the section of notes; without notes only its margin."""
    body = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f'<section class="notes"><h2>Notes</h2>{body}</section><br>' if body else "<br>"


def _figure(panel: Panel) -> str:
    title, note = escape(panel.title), escape(panel.note)
    if panel.draw is None:
        return f'<figure><h2>{title}</h2><div class="none">{note}</div></figure>'
    picture = f'<img alt="{title}: {note}" src="data:image/png;base64,{_png(panel)}">'
    return f"<figure><h2>{title}</h2>{picture}<figcaption>{note}</figcaption></figure>"


def _png(panel: Panel, size: tuple[float, float] = SIZE) -> str:
    """Return the picture of a panel as base64; the size is in inches."""
    assert panel.draw is not None
    figure = import_matplotlib("figure").Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    panel.draw(ax)
    ax.set_title("")
    content = BytesIO()
    figure.savefig(content, format="png", dpi=DPI)
    return b64encode(content.getvalue()).decode("ascii")
