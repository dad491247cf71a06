import itertools

import numpy as np
import pytest

from daskls.kernels.checksum import CHECKSUM_TILE_ROWS, row_checksum

DTYPES = [np.int8, np.uint16, np.int32, np.int64, np.float32, np.float64, np.bool_]


def rows(m, d, dtype=np.float64, seed=0):
    return (np.random.default_rng(seed).normal(size=(m, d)) * 30).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 3, 9])
def test_checksums_of_parts_add_up(d, dtype):
    X = rows(13, d, dtype)
    whole = row_checksum(X, 1000)
    assert 0 <= whole < 2**64
    for cuts in [[4], [1, 2, 3], [6, 7], list(range(1, 13))]:
        edges = [0, *cuts, 13]
        parts = [row_checksum(X[a:b], 1000 + a) for a, b in itertools.pairwise(edges)]
        assert sum(parts) % 2**64 == whole


def test_parts_of_more_rows_than_a_tile():
    X = rows(CHECKSUM_TILE_ROWS + 50, 1)
    whole = row_checksum(X, 0)
    cut = CHECKSUM_TILE_ROWS - 7
    assert (row_checksum(X[:cut], 0) + row_checksum(X[cut:], cut)) % 2**64 == whole
    X[-1] += 1
    assert row_checksum(X, 0) != whole


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
def test_every_single_bit_counts(dtype):
    X = rows(4, 3, dtype)
    bits = X.view(np.uint8).reshape(-1)
    seen = {row_checksum(X, 0)}
    for i in range(len(bits)):
        for bit in range(8):
            bits[i] ^= 1 << bit
            seen.add(row_checksum(X, 0))
            bits[i] ^= 1 << bit
    assert len(seen) == 1 + 8 * len(bits)


def test_signs_of_two_values_do_not_cancel():
    # Two changes in the highest bits cancel where a word is multiplied before it is mixed.
    X = rows(3, 4)
    before = row_checksum(X, 0)
    seen = {before}
    for i in range(4):
        for j in range(i + 1, 4):
            changed = X.copy()
            changed[1, [i, j]] *= -1
            seen.add(row_checksum(changed, 0))
    changed = X.copy()
    changed[[0, 1], 2] *= -1
    seen.add(row_checksum(changed, 0))
    assert len(seen) == 8
    assert row_checksum(np.array([[0.0]]), 0) != row_checksum(np.array([[-0.0]]), 0)


def test_row_numbers_count():
    X = np.zeros((2, 3))
    seen = {row_checksum(X, first) for first in (0, 1, 2**31, 2**32, 2**40)}
    assert len(seen) == 5
    # Rows of zeros are rows, too.
    assert row_checksum(X, 0) != row_checksum(np.zeros((3, 3)), 0)


@pytest.mark.parametrize("axis", [0, 1])
def test_exchanged_rows_and_columns_count(axis):
    X, seen = rows(5, 5), set()
    for i, j in [(0, 0), *itertools.combinations(range(5), 2)]:
        order = np.arange(5)
        order[[i, j]] = j, i
        seen.add(row_checksum(np.take(X, order, axis), 0))
    assert len(seen) == 1 + 10
