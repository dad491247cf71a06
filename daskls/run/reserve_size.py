"""How many rows are reserved: enough for the rank they are for, a share of many rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskls.errors import MemoryPlanError, ParameterError
from daskls.records import FalseAlarmSpec, Int64, IntervalSpec, ReserveSpec
from daskls.run.blocks import BlockRows
from daskls.run.resources import free_nbytes
from daskls.run.scan import TargetScan, name_classes
from daskls.solvers.order_statistic import (
    least_delta,
    least_rate,
    most_coverage,
    rows_needed,
    rows_to_cover,
)

__all__ = ["reserved_counts", "reserved_numbers", "rows_expected", "rows_wanted"]

# Of the negatives, or of numbers, as long as that is enough: else up to half of them.
SHARE = 5
MOST_SHARE = 2
# A rank of twice as many as are needed lies well below the largest.
COMFORT = 2
# Of negatives, or numbers: of more, what the rank loses to chance is little.
MOST_RESERVED = 20_000
# Of positives, which are often few; no threshold is made of them, only the curve.
POSITIVE_SHARE = 10
MOST_POSITIVES = 5000
# Of their features, which the client holds.
RESERVED_NBYTES = 64 << 20


def rows_wanted(spec: ReserveSpec, rows: BlockRows, scan: TargetScan) -> Int64:
    """Return how many rows of each class are reserved, or of numbers (1,).

    Raises
    ------
    ParameterError : more than two classes; or too few rows, with the number needed
    MemoryPlanError : the client would not hold the rows that are needed
    """
    row_nbytes = rows.n_features * rows.X.dtype.itemsize
    found: Int64 = WANTED[spec.name](spec, rows, scan, row_nbytes)
    return found


def rows_expected(spec: ReserveSpec, n_rows: int, row_nbytes: int) -> int:
    """Return how many rows are reserved of so many, of which nothing else is known."""
    if isinstance(spec, IntervalSpec):
        return reserved_numbers(spec, n_rows, row_nbytes)
    # As of two classes of equal size.
    return sum(reserved_counts(spec, n_rows - n_rows // 2, n_rows // 2, row_nbytes))


def _negatives_wanted(
    spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan, row_nbytes: int
) -> Int64:
    """Return how many rows of two classes are reserved for a bound on false alarms."""
    _check_classes(spec, rows, scan)
    negatives, positives = map(int, scan.counts)
    needed = rows_needed(spec.rate, spec.delta)
    if negatives // MOST_SHARE < needed:
        raise _too_few_negatives(spec, rows, scan, needed)
    asked = f"max_false_alarm={spec.rate:g} with delta={spec.delta:g}"
    _check_memory(asked, "Raise max_false_alarm or delta", needed, row_nbytes)
    return np.array(reserved_counts(spec, negatives, positives, row_nbytes), np.int64)


def _numbers_wanted(
    spec: IntervalSpec, rows: BlockRows, scan: TargetScan, row_nbytes: int
) -> Int64:
    """Return how many rows are reserved for intervals, (1,)."""
    n_rows, needed = scan.n_kept, rows_to_cover(spec.coverage)
    if n_rows // MOST_SHARE < needed:
        raise _too_few_numbers(spec, n_rows, needed)
    row_nbytes += scan.target.nbytes
    _check_memory(f"interval={spec.coverage:g}", "Lower interval", needed, row_nbytes)
    return np.array([reserved_numbers(spec, n_rows, row_nbytes)], np.int64)


# By the name of the spec.
WANTED: dict[str, Callable[[Any, BlockRows, TargetScan, int], Int64]] = {
    FalseAlarmSpec.name: _negatives_wanted,
    IntervalSpec.name: _numbers_wanted,
}


def reserved_counts(
    spec: FalseAlarmSpec, negatives: int, positives: int, row_nbytes: int
) -> tuple[int, int]:
    """Return how many rows of each class are reserved, of so many.

    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), 45_000, 5_000, 176)
    (9000, 500)
    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), 1_000, 1_000_000, 176)
    (500, 5000)
    """
    needed = rows_needed(spec.rate, spec.delta)
    held = _most_held(needed, row_nbytes)
    of_positives = min(positives // POSITIVE_SHARE, MOST_POSITIVES, held)
    return _reserved_of(negatives, needed, held), of_positives


def reserved_numbers(spec: IntervalSpec, n_rows: int, row_nbytes: int) -> int:
    """Return how many rows are reserved for intervals, of so many.

    >>> reserved_numbers(IntervalSpec(0.9), 45_000, 176)
    9000
    >>> reserved_numbers(IntervalSpec(0.99), 250, 176)
    125
    """
    needed = rows_to_cover(spec.coverage)
    return _reserved_of(n_rows, needed, _most_held(needed, row_nbytes))


def _most_held(needed: int, row_nbytes: int) -> int:
    """Return how many rows the client holds: no fewer than are needed."""
    return max(min(MOST_RESERVED, RESERVED_NBYTES // row_nbytes), needed)


def _reserved_of(n_rows: int, needed: int, held: int) -> int:
    """Return how many of so many rows a rank is taken of."""
    return min(max(n_rows // SHARE, COMFORT * needed), n_rows // MOST_SHARE, held)


def _check_memory(asked: str, remedy: str, needed: int, row_nbytes: int) -> None:
    """Refuse rows that the client would not hold, though they are needed."""
    if needed * row_nbytes > free_nbytes() // 2:
        raise MemoryPlanError(
            f"{asked} needs {needed} rows that the "
            f"client holds, {needed * row_nbytes >> 20} MiB, but {free_nbytes() >> 20} MiB are "
            f"free here, of which it takes half. {remedy}, or give the client "
            "more memory."
        )


def _check_classes(spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan) -> None:
    """Refuse any number of classes but two."""
    if len(scan.counts) == 2:
        return
    names = name_classes(rows, scan.target.labels).tolist()
    told = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ParameterError(
        f"max_false_alarm={spec.rate:g} is for two classes, but y holds {len(names)}: {told}. "
        "Leave max_false_alarm at None, or fit one class against the rest, as with "
        f"y == {names[0]!r}."
    )


def _too_few_negatives(
    spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan, needed: int
) -> ParameterError:
    """Return the error of too few negatives."""
    name = name_classes(rows, scan.target.labels).tolist()[0]
    negatives = int(scan.counts[0])
    most = negatives // MOST_SHARE
    remedy = ""
    if most:
        remedy = (
            f", or raise max_false_alarm to {_rounded_up(least_rate(most, spec.delta)):g} or delta "
            f"to {_rounded_up(least_delta(most, spec.rate)):g}"
        )
    return ParameterError(
        f"max_false_alarm={spec.rate:g} with delta={spec.delta:g} needs {needed} rows of class "
        f"{name!r} that no model is trained on, and takes half of them at the most; y holds "
        f"{negatives}, of which that is {most}. Fit on {MOST_SHARE * needed} or more of them"
        f"{remedy}."
    )


def _too_few_numbers(spec: IntervalSpec, n_rows: int, needed: int) -> ParameterError:
    """Return the error of too few rows for intervals."""
    most = n_rows // MOST_SHARE
    # Down to three figures, of which fewer rows are needed.
    lower = np.floor(1000 * most_coverage(most)) / 1000
    remedy = f", or lower interval to {lower:g}" if most else ""
    return ParameterError(
        f"interval={spec.coverage:g} needs {needed} rows that no model is trained on, and takes "
        f"half of all at the most; there are {n_rows} of positive weight, of which that is {most}. "
        f"Fit on {MOST_SHARE * needed} or more{remedy}."
    )


def _rounded_up(value: float) -> float:
    """Return two figures of a share, which are enough and no less."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.ceil(value / unit) * unit)
