"""Pictures of held-out rows: panels about a test set, and the ROC curve."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.methods.held_out import RocPoints, of_both, roc_of
from daskls.plotting.evaluation import BLUE, GRAY, ORANGE, FittedModel, Panel
from daskls.plotting.plane import SingleAxesDisplay
from daskls.plotting.slices import name_numbers
from daskls.records import Codes, Float64

# Of scikit-learn's pictures of numbers: name, title and note.
OF_TEST_NUMBERS = {
    "actual_vs_predicted": ("answers", "Predictions", "exact predictions lie on the dashed line."),
    "residual_vs_predicted": ("residuals", "Residuals", "above 0 the prediction is too small."),
}
# Of more classes the numbers would run into each other.
MOST_CLASSES_WRITTEN = 12
# The share of fewer rows of a bin of probabilities is chance.
N_TENTHS, LEAST_IN_BIN = 10, 10


def confusion(fitted: FittedModel) -> Panel | None:
    if fitted.evaluation is None:
        return None
    scores: Any = fitted.evaluation.scores
    written = len(scores.labels) <= MOST_CLASSES_WRITTEN

    def draw(ax: Any) -> None:
        from sklearn.metrics import ConfusionMatrixDisplay

        # From the counts of all rows.
        shown = ConfusionMatrixDisplay(scores.counts, display_labels=scores.labels)
        style = {"include_values": written, "values_format": ",", "cmap": "Blues"}
        shown.plot(ax=ax, colorbar=not written, **style)
        if not written:
            ax.set(xticks=[], yticks=[])

    note = "Rows of the test set: true class by row, predicted class by column."
    return Panel("confusion", "Confusion", note, draw)


def calibration(fitted: FittedModel) -> Panel | None:
    """Return the panel of frequencies beside probabilities."""
    scores = fitted.evaluation
    if scores is None or scores.probable is None:
        return None
    classes = fitted.estimator.classes_
    which, of = np.ones(len(scores.true), int), f"class {classes[1]}"
    if len(classes) > 2:
        which, of = scores.probable.argmax(axis=1), "the likeliest class"
    probable = np.take_along_axis(scores.probable, which[:, None], axis=1)[:, 0]
    is_named = scores.true == classes[which]
    # scikit-learn's bins, each closed at its right end.
    bins = np.searchsorted(np.linspace(0, 1, N_TENTHS + 1)[1:-1], probable)
    shown = np.bincount(bins)[bins] >= LEAST_IN_BIN
    if not shown.any():
        return None

    def draw(ax: Any) -> None:
        from sklearn.calibration import CalibrationDisplay

        own = is_named[shown], probable[shown]
        CalibrationDisplay.from_predictions(*own, n_bins=N_TENTHS, ax=ax, color=BLUE)
        ax.set(xlabel=f"probability of {of}", ylabel="share of rows", aspect="equal")
        ax.get_legend().remove()

    note = "Calibrated probabilities lie on the dotted line. Bins of fewer than 10 rows are left"
    return Panel("calibration", "Calibration", f"{note} out.", draw)


def predictions(fitted: FittedModel, kind: str) -> Panel | None:
    """Return a panel of scikit-learn's picture of numbers, of the first column or level."""
    scores = fitted.evaluation
    if scores is None:
        return None
    name, title, note = OF_TEST_NUMBERS[kind]
    numbers = [y.reshape(len(y), -1)[:, 0] for y in (scores.true, scores.predicted)]

    def draw(ax: Any) -> None:
        from sklearn.metrics import PredictionErrorDisplay

        dots: Any = {"s": 9, "color": BLUE, "alpha": 0.5, "linewidths": 0}
        given: Any = {"ax": ax, "random_state": 0, "scatter_kwargs": dots}
        PredictionErrorDisplay.from_predictions(*numbers, kind=kind, **given)

    which = "" if scores.predicted.ndim == 1 else f", {name_numbers(fitted.estimator)}"
    return Panel(name, title, f"Some rows of the test set{which}: {note}", draw)


@dataclass(repr=False)
class RocDisplay(SingleAxesDisplay):
    """The ROC curve of a classifier of two classes on rows that its fit held out.

    With ``max_false_alarm`` these rows were held out of the whole fit. Otherwise, if
    ``probability="auto"`` gave the model probabilities, each row is scored by a model of its cell
    without that row; but the rows helped to choose what all cells share, such as kernel and width.
    scikit-learn's ``RocCurveDisplay`` draws the curve. No test set is needed; for the curve of a
    test set use ``RocCurveDisplay.from_estimator(model, X, y)``.

    Make it with `from_estimator`.

    Parameters
    ----------
    codes : int array (m,). 0 or 1: the rows' classes.
    decisions : float array (m,). Their decision values without themselves.
    weights : float array (m,)
    max_false_alarm : float or None. The bound, drawn as a line.
    labels : (str, str). Names of the classes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    display_ : scikit-learn's RocCurveDisplay, with ``fpr``, ``tpr`` and ``roc_auc``
    marker_ : Line2D. The point of `predict`.

    Examples
    --------
    >>> from daskls import VoronoiSVC
    >>> from daskls.datasets import make_two_spirals
    >>> X, y = make_two_spirals(3000, random_state=0)
    >>> model = VoronoiSVC(max_false_alarm=0.1, random_state=0).fit(X, y)
    >>> display = RocDisplay.from_estimator(model).plot()
    >>> display.predicted[0] < 0.1 < 0.8 < display.display_.roc_auc
    True
    """

    codes: Codes
    decisions: Float64
    weights: Float64
    max_false_alarm: float | None = None
    labels: tuple[str, str] = ("0", "1")

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
        points = roc_of(reader)
        if points is None:
            raise ParameterError(
                f"This {name} keeps no scores of held-out rows of both classes. Fit VoronoiSVC or "
                'RandomChunkSVC with max_false_alarm=..., or VoronoiSVC with probability="auto" '
                "and least squares; or draw scikit-learn's RocCurveDisplay.from_estimator of rows "
                "and labels."
            )
        return cls._of(estimator, points)

    @classmethod
    def _of(cls, estimator: Any, points: RocPoints) -> Self:
        bound = estimator._reader.false_alarm
        first, second = map(str, estimator.classes_)
        rate = None if bound is None else bound.rate
        return cls(*points, max_false_alarm=rate, labels=(first, second))

    @property
    def predicted(self) -> tuple[float, float]:
        """The shares of each class's rows that `predict` gives to the second: above 0."""
        above, of = self.decisions > 0, (self.codes == 0, self.codes == 1)
        first, second = (float(np.average(above[own], weights=self.weights[own])) for own in of)
        return first, second

    @property
    def _layout(self) -> tuple[int, tuple[float, float]]:
        return 1, (4.6, 4.2)

    def _draw(self, *axes: Any) -> None:
        from sklearn.metrics import RocCurveDisplay

        ax = axes[0]
        style = {"color": BLUE, "lw": 1.6}
        chance = {"color": GRAY, "lw": 1, "ls": "--", "label": None}
        self.display_ = RocCurveDisplay.from_predictions(
            self.codes, self.decisions, sample_weight=self.weights, ax=ax, curve_kwargs=style,
            plot_chance_level=True, chance_level_kw=chance,
        )  # fmt: skip
        rate, detected = self.predicted
        label = f"predict: {100 * detected:.3g} % at {100 * rate:.2g} %"
        (self.marker_,) = ax.plot(rate, detected, "o", color=ORANGE, ms=6, label=label, zorder=3)
        if self.max_false_alarm is not None:
            bound = f"max_false_alarm={self.max_false_alarm:g}"
            ax.axvline(self.max_false_alarm, color=ORANGE, lw=1, ls=":", label=bound)
        first, second = self.labels
        ax.set(xlabel=f"false alarms: share of {first}", ylabel=f"found: share of {second}")
        ax.legend(loc="lower right", fontsize="small")


def roc(fitted: FittedModel) -> Panel | None:
    """Return the panel of the ROC curve of test rows; without any, of rows held out by the fit."""
    reader, scores, points = fitted.reader, fitted.evaluation, None
    if scores is None:
        is_reserved, points = reader.false_alarm is not None, roc_of(reader)
        how = "that the fit did not see" if is_reserved else "each scored by its cell without it"
        how = f"training rows, {how}"
    elif scores.decisions is not None:
        classes, how = fitted.estimator.classes_, "rows of the test set"
        known = np.isin(scores.true, classes)
        codes = (scores.true[known] == classes[1]).astype(np.int32)
        points = of_both(codes, scores.decisions[known].astype(np.float64), np.ones(len(codes)))
    if points is None:
        return None
    n_negatives, n_positives = np.bincount(points[0], minlength=2)
    note = f"{n_negatives:,} and {n_positives:,} {how}; dot: predict."
    return Panel("roc", "ROC", note, RocDisplay._of(fitted.estimator, points).plot)
