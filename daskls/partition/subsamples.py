"""Purposes that rows are drawn for: disjoint subsamples, validation rows, further rows.

All of it is read off a seeded permutation of the global row numbers: the first places are the
subsamples', one after the other, the next ones those of the validation rows, and so on.
"""

import math
from dataclasses import dataclass

import numpy as np

from daskls.partition.shuffle import row_keys, shuffle_numbers
from daskls.records import Int64, Keys, RowNumbers
from daskls.seeds import BALLS, SUBSAMPLES

__all__ = ["MAX_VALIDATION_ROWS", "Draws", "ball_keys", "plan_draws", "sampling_sizes"]

# Validation rows, at the most; and one in so many rows.
MAX_VALIDATION_ROWS = 10_000
ROWS_PER_VALIDATION_ROW = 10
# What is drawn where nothing is given: of many rows a share, of few so many a class, up to half.
SAMPLE_FRACTION, MAX_SAMPLE_FRACTION = 0.02, 0.5
SAMPLED_ROWS_PER_CLASS = 200
# Subsamples, but no more than leave each of them so many rows a class.
N_SUBSAMPLES = 20
SUBSAMPLE_ROWS_PER_CLASS = 20


@dataclass(frozen=True)
class Draws:
    """The number of rows drawn for each purpose, of n.

    Attributes
    ----------
    n_rows : int
    n_subsamples, subsample_rows : int
    n_validation : int. Rows that no model is trained on.
    seed : int
    """

    n_rows: int
    n_subsamples: int
    subsample_rows: int
    n_validation: int
    seed: int

    @property
    def n_sampled(self) -> int:
        """The rows of all subsamples: their positions come first."""
        return self.n_subsamples * self.subsample_rows

    @property
    def n_reserved(self) -> int:
        """The rows of subsamples and validation: the positions of all others follow."""
        return self.n_sampled + self.n_validation

    @property
    def n_others(self) -> int:
        """The rows that are neither in a subsample nor validate."""
        return self.n_rows - self.n_reserved

    def shuffled(self, numbers: RowNumbers) -> Int64:
        """Return each row's position in the permutation, by its global number."""
        return shuffle_numbers(numbers, self.n_rows, SUBSAMPLES(self.seed))


def plan_draws(n_rows: int, sample_fraction: float, n_subsamples: int, seed: int) -> Draws:
    """Return how many rows are drawn for each purpose; a subsample may be too small to train on.

    Parameters
    ----------
    n_rows : int
    sample_fraction : float, in (0, 1]. Of all subsamples together; at least the validation rows are
        left over.
    n_subsamples : int
    seed : int

    Examples
    --------
    >>> plan_draws(49_990, 0.02, 20, 0).subsample_rows
    49
    """
    validating = min(max(n_rows // ROWS_PER_VALIDATION_ROW, 1), MAX_VALIDATION_ROWS)
    # The product of a decimal fraction and a whole number may fall just short of the next one.
    sampled = min(math.floor(sample_fraction * n_rows + 1e-9), n_rows - validating)
    return Draws(n_rows, n_subsamples, sampled // n_subsamples, validating, seed)


def sampling_sizes(
    sample_fraction: float | None, n_subsamples: int | None, n_rows: int, n_classes: int
) -> tuple[float, int]:
    """Return the part of all rows in subsamples and the number of these: as given, or chosen.

    Parameters
    ----------
    sample_fraction, n_subsamples : as given, or None
    n_rows, n_classes : int

    Examples
    --------
    >>> sampling_sizes(None, None, 50_000, 2)
    (0.02, 20)
    >>> sampling_sizes(None, None, 4000, 5)
    (0.25, 10)
    """
    if sample_fraction is None:
        enough = min(SAMPLED_ROWS_PER_CLASS * n_classes / n_rows, MAX_SAMPLE_FRACTION)
        sample_fraction = max(SAMPLE_FRACTION, enough)
    if n_subsamples is None:
        drawn = plan_draws(n_rows, sample_fraction, 1, 0).n_sampled
        most = drawn // (SUBSAMPLE_ROWS_PER_CLASS * n_classes)
        n_subsamples = min(max(most, 1), N_SUBSAMPLES)
    return sample_fraction, n_subsamples


def ball_keys(numbers: RowNumbers, centers: Int64, seed: int) -> Keys:
    """Return the key by which a row is drawn from a ball, uint64: another one in every ball.

    Parameters
    ----------
    numbers : int array, shape (p,). Global row numbers.
    centers : int array, shape (p,). The global row number of each ball's center.
    seed : int
    """
    of_ball = row_keys(centers, BALLS(seed))
    with np.errstate(over="ignore"):
        return row_keys(numbers.astype(np.uint64) + of_ball, 0)
