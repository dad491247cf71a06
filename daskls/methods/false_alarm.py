"""The threshold that bounds false alarms, from the final model's scores of reserved rows."""

from typing import Any

import numpy as np

from daskls.methods.predict import score_rows
from daskls.records import FalseAlarmSpec, Float64, Reals
from daskls.run.compute import compute_each
from daskls.run.contract import Beginning
from daskls.run.progress import StageClock
from daskls.solvers.order_statistic import excess_probability, rank_within
from daskls.store.false_alarm import FALSE_ALARM, FalseAlarmBound, write_bound
from daskls.store.reader import open_model
from daskls.store.temporary import ModelHandle

__all__ = ["bound_false_alarms", "has_bound"]

# Rows that one task scores. They lie anywhere in space: each task reads most cells, so that tasks
# are to be few.
SCORED_AT_ONCE = 4000


def has_bound(begun: Beginning) -> bool:
    """Whether the store holds the bound that is asked for; also where none is."""
    return begun.request.false_alarm is None or begun.root.find_group(FALSE_ALARM) is not None


def bound_false_alarms(begun: Beginning, clock: StageClock, client: Any = None) -> None:
    """Take the threshold of a model that is otherwise complete, unless the store holds it.

    Parameters
    ----------
    begun : Beginning. Its sample holds the reserved rows.
    clock : StageClock
    client : distributed client, or None for the current scheduler
    """
    spec, held = begun.request.false_alarm, begun.sample.reserved
    if spec is None or held is None or has_bound(begun):
        return
    handle = ModelHandle(begun.root.where(), begun.fingerprint)
    parts = [held.X[a : a + SCORED_AT_ONCE] for a in range(0, len(held.X), SCORED_AT_ONCE)]
    with clock.stage("threshold", len(parts), None):
        found = compute_each(score_reserved, [(part, handle) for part in parts], client)
    scores = np.concatenate(found)
    write_bound(begun.root, threshold_of(scores, held.codes == 0, spec), scores, held.codes)


def score_reserved(X: Reals, handle: ModelHandle) -> Float64:
    """Return the scores of some reserved rows, before any threshold."""
    with handle.in_use():
        return score_rows(open_model(handle.location, handle.fingerprint), X)


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
