"""The threshold that bounds false alarms, from the final model's scores of reserved rows."""

from typing import Any

import numpy as np

from daskls.methods.predict import score_rows
from daskls.records import FalseAlarmSpec, Float64, Reals
from daskls.run.contract import Beginning
from daskls.run.reserve import ReservedRows
from daskls.solvers.order_statistic import excess_probability, rank_within
from daskls.store.false_alarm import FalseAlarmBound, write_bound
from daskls.store.reader import open_model
from daskls.store.temporary import ModelHandle

__all__ = ["keep_threshold", "score_reserved", "threshold_of"]


def score_reserved(X: Reals, handle: ModelHandle) -> Float64:
    """Return the scores of some reserved rows, before any threshold."""
    with handle.in_use():
        return score_rows(open_model(handle.location, handle.fingerprint), X)


def keep_threshold(
    begun: Beginning, held: ReservedRows, spec: FalseAlarmSpec, found: list[Float64]
) -> None:
    """Write the threshold that the scores of reserved rows call for."""
    scores, codes = np.concatenate(found), held.targets.astype(np.int32, copy=False)
    write_bound(begun.root, threshold_of(scores, codes == 0, spec), scores, codes)


def threshold_of(scores: Float64, is_negative: Any, spec: FalseAlarmSpec) -> FalseAlarmBound:
    """Return the bound: of the negatives' scores the one of the least rank that keeps to the rate.

    Rows above it, not at it, are called positive: where scores are equal fewer are.

    Examples
    --------
    >>> scores = np.arange(100.0)
    >>> bound = threshold_of(scores, scores < 80, FalseAlarmSpec(0.1, 0.05))
    >>> bound.rank, bound.threshold, bound.n_positives
    (77, 76.0, 20)
    """
    negatives = np.sort(scores[is_negative])
    n = len(negatives)
    rank = rank_within(n, spec.rate, spec.delta)
    delta = excess_probability(rank, n, spec.rate)
    threshold = float(negatives[rank - 1])
    return FalseAlarmBound(spec.rate, delta, n, len(scores) - n, rank, threshold)
