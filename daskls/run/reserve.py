"""Reserves rows for a bound on false alarms or for intervals; no other stage of a fit sees them.

A row is reserved if a hash of its features and target lies below a share: that of its class, or of
all rows if y holds numbers. So copies of a row are reserved together: were some of them trained on,
the others would not tell how the model does on new rows. How many they are is left to chance; with
too few for the order statistic the fit refuses.

A row that very many equal is no copy but a value that new rows will have, too, as that of idle
sensors: such rows are reserved one by one, by their numbers. They are found when X has been read
for the sample, which is then drawn again.
"""

import math
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
from daskls.run.resources import free_nbytes
from daskls.run.scan import TargetScan, name_classes
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
SPARED_DEVIATIONS, MOST_AIMED = 3.0, 0.75
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
    """Decides which rows are reserved: `wanted` of the `counts` of each class, or of numbers."""

    spec: ReserveSpec
    counts: Int64
    wanted: Int64
    block_offsets: Int64
    seed: int
    frequent: Keys | None = None

    def split(
        self, block: int, X: Reals, targets: Targets, *columns: Any
    ) -> "tuple[tuple[Any, ...], ReservedRows]":
        """Split a block's rows of positive weight: the columns of others, and the reserved."""
        hashes = self._hashes(X, targets)
        held = self._holds(hashes, group_codes(targets), int(self.block_offsets[block]))
        others = tuple(column[~held] for column in (X, targets, *columns))
        return others, _different(X[held], targets[held], hashes[held])

    def joined(self, parts: "list[ReservedRows]") -> "ReservedRows":
        names = ("X", "targets", "hashes", "copies")
        joined = _different(*(np.concatenate([getattr(part, n) for part in parts]) for n in names))
        if self.frequent is None:
            return joined
        return replace(joined, units=1 - np.isin(joined.hashes, self.frequent).astype(np.int64))

    def _hashes(self, X: Reals, targets: Targets) -> Keys:
        return row_hashes(X, targets, seed=THRESHOLD_ROWS(self.seed))

    def _holds(self, hashes: Keys, codes: Codes, start: int) -> Mask:
        if self.frequent is not None:
            numbers = (start + np.arange(len(hashes))).astype(np.uint64)
            hashes = hashes + np.isin(hashes, self.frequent) * numbers
        keys = row_keys(hashes, 0)
        # The upper 53 bits, which float64 holds exactly.
        is_held: Mask = (keys >> np.uint64(11)) * 2.0**-53 < (self.wanted / self.counts)[codes]
        return is_held

    def expected(self, scan: TargetScan) -> TargetScan:
        """Return the scan of the rows that probably remain; only its sums are of use."""
        n_left = scan.n_kept - int(self.wanted.sum())
        block_offsets = np.append(scan.block_offsets[:-1], n_left)
        return replace(scan, counts=self.counts - self.wanted, block_offsets=block_offsets)

    def left(self, scan: TargetScan, held: "ReservedRows", taken: list[int]) -> TargetScan:
        """Return the scan of the rows that remain, given the reserved rows of each block."""
        block_offsets = scan.block_offsets - np.cumsum([0, *taken])
        return replace(scan, counts=self.counts - self._taken(held), block_offsets=block_offsets)

    def _taken(self, held: "ReservedRows") -> Int64:
        sums = np.bincount(held.codes, held.copies, minlength=len(self.counts))
        return sums.astype(np.int64)

    def check(self, held: "ReservedRows") -> None:
        """Raise ParameterError for too few different rows; it names the number that is needed."""
        # Copies are one observation; frequent rows were reserved one by one, and are one each.
        n_units = int(np.where(held.units, 1, held.copies)[held.codes == 0].sum())
        needed = observations_needed(self.spec)
        if n_units >= needed:
            return
        of, easier = _of_and_easier(self.spec)
        n_first = int(self.counts[0])
        raise ParameterError(
            f"{_option(self.spec)} needs {needed} distinct {of} to hold out, and equal rows are "
            f"held out together, but only {n_units} distinct ones of {n_first} were drawn. Fit "
            f"on more distinct rows, or {easier}."
        )

    def find_frequent(self, held: "ReservedRows", X: Reals, targets: Targets) -> Keys:
        """Return the hashes of numbers, or negatives, that very many equal."""
        sampled = _different(X, targets, self._hashes(X, targets))
        n_left = int(self.counts.sum() - held.copies.sum())
        # All copies of a row are reserved, or none is.
        n_equal = np.r_[held.copies, sampled.copies * (n_left / max(len(X), 1))]
        least = max(MOST_EQUAL, FREQUENT * _rate(self.spec) * self.counts[0])
        is_frequent = (n_equal > least) & (np.r_[held.codes, sampled.codes] == 0)
        frequent: Keys = np.r_[held.hashes, sampled.hashes][is_frequent]
        return frequent


@dataclass(frozen=True, eq=False)
class ReservedRows:
    """Different reserved rows in the order of their hashes, which are of features and targets.

    X is not scaled, targets are in the units of y. `copies` counts the reserved rows that equal
    each, itself included; `units` is 1, or 0 for rows that very many equal.
    """

    X: Reals
    targets: Targets
    hashes: Keys
    copies: Int64
    units: Int64

    @property
    def codes(self) -> Codes:
        return group_codes(self.targets)


def _different(
    X: Reals, targets: Targets, hashes: Keys, copies: Int64 | None = None
) -> ReservedRows:
    distinct, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    n_copies = np.bincount(group, copies, minlength=len(distinct)).astype(np.int64)
    return ReservedRows(X[first], targets[first], distinct, n_copies, np.ones_like(n_copies))


def group_codes(targets: Targets) -> Codes:
    """Return the class code of each row, (m,); 0 for numbers, which are one group."""
    if targets.ndim > 1:
        return np.zeros(len(targets), np.int32)
    return targets.astype(np.int32, copy=False)


def plan_reserve(spec: ReserveSpec, rows: BlockRows, scan: TargetScan, seed: int) -> Reserve:
    return Reserve(spec, scan.counts, rows_wanted(spec, rows, scan), scan.block_offsets, seed)


def observations_needed(spec: ReserveSpec) -> int:
    if isinstance(spec, IntervalSpec):
        return rows_to_cover(spec.coverage)
    return rows_needed(spec.rate, spec.delta)


def _rate(spec: ReserveSpec) -> float:
    """Return the share of new rows that may lie beyond the order statistic."""
    return 1 - spec.coverage if isinstance(spec, IntervalSpec) else spec.rate


def rows_wanted(spec: ReserveSpec, rows: BlockRows, scan: TargetScan) -> Int64:
    """Return how many rows to reserve on average: of each class (k,), or of numbers (1,)."""
    if isinstance(spec, FalseAlarmSpec):
        _check_classes(spec, rows, scan)
    needed = observations_needed(spec)
    if scan.counts[0] // MOST_SHARE < needed:
        raise _too_few(spec, rows, scan, needed)
    row_nbytes = rows.n_features * rows.X.dtype.itemsize + scan.target.nbytes
    _check_memory(spec, needed, row_nbytes)
    return np.array(reserved_counts(spec, scan.counts.tolist(), row_nbytes), np.int64)


def rows_expected(spec: ReserveSpec, n_rows: int, row_nbytes: int) -> int:
    # The sizes of the two classes are unknown, so they are taken as equal.
    of_classes = [n_rows - n_rows // 2, n_rows // 2]
    counts = of_classes if isinstance(spec, FalseAlarmSpec) else [n_rows]
    return sum(reserved_counts(spec, counts, row_nbytes))


def reserved_counts(spec: ReserveSpec, counts: list[int], row_nbytes: int) -> list[int]:
    """Return how many rows to reserve on average: of both classes, or of numbers.

    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), [45_000, 5_000], 176)
    [9000, 500]
    >>> reserved_counts(FalseAlarmSpec(0.01, 0.05), [1_000, 1_000_000], 176)
    [500, 5000]
    >>> reserved_counts(IntervalSpec(0.99), [250], 176)
    [125]
    """
    needed = observations_needed(spec)
    held = _most_rows(needed, row_nbytes)
    others = [min(n // POSITIVE_SHARE, MOST_POSITIVES, held) for n in counts[1:]]
    return [_reserved_of(counts[0], needed, held), *others]


def _most_rows(needed: int, row_nbytes: int) -> int:
    """Return how many rows may be reserved by their size; never fewer than are needed."""
    return max(min(MOST_RESERVED, RESERVED_NBYTES // row_nbytes), needed)


def _reserved_of(n_rows: int, needed: int, held: int) -> int:
    """Return how many of ``n_rows`` to reserve, about ``held`` at most, if a rank needs some."""
    wanted = min(max(n_rows // SHARE, COMFORT * needed), n_rows // MOST_SHARE, held)
    deviation = math.sqrt(needed * max(1 - needed / max(n_rows, 1), 0))
    spare = math.ceil(needed + SPARED_DEVIATIONS * deviation)
    return max(wanted, min(spare, int(MOST_AIMED * n_rows)))


def _of_and_easier(spec: ReserveSpec) -> tuple[str, str]:
    """Return what is reserved, and what would need fewer of it."""
    if isinstance(spec, IntervalSpec):
        return "rows", "lower interval"
    return "rows of the first class", "raise max_false_alarm or delta"


def _option(spec: ReserveSpec) -> str:
    if isinstance(spec, IntervalSpec):
        return f"interval={spec.coverage:g}"
    return f"max_false_alarm={spec.rate:g} with delta={spec.delta:g}"


def _check_memory(spec: ReserveSpec, needed: int, row_nbytes: int) -> None:
    if needed * row_nbytes > free_nbytes() // 2:
        _, easier = _of_and_easier(spec)
        raise MemoryPlanError(
            f"{_option(spec)} needs {needed} rows on the client, {needed * row_nbytes >> 20} "
            f"MiB, but it may use only half of the {free_nbytes() >> 20} MiB that are free "
            f"there. {easier.capitalize()}, or give the client more memory."
        )


def _check_classes(spec: FalseAlarmSpec, rows: BlockRows, scan: TargetScan) -> None:
    if len(scan.counts) == 2:
        return
    names = name_classes(rows, scan.target.labels).tolist()
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ParameterError(
        f"max_false_alarm={spec.rate:g} is for two classes, but y holds {len(names)}: {shown}. "
        "Leave max_false_alarm at None, or fit one class against the rest, as with "
        f"y == {names[0]!r}."
    )


def _too_few(spec: ReserveSpec, rows: BlockRows, scan: TargetScan, needed: int) -> ParameterError:
    n_first, of = int(scan.counts[0]), "rows"
    most = n_first // MOST_SHARE
    if isinstance(spec, FalseAlarmSpec):
        of = f"rows of class {name_classes(rows, scan.target.labels).tolist()[0]!r}"
        rate = _rounded_up(least_rate(max(most, 1), spec.delta))
        delta = _rounded_up(least_delta(most, spec.rate))
        easier = f"raise max_false_alarm to {rate:g} or delta to {delta:g}"
    else:
        # Rounded down to three digits, as a lower coverage needs fewer rows.
        easier = f"lower interval to {np.floor(1000 * most_coverage(most)) / 1000:g}"
    remedy = f", or {easier}" if most else ""
    return ParameterError(
        f"{_option(spec)} needs {needed} {of} to hold out, but may hold out at most half of "
        f"them, which is {most} of the {n_first} of positive weight. Fit on "
        f"{MOST_SHARE * needed} or more{remedy}."
    )


def _rounded_up(value: float) -> float:
    """Round a share up to two significant digits, so that it stays large enough."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.ceil(value / unit) * unit)
