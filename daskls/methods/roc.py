"""The ROC curve of a finished model of two classes, from scores of rows that it did not see.

They are those that a bound on false alarms reserved, scored by the model itself; of a model without
one, what the cells know of their own rows without them.
"""

from dataclasses import dataclass

import numpy as np

from daskls.methods.held_out import HeldRows
from daskls.records import Codes, Float64
from daskls.run.contract import HELD_OUT
from daskls.store.caches import kept
from daskls.store.false_alarm import read_reserved
from daskls.store.reader import ModelReader

__all__ = ["RocCurve", "curve_of", "roc_of"]

# Of a curve: as many as a picture shows, and a few kilobytes.
MOST_POINTS = 1000


@dataclass(frozen=True, eq=False)
class RocCurve:
    """Rates of the rows whose decision value is at least a threshold, over all thresholds.

    Attributes
    ----------
    fpr : float64 array, shape (p,), rising. The share of ``classes_[0]``.
    tpr : float64 array, shape (p,), rising. The share of ``classes_[1]``.
    thresholds : float64 array, shape (p,), falling. Of decision values; the first is infinite.
    area : float. Below the curve through all points, before some were left out.
    predicted : (float, float). Both rates of `predict`: of decision values above 0.
    n_negatives, n_positives : int. Rows.
    is_reserved : bool. Whether no part of the fit saw the rows.
    """

    fpr: Float64
    tpr: Float64
    thresholds: Float64
    area: float
    predicted: tuple[float, float]
    n_negatives: int
    n_positives: int
    is_reserved: bool


@kept(maxsize=8)
def roc_of(reader: ModelReader) -> RocCurve | None:
    """Return a model's curve; None of more classes, or where rows of a class, or all, are missing.

    Raises
    ------
    StoreError : what the model keeps of the rows is gone, or damaged
    """
    if reader.n_classes != 2:
        return None
    found = read_reserved(reader.root)
    if found is not None:
        assert reader.false_alarm is not None
        scores, codes = found
        decisions = scores - reader.false_alarm.threshold
        return curve_of(decisions, codes, np.ones(len(codes)), is_reserved=True)
    if reader.meta.get("probability") != HELD_OUT:
        return None
    held = HeldRows.joined(HeldRows.read(own.group) for own in reader.each_bundle()).merged()
    return curve_of(held.scores.astype(np.float64), held.codes, held.weights, is_reserved=False)


def curve_of(
    decisions: Float64, codes: Codes, weights: Float64, *, is_reserved: bool
) -> RocCurve | None:
    """Return the curve of decision values, thinned; None without rows of either class.

    Parameters
    ----------
    decisions : float64 array, shape (m,)
    codes : int array, shape (m,). 0 or 1.
    weights : float64 array, shape (m,), > 0
    is_reserved : bool. What the curve says of itself.
    """
    from sklearn.metrics import auc, roc_curve

    n_negatives, n_positives = np.bincount(codes, minlength=2).tolist()
    if not n_negatives or not n_positives:
        return None
    fpr, tpr, thresholds = roc_curve(codes, decisions, sample_weight=weights)
    above = decisions > 0
    negative, positive = (
        float(np.average(above[codes == code], weights=weights[codes == code])) for code in (0, 1)
    )
    own = _thinned(fpr, tpr)
    return RocCurve(
        fpr[own],
        tpr[own],
        thresholds[own].astype(np.float64),
        float(auc(fpr, tpr)),
        (negative, positive),
        n_negatives,
        n_positives,
        is_reserved,
    )


def _thinned(fpr: Float64, tpr: Float64) -> np.ndarray:
    """Return which points are kept: evenly along the curve, its ends among them."""
    if len(fpr) <= MOST_POINTS:
        return np.arange(len(fpr))
    # Both rates rise: the way along is their sum.
    along = fpr + tpr
    wanted = np.linspace(along[0], along[-1], MOST_POINTS)
    return np.unique(np.searchsorted(along, wanted).clip(0, len(fpr) - 1))
