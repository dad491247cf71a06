import itertools

import numpy as np
import pytest

from daskls.kernels.checksum import CHECKSUM_TILE_ROWS, row_checksum
from daskls.kernels.copies import _groups, find_copies, row_hashes


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


def test_changes_do_not_cancel_and_places_count():
    # Two changes in the highest bits cancel where a word is multiplied before it is mixed.
    X = rows(5, 5)
    seen, pairs = {row_checksum(X, 0)}, [list(p) for p in itertools.combinations(range(5), 2)]
    for pair in pairs:
        for own in ((1, pair), (pair, 2)):
            changed = X.copy()
            changed[own] *= -1
            seen.add(row_checksum(changed, 0))
        order = np.arange(5)
        order[pair] = order[pair[::-1]]
        seen |= {row_checksum(np.take(X, order, axis), 0) for axis in (0, 1)}
    assert len(seen) == 1 + 4 * len(pairs)
    assert row_checksum(np.array([[0.0]]), 0) != row_checksum(np.array([[-0.0]]), 0)
    # Rows of zeros are rows, too.
    zeros = np.zeros((3, 3))
    seen = {row_checksum(zeros[:2], first) for first in (0, 2, 2**31, 2**32, 2**40)}
    assert len(seen | {row_checksum(zeros, 0)}) == 6


def groups_of(table):
    first, group, seen = [], [], {}
    for i, row in enumerate(map(tuple, table.tolist())):
        if row not in seen:
            seen[row] = len(first)
            first.append(i)
        group.append(seen[row])
    return first, group


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "?"])
@pytest.mark.parametrize("n_values", [2, 7])
def test_groups_are_those_of_equal_rows(dtype, n_values):
    rng = np.random.default_rng(n_values)
    X, y = rng.integers(0, n_values, (5000, 3)).astype(dtype), rng.integers(0, 2, 5000)
    first, group = find_copies(X, y)
    assert (first.tolist(), group.tolist()) == groups_of(np.column_stack([X, y]))


def test_a_row_that_repeats_nothing_is_in_no_group():
    X = np.random.default_rng(0).random((10_000, 5))
    assert find_copies(X) is None
    assert find_copies(X[:1]) is None
    # The same features, other targets.
    both = np.vstack([X, X]), np.repeat([0.0, 1.0], len(X))
    assert find_copies(*both) is None
    assert len(find_copies(both[0])[0]) == len(X)


def test_rows_of_one_hash_that_differ_are_told_apart():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [-0.0, 0.0], [0.0, 0.0]])
    first, group = _groups(np.zeros(5, np.uint64), (X,))
    assert (first.tolist(), group.tolist()) == ([0, 1, 3], [0, 1, 0, 2, 2])


def test_hashes_depend_on_values_places_and_seed_alone():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 50, (300, 4)).astype("f4")
    hashes = row_hashes(X, X[:, 0])
    assert (row_hashes(X.astype("f8"), X[:, :1].astype("i4")) == hashes).all()
    assert (row_hashes(X[::-1], X[::-1, 0]) == hashes[::-1]).all()
    assert (row_hashes(X, X[:, 0], seed=1) != hashes).all()
    exchanged = X[:, [1, 0, 2, 3]]
    differ = (exchanged != X).any(axis=1)
    assert (row_hashes(exchanged)[differ] != row_hashes(X)[differ]).all()
