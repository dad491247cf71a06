"""Bars: histograms of fields of the report over the cells, and importances of features."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.live.record import MEASURES
from daskls.plotting.evaluation import BLUE, ORANGE
from daskls.plotting.plane import SingleAxesDisplay, check_least, columns_of
from daskls.records import Float64, Reals

N_BINS = 30


@dataclass(repr=False)
class CellDisplay(SingleAxesDisplay):
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

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, fields: Sequence[str] = ("n_rows", "validation_error", "seconds")
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

    @property
    def _layout(self) -> tuple[int, tuple[float, float]]:
        return len(self.values), (3.6, 3.2)

    def _draw(self, *axes: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        whole = {"nbins": 6, "integer": True, "min_n_ticks": 1}
        self.bars_ = []
        for ax, (name, values) in zip(axes, self.values.items(), strict=True):
            bins = min(N_BINS, max(len(values), 1))
            self.bars_.append(ax.hist(values, bins=bins, color="#5b8db8")[2])
            ax.yaxis.set_major_locator(MaxNLocator(**whole))
            if values.dtype.kind == "i":
                ax.xaxis.set_major_locator(MaxNLocator(**whole))
            ax.set_xlabel(self.labels.get(name, name.replace("_", " ")))
            ax.spines[["top", "right"]].set_visible(False)
            if len(values):
                median = float(np.median(values))
                ax.axvline(median, color=ORANGE, linewidth=1.2)
                ax.set_title(f"median {median:.4g}", fontsize=9, color=ORANGE)
        self.ax_.set_ylabel("cells")


@dataclass(repr=False)
class FeatureDisplay(SingleAxesDisplay):
    """A bar for the importance of each feature: its factor times its spread, summing to 1.

    For a model with a learned or given ``feature_scale``; of a table a bar is a column, with all
    features that it became. The most important come first; one bar sums up all that are not shown.

    Make it with `from_estimator`.

    Parameters
    ----------
    importances : float array (n_shown,), decreasing
    names : list of str, one per bar
    rest : float. Sum of the importances that are not shown.
    n_left_out : int. Features with a factor of 0, which take no part in any distance.
    title : str. How the scale was decided.
    label : str. What the bars measure.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : BarContainer

    Examples
    --------
    >>> from daskls import VoronoiSVC
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1200)
    >>> model = VoronoiSVC(C=1, gamma=30, feature_scale=[1, 2], random_state=0).fit(X, y)
    >>> display = FeatureDisplay.from_estimator(model).plot()
    >>> display.names
    ['feature 1', 'feature 0']
    """

    importances: Float64
    names: list[str]
    rest: float
    n_left_out: int
    title: str
    label: str = "share of the scale, factor x spread"

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_shown: int = 20, feature_names: Any = None
    ) -> Self:
        """Take the importances of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with ``feature_importances_``
        n_shown : int, >= 1. The most bars.
        feature_names : sequence of str, or None: those of the columns trained on, if any

        Returns
        -------
        display : FeatureDisplay, not drawn yet

        Raises
        ------
        ParameterError : a model without importances, or ``n_shown`` below 1
        """
        check_least("n_shown", n_shown, 1)
        check_is_fitted(estimator)
        try:
            importances = estimator.feature_importances_
        except AttributeError as error:
            raise ParameterError(str(error)) from error
        names, owner = columns_of(estimator)
        if len(importances) > len(names):
            importances = np.bincount(owner, importances)
        names = names if feature_names is None else [*map(str, feature_names)]
        summary: Any = estimator._reader.resolved.summary
        decision, z = str(summary["decision"]), summary.get("z", {})
        told = f" (z = {z[decision]:.1f})" if decision in z else ""
        return cls._of(importances, names, n_shown, f"scale: {decision}{told}")

    @classmethod
    def _of(
        cls, importances: Float64, names: list[str], n_shown: int, title: str, **texts: str
    ) -> Self:
        order = np.argsort(-importances, kind="stable")
        order = order[importances[order] > 0]
        shown, rest = order[:n_shown], float(importances[order[n_shown:]].sum())
        n_left_out = int((importances == 0).sum())
        named = [names[j] for j in shown]
        return cls(importances[shown], named, rest, n_left_out, title, **texts)

    def _draw(self, *axes: Any) -> None:
        ax, is_more = axes[0], self.rest > 0
        values = [*self.importances, *[self.rest] * is_more]
        colors = [BLUE] * len(self.names) + ["lightgray"] * is_more
        self.bars_ = ax.barh(range(len(values)), values, color=colors)
        ax.set_yticks(range(len(values)), [*self.names, *["all others"] * is_more], fontsize=8)
        ax.invert_yaxis()
        ax.set_xlabel(self.label)
        left_out = f"; {self.n_left_out} left out" if self.n_left_out else ""
        ax.set_title(f"{self.title}{left_out}", fontsize=10)

    @property
    def _layout(self) -> tuple[int, tuple[float, float]]:
        return 1, (5.0, 1.2 + 0.24 * (len(self.names) + (self.rest > 0)))
