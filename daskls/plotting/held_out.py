"""What is drawn of held-out rows: panels about a test set, and the ROC curve.

The ROC curve needs no test set: it is that of training rows which the fit has held out itself.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.methods.held_out import RocCurve, roc_of
from daskls.plotting.evaluation import (
    BLUE,
    GRAY,
    ORANGE,
    HeldOutLevels,
    HeldOutNumbers,
    HeldOutResult,
    Panel,
    Subject,
)
from daskls.plotting.plane import new_axes, write_in_square
from daskls.records import Float64

# Of more classes only the lowest recalls are drawn.
MOST_CLASSES_DRAWN = 12
# More rows are counted in hexagons, as dots would hide each other.
MOST_DOTS = 1500
N_HEXAGONS = 35
# Fewer rows are not grouped: quantiles of so small groups mean little.
LEAST_GROUPED = 100
N_GROUPS = 10
# Intervals between ticks: more labels of large numbers run into each other.
MOST_TICKS = 4
NO_LABELS = "Left out: rows and labels of a test set were not given."
NO_NUMBERS = "Left out: rows and numbers of a test set were not given."


# Classifiers


def confusion(subject: Subject) -> Panel:
    """Return the panel of the confusion matrix; of many classes, of the lowest recalls."""
    panel = "confusion", "Confusion"
    if not isinstance(subject.evaluation, HeldOutResult):
        return Panel(*panel, NO_LABELS)
    found = subject.evaluation.confusion
    if len(found.labels) > MOST_CLASSES_DRAWN:
        note = f"The lowest recalls of {len(found.labels)} classes."
        return Panel(*panel, note, lambda ax: _draw_recalls(found, ax))
    note = "Rows of the test set: true class by row, predicted class by column."
    return Panel(*panel, note, lambda ax: _draw_confusion(found, ax))


def _draw_confusion(found: Any, ax: Any) -> None:
    """Draw counts as numbers, and as shades their shares of each true class."""
    # scikit-learn's ConfusionMatrixDisplay shades by the numbers: a rare class would be blank.
    shares = found.counts / np.maximum(found.counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (i, j), count in np.ndenumerate(found.counts):
        write_in_square(ax, j, i, f"{count:,}", light=bool(shares[i, j] > 0.5))
    names = list(map(str, found.labels))
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="predicted", ylabel="true")


def _draw_recalls(found: Any, ax: Any) -> None:
    """Draw the lowest recalls, with the rows of each class."""
    totals = found.counts.sum(axis=1)
    recall = found.counts.diagonal() / np.maximum(totals, 1)
    order = [i for i in np.argsort(recall, kind="stable") if totals[i]][:MOST_CLASSES_DRAWN]
    names = [f"{found.labels[i]} ({totals[i]:,})" for i in order]
    bars = ax.barh(names, recall[order], color="#9db7cf", edgecolor=BLUE)
    ax.bar_label(bars, fmt="%.3f", padding=3, fontsize=8)
    ax.invert_yaxis()
    ax.set(xlabel="recall; in brackets: rows", xlim=(0, 1.15))


def calibration(subject: Subject) -> Panel:
    """Return the panel of frequencies beside probabilities."""
    panel = "calibration", "Calibration"
    if not isinstance(subject.evaluation, HeldOutResult):
        return Panel(*panel, NO_LABELS)
    found = subject.evaluation.calibration
    if found is None:
        return Panel(*panel, "Left out: the model has no probabilities.")

    def draw(ax: Any) -> None:
        ax.plot([0, 1], [0, 1], "--", color=GRAY, lw=1)
        ax.plot(found.expected, found.observed, "o-", color=BLUE)
        ax.set(xlabel=f"probability of {found.of}", ylabel="share of rows", xlim=(0, 1))
        ax.set(ylim=(0, 1), aspect="equal")

    note = (
        f"Calibrated probabilities lie on the dashed line; mean distance {found.error:.3f}. "
        "Bins without rows are left out."
    )
    return Panel(*panel, note, draw)


# Regressors


def predictions(subject: Subject) -> Panel:
    """Return the panel of true numbers beside predicted ones."""
    panel = "answers", "Predictions"
    if not isinstance(subject.evaluation, HeldOutNumbers):
        return Panel(*panel, NO_NUMBERS)
    true, predicted, unit, note = _as_one_column(subject, subject.evaluation)

    def draw(ax: Any) -> None:
        ends = [min(true.min(), predicted.min()), max(true.max(), predicted.max())]
        _draw_rows(ax, predicted, true)
        ax.plot(ends, ends, "--", color=GRAY, lw=1)
        ax.set(xlabel=f"predicted{unit}", ylabel=f"true{unit}")
        ax.locator_params(axis="x", nbins=MOST_TICKS)

    note = f"Rows of the test set; exact predictions lie on the dashed line.{note}"
    return Panel(*panel, note, draw)


def residuals(subject: Subject) -> Panel:
    """Return the panel of residuals beside predictions."""
    panel = "residuals", "Residuals"
    if not isinstance(subject.evaluation, HeldOutNumbers):
        return Panel(*panel, NO_NUMBERS)
    true, predicted, unit, note = _as_one_column(subject, subject.evaluation)
    residual = true - predicted
    is_grouped = len(residual) >= LEAST_GROUPED

    def draw(ax: Any) -> None:
        _draw_rows(ax, predicted, residual)
        ax.axhline(0.0, color=GRAY, lw=1, ls="--")
        if is_grouped:
            _draw_groups(ax, predicted, residual)
        ax.set(xlabel=f"predicted{unit}", ylabel=f"true - predicted{unit}")
        ax.locator_params(axis="x", nbins=MOST_TICKS)

    note = f"Above 0: the prediction is too small.{note}"
    if is_grouped:
        note += " Orange: medians of tenths of the rows; 80 % lie between the dotted lines."
    return Panel(*panel, note, draw)


def _as_one_column(subject: Subject, found: HeldOutNumbers) -> tuple[Float64, Float64, str, str]:
    """Return true and predicted numbers as one column, (k,); their unit; and a note about them.

    Of several levels it is the one nearest to 1/2. Several columns, whose units may differ, are
    joined in units of their deviations.
    """
    true, predicted, unit, note = found.true, found.predicted, "", ""
    if isinstance(found, HeldOutLevels):
        at = int(np.argmin(np.abs(np.array(found.levels) - 0.5)))
        return true[:, at], predicted[:, at], unit, f" Of the level {found.levels[at]:g}."
    if true.shape[1] > 1:
        target = subject.reader.target
        # Centered, so that the columns' points lie in the same range.
        true, predicted = ((own - target.center) / target.scale for own in (true, predicted))
        unit, note = ", in deviations", f" All {found.true.shape[1]} columns, each around its mean."
    return true.ravel(), predicted.ravel(), unit, note


def _draw_rows(ax: Any, x: Float64, y: Float64) -> None:
    """Draw rows as dots; of many rows, the number in each hexagon."""
    # scikit-learn's PredictionErrorDisplay has dots only, of a sample of the rows.
    if len(x) <= MOST_DOTS:
        ax.scatter(x, y, s=9, color=BLUE, alpha=0.5, linewidths=0)
        return
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    # Without the palest colors, which are hardly visible on white.
    colors = ListedColormap(colormaps["Blues"](np.linspace(0.25, 1.0, 256)))
    counted: dict[str, Any] = {"bins": "log", "mincnt": 1, "linewidths": 0.1}
    hexagons = ax.hexbin(x, y, gridsize=N_HEXAGONS, cmap=colors, **counted)
    ax.figure.colorbar(hexagons, ax=ax, label="rows", shrink=0.8)


def _draw_groups(ax: Any, x: Float64, y: Float64) -> None:
    """Draw the median and the 10 % and 90 % quantiles of y in tenths of the rows, ordered by x."""
    parts = np.array_split(np.argsort(x, kind="stable"), N_GROUPS)
    middle = [float(np.median(x[part])) for part in parts]
    low, median, high = np.array([np.quantile(y[part], [0.1, 0.5, 0.9]) for part in parts]).T
    ax.plot(middle, median, "o-", color=ORANGE, lw=1.6, ms=3)
    for side in (low, high):
        ax.plot(middle, side, color=ORANGE, lw=1, ls=":")


# ROC curves


@dataclass(repr=False)
class RocDisplay(RocCurve):
    """The ROC curve of a classifier of two classes on rows that its fit held out.

    With ``max_false_alarm`` these rows were held out of the whole fit. Otherwise, if
    ``probability="auto"`` gave the model probabilities, each row is scored by a model of its cell
    without that row; but the rows helped to choose what all cells share, such as kernel and width.
    scikit-learn's ``RocCurveDisplay`` draws the curve. No test set is needed; for the curve of a
    test set use ``RocCurveDisplay.from_estimator(model, X, y)``.

    Make it with `from_estimator`.

    Parameters
    ----------
    fpr : float array (n_points,). Share of the rows of ``classes_[0]`` above each threshold; at
        most 1000 points.
    tpr : float array (n_points,). Share of the rows of ``classes_[1]`` above each threshold.
    thresholds : float array (n_points,), decreasing. Values of ``decision_function``.
    area : float. Area under the curve through all points, before points were left out.
    predicted : (float, float). Both shares at the threshold of `predict`, 0.
    n_negatives, n_positives : int. Rows of each class.
    max_false_alarm : float or None. The bound, drawn as a line.
    labels : (str, str). Names of the classes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    display_ : scikit-learn's RocCurveDisplay
    marker_ : Line2D. The point of `predict`.

    Examples
    --------
    >>> from daskls import VoronoiSVC
    >>> from daskls.datasets import make_two_spirals
    >>> X, y = make_two_spirals(3000, random_state=0)
    >>> model = VoronoiSVC(max_false_alarm=0.1, random_state=0).fit(X, y)
    >>> display = RocDisplay.from_estimator(model).plot()
    >>> display.predicted[0] < 0.1 < 0.8 < display.area
    True
    """

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
        ParameterError : a regressor, a classifier of more classes, or one that keeps no such scores
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
                f"A ROC curve needs two classes, but this {name} has {got}. Fit one class against "
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
        rate = None if bound is None else bound.rate
        return cls(**vars(curve), max_false_alarm=rate, labels=(first, second))

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
        label = f"predict: {100 * found:.3g} % at {100 * rate:.2g} %"
        (self.marker_,) = ax.plot(rate, found, "o", color=ORANGE, ms=6, label=label, zorder=3)
        if self.max_false_alarm is not None:
            bound = f"max_false_alarm={self.max_false_alarm:g}"
            ax.axvline(self.max_false_alarm, color=ORANGE, lw=1, ls=":", label=bound)
        first, second = self.labels
        ax.set(xlabel=f"false alarms: share of {first}", ylabel=f"found: share of {second}")
        ax.legend(loc="lower right", fontsize=8)
        return self


def roc(subject: Subject) -> Panel | None:
    """Return the panel of the ROC curve; None for a model without one."""
    curve = roc_of(subject.reader)
    if curve is None:
        return None
    is_reserved = subject.reader.false_alarm is not None
    how = "that the fit did not see" if is_reserved else "each scored by its cell without it"
    note = f"{curve.n_negatives:,} and {curve.n_positives:,} training rows, {how}; dot: predict."
    return Panel("roc", "ROC", note, RocDisplay.from_estimator(subject.estimator).plot)
