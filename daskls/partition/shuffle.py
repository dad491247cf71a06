"""Seeded random orders of row numbers, computed row by row: no task holds all of one."""

import math

import numpy as np

from daskls.records import Int64, Keys, RowNumbers

__all__ = ["key_limit", "row_keys", "shuffle_numbers"]

N_ROUNDS = 6
# Rows below the limit vary by about the root of their number: so many times that are added, and
# fewer than wanted are met once in 1e15 fits. The sample is smaller then, by a few rows.
SPARE_DEVIATIONS = 8.0


def row_keys(numbers: RowNumbers | Keys, seed: int) -> Keys:
    """Return a key of each row number, uint64: in the order of keys, rows come as if shuffled.

    No two numbers share a key. Source: Steele, Lea, Flood 2014, the mixing function of splitmix64.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + np.uint64(seed % 2**63)) * golden
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        keys: Keys = z ^ (z >> np.uint64(31))
    return keys


def key_limit(n_rows: int, n_sample: int) -> int | None:
    """Return the key below which the sample lies for sure, and few rows more; None if all rows may.

    >>> key_limit(1000, 1000) is None
    True
    >>> limit = key_limit(10**9, 10**5)
    >>> bool(10**5 < limit / 2**64 * 10**9 < 1.03 * 10**5)
    True
    """
    wanted = n_sample + SPARE_DEVIATIONS * math.sqrt(n_sample) + SPARE_DEVIATIONS**2
    return None if wanted >= n_rows else int(wanted / n_rows * 2.0**64)


def shuffle_numbers(numbers: RowNumbers, n: int, seed: int) -> Int64:
    """Return where a random permutation of 0 .. n - 1 puts each number.

    Parameters
    ----------
    numbers : int array, shape (m,), in [0, n). Any of them, in any order.
    n : int, >= 1
    seed : int

    Returns
    -------
    positions : int64 array, shape (m,), in [0, n). Each depends on its number, n
        and the seed alone.

    Notes
    -----
    A Feistel network permutes the next power of 4; what falls outside of [0, n) is permuted again
    until it falls inside. Source: Black and Rogaway, Ciphers with arbitrary finite domains, 2002.

    Examples
    --------
    >>> sorted(shuffle_numbers(np.arange(10), 10, seed=0).tolist()) == list(range(10))
    True
    """
    half = max((max(n - 1, 1).bit_length() + 1) // 2, 1)
    # Seeds that are near each other, and sizes, give orders that have nothing in common.
    key = int(row_keys(np.array([seed]), n)[0])
    positions = np.asarray(numbers, np.int64).copy()
    outside = np.arange(len(positions))
    while len(outside):
        positions[outside] = _permute(positions[outside], half, key)
        outside = outside[positions[outside] >= n]
    return positions


def _permute(values: Int64, half: int, key: int) -> Int64:
    """Permute numbers of ``2 half`` bits."""
    mask = np.int64((1 << half) - 1)
    left, right = values >> half, values & mask
    for number in range(N_ROUNDS):
        # Rounds are told apart in bits that no half has.
        hashed = row_keys(right + (np.int64(number + 1) << 40), key)
        left, right = right, left ^ (hashed.astype(np.int64) & mask)
    permuted: Int64 = left << half | right
    return permuted
