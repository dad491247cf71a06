"""Seeded random orders of row numbers, computed row by row: no task holds a whole order."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from daskls.kernels.checksum import mix_bits
from daskls.kernels.copies import find_copies
from daskls.partition.tree import Tree, no_cuts
from daskls.records import AnyArray, Int64, Ints, Keys, Reals, RowNumbers
from daskls.seeds import BALLS, CHUNKS, SUBSAMPLES
from daskls.store.artifact import Artifact
from daskls.store.errors import damaged, malformed_is_damage

N_ROUNDS = 6
# The number of rows below a key limit varies by about its square root. With this many deviations
# to spare, too few lie below it once in 1e15 fits; the sample is then a few rows smaller.
SPARE_DEVIATIONS = 8.0

# Up to this many equal rows may be copies, as of a rare class that was oversampled.
MOST_COPIES = 100


def row_keys(numbers: RowNumbers | Keys, seed: int) -> Keys:
    """Return a key of each row number, distinct ones for distinct numbers; sorting shuffles rows.

    Source: Steele, Lea, Flood 2014, the mixing function of splitmix64.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        return mix_bits((numbers.astype(np.uint64) + np.uint64(seed % 2**63)) * golden)


def key_limit(n_rows: int, n_sample: int) -> int | None:
    """Return a key below which the sample surely lies, with few other rows; None if all rows may.

    >>> key_limit(1000, 1000) is None
    True
    >>> limit = key_limit(10**9, 10**5)
    >>> bool(10**5 < limit / 2**64 * 10**9 < 1.03 * 10**5)
    True
    """
    wanted = n_sample + SPARE_DEVIATIONS * math.sqrt(n_sample) + SPARE_DEVIATIONS**2
    return None if wanted >= n_rows else int(wanted / n_rows * 2.0**64)


def shuffle_numbers(numbers: RowNumbers, n: int, seed: int) -> Int64:
    """Return the position of each number in a random permutation of 0 .. n - 1.

    A Feistel network permutes the next power of 4; a result outside of [0, n) is permuted again
    until it falls inside. Source: Black and Rogaway, Ciphers with arbitrary finite domains, 2002.

    >>> sorted(shuffle_numbers(np.arange(10), 10, seed=0).tolist()) == list(range(10))
    True
    """
    half = max((max(n - 1, 1).bit_length() + 1) // 2, 1)
    # Hashed, so that neighboring seeds and sizes give unrelated orders.
    key = int(row_keys(np.array([seed]), n)[0])
    positions = np.asarray(numbers, np.int64).copy()
    outside = np.arange(len(positions))
    while len(outside):
        positions[outside] = _permute(positions[outside], half, key)
        outside = outside[positions[outside] >= n]
    return positions


def _permute(values: Int64, half: int, key: int) -> Int64:
    """Permute numbers of ``2 * half`` bits by a Feistel network."""
    mask = np.int64((1 << half) - 1)
    left, right = values >> half, values & mask
    for number in range(N_ROUNDS):
        # The round's number goes into bits above those of a half.
        hashed = row_keys(right + (np.int64(number + 1) << 40), key)
        left, right = right, left ^ (hashed.astype(np.int64) & mask)
    permuted: Int64 = left << half | right
    return permuted


@dataclass(frozen=True)
class Chunks:
    """Random chunks of near-equal size, to which rows are assigned by their numbers alone."""

    n_rows: int
    n_leaves: int
    seed: int

    kind: ClassVar[str] = "Chunks"

    @property
    def n_partitions(self) -> int:
        return 1

    def partition_of(self, leaf: int) -> int:
        return 0

    def assign(self, X: Reals, numbers: RowNumbers) -> Iterator[Ints]:
        """Chunk sizes differ by at most one row."""
        positions = shuffle_numbers(numbers, self.n_rows, CHUNKS(self.seed))
        yield positions * self.n_leaves // self.n_rows

    def find(self, X: Reals) -> None:
        """See `Partition`: a chunk is not a region of space."""

    def cut_leaf(self, X: Reals, leaf: int, max_rows: int, seed: int | None = None) -> Tree:
        """A chunk is one cell."""
        return no_cuts(np.zeros(X.shape[1]))

    def join(self, branches: Sequence[Tree]) -> "Chunks":
        return self

    def arrays(self) -> dict[str, AnyArray]:
        return {}

    def attributes(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, group: Artifact) -> Self:
        with malformed_is_damage(group.where()):
            attrs = {field.name: group.attrs[field.name] for field in fields(cls)}
        are_numbers = all(type(value) is int for value in attrs.values())
        if not (are_numbers and 0 < attrs["n_leaves"] <= attrs["n_rows"]):
            raise damaged(group.where(), f"rows cannot be assigned to chunks by {attrs}")
        return cls(**attrs)


# The most validation rows, and the rows of the data for each of them.
MAX_VALIDATION_ROWS = 10_000
ROWS_PER_VALIDATION_ROW = 10
# Rows in subsamples by default: a share of the rows; where that is few, this many per class, but no
# more than the larger share.
SAMPLE_FRACTION, MAX_SAMPLE_FRACTION = 0.02, 0.5
SAMPLED_ROWS_PER_CLASS = 200
# Subsamples by default; fewer where each would have fewer rows per class than this.
N_SUBSAMPLES = 20
SUBSAMPLE_ROWS_PER_CLASS = 20


@dataclass(frozen=True)
class DisjointDraws:
    """Rows drawn for disjoint purposes off one permutation: subsamples, validation, all others."""

    n_rows: int
    n_subsamples: int
    subsample_rows: int
    n_validation: int
    seed: int

    @property
    def n_sampled(self) -> int:
        return self.n_subsamples * self.subsample_rows

    @property
    def n_reserved(self) -> int:
        return self.n_sampled + self.n_validation

    @property
    def n_others(self) -> int:
        return self.n_rows - self.n_reserved

    def shuffled(self, numbers: RowNumbers, X: Reals) -> Int64:
        """Return each row's position in the permutation, by its global number.

        Of rows of equal features either all validate, or none: they go with the first of them. X
        holds all rows of a leaf.
        """
        order = shuffle_numbers(numbers, self.n_rows, SUBSAMPLES(self.seed))
        copies = find_copies(X)
        if copies is None:
            return order
        first, group = copies
        # Very many equal rows are no copies: new rows will equal them, too.
        is_copy = np.bincount(group)[group] <= MOST_COPIES
        validates = (order >= self.n_sampled) & (order < self.n_reserved)
        joins = is_copy & validates[first[group]]
        order = np.where(is_copy & validates & ~joins, self.n_rows, order)
        return np.where(joins, order[first[group]], order)


def plan_draws(n_rows: int, sample_fraction: float, n_subsamples: int, seed: int) -> DisjointDraws:
    """Return how many rows to draw for each purpose; the fraction leaves the validation rows.

    >>> plan_draws(49_990, 0.02, 20, 0).subsample_rows
    49
    """
    n_validation = min(max(n_rows // ROWS_PER_VALIDATION_ROW, 1), MAX_VALIDATION_ROWS)
    # A decimal fraction times an integer may round to just below an integer.
    n_sampled = min(math.floor(sample_fraction * n_rows + 1e-9), n_rows - n_validation)
    return DisjointDraws(n_rows, n_subsamples, n_sampled // n_subsamples, n_validation, seed)


def sampling_sizes(
    sample_fraction: float | None, n_subsamples: int | None, n_rows: int, n_classes: int
) -> tuple[float, int]:
    """Return the subsampled share of rows and the number of subsamples; None means the default.

    >>> sampling_sizes(None, None, 50_000, 2)
    (0.02, 20)
    >>> sampling_sizes(None, None, 4000, 5)
    (0.25, 10)
    """
    if sample_fraction is None:
        of_few_rows = min(SAMPLED_ROWS_PER_CLASS * n_classes / n_rows, MAX_SAMPLE_FRACTION)
        sample_fraction = max(SAMPLE_FRACTION, of_few_rows)
    if n_subsamples is None:
        n_sampled = plan_draws(n_rows, sample_fraction, 1, 0).n_sampled
        n_full = n_sampled // (SUBSAMPLE_ROWS_PER_CLASS * n_classes)
        n_subsamples = min(max(n_full, 1), N_SUBSAMPLES)
    return sample_fraction, n_subsamples


def ball_keys(numbers: RowNumbers, centers: Int64, seed: int) -> Keys:
    """Return the keys by which rows are drawn from balls, named by their centers' row numbers."""
    of_ball = row_keys(centers, BALLS(seed))
    with np.errstate(over="ignore"):
        return row_keys(numbers.astype(np.uint64) + of_ball, 0)
