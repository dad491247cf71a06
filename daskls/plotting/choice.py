"""Choices of a fit: the weights of features in distances, and the best of a FalkSVC's candidates.

The choices of cells that search a grid each are drawn by `grid`.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.live.record import MEASURES, Measure
from daskls.plotting.evaluation import BLUE
from daskls.plotting.plane import check_least, name_features, new_axes, write_in_square
from daskls.records import Float64, Int64


@dataclass(repr=False)
class FeatureDisplay:
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
    ax_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)
    bars_: Any = field(default=None, init=False)

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
        title = _describe_decision(estimator._reader.resolved.summary)
        return cls._of(importances, names, n_shown, title)

    @classmethod
    def _of(
        cls, importances: Float64, names: list[str], n_shown: int, title: str, **texts: str
    ) -> Self:
        order = np.argsort(-importances, kind="stable")
        order = order[importances[order] > 0]
        shown = order[:n_shown]
        return cls(
            importances=importances[shown],
            names=[names[j] for j in shown],
            rest=float(importances[order[n_shown:]].sum()),
            n_left_out=int((importances == 0).sum()),
            title=title,
            **texts,
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or None for a new figure

        Returns
        -------
        self

        Raises
        ------
        ImportError : no ``ax``, and matplotlib is not installed
        """
        values, names = list(self.importances), list(self.names)
        if self.rest > 0:
            values.append(self.rest)
            names.append("all others")
        if ax is None:
            _, (ax,) = new_axes(size=(5.0, 1.2 + 0.24 * len(values)))
        self.ax_, self.figure_ = ax, ax.figure
        colors = [BLUE] * len(self.names) + ["lightgray"] * (len(values) - len(self.names))
        self.bars_ = ax.barh(range(len(values)), values, color=colors)
        ax.set_yticks(range(len(values)), names, fontsize=8)
        ax.invert_yaxis()
        ax.set_xlabel(self.label)
        left_out = f"; {self.n_left_out} left out" if self.n_left_out else ""
        ax.set_title(f"{self.title}{left_out}", fontsize=10)
        return self


def columns_of(estimator: Any) -> tuple[list[str], Int64]:
    """Return the names of what was given as columns, and the number of each feature's column."""
    table = getattr(estimator, "table_", None)
    if table is not None:
        widths = [len(column.feature_names) for column in table.columns]
        return table.column_names, np.repeat(np.arange(len(widths)), widths)
    # Marks of missing values are no columns.
    names = name_features(None, estimator)[: estimator._reader.n_columns]
    return names, np.arange(len(names))


def _describe_decision(summary: Any) -> str:
    name, z = str(summary["decision"]), summary.get("z", {})
    return f"scale: {name} (z = {z[name]:.1f})" if name in z else f"scale: {name}"


@dataclass(repr=False)
class SelectionDisplay:
    """Heat maps of the errors of all candidates: width against C, for each number of neighbors.

    For a `FalkSVC` with ``selection="local"``. The chosen candidate is framed. An
    error that falls toward an edge means that a better value may lie beyond it.

    Make it with `from_estimator`.

    Parameters
    ----------
    errors : float array (n_k, n_widths, n_costs)
    n_neighbors : list of int
    width_labels : list of str, widest first
    cost_labels : list of str
    chosen : tuple of int. Index of the chosen candidate in ``errors``.
    measure : Measure. How errors are named and written.

    Attributes
    ----------
    axes_ : array (n_k,) of matplotlib Axes
    figure_ : matplotlib Figure
    images_ : list of AxesImage
    frame_ : Rectangle around the chosen candidate

    Examples
    --------
    >>> from daskls import FalkSVC
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1200)
    >>> model = FalkSVC(n_neighbors=[50, 100], C=[1, 10], selection="local", random_state=0)
    >>> display = SelectionDisplay.from_estimator(model.fit(X, y)).plot()
    >>> display.n_neighbors
    [50, 100]
    """

    errors: Float64
    n_neighbors: list[int]
    width_labels: list[str]
    cost_labels: list[str]
    chosen: tuple[int, ...]
    measure: Measure
    axes_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)
    images_: Any = field(default=None, init=False)
    frame_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Take the errors that a fitted estimator keeps.

        Parameters
        ----------
        estimator : fitted FalkSVC with ``selection="local"``, or KNNSVC

        Returns
        -------
        display : SelectionDisplay, not drawn yet

        Raises
        ------
        ParameterError : the estimator has made no selection for all its neighborhoods together, or
            does not keep the errors of all candidates
        """
        check_is_fitted(estimator)
        selected = getattr(estimator, "selected_", None)
        if selected is None:
            raise ParameterError(
                f"This {type(estimator).__name__} has made no selection for all neighborhoods; "
                'SelectionDisplay draws that of a FalkSVC with selection="local", or of a '
                "KNNSVC."
            )
        if "errors" not in selected:
            raise ParameterError(
                f"A {type(estimator).__name__} stores only the chosen candidate, in selected_; "
                "SelectionDisplay draws the errors of all candidates, which a FalkSVC stores."
            )
        errors = np.array(selected["errors"])
        meta, spec = estimator._reader.meta, estimator._reader.spec
        candidates = sorted({min(k, meta["n_rows"]) for k in meta["method"]["n_neighbors"]})
        percentiles = meta["method"]["percentiles"]
        if percentiles is not None:
            widths = [f"{p:g} %" for p in percentiles]
            width = percentiles.index(selected["percentile"])
        else:
            values = sorted(meta["spec"]["gamma"] or spec.gamma or [1.0])
            widths = [f"{gamma:.3g}" for gamma in values]
            width = values.index(selected["gamma"]) if selected["gamma"] in values else 0
        costs = sorted(meta["spec"]["C"])
        return cls(
            errors=errors,
            measure=MEASURES[estimator._reader.target.measured_as],
            n_neighbors=candidates,
            width_labels=widths,
            cost_labels=[f"{C:.3g}" for C in costs],
            # Not the place of the smallest error: that may be a candidate which was dropped early,
            # after it erred less on few rows.
            chosen=(candidates.index(selected["n_neighbors"]), width, costs.index(selected["C"])),
        )

    def of_chosen(self) -> Self:
        """Return a display of the chosen number of neighbors only.

        Returns
        -------
        display : SelectionDisplay, not drawn yet
        """
        k, *place = self.chosen
        return replace(
            self, errors=self.errors[[k]], n_neighbors=[self.n_neighbors[k]], chosen=(0, *place)
        )

    def plot(self, axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, one per number of neighbors, or None for a new figure

        Returns
        -------
        self

        Raises
        ------
        ImportError : no ``axes``, and matplotlib is not installed
        """
        from matplotlib.patches import Rectangle

        if axes is None:
            _, axes = new_axes(len(self.n_neighbors), (3.6, 3.4))
        self.axes_, self.figure_ = axes, axes[0].figure
        errors = self.measure.factor * self.errors
        low, high = errors.min(), errors.max()
        self.images_ = []
        for ax, k, values in zip(axes, self.n_neighbors, errors, strict=True):
            image = ax.imshow(
                values, origin="lower", cmap="viridis_r", aspect="auto", vmin=low, vmax=high
            )
            self.images_.append(image)
            self._write(ax, values, (low + high) / 2)
            ax.set_xticks(range(values.shape[1]), self.cost_labels)
            ax.set_yticks(range(values.shape[0]), self.width_labels)
            ax.set(xlabel="C", title=f"k = {k}")
        axes[0].set_ylabel("percentile of distances" if "%" in self.width_labels[0] else "gamma")
        self.figure_.colorbar(self.images_[-1], ax=list(axes), label=self.measure.label)
        k, g, c = self.chosen
        place: dict[str, Any] = {"xy": (c - 0.5, g - 0.5), "width": 1, "height": 1}
        # White inside black, which is visible on every color.
        axes[k].add_patch(Rectangle(**place, fill=False, edgecolor="black", lw=4.5, clip_on=False))
        self.frame_ = Rectangle(**place, fill=False, edgecolor="white", lw=2, clip_on=False)
        axes[k].add_patch(self.frame_)
        return self

    @staticmethod
    def _write(ax: Any, errors: Float64, middle: float) -> None:
        for (i, j), value in np.ndenumerate(errors):
            write_in_square(ax, j, i, f"{value:.3g}", light=bool(value > middle))


def has_selection(estimator: Any) -> bool:
    selected = getattr(estimator, "selected_", None) or {}
    return "errors" in selected and "percentile" in selected
