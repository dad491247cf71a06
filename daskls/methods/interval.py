"""The half width of intervals, from what the final model misses of reserved rows.

Source: Lei, G'Sell, Rinaldo, Tibshirani, Wasserman 2018, Distribution-free predictive inference for
regression, algorithm 2 (split conformal) and section 5.2 (residuals in units of a local size). The
size of residuals is that of a row's cells here, known of their training rows: no reserved row has a
part in it.
"""

from typing import Any

import numpy as np

from daskls.methods.local_size import cells_of, sizes_of_rows
from daskls.methods.predict import score_rows
from daskls.records import Float64, Int64, IntervalSpec, Reals
from daskls.run.contract import Beginning
from daskls.run.reserve import ReservedRows
from daskls.solvers.order_statistic import covering_rank
from daskls.solvers.squares.solver import EVALUATED_ROWS
from daskls.store.interval import CoveringInterval, write_interval
from daskls.store.reader import ModelReader, open_model
from daskls.store.temporary import ModelHandle

__all__ = ["OF_ALL", "answer_reserved", "interval_of", "keep_interval", "sizes_of_cells"]

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
