"""Which rows are drawn for what: disjoint subsamples, validation rows, further rows.

All of it is read off a seeded permutation of the global row numbers: the first places are the
subsamples', one after the other, the next ones those of the validation rows, and so on.
"""

import math
from dataclasses import dataclass

import numpy as np

from daskls.partition.shuffle import row_keys, shuffle_numbers
from daskls.records import IntArray

__all__ = ["MAX_VALIDATION_ROWS", "Draws", "ball_keys", "plan_draws"]

# Rows that judge a model, at the most; and one in so many rows.
MAX_VALIDATION_ROWS = 10_000
ROWS_PER_VALIDATION_ROW = 10


@dataclass(frozen=True)
class Draws:
    """How many of n rows are drawn for what.

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
        """The rows of all subsamples: their places come first."""
        return self.n_subsamples * self.subsample_rows

    @property
    def n_reserved(self) -> int:
        """The rows of subsamples and validation: the places of all others follow."""
        return self.n_sampled + self.n_validation

    @property
    def n_others(self) -> int:
        """The rows that are neither in a subsample nor validate."""
        return self.n_rows - self.n_reserved

    def shuffled(self, numbers: IntArray) -> IntArray:
        """Return each row's place in the permutation, by its global number."""
        return shuffle_numbers(numbers, self.n_rows, self.seed)


def plan_draws(n_rows: int, sample_fraction: float, n_subsamples: int, seed: int) -> Draws:
    """Return how many rows are drawn for what; a subsample may come out too small to be one.

    Parameters
    ----------
    n_rows : int
    sample_fraction : float, in (0, 1]. Of all subsamples; what validates is left to it.
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


def ball_keys(numbers: IntArray, centers: IntArray, seed: int) -> IntArray:
    """Return the key by which a row is drawn from a ball, uint64: another one in every ball.

    Parameters
    ----------
    numbers : int array, shape (p,). Global row numbers.
    centers : int array, shape (p,). The global row number of each ball's center.
    seed : int
    """
    # Far from the keys of folds and of the order of centers, to which the seed adds as numbers do.
    of_ball = row_keys(centers, seed + (1 << 52))
    with np.errstate(over="ignore"):
        return row_keys(numbers.astype(np.uint64) + of_ball, 0)
