"""Distances in float32 choose candidates only: rows and order are those of exact distances."""

import numpy as np
import pytest
from searches import Leaves, check_search, squared_distances

N = 300


def check(X, queries, *, n_leaves=2, ks=(1, 9, N)):
    """Cells of the leaves are as large as a fit's: the blocks are all that divides them."""
    leaves = Leaves(X, n_leaves, region_rows=N)
    distances = squared_distances(queries, X)
    for k in ks:
        check_search(leaves, queries, k, distances)


def beside(X, rng, step):
    """Rows, and points a small step aside of rows."""
    return np.vstack([X[:20], X[20:60] + step * rng.normal(size=(40, X.shape[1]))]).astype(X.dtype)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 8, 54, 301])
def test_far_offsets_few_and_many_features(d, dtype, offset):
    rng = np.random.default_rng(d)
    X = (offset + rng.normal(size=(N, d))).astype(dtype)
    check(X, beside(X, rng, 0.1))


@pytest.mark.parametrize("scale", [1e-300, 1e-165, 1e-150, 1e-42, 1e-20, 1e20, 1e70])
@pytest.mark.parametrize("d", [1, 6])
def test_units_whose_squares_overflow_or_vanish(d, scale):
    """Of 1e-165 and less some or all squares are 0, and the row number decides."""
    rng = np.random.default_rng(d)
    X = scale * (1.0 + rng.random((N, d)))
    check(X, beside(X, rng, 0.1 * scale))


@pytest.mark.parametrize("step", [1e-7, 1e-8, 1e-9, 1e-10, 1e-12])
def test_distances_that_float32_cannot_tell_apart(step):
    rng = np.random.default_rng(1)
    # Rows on a sphere around the query, all but for a step; the nearest is the last of them.
    X = rng.normal(size=(N, 5))
    X *= (1.0 + step * rng.permutation(N) / N)[:, None] / np.linalg.norm(X, axis=1)[:, None]
    queries = np.vstack([np.zeros((1, 5)), 1e-3 * step * rng.normal(size=(10, 5))])
    for offset in (0.0, 100.0):
        check(X + offset, queries + offset, n_leaves=1)
    # One outlier sets the units; all other rows and queries are cast to the same few values.
    for d in (1, 2, 9):
        X = 1.0 / 3.0 + step * rng.normal(size=(N, d))
        X[0] = -1.0
        check(X, 1.0 / 3.0 + step * rng.normal(size=(60, d)), n_leaves=1)


def test_ties_and_copies_go_to_the_smaller_number():
    rng = np.random.default_rng(2)
    corners = rng.integers(0, 2, (N, 4)).astype(np.float32)
    check(corners, np.full((5, 4), 0.5, np.float32))
    check(np.repeat(rng.normal(size=(6, 3)), 50, axis=0), rng.normal(size=(9, 3)))
    check(np.full((N, 2), 0.1), np.array([[0.1, 0.1], [0.3, -7.0], [1e30, 0.0]]), n_leaves=1)
