"""A whole fit on one page: results, parameters, notes and pictures."""

import os
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.methods.base import method_of
from daskls.plotting.evaluation import Panel, Subject, evaluate
from daskls.plotting.notes import (
    Entries,
    find_facts,
    find_notes,
    find_parameters,
    page_of,
    snippet_of,
    write_new,
)
from daskls.plotting.panels import find_panels
from daskls.plotting.plane import import_matplotlib

# Inches: A4, landscape.
PAGE = (11.7, 8.3)
# Letters that fit on a line across the page: the notes above pictures, and parameters and notes.
LINE_LETTERS, RIGHT_LETTERS = 138, 112


@dataclass(repr=False)
class ReportDisplay:
    """A fit on one page: results, parameters, notes and pictures.

    The pictures show partition, errors, grid, times, confusion and calibration; for a regressor the
    last two are predictions beside true numbers, and residuals. A model of two classes that keeps
    scores of held-out rows also has a ROC curve, see `RocDisplay`. Where there is nothing to draw,
    the page says why. `to_html` returns the report as a page for a browser.

    Make it with `from_estimator`.

    Parameters
    ----------
    title : str
    facts : list of (name, value). Results: rows, cells, errors, seconds.
    parameters : list of (name, value). Those that differ from the estimator's defaults.
    notes : list of str. What the reader should check, each with what to do.
    panels : list of Panel. The pictures, each with ``name``, ``title``, ``note`` and ``draw``,
        which is None where there is nothing to draw: the note then says why.

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
    ['partition', 'errors', 'grid', 'times', 'confusion', 'calibration', 'roc']
    >>> display.to_html().startswith("<!doctype html>")
    True
    """

    title: str
    facts: Entries
    parameters: Entries
    notes: list[str]
    panels: list[Panel]
    figure_: Any = field(default=None, init=False)
    axes_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, y: Any = None) -> Self:
        """Collect what a report shows of a fitted estimator.

        Parameters
        ----------
        estimator : fitted classifier or regressor of daskls, of any method
        X : array (m, d) of a test set: NumPy, Dask, Zarr or the path of one, a data set, a frame;
            or None. Confusion and calibration, or predictions and residuals, are drawn of it; so is
            the picture of cells in more than two features.
        y : array (m,) of its labels, or of its numbers, then also (m, t): NumPy, Dask or Zarr;
            None if X is the path of a data set

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
        evaluation = None if X is None else evaluate(estimator, X, y)
        subject = Subject(estimator, reader, method_of(reader.method), evaluation)
        return cls(
            title=f"{type(estimator).__name__}: {reader.meta['n_rows']:,} rows",
            facts=find_facts(subject),
            parameters=find_parameters(estimator),
            notes=find_notes(subject),
            panels=find_panels(subject),
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
        self.figure_ = figure
        left = [f"{name}: {value}" for name, value in self.facts]
        right = self._right()
        # The head is as high as its longer column.
        inches = 0.45 + 0.155 * max(len(left), len(right))
        head, body = figure.subfigures(2, 1, height_ratios=[inches, PAGE[1] - inches])
        head.suptitle(self.title, x=0.01, ha="left", fontsize=13, weight="bold")
        for x, lines in ((0.01, left), (0.4, right)):
            place = {"va": "top", "fontsize": 8, "linespacing": 1.35}
            head.text(x, 1 - 0.42 / inches, "\n".join(lines), **place)
        n_columns = -(-len(self.panels) // 2)
        axes = body.subplots(2, n_columns).ravel()
        self.axes_ = {panel.name: ax for panel, ax in zip(self.panels, axes, strict=False)}
        for ax in axes[len(self.panels) :]:
            ax.set_axis_off()
        for panel in self.panels:
            _draw(panel, self.axes_[panel.name], LINE_LETTERS // n_columns)
        for ax in body.axes:
            _shrink(ax)
        return self

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
        page = page_of(self.title, self.facts, self.parameters, self.notes, self.panels)
        if path is not None:
            write_new(path, page)
        return page

    def _right(self) -> list[str]:
        given = ", ".join(f"{name}={value}" for name, value in self.parameters) or "all by default"
        lines = wrap(f"Parameters: {given}", RIGHT_LETTERS)
        for note in self.notes:
            lines += wrap(f"Note: {note}", RIGHT_LETTERS)
        return lines


def summary_of(estimator: Any) -> str:
    """Return the HTML that a notebook shows of a fitted estimator: its results and one picture."""
    display = ReportDisplay.from_estimator(estimator)
    return snippet_of(display.facts, display.panels)


def _draw(panel: Panel, ax: Any, n_letters: int) -> None:
    """Draw one panel, or write why there is nothing to draw; lines have ``n_letters`` at most."""
    if panel.draw is None:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("#c9cdd2")
        text = "\n".join(wrap(panel.note, n_letters - 10))
        ax.text(0.5, 0.5, text, ha="center", va="center", fontsize=9, transform=ax.transAxes)
        ax.set_title(panel.title, fontsize=9, weight="bold")
        return
    panel.draw(ax)
    # Replaces the title that the display has set.
    bold = panel.title.replace(" ", r"\ ")
    lines = [rf"$\bf{{{bold}}}$", *wrap(panel.note, n_letters)]
    ax.set_title("\n".join(lines), fontsize=7.5, color="black")


def _shrink(ax: Any) -> None:
    """Make the fonts of axes, color bars and legends small enough for six pictures on a page."""
    ax.tick_params(labelsize=7.5)
    legend = ax.get_legend()
    for text in legend.get_texts() if legend is not None else ():
        text.set_fontsize(6.5)
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set_fontsize(8)
