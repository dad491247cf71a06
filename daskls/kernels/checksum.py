"""A checksum of rows that does not depend on how they are cut into blocks."""

import math

import numpy as np

from daskls.kernels._jit import inline_jit, jit
from daskls.records import AnyArray, Keys

# Rows hashed at once: bounds the padded copy.
CHECKSUM_TILE_ROWS = 4096
# The constants of SplitMix64.
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT_1 = np.uint64(30)
_SHIFT_2 = np.uint64(27)
_SHIFT_3 = np.uint64(31)


@inline_jit
def mix_word(z):
    """Scramble 64 bits (the finalizer of SplitMix64; Steele, Lea, Flood 2014)."""
    z = (z ^ (z >> _SHIFT_1)) * _MIX_1
    z = (z ^ (z >> _SHIFT_2)) * _MIX_2
    return z ^ (z >> _SHIFT_3)


@jit
def _sum_rows(words, first_row, factors):
    """Return the sum over rows of a hash of the row's words and its number, modulo 2^64."""
    total = np.uint64(0)
    for i in range(words.shape[0]):
        h = np.uint64(first_row + i) * _GOLDEN
        for j in range(words.shape[1]):
            # Each column has its own factor, so that exchanged values change the sum. Folding the
            # high bits down first keeps the product from losing a change in them.
            h += (words[i, j] ^ (words[i, j] >> _SHIFT_3)) * factors[j]
        total += mix_word(h)
    return total


def mix_bits(words: Keys) -> Keys:
    """Return the words scrambled, as by `mix_word`; distinct words stay distinct."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> _SHIFT_1)) * _MIX_1
        words = (words ^ (words >> _SHIFT_2)) * _MIX_2
    mixed: Keys = words ^ (words >> _SHIFT_3)
    return mixed


def column_factors(n_columns: int) -> Keys:
    """Return an odd factor for each column, so that exchanged values change a hash."""
    with np.errstate(over="ignore"):
        factors = np.arange(1, n_columns + 1, dtype=np.uint64) * _GOLDEN
        odd: Keys = ((factors ^ (factors >> _SHIFT_1)) * _MIX_1) | np.uint64(1)
    return odd


def row_checksum(rows: AnyArray, first_row: int) -> int:
    """Return a checksum in [0, 2^64); those of adjacent blocks add up modulo 2^64.

    >>> X = np.arange(12.0).reshape(6, 2)
    >>> whole = row_checksum(X, 0)
    >>> whole == (row_checksum(X[:1], 0) + row_checksum(X[1:], 1)) % 2**64
    True
    """
    rows = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    width = rows.shape[1] * rows.dtype.itemsize
    n_words = -(-width // 8)
    factors = column_factors(n_words)
    padded = np.zeros((min(CHECKSUM_TILE_ROWS, len(rows)), n_words * 8), np.uint8)
    total = 0
    for start in range(0, len(rows), CHECKSUM_TILE_ROWS):
        tile = np.ascontiguousarray(rows[start : start + CHECKSUM_TILE_ROWS])
        padded[: len(tile), :width] = tile.view(np.uint8).reshape(len(tile), width)
        with np.errstate(over="ignore"):
            words = padded[: len(tile)].view(np.uint64)
            total += int(_sum_rows(words, np.int64(first_row + start), factors))
    return total % 2**64
