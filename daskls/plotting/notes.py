"""The text of a report: results, parameters, notes; and the report as one file of HTML."""

import os
from base64 import b64encode
from html import escape
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from daskls._version import __version__
from daskls.errors import listed
from daskls.live.record import mean_error
from daskls.plotting.evaluation import SCALES, Panel, Subject
from daskls.plotting.plane import import_matplotlib, without_math
from daskls.records import Float64
from daskls.run.confusion import Confusion, LevelScores, NumberScores
from daskls.run.progress import STAGE_LABELS
from daskls.solvers.registry import find_loss
from daskls.store.errors import disk_errors, exists_already
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
td { padding: 0.05em 1em 0.05em 0; vertical-align: top; } td:first-child { color: #555;
  white-space: nowrap; }
ul { margin: 0; padding-left: 1.1em; max-height: 20em; overflow: auto; } img { width: 100%; }
figure { margin: 0; break-inside: avoid; }
figcaption, footer { color: #555; font-size: 0.88em; }
.notes { border-left: 4px solid #d96a00; padding-left: 1em; }
@media print { body { margin: 0; font-size: 11px; max-width: none; } ul { max-height: none; }
  .panels { grid-template-columns: repeat(3, 1fr); } }
"""
# A notebook shows the first of these panels that can be drawn.
SHOWN = ("partition", "features", "grid", "errors")
# The only style in a notebook, which brings its own for the rest.
SNIPPET = "display: flex; flex-wrap: wrap; gap: 1.5em; align-items: start; margin-top: 0.6em"
DPI = 130
# Inches.
SIZE, SMALL_SIZE = (4.6, 3.9), (3.2, 2.6)


# Results


def find_title(estimator: Any) -> str:
    """Return the name of the estimator, of the rows that it was trained on, and of their label."""
    meta, table = estimator._reader.meta, getattr(estimator, "table_", None)
    origin = meta.get("origin", {})
    where, label = origin.get("where"), origin.get("label") or (table and table.label)
    title = f"{meta['estimator']}: {meta['n_rows']:,} rows{f' of {where}' if where else ''}"
    return f"{title}, label {label}" if label else title


def find_columns(estimator: Any) -> list[str]:
    """Return in words what became of a table's columns; nothing of an array."""
    table = getattr(estimator, "table_", None)
    lines = [] if table is None else table.describe()
    out = estimator._reader.meta.get("origin", {}).get("left_out", {})
    for reason in dict.fromkeys(out.values()):
        names = listed([name for name, why in out.items() if why == reason])
        lines.append(f"left out, {reason}: {names}")
    return lines


def find_facts(subject: Subject) -> Entries:
    reader, report = subject.reader, subject.reader.report
    table = getattr(subject.estimator, "table_", None)
    columns = "" if table is None else f" from {len(table.columns)} columns"
    rows = f"{reader.meta['n_rows']:,} rows, {reader.n_columns} features{columns}"
    entries = [("rows trained on", rows), reader.target.describe(), *_errors(subject)]
    if len(report):
        kept = f"{int(report.n_support.sum()):,} rows kept"
        n_partitions = int(report.partition.max()) + 1
        many = f" in {n_partitions} partitions, each of all rows," if n_partitions > 1 else ""
        entries.append(("cells", f"{len(report):,}{many} with {kept}"))
    if reader.resolved.summary:
        decision = str(reader.resolved.summary["decision"])
        entries.append(("scale of features", SCALES.get(decision, decision)))
    entries += _choice(subject)
    if reader.interval is not None:
        entries += reader.interval.describe()
    elif reader.false_alarm is not None:
        entries += reader.false_alarm.describe(reader.meta["classes"]["values"])
    if seconds := reader.stage_s:
        longest = max(seconds, key=lambda name: seconds[name])
        name = STAGE_LABELS.get(longest, longest)
        told = f"{sum(seconds.values()):,.1f}, of which {seconds[longest]:,.1f} {name}"
        entries.append(("seconds of the fit", told))
    return entries


def _errors(subject: Subject) -> Entries:
    """Return scores of the test set, or the error of held-out rows; and what a constant scores."""
    measure, error = subject.measure, mean_error(subject.reader.report)
    if subject.evaluation is not None:
        first, *more = _scores(subject.evaluation.scores)
        return [first, ("baseline", _baseline(subject, subject.evaluation.scores)), *more]
    told = [] if error is None else [(measure.mean_name, measure.format_mean(error))]
    return [*told, ("baseline", _baseline(subject, None))] if told else []


def _baseline(subject: Subject, scores: Confusion | NumberScores | LevelScores | None) -> str:
    """Return what is right or wrong, as the error is measured, if every answer is the same."""
    reader, measure = subject.reader, subject.measure
    if not measure.is_share:
        constant = "mean" if reader.target.measured_as == "numbers" else "best constant"
        return f"always the {constant}: {measure.score_name} 0"
    labels, counts = reader.target.labels.tolist(), reader.meta.get("origin", {}).get("counts")
    if isinstance(scores, Confusion):
        labels, counts = scores.labels, scores.counts.sum(axis=1).tolist()
    if not counts:
        return "not known of a model of an earlier version"
    share, always = max(counts) / sum(counts), labels[np.argmax(counts)]
    how = f"{100 * (1 - share):.2f} % wrong" if scores is None else f"{100 * share:.2f} % right"
    return f"always {always}, the most frequent class: {how}"


def _scores(scores: Confusion | NumberScores | LevelScores) -> Entries:
    if isinstance(scores, Confusion):
        n_rows, n_right = int(scores.counts.sum()), int(scores.counts.trace())
        return [("accuracy", f"{100 * (n_right / n_rows):.2f} % of {n_rows:,} other rows")]
    if isinstance(scores, LevelScores):
        levels = ", ".join(f"{level:g}" for level in scores.levels[:MOST_COLUMNS])
        return [
            ("D2", f"{scores.d2.mean():.4f} of {scores.n_rows:,} other rows"),
            (f"D2 at {levels}", _columns(scores.d2, ".4f")),
            (f"share at or below {levels}", _columns(scores.covered, ".4f")),
        ]
    mean = f"{scores.r2.mean():.4f} of {scores.n_rows:,} other rows"
    if len(scores.r2) > 1:
        mean += f", the mean of {_columns(scores.r2, '.4f')}"
    return [
        ("R2", mean),
        ("RMSE", _columns(scores.rmse, ".4g")),
        ("mean absolute error", _columns(scores.mae, ".4g")),
    ]


def _columns(values: Float64, form: str) -> str:
    """Return the values of columns; of many columns, the first ones."""
    return listed([f"{value:{form}}" for value in values], MOST_COLUMNS)


def _choice(subject: Subject) -> Entries:
    reader = subject.reader
    if not find_loss(reader.spec).is_global:
        selected = getattr(subject.estimator, "selected_", None) or {}
        values = [(name, selected.get(name)) for name in ("C", "gamma")]
        return [(f"chosen {name}", f"{value:.3g}") for name, value in values if value is not None]
    # Without its error, which one of all rows follows.
    chosen = reader.resolved.describe_choice(reader.target.kind)[:2]
    coding = reader.resolved.summary.get("coding", "none")
    return chosen if coding == "none" else [("coding of features", coding), *chosen]


def find_parameters(estimator: Any) -> Entries:
    params, default = estimator.get_params(deep=False), type(estimator)().get_params(deep=False)
    return [
        (name, _short(value))
        for name, value in params.items()
        if name not in NOT_OF_MODEL and repr(value) != repr(default[name])
    ]


def _short(value: Any) -> str:
    """Return a value with four digits and six elements at most."""
    if isinstance(value, (list, tuple, np.ndarray)):
        shown = [_short(item) for item in list(value)[:6]]
        return f"[{', '.join(shown)}{', ...' if len(value) > 6 else ''}]"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def find_notes(subject: Subject) -> list[str]:
    """Return what the reader should check, each note with what to do."""
    report, scores = subject.reader.report, subject.evaluation and subject.evaluation.scores
    n_open = int(subject.method.count_open(report)) if len(report) else 0
    remedy = "solves ended before tol was reached: scale the features, or raise tol."
    notes = [f"{n_open:,} {remedy}"] if n_open else []
    # The warnings of the fit that can be derived from the model.
    notes += [message for _, message in subject.estimator._advice()]
    if scores is None:
        notes.append(
            f"No test set was given: the {subject.measure.mean_name} is that of rows used to "
            "select the model, and so slightly optimistic. With one, there are pictures of its "
            "predictions, too."
        )
    # The model's classes come first.
    elif isinstance(scores, Confusion) and len(scores.labels) > subject.reader.n_classes:
        n_unseen = len(scores.labels) - subject.reader.n_classes
        notes.append(f"Classes of the test set that the model has not seen: {n_unseen}.")
    return notes


# HTML


def page_of(report: Any) -> str:
    """Return a ReportDisplay as a page that fetches nothing: style and pictures are inside."""
    lines = "".join(f"<li>{escape(line)}</li>" for line in report.columns)
    listing = f"<br><h2>Columns</h2><ul>{lines}</ul>" if lines else ""
    title, parameters = escape(report.title), _table(report.parameters)
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes)
    notes = notes and f'<section class="notes"><h2>Notes</h2>{notes}</section>'
    figures = "".join(
        f"<figure><h2>{escape(panel.title)}</h2>{_picture(panel, SIZE)}"
        f"<figcaption>{escape(panel.note)}</figcaption></figure>"
        for panel in report.panels
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<style>{STYLE}</style></head>\n<body><h1>{title}</h1><div class="two">'
        f"<section><h2>Result</h2>{_table(report.facts)}</section>"
        f"<section><h2>Parameters</h2>{parameters or '<p>All by default.</p>'}{listing}"
        f'</section></div>{notes}<br><div class="panels">{figures}</div>'
        f"<footer><p>daskls {escape(__version__)}</p></footer></body></html>\n"
    )


def snippet_of(report: Any) -> str:
    """Return the results and, if matplotlib is installed, the first panel of `SHOWN`."""
    by_name = {panel.name: panel for panel in report.panels}
    panel = next((by_name[name] for name in SHOWN if name in by_name), None)
    picture = ""
    if panel is not None and find_spec("matplotlib"):
        picture = _picture(panel, SMALL_SIZE, f' title="{escape(panel.note)}" width="320"')
    facts = _table(report.facts)
    return f'<p>{escape(report.title)}</p><div style="{SNIPPET}">{facts}{picture}</div>'


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


def _picture(panel: Panel, size: tuple[float, float], more: str = "") -> str:
    """Return the picture of a panel as a tag that holds it; the size is in inches."""
    figure = import_matplotlib("figure").Figure(figsize=size, layout="constrained")
    content = BytesIO()
    with without_math():
        ax = figure.subplots()
        panel.draw(ax)
        ax.set_title("")
        figure.savefig(content, format="png", dpi=DPI)
    source = f"data:image/png;base64,{b64encode(content.getvalue()).decode('ascii')}"
    return f'<img alt="{escape(panel.title)}: {escape(panel.note)}"{more} src="{source}">'
