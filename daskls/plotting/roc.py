"""The ROC curve of rows that a fit has held out."""

from dataclasses import dataclass, field
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.methods.roc import RocCurve, roc_of
from daskls.plotting.lazy import new_axes
from daskls.plotting.subject import BLUE, GRAY, ORANGE, Panel, Subject
from daskls.records import Float64

__all__ = ["RocDisplay", "roc"]


@dataclass
class RocDisplay:
    """The ROC curve of a classifier of two classes, of rows that it held out; needs no test set.

    With ``max_false_alarm`` the rows are those that the fit held out of everything. Else, where
    ``probability="auto"`` gave the model probabilities, each row is scored by its cell without it;
    what all cells share, such as kernel and width, has seen the rows. scikit-learn's
    ``RocCurveDisplay`` draws the curve, and of a test set
    ``RocCurveDisplay.from_estimator(model, X, y)`` does.

    Make it with `from_estimator`.

    Parameters
    ----------
    fpr : float array (n_points,). Share of the rows of ``classes_[0]`` above each threshold; 1000
        points at the most.
    tpr : float array (n_points,). Share of the rows of ``classes_[1]``.
    thresholds : float array (n_points,), falling. Of ``decision_function``.
    area : float. Below the curve through all points.
    predicted : (float, float). Both shares where `predict` parts the classes, at 0.
    n_negatives, n_positives : int. Rows of each class.
    max_false_alarm : float or None. The bound, drawn as a line.
    labels : (str, str). What the classes are called.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    display_ : scikit-learn's RocCurveDisplay
    marker_ : Line2D. The point of `predict`.

    Examples
    --------
    >>> from daskls import VoronoiSVC
    >>> from daskls.datasets import make_two_gaussians
    >>> X, y = make_two_gaussians(3000, d=2, random_state=0)
    >>> model = VoronoiSVC(max_false_alarm=0.1, random_state=0).fit(X, y)
    >>> display = RocDisplay.from_estimator(model).plot()
    >>> display.predicted[0] < 0.1 < 0.8 < display.area
    True
    """

    fpr: Float64
    tpr: Float64
    thresholds: Float64
    area: float
    predicted: tuple[float, float]
    n_negatives: int
    n_positives: int
    max_false_alarm: float | None = None
    labels: tuple[str, str] = ("0", "1")
    ax_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)
    display_: Any = field(default=None, init=False)
    marker_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Take the scores of held-out rows that a fitted estimator keeps.

        Parameters
        ----------
        estimator : fitted classifier of two classes

        Returns
        -------
        display : RocDisplay, not drawn yet

        Raises
        ------
        ParameterError : it is a regressor, has more classes, or keeps no such scores
        NotFittedError : an estimator that is not fitted
        """
        name = type(estimator).__name__
        if not hasattr(type(estimator), "_reader"):
            raise ParameterError(f"A {name} has no curve; pass a fitted classifier of daskls.")
        check_is_fitted(estimator)
        reader = estimator._reader
        if reader.n_classes != 2:
            got = f"{reader.n_classes} classes" if reader.n_classes else "numbers as targets"
            raise ParameterError(
                f"A ROC curve is of two classes, but this {name} has {got}. Fit one class against "
                "the rest."
            )
        curve = roc_of(reader)
        if curve is None:
            raise ParameterError(
                f"This {name} keeps no scores of held-out rows of both classes. Fit VoronoiSVC or "
                'RandomChunkSVC with max_false_alarm=..., or VoronoiSVC with probability="auto" '
                "and least squares; or draw scikit-learn's RocCurveDisplay.from_estimator of rows "
                "and labels."
            )
        bound = reader.false_alarm
        first, second = map(str, estimator.classes_)
        return cls(
            curve.fpr,
            curve.tpr,
            curve.thresholds,
            curve.area,
            curve.predicted,
            curve.n_negatives,
            curve.n_positives,
            None if bound is None else bound.rate,
            (first, second),
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
        from sklearn.metrics import RocCurveDisplay

        if ax is None:
            (ax,) = new_axes(1, (4.6, 4.2))[1]
        self.ax_, self.figure_ = ax, ax.figure
        drawn = RocCurveDisplay(fpr=self.fpr, tpr=self.tpr, roc_auc=self.area)
        style = {"color": BLUE, "lw": 1.6}
        chance = {"color": GRAY, "lw": 1, "ls": "--", "label": None}
        self.display_ = drawn.plot(
            ax=ax, curve_kwargs=style, plot_chance_level=True, chance_level_kw=chance
        )
        rate, found = self.predicted
        told = f"predict: {100 * found:.3g} % at {100 * rate:.2g} %"
        (self.marker_,) = ax.plot(rate, found, "o", color=ORANGE, ms=6, label=told, zorder=3)
        if self.max_false_alarm is not None:
            bound = f"max_false_alarm={self.max_false_alarm:g}"
            ax.axvline(self.max_false_alarm, color=ORANGE, lw=1, ls=":", label=bound)
        first, second = self.labels
        ax.set(xlabel=f"false alarms: share of {first}", ylabel=f"found: share of {second}")
        ax.legend(loc="lower right", fontsize=8)
        return self


def roc(subject: Subject) -> Panel | None:
    """Draw the curve in a report; None of a model without one."""
    curve = roc_of(subject.reader)
    if curve is None:
        return None
    display = RocDisplay.from_estimator(subject.estimator)

    def draw(ax: Any) -> None:
        display.plot(ax)

    return Panel("roc", "ROC", _note(curve), draw)


def _note(curve: RocCurve) -> str:
    """Return how to read a curve."""
    how = "that the fit did not see" if curve.is_reserved else "each scored by its cell without it"
    return f"{curve.n_negatives:,} and {curve.n_positives:,} training rows, {how}; dot: predict."
