"""The weight of each feature in the distances of a model."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from daskls.errors import ParameterError
from daskls.plotting.lazy import new_axes
from daskls.plotting.plane import check_least
from daskls.records import Float64

__all__ = ["FeatureDisplay"]


@dataclass
class FeatureDisplay:
    """Bars of the importances of features: factor times spread, summing to 1.

    Of an estimator with ``feature_scale``; the heaviest features on top, what is left out of the
    picture as one bar.

    Make it with `from_estimator`.

    Parameters
    ----------
    importances : float array (n_shown,), decreasing
    names : list of str, one a bar
    rest : float. Sum of the importances that are not shown.
    n_left_out : int. Features with a factor of 0: they take no part in any distance.
    title : str. The decision that led to the scale.

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
    >>> model = VoronoiSVC(C=1, gamma=30, feature_scale="spread", random_state=0).fit(X, y)
    >>> display = FeatureDisplay.from_estimator(model).plot()
    >>> sorted(display.names)
    ['feature 0', 'feature 1']
    """

    importances: Float64
    names: list[str]
    rest: float
    n_left_out: int
    title: str
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
        estimator : fitted estimator with ``feature_scale``
        n_shown : int, >= 1. Bars, at the most.
        feature_names : sequence of str, or None: those of the columns trained on, if any

        Returns
        -------
        display : FeatureDisplay, not drawn yet

        Raises
        ------
        ParameterError : a model that takes rows as they are, or fewer than one bar
        """
        check_least("n_shown", n_shown, 1)
        if getattr(estimator, "feature_importances_", None) is None:
            raise ParameterError(
                f"This {type(estimator).__name__} takes rows as they are: its features have "
                'no importances; fit it with feature_scale="learned" or "spread".'
            )
        importances = estimator.feature_importances_
        names = feature_names
        if names is None:
            names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"feature {j}" for j in range(len(importances))]
        order = np.argsort(-importances, kind="stable")
        order = order[importances[order] > 0]
        shown = order[:n_shown]
        return cls(
            importances=importances[shown],
            names=[str(names[j]) for j in shown],
            rest=float(importances[order[n_shown:]].sum()),
            n_left_out=int((importances == 0).sum()),
            title=_told(estimator._reader.resolved.summary),
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
        colors = ["tab:blue"] * len(self.names) + ["lightgray"] * (len(values) - len(self.names))
        self.bars_ = ax.barh(range(len(values)), values, color=colors)
        ax.set_yticks(range(len(values)), names, fontsize=8)
        ax.invert_yaxis()
        ax.set_xlabel("share of the scale, factor x spread")
        left_out = f"; {self.n_left_out} left out" if self.n_left_out else ""
        ax.set_title(f"{self.title}{left_out}", fontsize=10)
        return self


def _told(summary: Any) -> str:
    """Return the decision in a few words."""
    name, z = str(summary["decision"]), summary.get("z", {})
    return f"scale: {name} (z = {z[name]:.1f})" if name in z else f"scale: {name}"
