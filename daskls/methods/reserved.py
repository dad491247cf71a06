"""The last stage of a fit that reserved rows: the finished model predicts them.

Its scores give the threshold that bounds false alarms; its residuals give the half width of
intervals, after Lei et al. 2018, Distribution-free predictive inference for regression, algorithm 2
(split conformal) and section 5.2. The local size of residuals is that of a row's cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from daskls.cluster import compute_each
from daskls.methods.predict import cells_of, score_rows, sizes_of_rows
from daskls.records import FalseAlarmSpec, Float64, Int64, IntervalSpec, Reals
from daskls.run.contract import FitState
from daskls.run.reserve import ReservedRows, observations_needed
from daskls.solvers.base import EVALUATED_ROWS
from daskls.solvers.order_statistic import covering_rank, excess_probability, rank_within
from daskls.store.choices import CoveringInterval, FalseAlarmBound, write_bound, write_interval
from daskls.store.objects import ModelHandle
from daskls.store.reader import ModelReader, open_model

# The size of a cell's residuals is shrunk towards that of all cells with the weight of this many
# rows. A cell's own evaluated rows are few, and the relative error of the mean square of n
# residuals is sqrt(kurtosis / n): with 64 rows more than 1 where the kurtosis is 70, as on
# house-16h. Chosen by the width on six data sets, see benchmarks/results/intervals.md.
OF_ALL = 50
# Rows that one task predicts. They lie anywhere in space, so each task reads most cells: the
# fewer tasks, the better.
ASKED_AT_ONCE = 4000


def score_reserved(X: Reals, handle: ModelHandle) -> Float64:
    with handle.in_use():
        return score_rows(open_model(handle.location, handle.fingerprint), X)


def keep_threshold(
    state: FitState, held: ReservedRows, spec: FalseAlarmSpec, parts: list[Float64]
) -> None:
    scores, codes = np.concatenate(parts), held.codes
    bound = threshold_of(scores, codes == 0, spec, held.copies, held.units)
    write_bound(state.root, bound, np.repeat(scores, held.copies), np.repeat(codes, held.copies))


def threshold_of(
    scores: Float64, is_negative: Any, spec: FalseAlarmSpec, copies: Any = 1, units: Any = 1
) -> FalseAlarmBound:
    """Return the bound whose threshold is the smallest score of a negative that keeps the rate.

    Only scores strictly above the threshold are positive, so ties lower the rate.

    >>> scores = np.arange(100.0)
    >>> bound = threshold_of(scores, scores < 80, FalseAlarmSpec(0.1, 0.05))
    >>> bound.rank, bound.threshold, bound.n_positives
    (77, 76.0, 20)
    """
    copies, units, _ = np.broadcast_arrays(copies, units, scores)
    of_negatives = scores[is_negative], copies[is_negative], units[is_negative]
    find = partial(rank_within, rate=spec.rate, delta=spec.delta)
    negatives, rank, n_units = _ranked(*of_negatives, find, observations_needed(spec))
    n, m = len(negatives), n_units or len(negatives)
    delta = max(excess_probability(rank, n, spec.rate), excess_probability(find(m), m, spec.rate))
    threshold = float(negatives[rank - 1])
    return FalseAlarmBound(spec.rate, delta, n, int(copies.sum()) - n, rank, threshold)


def _ranked(
    values: Float64, copies: Any, units: Any, find: Callable[[int], int], needed: int
) -> tuple[Float64, int, int]:
    """Return the sorted values of all rows, the chosen rank, and the number of distinct rows.

    The rank suffices among all rows, and among distinct rows without the frequent ones: copies say
    no more of new rows than one of them. The number is that of the latter; 0 if they are too few.
    """
    rows, rare = np.sort(np.repeat(values, copies)), np.sort(np.repeat(values, units))
    rank = find(len(rows))
    if len(rare) < needed:
        return rows, rank, 0
    return rows, max(rank, int(np.searchsorted(rows, rare[find(len(rare)) - 1])) + 1), len(rare)


def answer_reserved(X: Reals, handle: ModelHandle) -> tuple[Float64, Int64]:
    with handle.in_use():
        reader = open_model(handle.location, handle.fingerprint)
        return reader.target.inverse_transform(score_rows(reader, X)), cells_of(reader, X)


def keep_interval(
    state: FitState, held: ReservedRows, spec: IntervalSpec, parts: list[tuple[Float64, Int64]]
) -> None:
    answers, cells = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    sizes = sizes_of_cells(ModelReader(state.root.store).report)
    missed = np.abs(held.targets - answers.reshape(held.targets.shape))
    residuals = missed / sizes_of_rows(sizes, cells)[:, None]
    interval = interval_of(residuals, spec, held.copies, held.units)
    write_interval(state.root, interval, sizes, np.repeat(residuals, held.copies, axis=0))


def interval_of(
    residuals: Float64, spec: IntervalSpec, copies: Any = 1, units: Any = 1
) -> CoveringInterval:
    """Return the interval whose half widths are the order statistics of residuals (m, t).

    >>> interval_of(np.arange(10.0, 0.0, -1.0)[:, None], IntervalSpec(0.8))
    CoveringInterval(coverage=0.8, n_rows=10, rank=9, half_widths=(9.0,))
    """
    find = partial(covering_rank, coverage=spec.coverage)
    needed = observations_needed(spec)
    ranked = [_ranked(column, copies, units, find, needed) for column in residuals.T]
    widths = tuple(float(rows[rank - 1]) for rows, rank, _ in ranked)
    n_rows, most = len(ranked[0][0]), max(rank for _, rank, _ in ranked)
    return CoveringInterval(spec.coverage, n_rows, most, widths)


def sizes_of_cells(report: Any) -> Float64:
    """Return the size of residuals in each cell, relative to that of all rows; all > 0.

    >>> report = np.rec.fromarrays([[4000, 1000], [0.01, 0.06]], names="n_rows, validation_error")
    >>> sizes_of_cells(report).round(3)
    array([0.848, 1.457])
    """
    squares, known = report.validation_error, np.isfinite(report.validation_error)
    pooled = np.average(squares[known], weights=report.n_rows[known]) if known.any() else 0.0
    if not pooled > 0:
        # All errors are 0 or unknown, so all cells have the same size.
        return np.ones(len(squares))
    relative = np.where(known, squares / pooled, 1.0)
    # At least: few cells, and other losses, may evaluate more rows; the report does not say.
    evaluated = np.minimum(report.n_rows, EVALUATED_ROWS)
    sizes: Float64 = np.sqrt((evaluated * relative + OF_ALL) / (evaluated + OF_ALL))
    return sizes


@dataclass(frozen=True)
class ReservedTask:
    """A use of reserved rows: the task that predicts some of them, and what writes all results."""

    stage: str
    ask: Callable[[Reals, ModelHandle], Any]
    keep: Callable[[FitState, ReservedRows, Any, list[Any]], None]


# Keys are the names of specs.
PURPOSES = {
    FalseAlarmSpec.name: ReservedTask("threshold", score_reserved, keep_threshold),
    IntervalSpec.name: ReservedTask("intervals", answer_reserved, keep_interval),
}


def has_used_reserved(state: FitState) -> bool:
    """Whether the store holds the result of reserved rows; also True where none were reserved."""
    spec = state.request.reserved_for
    return spec is None or state.root.find(spec.name) is not None


def use_reserved(state: FitState) -> None:
    spec, held = state.request.reserved_for, state.sample.reserved
    if spec is None or held is None or has_used_reserved(state):
        return
    purpose = PURPOSES[spec.name]
    handle = ModelHandle(state.root.where(), state.fingerprint)
    parts = [held.X[a : a + ASKED_AT_ONCE] for a in range(0, len(held.X), ASKED_AT_ONCE)]
    with state.clock.stage(purpose.stage, len(parts), None):
        answers = list(compute_each(purpose.ask, [(part, handle) for part in parts], state.client))
    purpose.keep(state, held, spec, answers)
