"""The search over leaves against the sorted distances to all rows."""

import itertools

import numpy as np
import pytest
from searches import (
    Leaves,
    check_search,
    polynomial_distances,
    sort_rows,
    squared_distances,
)

from daskls.neighbors.balls import lower_bounds, measure_regions
from daskls.records import KernelSpec

N = 400


def random_rows(d):
    return lambda rng: rng.normal(size=(N, d))


def tied_rows(rng):
    """Every corner of a grid: whole shells of rows at one distance."""
    return np.array(list(itertools.product(range(20), range(20))), float)


def repeated_rows(rng):
    """Forty rows, each about ten times."""
    return rng.normal(size=(40, 5))[rng.integers(0, 40, N)]


def crowded_rows(rng):
    """Two rows that repeat more often than lists are long, among distinct ones."""
    X = rng.normal(size=(N, 5))
    X[rng.random(N) < 0.6] = 0.0
    X[rng.random(N) < 0.3] = X[0]
    return X


def whole_rows(rng):
    return rng.integers(0, 4, (N, 6)).astype(float)


def narrow_rows(rng):
    """Far from 0 for their spread: expanded squares lose most of their digits."""
    return 1000.0 + rng.random((N, 3))


KINDS = {
    **{f"{d} features": random_rows(d) for d in (2, 5, 22, 54, 100)},
    "a grid of ties": tied_rows,
    "duplicates": repeated_rows,
    "crowded rows": crowded_rows,
    "whole numbers": whole_rows,
    "1000 to 1001": narrow_rows,
}


def make_rows(kind, dtype=np.float64, seed=0):
    return KINDS[kind](np.random.default_rng(seed)).astype(dtype)


def make_queries(X, seed=1):
    """Training rows, rows between two of them, and rows beyond all."""
    rng = np.random.default_rng(seed)
    a, b = X[rng.integers(0, len(X), (2, 12))]
    beyond = X[:4] + 3.0 * (X.max(axis=0) - X.min(axis=0))
    return np.concatenate([X[rng.integers(0, len(X), 14)], (a + b) / 2, beyond]).astype(X.dtype)


# n_leaves, n_empty
LEAVES = {"1 leaf": (1, 0), "4 leaves": (4, 0), "40 leaves": (40, 0), "empty ones": (4, 3)}


@pytest.mark.parametrize("shape", LEAVES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_order_are_those_of_all_distances_sorted(kind, dtype, shape):
    X = make_rows(kind, dtype)
    n_leaves, n_empty = LEAVES[shape]
    leaves = Leaves(X, n_leaves, n_empty=n_empty)
    if kind not in ("a grid of ties", "duplicates", "crowded rows", "whole numbers"):
        assert len(leaves.leaves) == n_leaves + n_empty
    assert sum(len(leaf.X) == 0 for leaf in leaves.leaves) == n_empty
    queries = make_queries(X)
    distances = squared_distances(queries, X)
    for k in (1, 50, N):
        check_search(leaves, queries, k, distances)


@pytest.mark.parametrize("kind", KINDS)
def test_any_leaves_and_regions_will_do(kind):
    """Rows of one leaf far apart, equal ones in different leaves and regions."""
    X = make_rows(kind)
    queries = make_queries(X)
    distances = squared_distances(queries, X)
    leaves = Leaves(X, 6, drawn=True)
    for k in (1, 5, 50):
        check_search(leaves, queries, k, distances)


# Bounds


def random_regions(rng, d, scale, offset):
    """Rows in clumps of any size and spread, runs of them as regions, some empty."""
    n = 120
    clumps = 10.0 ** rng.uniform(-3, 1, (n, 1)) * rng.normal(size=(n, d))
    X = offset + scale * (3 * rng.normal(size=(8, d))[rng.integers(0, 8, n)] + clumps)
    X[rng.integers(0, n, 20)] = X[0]
    return X, np.r_[0, 0, np.sort(rng.integers(0, n + 1, 14)), n]


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("d", [1, 2, 30])
def test_bounds_never_exceed_true_distances(d, scale, offset):
    rng = np.random.default_rng(d)
    for _ in range(20):
        X, ptr = random_regions(rng, d, scale, offset)
        regions = measure_regions(X, ptr)
        queries = np.vstack(
            [X[::4], X[::9] + scale * rng.normal(size=(14, d)), regions.centers, X[:3] * 1.5]
        )
        bounds = lower_bounds(queries, regions)
        distances = squared_distances(queries, X)
        for i, (start, stop) in enumerate(itertools.pairwise(ptr)):
            if start == stop:
                assert (bounds[:, i] == np.inf).all()
            else:
                assert (bounds[:, i] <= distances[:, start:stop].min(axis=1)).all()
        assert (bounds >= 0).all()
        assert not np.isnan(bounds).any()


# The metric of a polynomial kernel


@pytest.mark.parametrize("coef0", [0.0, 1.0])
@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize(
    "kind", ["2 features", "22 features", "duplicates", "whole numbers", "1000 to 1001"]
)
def test_polynomial_metric(kind, degree, coef0):
    X = make_rows(kind)
    metric = KernelSpec("poly", 0.25, degree, coef0)
    queries = make_queries(X)
    distances = polynomial_distances(queries, X, metric)
    leaves = Leaves(X, 4, n_empty=1)
    for k in (1, 50, N):
        check_search(leaves, queries, k, distances, metric)
    # No bound holds: every leaf that has rows is read.
    assert sorted(leaves.read) == [i for i, leaf in enumerate(leaves.leaves) if len(leaf.X)]
    euclidean = sort_rows(squared_distances(queries, X), leaves.numbers, 50)[1]
    assert (sort_rows(distances, leaves.numbers, 50)[1] != euclidean).any()
