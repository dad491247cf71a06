"""The search over leaves against the sorted distances to all rows."""

import itertools

import numpy as np
import pytest
from searches import (
    Leaves,
    check_search,
    join_regions,
    polynomial_distances,
    sort_rows,
    squared_distances,
)
from small import tiny_tiles

from daskls.neighbors.balls import (
    find_inside,
    keep_smallest,
    lower_bounds,
    measure_regions,
    near_balls,
)
from daskls.records import KernelSpec

N = 400


def crowded_rows(rng):
    """Two rows that repeat more often than lists are long, among distinct ones."""
    X = rng.normal(size=(N, 5))
    X[rng.random(N) < 0.6] = 0.0
    X[rng.random(N) < 0.3] = X[0]
    return X


KINDS = {
    **{f"{d} features": lambda rng, d=d: rng.normal(size=(N, d)) for d in (2, 5, 22, 54, 100)},
    # Every corner of a grid: whole shells of rows at one distance.
    "a grid of ties": lambda _: np.indices((20, 20)).reshape(2, -1).T.astype(float),
    # Forty rows, each about ten times.
    "duplicates": lambda rng: rng.normal(size=(40, 5))[rng.integers(0, 40, N)],
    "crowded rows": crowded_rows,
    "whole numbers": lambda rng: rng.integers(0, 4, (N, 6)).astype(float),
    # Far from 0 for their spread: expanded squares lose most of their digits.
    "1000 to 1001": lambda rng: 1000.0 + rng.random((N, 3)),
    "near": lambda rng: (
        2 + rng.normal(size=(20, 6))[np.arange(N) // 20] + 1e-9 * rng.random((N, 6))
    ),
}


def make_rows(kind, dtype=np.float64, seed=0):
    return KINDS[kind](np.random.default_rng(seed)).astype(dtype)


def make_queries(X, seed=1):
    """Training rows, rows between two of them, and rows beyond all."""
    rng = np.random.default_rng(seed)
    a, b = X[rng.integers(0, len(X), (2, 12))]
    beyond = X[:4] + 3.0 * (X.max(axis=0) - X.min(axis=0))
    return np.concatenate([X[rng.integers(0, len(X), 14)], (a + b) / 2, beyond]).astype(X.dtype)


LEAVES = [
    *({"n_leaves": n} for n in (1, 4, 40)),
    {"n_leaves": 4, "n_empty": 3},
    # Rows of one leaf far apart, equal ones in different leaves and regions.
    {"n_leaves": 6, "drawn": True},
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_order_are_those_of_all_distances_sorted(kind, dtype):
    X = make_rows(kind, dtype)
    queries = make_queries(X)
    distances = squared_distances(queries, X)
    for shape in LEAVES:
        leaves = Leaves(X, **shape)
        n_empty = shape.get("n_empty", 0)
        if kind.endswith("features"):
            assert len(leaves.leaves) == shape["n_leaves"] + n_empty
        assert sum(len(leaf.X) == 0 for leaf in leaves.leaves) == n_empty
        for k in (1, 5, 50, N):
            check_search(leaves, queries, k, distances)


@pytest.mark.parametrize("name", ["", "poly", "rbf", "linear"])
def test_lists_of_several_lengths_from_the_same_leaves(name):
    """Of a row's copies a leaf offers as many as the list is long: each length finds its own."""
    X, metric = crowded_rows(np.random.default_rng(5)), (KernelSpec(name, 0.5, 2, 1.0),)
    leaves, queries = Leaves(X, 3), np.repeat(X[:9], 4, axis=0)
    # Other kernels order rows as the Euclidean distance.
    distances = squared_distances(queries, X)
    if name == "poly":
        distances = polynomial_distances(queries, X, *metric)
    for k in (50, 1, 300, 7, N):
        check_search(leaves, queries, k, distances, *(metric if name else ()))


@pytest.mark.parametrize("tile", [1, 7, 30, 1000])
@pytest.mark.parametrize("kind", ["22 features", "a grid of ties"])
def test_the_size_of_a_tile_leaves_no_trace(kind, tile, monkeypatch):
    X = make_rows(kind)
    queries = make_queries(X)
    leaves = Leaves(X, 40)
    whole = leaves.search(queries, 20)
    n_reads = len(leaves.read)
    tiny_tiles(monkeypatch, TILE_QUERIES=tile)
    found = check_search(leaves, queries, 20, squared_distances(queries, X))
    for name in ("distances", "numbers", "positions"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    # Each tile reads its leaves: the patch took effect.
    assert (len(leaves.read) > n_reads) == (tile < len(queries))
    none = leaves.search(X[:0], 3)
    assert none.numbers.shape == none.distances.shape == none.positions.shape == (0, 3)
    assert (none.n_leaves_read.shape, leaves.read) == ((0,), [])


def test_far_leaves_are_not_read():
    rng = np.random.default_rng(5)
    X = np.vstack([rng.random((200, 2)), 100.0 + rng.random((200, 2))])
    leaves = Leaves(X, 8)
    near = {i for i, leaf in enumerate(leaves.leaves) if leaf.X[0, 0] < 50}
    assert len(near) == 4
    queries = rng.random((20, 2))
    found = check_search(leaves, queries, 30, squared_distances(queries, X))
    assert set(leaves.read) == near
    assert len(leaves.read) == 4, "a leaf is read once a tile"
    assert found.n_leaves_read.max() <= 4
    # Queries of either side count the leaves that they themselves could not exclude.
    # (The first leaf is read for all: nobody has a neighbor yet.)
    both = leaves.search(np.vstack([queries, queries + 100.0]), 30)
    assert sorted(leaves.read) == list(range(8))
    assert both.n_leaves_read.max() <= 5
    # All rows of the near leaves do not suffice: the far ones are read too.
    leaves.search(queries, 201)
    assert set(leaves.read) > near


@pytest.mark.parametrize("k", [1, 10, 100])
@pytest.mark.parametrize("kind", ["2 features", "5 features", "a grid of ties"])
def test_one_query_reads_the_leaves_that_can_matter_nearest_first(kind, k):
    X = make_rows(kind)
    leaves = Leaves(X, 40)
    n_read = []
    for query in make_queries(X)[:, None]:
        bounds = lower_bounds(query, leaves.regions)[0]
        found = leaves.search(query, k)
        assert set(leaves.read) == set(np.flatnonzero(bounds <= found.distances[0, -1]))
        assert (np.diff(bounds[leaves.read]) >= 0).all()
        assert found.n_leaves_read.tolist() == [len(leaves.read)]
        n_read.append(len(leaves.read))
    assert min(n_read) < len(leaves.leaves), "nothing was ever excluded"


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
        aside = X[::9] + scale * rng.normal(size=(14, d))
        queries = np.vstack([X[::4], aside, regions.centers, X[:3] * 1.5])
        bounds = lower_bounds(queries, regions)
        distances = squared_distances(queries, X)
        for i, (start, stop) in enumerate(itertools.pairwise(ptr)):
            if start == stop:
                assert (bounds[:, i] == np.inf).all()
            else:
                assert (bounds[:, i] <= distances[:, start:stop].min(axis=1)).all()
        assert (bounds >= 0).all()


def test_bounds_are_near_the_truth_where_they_can_be():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 3))
    queries = rng.normal(size=(25, 3))
    one_row = lower_bounds(queries, measure_regions(X, np.arange(41)))
    np.testing.assert_allclose(one_row, squared_distances(queries, X), rtol=1e-6, atol=1e-12)
    # From the middle of a shell, neither its box nor its outer sphere excludes anything.
    shell = X / np.linalg.norm(X, axis=1)[:, None]
    regions = measure_regions(np.vstack([shell, -shell]), np.array([0, 80]))
    middle = lower_bounds(np.zeros((1, 3)), regions)
    assert 0.99 < middle[0, 0] <= 1.0
    # From beyond a corner, the box says more than the spheres.
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    aside = lower_bounds(np.array([[0.5, 3.0]]), join_regions([square]))
    assert 3.99 < aside[0, 0] <= 4.0


@pytest.mark.parametrize("coef0", [0.0, 1.0])
@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize(
    "kind", ["2 features", "22 features", "duplicates", "whole numbers", "1000 to 1001", "near"]
)
def test_polynomial_metric(kind, degree, coef0):
    X = make_rows(kind)
    metric = KernelSpec("poly", 0.25, degree, coef0)
    queries = make_queries(X)
    distances = polynomial_distances(queries, X, metric)
    # Of nearly equal rows all is rounding: below 0 counts as 0, and the row number decides.
    if kind == "near":
        assert 0.05 < (np.sort(distances, axis=1)[:14, 1:20] == 0).mean() < 1
    for leaves in (Leaves(X, 4, drawn=True), Leaves(X, 4, n_empty=1)):
        for k in (1, 10, 50, N):
            check_search(leaves, queries, k, distances, metric)
    # No bound holds: every leaf that has rows is read.
    assert sorted(leaves.read) == [i for i, leaf in enumerate(leaves.leaves) if len(leaf.X)]
    euclidean = sort_rows(squared_distances(queries, X), leaves.numbers, 50)[1]
    assert (sort_rows(distances, leaves.numbers, 50)[1] != euclidean).any()


# Rows inside of balls, and what a draw keeps of them


IN_BALLS = {
    "normal": lambda rng: rng.normal(size=(N, 5)),
    "22 features": lambda rng: rng.normal(size=(N, 22)),
    # Whole shells of rows at exactly one distance.
    "a grid": lambda rng: rng.integers(0, 8, (N, 2)).astype(float),
    "duplicates": lambda rng: rng.normal(size=(20, 3))[rng.integers(0, 20, N)],
    "1000 to 1001": lambda rng: 1000 + rng.random((N, 3)),
}


def pairs_of(leaves, centers, radius):
    found, passed = [], 0
    for number, leaf in enumerate(leaves.leaves):
        near = near_balls(centers, radius, leaves.regions, number)
        passed += len(near) == 0
        for of_ball, row in find_inside(centers, radius, near, leaf):
            found += zip(of_ball.tolist(), leaf.numbers[row].tolist(), strict=True)
    return found, passed


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", IN_BALLS)
def test_rows_inside_are_those_of_all_distances(kind, dtype, monkeypatch):
    tiny_tiles(monkeypatch, MARKED_PAIRS=50, TILE_BALLS=13)
    X = IN_BALLS[kind](np.random.default_rng(0)).astype(dtype)
    centers = X[::13].astype(float)
    distances = squared_distances(centers, X)
    leaves = Leaves(X, 12, n_empty=2)
    # Radii that some row's distance is, exactly, and the next ones below it.
    for at in (0.0, np.sqrt(np.median(distances)), np.sqrt(np.quantile(distances, 0.03)), 3.0):
        for radius in (at, np.nextafter(at, 0)):
            found, _ = pairs_of(leaves, centers, radius)
            of_ball, row = np.nonzero(distances <= radius * radius)
            expected = set(zip(of_ball.tolist(), leaves.numbers[row].tolist(), strict=True))
            assert len(found) == len(set(found))
            assert set(found) == expected


def test_the_smallest_keys_of_each_ball_are_kept():
    rng = np.random.default_rng(0)
    of_ball = rng.integers(0, 9, 400)
    keys = rng.permutation(400).astype(np.uint64) + np.uint64(2**63)
    quotas = np.array([0, 1, 2, 10, 100, 400, 5, 6, 7])
    kept = keep_smallest(of_ball, keys, quotas)
    for ball in range(9):
        own = sorted(keys[of_ball == ball].tolist())
        assert keys[kept[of_ball[kept] == ball]].tolist() == own[: quotas[ball]]
    # In parts and then together, or at once: the same.
    first, second = np.arange(150), np.arange(150, 400)
    parts = np.r_[
        first[keep_smallest(of_ball[first], keys[first], quotas)],
        second[keep_smallest(of_ball[second], keys[second], quotas)],
    ]
    again = parts[keep_smallest(of_ball[parts], keys[parts], quotas)]
    assert again.tolist() == kept.tolist()


# Distances in float32 choose candidates only: rows and order are those of exact distances


def check_blocks(X, queries, *, n_leaves=2, ks=(1, 9, N)):
    """Cells of the leaves are as large as a fit's: the blocks are all that divides them."""
    leaves = Leaves(X, n_leaves, region_rows=N)
    distances = squared_distances(queries, X)
    for k in ks:
        check_search(leaves, queries, k, distances)


UNITS = [
    *((offset, 1.0) for offset in (0.0, 1e6, -1e9)),
    # Squares overflow or vanish; of 1e-165 and less some or all are 0: the row number decides.
    *((scale, scale) for scale in (1e-300, 1e-165, 1e-150, 1e-42, 1e-20, 1e20, 1e70)),
]


@pytest.mark.parametrize(("offset", "scale"), UNITS)
@pytest.mark.parametrize("d", [1, 2, 3, 6, 8, 54, 301])
def test_far_offsets_few_and_many_features_and_any_unit(d, offset, scale):
    rng = np.random.default_rng(d)
    for dtype in [np.float32, np.float64] if scale == 1.0 else [np.float64]:
        X = (offset + scale * rng.normal(size=(N, d))).astype(dtype)
        # Rows, and points a small step aside of rows.
        aside = X[20:60] + 0.1 * scale * rng.normal(size=(40, d))
        check_blocks(X, np.vstack([X[:20], aside]).astype(dtype))


@pytest.mark.parametrize("step", [1e-7, 1e-8, 1e-9, 1e-10, 1e-12])
def test_distances_that_float32_cannot_tell_apart(step):
    rng = np.random.default_rng(1)
    # Rows on a sphere around the query, all but for a step; the nearest is the last of them.
    X = rng.normal(size=(N, 5))
    X *= (1.0 + step * rng.permutation(N) / N)[:, None] / np.linalg.norm(X, axis=1)[:, None]
    queries = np.vstack([np.zeros((1, 5)), 1e-3 * step * rng.normal(size=(10, 5))])
    for offset in (0.0, 100.0):
        check_blocks(X + offset, queries + offset, n_leaves=1)
    # One outlier sets the units; all other rows and queries are cast to the same few values.
    for d in (1, 2, 9):
        X = 1.0 / 3.0 + step * rng.normal(size=(N, d))
        X[0] = -1.0
        check_blocks(X, 1.0 / 3.0 + step * rng.normal(size=(60, d)), n_leaves=1)


def test_ties_and_copies_go_to_the_smaller_number():
    rng = np.random.default_rng(2)
    corners = rng.integers(0, 2, (N, 4)).astype(np.float32)
    check_blocks(corners, np.full((5, 4), 0.5, np.float32))
    check_blocks(np.repeat(rng.normal(size=(8, 3)), 50, axis=0), rng.normal(size=(9, 3)))
    check_blocks(np.full((N, 2), 0.1), np.array([[0.1, 0.1], [0.3, -7.0], [1e30, 0.0]]), n_leaves=1)
