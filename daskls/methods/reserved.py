"""The last stage of a fit that reserved rows: what the finished model says of them is used.

The threshold that bounds false alarms, from the final model's scores of reserved rows.

The half width of intervals, from what the final model misses of reserved rows.

Source: Lei, G'Sell, Rinaldo, Tibshirani, Wasserman 2018, Distribution-free predictive inference for
regression, algorithm 2 (split conformal) and section 5.2 (residuals in units of a local size). The
size of residuals is that of a row's cells here, known of their training rows: no reserved row has a
part in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.methods.predict import cells_of, score_rows, sizes_of_rows
from daskls.records import FalseAlarmSpec, Float64, Int64, IntervalSpec, Reals, ReserveSpec
from daskls.run.compute import compute_each
from daskls.run.contract import Beginning
from daskls.run.progress import StageClock
from daskls.run.reserve import ReservedRows
from daskls.solvers.order_statistic import covering_rank, excess_probability, rank_within
from daskls.solvers.squares.solver import EVALUATED_ROWS
from daskls.store.reader import ModelReader, open_model
from daskls.store.reserved import CoveringInterval, FalseAlarmBound, write_bound, write_interval
from daskls.store.temporary import ModelHandle


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


# Rows of all that those which tell a cell's own size are mixed with. These are few, and the mean
# square of n residuals strays by sqrt(kurtosis / n) of itself: of 64 by more than itself where the
# kurtosis is 70, as of house-16h. By the width on six sets, see benchmarks/results/intervals.md.
OF_ALL = 50


def answer_reserved(X: Reals, handle: ModelHandle) -> tuple[Float64, Int64]:
    """Return the numbers that answer some reserved rows, and the cells that do."""
    with handle.in_use():
        reader = open_model(handle.location, handle.fingerprint)
        return reader.target.leave(score_rows(reader, X)), cells_of(reader, X)


def keep_interval(
    begun: Beginning,
    held: ReservedRows,
    spec: IntervalSpec,
    found: list[tuple[Float64, Int64]],
) -> None:
    """Write the interval that the answers to reserved rows call for."""
    answers, cells = (np.concatenate(own) for own in zip(*found, strict=True))
    sizes = sizes_of_cells(ModelReader(begun.root.store).report)
    missed = np.abs(held.targets - answers.reshape(held.targets.shape))
    residuals = missed / sizes_of_rows(sizes, cells)[:, None]
    write_interval(begun.root, interval_of(residuals, spec), sizes, residuals)


def interval_of(residuals: Float64, spec: IntervalSpec) -> CoveringInterval:
    """Return the interval: of each column's residuals (m, t) the one of one rank.

    Examples
    --------
    >>> interval_of(np.arange(10.0, 0.0, -1.0)[:, None], IntervalSpec(0.8))
    CoveringInterval(coverage=0.8, n_rows=10, rank=9, half_widths=(9.0,))
    """
    rank = covering_rank(len(residuals), spec.coverage)
    widths = np.sort(residuals, axis=0)[rank - 1]
    return CoveringInterval(spec.coverage, len(residuals), rank, tuple(widths.tolist()))


def sizes_of_cells(report: Any) -> Float64:
    """Return the size of residuals in each cell, in units of that of all rows, all > 0.

    Parameters
    ----------
    report : record array (n_cells,). With the mean square that some training rows of each cell were
        missed by, each without itself; a cell that tells none has the size of all.

    Examples
    --------
    >>> report = np.rec.fromarrays([[4000, 1000], [0.01, 0.06]], names="n_rows, validation_error")
    >>> sizes_of_cells(report).round(3)
    array([0.848, 1.457])
    """
    squares, known = report.validation_error, np.isfinite(report.validation_error)
    pooled = np.average(squares[known], weights=report.n_rows[known]) if known.any() else 0.0
    if not pooled > 0:
        # Nothing is missed, or nothing is told: all residuals are measured alike.
        return np.ones(len(squares))
    relative = np.where(known, squares / pooled, 1.0)
    # Other losses may tell of more rows; that is not in the report.
    told = np.minimum(report.n_rows, EVALUATED_ROWS)
    sizes: Float64 = np.sqrt((told * relative + OF_ALL) / (told + OF_ALL))
    return sizes


# Rows that one task asks the model about. They lie anywhere in space: each task reads most cells,
# so that tasks are to be few.
ASKED_AT_ONCE = 4000


@dataclass(frozen=True)
class Purpose:
    """What reserved rows are asked for, and what is kept of it.

    Attributes
    ----------
    stage : str. In progress and in seconds.
    ask : the task: what a model says of some reserved rows
    keep : writes the group of the purpose's name, which is its marker, from what all tasks found
    """

    stage: str
    ask: Callable[[Reals, ModelHandle], Any]
    keep: Callable[[Beginning, ReservedRows, Any, list[Any]], None]


# By the name of the spec.
PURPOSES = {
    FalseAlarmSpec.name: Purpose("threshold", score_reserved, keep_threshold),
    IntervalSpec.name: Purpose("intervals", answer_reserved, keep_interval),
}


def stage_of(spec: ReserveSpec) -> str:
    """Return the name of the stage."""
    return PURPOSES[spec.name].stage


def has_used_reserved(begun: Beginning) -> bool:
    """Whether the store holds what rows were reserved for; also where none were."""
    spec = begun.request.reserved_for
    return spec is None or begun.root.find_group(spec.name) is not None


def use_reserved(begun: Beginning, clock: StageClock, client: Any = None) -> None:
    """Ask a model that is otherwise complete about its reserved rows, unless the store holds it.

    Parameters
    ----------
    begun : Beginning. Its sample holds the reserved rows.
    clock : StageClock
    client : distributed client, or None for the current scheduler
    """
    spec, held = begun.request.reserved_for, begun.sample.reserved
    if spec is None or held is None or has_used_reserved(begun):
        return
    purpose = PURPOSES[spec.name]
    handle = ModelHandle(begun.root.where(), begun.fingerprint)
    parts = [held.X[a : a + ASKED_AT_ONCE] for a in range(0, len(held.X), ASKED_AT_ONCE)]
    with clock.stage(purpose.stage, len(parts), None):
        found = list(compute_each(purpose.ask, [(part, handle) for part in parts], client))
    purpose.keep(begun, held, spec, found)
