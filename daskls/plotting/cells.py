"""Histograms of the cells' rows, validation errors, seconds and other fields of the report."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from daskls.errors import ParameterError
from daskls.live.record import MEASURES
from daskls.plotting.plane import new_axes, whole_numbers
from daskls.records import Reals

N_BINS = 30


@dataclass(repr=False)
class CellDisplay:
    """Histograms of fields of the report over the cells, each with its median.

    Make it with `from_estimator`.

    Parameters
    ----------
    values : dict field -> array. The field's values over the cells, without NaN.
    labels : dict field -> str. Labels of the axes that are not the field's name.

    Attributes
    ----------
    axes_ : array (n_fields,) of matplotlib Axes
    ax_ : matplotlib Axes. The first one.
    figure_ : matplotlib Figure
    bars_ : list of BarContainer

    Examples
    --------
    >>> from daskls import VoronoiSVC
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1200)
    >>> model = VoronoiSVC(cell_size=300, C=1, gamma=30, random_state=0).fit(X, y)
    >>> display = CellDisplay.from_estimator(model, fields=["n_rows"]).plot()
    >>> len(display.values["n_rows"]) == model.n_cells_
    True
    """

    values: dict[str, Reals]
    labels: dict[str, str] = field(default_factory=dict)
    axes_: Any = field(default=None, init=False)
    ax_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)
    bars_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        fields: Sequence[str] = ("n_rows", "validation_error", "seconds"),
    ) -> Self:
        """Take fields from a fitted estimator's `fit_report_`.

        Parameters
        ----------
        estimator : fitted estimator
        fields : sequence of str. Numeric fields of the report, one histogram each.

        Returns
        -------
        display : CellDisplay, not drawn yet

        Raises
        ------
        ParameterError : a field that the report does not have, or that is not numeric
        """
        report = estimator.fit_report_
        numbers = [n for n in report.dtype.names if report.dtype[n].kind in "if"]
        for name in fields:
            if name not in numbers:
                raise ParameterError(
                    f"fit_report_ has no number {name!r}; choose from {', '.join(numbers)}."
                )
        label = MEASURES[estimator._reader.target.measured_as].axis_label
        values = {name: report[name][~np.isnan(report[name])] for name in fields}
        return cls(values, {"validation_error": label})

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes for one field, a sequence of Axes for several, or None for a new figure

        Returns
        -------
        self

        Raises
        ------
        ParameterError : the number of axes is not that of fields
        """
        if ax is None:
            _, ax = new_axes(len(self.values), (3.6, 3.2))
        self.axes_ = np.atleast_1d(ax)
        if len(self.axes_) != len(self.values):
            raise ParameterError(
                f"ax holds {len(self.axes_)} axes, but {len(self.values)} fields are drawn; "
                "pass one for each field."
            )
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        self.bars_ = [
            _draw_histogram(axes, values, self.labels.get(name, name.replace("_", " ")))
            for axes, (name, values) in zip(self.axes_, self.values.items(), strict=True)
        ]
        self.ax_.set_ylabel("cells")
        return self


def _draw_histogram(ax: Any, values: Reals, label: str) -> Any:
    _, _, bars = ax.hist(values, bins=min(N_BINS, max(len(values), 1)), color="#5b8db8")
    ax.yaxis.set_major_locator(whole_numbers())
    if values.dtype.kind == "i":
        ax.xaxis.set_major_locator(whole_numbers())
    ax.set_xlabel(label)
    ax.spines[["top", "right"]].set_visible(False)
    if len(values):
        median = float(np.median(values))
        ax.axvline(median, color="#d96a00", linewidth=1.2)
        ax.set_title(f"median {median:.4g}", fontsize=9, color="#d96a00")
    return bars
