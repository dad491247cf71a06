"""Hashes of rows, and groups of copies, beside NumPy's sort of whole rows."""

import numpy as np
import pytest

from daskls.kernels.copies import _groups, find_copies, row_hashes


def naive(table):
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
    assert (first.tolist(), group.tolist()) == naive(np.column_stack([X, y]))


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
