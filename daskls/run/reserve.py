"""Reserves rows for a bound on false alarms or for intervals; no other stage of a fit sees them.

A row is reserved if a hash of its features and target lies below a share: that of its class, or of
all rows if y holds numbers. So copies of a row are reserved together: were some of them trained on,
the others would not tell how the model does on new rows. All passes over X find the same rows
again, whatever the blocks, dtype and order; the first one, which draws the sample, takes their
features. The number of reserved rows is a share of the data, and enough for the order statistic
that they give.

A row that very many equal is no copy but a value that new rows will have, too, as that of idle
sensors or a combination of few categories: such rows are reserved one by one, by their numbers.
They, and a draw that happened to reserve too few or too many rows, are found when X has been read
for the sample, which is then drawn again: that takes another reading of X.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskls.errors import MemoryPlanError, ParameterError
from daskls.kernels.copies import row_hashes
from daskls.partition.shuffle import row_keys
from daskls.records import (
    Codes,
    FalseAlarmSpec,
    Int64,
    IntervalSpec,
    Keys,
    Mask,
    Reals,
    ReserveSpec,
    Targets,
)
from daskls.run.blocks import BlockRows
from daskls.run.scan import TargetScan, name_classes
from daskls.run.workers import free_nbytes
from daskls.seeds import THRESHOLD_ROWS
from daskls.solvers.order_statistic import (
    least_delta,
    least_rate,
    most_coverage,
    rows_needed,
    rows_to_cover,
)

# One in SHARE of the negatives, or of numbers, if that is enough; else up to one in MOST_SHARE.
SHARE = 5
MOST_SHARE = 2
# Aim at this many times the rows that are needed: the rank then lies well below the largest value.
COMFORT = 2
# The number of reserved rows varies by chance. It is aimed this many deviations above what is
# needed, but at this share of all rows at the most.
SPARED_DEVIATIONS, MOST_AIMED = 3.0, 0.6
# A draw that reserves more than this share of all rows is repeated; and how often.
MOST_TAKEN, MOST_DRAWS = 0.75, 16
# The most negatives, or numbers: more would reduce the random error of the rank only a little.
MOST_RESERVED = 20_000
# One in POSITIVE_SHARE of the positives, which are often few: they only serve to draw the curve.
POSITIVE_SHARE = 10
MOST_POSITIVES = 5000
# Bytes of the features of reserved rows, which the client holds.
RESERVED_NBYTES = 64 << 20
# Up to so many equal rows are copies. More are frequent from this share of the rate on that is to
# be kept: a table of 24 values has that many of each, and all or none of one would be reserved.
MOST_EQUAL, FREQUENT = 30, 0.03


@dataclass(frozen=True, eq=False)
class Reserve:
    """Decides which rows are reserved.

    Attributes
    ----------
    spec : ReserveSpec
    counts : int64 array, shape (k,). Rows of positive weight of each class; of numbers (1,).
    wanted : int64 array, shape (k,). How many of them are reserved on average.
    first_kept : int64 array, shape (n_blocks + 1,). Rows of positive weight before each block,
        reserved ones included.
    seed : int. The fit's.
    draw : int. The number of the draw.
    frequent : uint64 array, or None. Hashes of the rows that very many equal; None until they are
        looked for.
    """

    spec: ReserveSpec
    counts: Int64
    wanted: Int64
    first_kept: Int64
    seed: int
    draw: int = 0
    frequent: Keys | None = None

    def split(
        self, block: int, X: Reals, targets: Targets, *columns: Any
    ) -> "tuple[tuple[Any, ...], ReservedRows]":
        """Split a block's rows of positive weight: return the columns of others, and the reserved.

        Parameters
        ----------
        block : int
        X, targets, columns : arrays of m rows
        """
        hashes = self._hashes(X, targets)
        held = self._holds(hashes, group_codes(targets), int(self.first_kept[block]))
        others = tuple(own[~held] for own in (X, targets, *columns))
        return others, _different(X[held], targets[held], hashes[held])

    def joined(self, parts: "list[ReservedRows]") -> "ReservedRows":
        """Return the reserved rows of all blocks."""
        names = ("X", "targets", "hashes", "copies")
        found = _different(*(np.concatenate([getattr(own, n) for own in parts]) for n in names))
        if self.frequent is None:
            return found
        return replace(found, units=1 - np.isin(found.hashes, self.frequent).astype(np.int64))

    def _hashes(self, X: Reals, targets: Targets) -> Keys:
        """Return a hash of the features and the target of each row."""
        return row_hashes(X, targets, seed=THRESHOLD_ROWS(self.seed))

    def _holds(self, hashes: Keys, codes: Codes, start: int) -> Mask:
        """Return which rows are reserved; ``start`` is the number of the first one."""
        keys = row_keys(hashes, self.draw)
        if self.frequent is not None and len(self.frequent):
            one_by_one = np.flatnonzero(np.isin(hashes, self.frequent))
            numbers = (start + one_by_one).astype(np.uint64)
            keys[one_by_one] = row_keys(hashes[one_by_one] + numbers, self.draw)
        # The upper 53 bits, which float64 holds exactly.
        found: Mask = (keys >> np.uint64(11)) * 2.0**-53 < (self.wanted / self.counts)[codes]
        return found

    def expected(self, scan: TargetScan) -> TargetScan:
        """Return the scan of the rows that probably remain; only its sums are of use."""
        n_left = scan.n_kept - int(self.wanted.sum())
        first_kept = np.append(scan.first_kept[:-1], n_left)
        return replace(scan, counts=self.counts - self.wanted, first_kept=first_kept)

    def left(self, scan: TargetScan, held: "ReservedRows", taken: list[int]) -> TargetScan:
        """Return the scan of the rows that remain, given the reserved rows of each block."""
        first_kept = scan.first_kept - np.cumsum([0, *taken])
        return replace(scan, counts=self.counts - self._taken(held), first_kept=first_kept)

    def _taken(self, held: "ReservedRows") -> Int64:
        """Return how many rows of each class are reserved."""
        sums = np.bincount(held.codes, held.copies, minlength=len(self.counts))
        return sums.astype(np.int64)

    def again(self, held: "ReservedRows", X: Reals, targets: Targets) -> "Reserve | None":
        """Return another draw, or None if this one serves.

        Parameters
        ----------
        held : ReservedRows. Of all blocks.
        X, targets : arrays of the sampled rows, which are some of the others

        Raises
        ------
        ParameterError : too few different rows
        """
        frequent = self.frequent
        if frequent is None:
            frequent = self._find_frequent(held, X, targets)
            if len(frequent):
                return replace(self, frequent=frequent)
        # Copies are one observation; frequent rows were reserved one by one, and are one each.
        n_units = int(np.where(held.units, 1, held.copies)[held.codes == 0].sum())
        needed = observations_needed(self.spec)
        most = np.minimum(2 * self.wanted + 8, (MOST_TAKEN * self.counts).astype(np.int64))
        is_much = bool((self._taken(held) > most).any())
        if n_units >= needed and not is_much:
            return None
        if self.draw + 1 == MOST_DRAWS:
            raise _too_few_different(self, needed, n_units)
        wanted = self.wanted.copy()
        if not is_much:
            wanted[0] = max(wanted[0], min(2 * wanted[0], int(MOST_AIMED * self.counts[0])))
        return replace(self, wanted=wanted, draw=self.draw + 1, frequent=frequent)

    def _find_frequent(self, held: "ReservedRows", X: Reals, targets: Targets) -> Keys:
        """Return the hashes of numbers, or negatives, that very many equal.

        Of what is no more frequent there are many, so that enough are reserved.
        """
        sampled = _different(X, targets, self._hashes(X, targets))
        n_left = int(self.counts.sum() - held.copies.sum())
        # All copies of a row are reserved, or none is.
        n_equal = np.r_[held.copies, sampled.copies * (n_left / max(len(X), 1))]
        least = max(MOST_EQUAL, FREQUENT * _rate(self.spec) * self.counts[0])
        is_frequent = (n_equal > least) & (np.r_[held.codes, sampled.codes] == 0)
        found: Keys = np.r_[held.hashes, sampled.hashes][is_frequent]
        return found


@dataclass(frozen=True, eq=False)
class ReservedRows:
    """Different reserved rows in the order of their hashes.

    Attributes
    ----------
    X : real array, shape (m, d). As given, not scaled.
    targets : array. Class codes (m,), or numbers (m, t) in the units of y.
    hashes : uint64 array, shape (m,). Of features and targets.
    copies : int64 array, shape (m,). The reserved rows that equal each of them, itself included.
    units : int64 array, shape (m,). 1, or 0 for rows that very many equal.
    """

    X: Reals
    targets: Targets
    hashes: Keys
    copies: Int64
    units: Int64

    @property
    def codes(self) -> Codes:
        """The class code of each row; 0 for numbers."""
        return group_codes(self.targets)


def _different(
    X: Reals, targets: Targets, hashes: Keys, copies: Int64 | None = None
) -> ReservedRows:
    """Return the different ones of some rows."""
    own, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    n_copies = np.bincount(group, copies, minlength=len(own)).astype(np.int64)
    return ReservedRows(X[first], targets[first], own, n_copies, np.ones_like(n_copies))


def group_codes(targets: Targets) -> Codes:
    """Return the class code of each row, (m,); 0 for numbers, which are one group."""
    if targets.ndim > 1:
        return np.zeros(len(targets), np.int32)
    return targets.astype(np.int32, copy=False)


def plan_reserve(spec: ReserveSpec, rows: BlockRows, scan: TargetScan, seed: int) -> Reserve:
    """Return the first draw of reserved rows, of each class or of all numbers.

    Raises
    ------
    ParameterError, MemoryPlanError : as `rows_wanted`
    """
    return Reserve(spec, scan.counts, rows_wanted(spec, rows, scan), scan.first_kept, seed)


def observations_needed(spec: ReserveSpec) -> int:
    """Return how few observations suffice."""
    if isinstance(spec, IntervalSpec):
        return rows_to_cover(spec.coverage)
    return rows_needed(spec.rate, spec.delta)


def _rate(spec: ReserveSpec) -> float:
    """Return the share of new rows that may lie beyond the order statistic."""
    return 1 - spec.coverage if isinstance(spec, IntervalSpec) else spec.rate


def rows_wanted(spec: ReserveSpec, rows: BlockRows, scan: TargetScan) -> Int64:
    """Return how many rows to reserve on average, int64: of each class (k,), or of numbers (1,).

    Raises
    ------
    ParameterError : not two classes, or too few rows
    MemoryPlanError : the client cannot hold the rows that are needed
    """
    row_nbytes = rows.n_features * rows.X.dtype.itemsize
    found: Int64 = WANTED[spec.name](spec, rows, scan, row_nbytes)
    return found


def _negatives_wanted(
    spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan, row_nbytes: int
) -> Int64:
    """Return how many rows of each class to reserve for a bound on false alarms, (2,)."""
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
    """Return how many rows to reserve for intervals, (1,)."""
    n_rows, needed = scan.n_kept, rows_to_cover(spec.coverage)
    if n_rows // MOST_SHARE < needed:
        raise _too_few_numbers(spec, n_rows, needed)
    row_nbytes += scan.target.nbytes
    _check_memory(f"interval={spec.coverage:g}", "Lower interval", needed, row_nbytes)
    return np.array([reserved_numbers(spec, n_rows, row_nbytes)], np.int64)


# By the name of the spec, the function that `rows_wanted` calls.
WANTED: dict[str, Callable[[Any, BlockRows, TargetScan, int], Int64]] = {
    FalseAlarmSpec.name: _negatives_wanted,
    IntervalSpec.name: _numbers_wanted,
}


def rows_expected(spec: ReserveSpec, n_rows: int, row_nbytes: int) -> int:
    """Return the expected number of reserved rows, before y is read."""
    if isinstance(spec, IntervalSpec):
        return reserved_numbers(spec, n_rows, row_nbytes)
    # The sizes of the two classes are unknown, so they are taken as equal.
    return sum(reserved_counts(spec, n_rows - n_rows // 2, n_rows // 2, row_nbytes))


def reserved_counts(
    spec: FalseAlarmSpec, negatives: int, positives: int, row_nbytes: int
) -> tuple[int, int]:
    """Return how many negatives and positives to reserve on average.

    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), 45_000, 5_000, 176)
    (9000, 500)
    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), 1_000, 1_000_000, 176)
    (500, 5000)
    """
    needed = rows_needed(spec.rate, spec.delta)
    held = _most_rows(needed, row_nbytes)
    of_positives = min(positives // POSITIVE_SHARE, MOST_POSITIVES, held)
    return _reserved_of(negatives, needed, held), of_positives


def reserved_numbers(spec: IntervalSpec, n_rows: int, row_nbytes: int) -> int:
    """Return how many of ``n_rows`` to reserve for intervals on average.

    >>> reserved_numbers(IntervalSpec(0.9), 45_000, 176)
    9000
    >>> reserved_numbers(IntervalSpec(0.99), 250, 176)
    125
    """
    needed = rows_to_cover(spec.coverage)
    return _reserved_of(n_rows, needed, _most_rows(needed, row_nbytes))


def _most_rows(needed: int, row_nbytes: int) -> int:
    """Return how many rows may be reserved by their size; never fewer than are needed."""
    return max(min(MOST_RESERVED, RESERVED_NBYTES // row_nbytes), needed)


def _reserved_of(n_rows: int, needed: int, held: int) -> int:
    """Return how many of ``n_rows`` to reserve, about ``held`` at most, if a rank needs some."""
    wanted = min(max(n_rows // SHARE, COMFORT * needed), n_rows // MOST_SHARE, held)
    deviation = math.sqrt(needed * max(1 - needed / max(n_rows, 1), 0))
    spare = math.ceil(needed + SPARED_DEVIATIONS * deviation)
    return max(wanted, min(spare, int(MOST_AIMED * n_rows)))


def _check_memory(asked: str, remedy: str, needed: int, row_nbytes: int) -> None:
    """Raise MemoryPlanError if the client cannot hold the rows that are needed."""
    if needed * row_nbytes > free_nbytes() // 2:
        raise MemoryPlanError(
            f"{asked} needs {needed} rows that the "
            f"client holds, {needed * row_nbytes >> 20} MiB, but {free_nbytes() >> 20} MiB are "
            f"free here, of which it takes half. {remedy}, or give the client "
            "more memory."
        )


def _check_classes(spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan) -> None:
    """Raise ParameterError unless there are two classes."""
    if len(scan.counts) == 2:
        return
    names = name_classes(rows, scan.target.labels).tolist()
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ParameterError(
        f"max_false_alarm={spec.rate:g} is for two classes, but y holds {len(names)}: {shown}. "
        "Leave max_false_alarm at None, or fit one class against the rest, as with "
        f"y == {names[0]!r}."
    )


def _too_few_negatives(
    spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan, needed: int
) -> ParameterError:
    """Return the error for too few negatives."""
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
        f"{name!r} that no model is trained on, and may use half of the class; y holds "
        f"{negatives}, half of which is {most}. Fit on {MOST_SHARE * needed} or more of them"
        f"{remedy}."
    )


def _too_few_numbers(spec: IntervalSpec, n_rows: int, needed: int) -> ParameterError:
    """Return the error for too few rows."""
    most = n_rows // MOST_SHARE
    # Rounded down to three digits, as a lower coverage needs fewer rows.
    lower = np.floor(1000 * most_coverage(most)) / 1000
    remedy = f", or lower interval to {lower:g}" if most else ""
    return ParameterError(
        f"interval={spec.coverage:g} needs {needed} rows that no model is trained on, and may use "
        f"half of all; there are {n_rows} of positive weight, half of which is {most}. "
        f"Fit on {MOST_SHARE * needed} or more{remedy}."
    )


def _too_few_different(reserve: Reserve, needed: int, n_units: int) -> ParameterError:
    """Return the error for rows of which too many are equal."""
    spec = reserve.spec
    if isinstance(spec, IntervalSpec):
        asked, of, easier = f"interval={spec.coverage:g}", "rows", "lower interval"
    else:
        asked, of = f"max_false_alarm={spec.rate:g}", "rows of the first class"
        easier = "raise max_false_alarm or delta"
    return ParameterError(
        f"{asked} needs {needed} different {of} that no model is trained on, and equal rows are "
        f"held out together. There are {int(reserve.counts[0])} {of}, but too few different ones: "
        f"each of {MOST_DRAWS} draws had too few or left too few, the last one {n_units}. Fit on "
        f"more different rows, or {easier}."
    )


def _rounded_up(value: float) -> float:
    """Round a share up to two significant digits, so that it stays large enough."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.ceil(value / unit) * unit)
