"""A whole fit on one page: results, parameters, notes and pictures."""

import os
from base64 import b64encode
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from daskls._version import __version__
from daskls.errors import ParameterError
from daskls.methods.base import method_of
from daskls.plotting.evaluation import (
    Entries,
    FittedModel,
    Panel,
    evaluate,
    find_columns,
    find_facts,
    find_notes,
    find_parameters,
    find_title,
)
from daskls.plotting.panels import find_panels
from daskls.plotting.plane import import_matplotlib, without_math
from daskls.store.errors import disk_errors, exists_already

# Inches: A4, landscape; and the size of text for six pictures on it.
PAGE = (11.7, 8.3)
SMALL_TEXT = {"font.size": 7.5, "legend.fontsize": "small"}
# Letters that fit on a line across the page: the notes above pictures, and parameters and notes.
LINE_LETTERS, RIGHT_LETTERS = 138, 112
# Lines of the columns of a table; the page in a browser has all.
MOST_LINES = 8
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


@dataclass(repr=False)
class ReportDisplay:
    """A fit on one page: results, parameters, notes and pictures.

    The pictures show confusion, the ROC curve of two classes, and calibration, or for a regressor
    predictions beside true numbers, and residuals; then importances, partition, errors and grid. A
    picture that would show nothing is left out: most of the first ones need a test set. `to_html`
    returns the report as a page for a browser.

    Make it with `from_estimator`.

    Parameters
    ----------
    title : str
    facts : list of (name, value). Results: rows, errors beside a baseline, cells, seconds.
    parameters : list of (name, value). Those that differ from the estimator's defaults.
    notes : list of str. What the reader should check, each with what to do.
    panels : list of Panel. The pictures, each with ``name``, ``title``, ``note`` and ``draw``.
    columns : list of str. What became of a table's columns, and which were left out.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : dict name -> matplotlib Axes. One per panel.

    Examples
    --------
    >>> from daskls import VoronoiSVC
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1200)
    >>> model = VoronoiSVC(cell_size=300, C=1, gamma=30, random_state=0).fit(X[:900], y[:900])
    >>> display = ReportDisplay.from_estimator(model, X[900:], y[900:]).plot()
    >>> list(display.axes_)
    ['confusion', 'roc', 'calibration', 'features', 'partition', 'errors']
    >>> display.to_html().startswith("<!doctype html>")
    True
    """

    title: str
    facts: Entries
    parameters: Entries
    notes: list[str]
    panels: list[Panel]
    columns: list[str] = field(default_factory=list)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, y: Any = None) -> Self:
        """Collect what a report shows of a fitted estimator.

        Parameters
        ----------
        estimator : fitted classifier or regressor of daskls, of any method
        X : a test set, as `predict` takes it, or the path of a data set; or None. Confusion, ROC
            curve and calibration, or predictions and residuals, are drawn of it; so are the cells
            in more than two features, and importances: by how much the score falls if a column is
            shuffled.
        y : array (m,) of its labels, or of its numbers, then also (m, t): NumPy, Dask or Zarr; of a
            table also the name of the column. None: that of the training table, or of the data set.

        Returns
        -------
        display : ReportDisplay, not drawn yet

        Raises
        ------
        ParameterError : an estimator of another package, or y without X
        NotFittedError : an estimator that is not fitted
        DataError : a test set without rows, or with another number of labels; for a regressor, y
            that is not numeric
        """
        if not hasattr(type(estimator), "_reader"):
            raise ParameterError(
                f"The estimator is a {type(estimator).__name__}; a report needs a fitted "
                "classifier or regressor of daskls."
            )
        check_is_fitted(estimator)
        if X is None and y is not None:
            raise ParameterError("y is given without X; pass the rows that these values belong to.")
        reader = estimator._reader
        evaluation = None
        if X is not None:
            with estimator._test_rows(X, y) as rows:
                evaluation = evaluate(estimator, *rows)
        fitted = FittedModel(estimator, reader, method_of(reader.method), evaluation)
        return cls(
            title=find_title(estimator),
            facts=find_facts(fitted),
            parameters=find_parameters(estimator),
            notes=find_notes(fitted),
            panels=find_panels(fitted),
            columns=find_columns(estimator),
        )

    def plot(self, figure: Any = None) -> Self:
        """Draw the page.

        Parameters
        ----------
        figure : matplotlib Figure to draw in, or None for a new one in A4 landscape

        Returns
        -------
        self

        Raises
        ------
        ImportError : no ``figure``, and matplotlib is not installed
        """
        if figure is None:
            figure = import_matplotlib("pyplot").figure(figsize=PAGE, layout="constrained")
        with without_math(**SMALL_TEXT):
            self._draw(figure)
        return self

    def _draw(self, figure: Any) -> None:
        self.figure_ = figure
        columns = [f"{name}: {value}" for name, value in self.facts], self._right()
        # The head is as high as its longer column.
        inches = 0.45 + 0.155 * max(map(len, columns))
        head, body = figure.subfigures(2, 1, height_ratios=[inches, PAGE[1] - inches])
        head.suptitle(self.title, x=0.01, ha="left", fontsize=13, weight="bold")
        for x, lines in zip((0.01, 0.4), columns, strict=True):
            place = {"va": "top", "fontsize": 8, "linespacing": 1.35}
            head.text(x, 1 - 0.42 / inches, "\n".join(lines), **place)
        n_rows = 2 if len(self.panels) > 3 else 1
        n_columns = max(-(-len(self.panels) // n_rows), 1)
        axes = body.subplots(n_rows, n_columns, squeeze=False).ravel()
        self.axes_ = {panel.name: ax for panel, ax in zip(self.panels, axes, strict=False)}
        for ax in axes[len(self.panels) :]:
            ax.set_axis_off()
        for panel in self.panels:
            ax = self.axes_[panel.name]
            panel.draw(ax)
            # Instead of the display's own title. Its only formula is what is bold: dollar signs of
            # names are no others.
            bold = panel.title.replace(" ", r"\ ")
            note = wrap(panel.note.replace("$", r"\$"), LINE_LETTERS // n_columns)
            title = "\n".join([rf"$\bf{{{bold}}}$", *note])
            ax.set_title(title, fontsize=7.5, color="black", parse_math=True)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as a page of HTML that needs no other file, and optionally write it.

        Parameters
        ----------
        path : where to write the page; must not exist. None: nowhere.

        Returns
        -------
        page : str

        Raises
        ------
        ImportError : matplotlib is not installed
        StoreError : ``path`` exists, or its disk is full
        """
        page = _page_of(self)
        if path is not None:
            target = Path(path).expanduser()
            with disk_errors(target, "write the report again"):
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("x", encoding="utf-8") as file:
                        file.write(page)
                except FileExistsError as error:
                    raise exists_already(target) from error
        return page

    def _right(self) -> list[str]:
        params = ", ".join(f"{name}={value}" for name, value in self.parameters) or "all by default"
        texts = [f"Parameters: {params}", *(f"Note: {note}" for note in self.notes)]
        lines = [line for text in texts for line in wrap(text, RIGHT_LETTERS)]
        columns = f"Columns: {'; '.join(self.columns)}" if self.columns else ""
        return lines + wrap(columns, RIGHT_LETTERS, max_lines=MOST_LINES)


def _page_of(report: Any) -> str:
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


def summary_of(estimator: Any) -> str:
    """Return the HTML that a notebook shows of a fitted estimator: its results and one picture."""
    report = ReportDisplay.from_estimator(estimator)
    by_name = {panel.name: panel for panel in report.panels}
    panel = next((by_name[name] for name in SHOWN if name in by_name), None)
    picture = ""
    if panel is not None and find_spec("matplotlib"):
        picture = _picture(panel, SMALL_SIZE, f' title="{escape(panel.note)}" width="320"')
    facts = _table(report.facts)
    return f'<p>{escape(report.title)}</p><div style="{SNIPPET}">{facts}{picture}</div>'


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
