import itertools

import numpy as np
import pytest

from daskls.kernels.checksum import CHECKSUM_TILE_ROWS, row_checksum


def rows(m, d, dtype=np.float64, seed=0):
    return (np.random.default_rng(seed).normal(size=(m, d)) * 30).astype(dtype)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint16, np.int32, np.int64, np.float32, np.float64, np.bool_]
)
@pytest.mark.parametrize(
    ("m", "d"), [(13, 1), (13, 3), (13, 9), (CHECKSUM_TILE_ROWS + 50, 1)], ids=repr
)
def test_checksums_of_parts_add_up(m, d, dtype):
    X = rows(m, d, dtype)
    whole = row_checksum(X, 1000)
    assert 0 <= whole < 2**64
    for cuts in [[4], [1, 2, 3], [6, 7], range(1, 13), [m - 7]]:
        parts = [row_checksum(X[a:b], 1000 + a) for a, b in itertools.pairwise([0, *cuts, m])]
        assert sum(parts) % 2**64 == whole
    X[-1] = ~X[-1] if dtype is np.bool_ else X[-1] + 1
    assert row_checksum(X, 1000) != whole


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
    seen = {row_checksum(X, 0)}
    pairs = [(1, list(pair)) for pair in itertools.combinations(range(4), 2)]
    for own, features in [*pairs, ([0, 1], 2)]:
        changed = X.copy()
        changed[own, features] *= -1
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
