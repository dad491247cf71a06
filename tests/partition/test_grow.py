import math

import numpy as np
import pytest

from daskls.kernels.route import project
from daskls.partition.axes import LEAST_ITERATED, _draw, largest_eigenpair
from daskls.partition.base import measure_shrinkage
from daskls.partition.grow import TILE_ROWS, grow_tree
from daskls.partition.space import Forest
from daskls.partition.tree import graft, route_rows


def grow(X, max_rows, seed=None):
    return grow_tree(X, max_rows, X.mean(axis=0, dtype=np.float64), seed)


def leaves_from_left_to_right(tree):
    if len(tree.thresholds) == 0:
        return [0]

    def walk(node):
        if node < 0:
            return [~node]
        return walk(tree.children[node, 0]) + walk(tree.children[node, 1])

    return walk(0)


def leaves_as_grown(tree, X):
    A = np.subtract(X, tree.center, dtype=np.float64, order="C")
    leaves = np.full(len(X), -1)

    def cut(rows, node):
        if node < 0:
            leaves[rows] = ~node
            return
        position = np.empty(len(rows))
        project(A, rows, np.zeros(A.shape[1]), tree.directions[node], position)
        first = position <= tree.thresholds[node]
        cut(rows[first], tree.children[node, 0])
        cut(rows[~first], tree.children[node, 1])

    cut(np.arange(len(X)), 0 if len(tree.thresholds) else ~0)
    return leaves


def check_tree(tree, X, max_rows):
    """Check what holds for every tree; return the number of rows of each leaf."""
    leaves = route_rows(tree, X)
    np.testing.assert_array_equal(leaves, leaves_as_grown(tree, X))
    assert leaves_from_left_to_right(tree) == list(range(tree.n_leaves))
    counts = np.bincount(leaves, minlength=tree.n_leaves)
    assert len(counts) == tree.n_leaves
    assert counts.min() > 0
    for leaf in np.flatnonzero(counts > max_rows):
        members = X[leaves == leaf]
        assert (members == members[0]).all(), "a leaf over the bound holds unequal rows"
    assert tree.directions.shape == (tree.n_leaves - 1, X.shape[1])
    assert np.isfinite(tree.thresholds).all()
    return counts


@pytest.mark.parametrize("d", [1, 2, 28])
@pytest.mark.parametrize(("m", "max_rows"), [(400, 37), (401, 100), (64, 1), (300, 299)])
def test_leaves_are_full(m, max_rows, d):
    X = np.random.default_rng(d).standard_t(3, size=(m, d))
    trees = [grow(X, max_rows, seed) for seed in (None, (0,), (1,), (2,), (3,), (3,))]
    for tree in trees:
        counts = check_tree(tree, X, max_rows)
        # As few leaves as the bound allows, all with nearly the same number of rows.
        assert tree.n_leaves == math.ceil(m / max_rows)
        assert counts.max() <= max_rows
        assert np.ptp(counts) <= 2
    cuts = [(*tree.directions.ravel(), *tree.thresholds) for tree in trees[1:]]
    assert cuts[-1] == cuts[-2]
    assert len(set(cuts)) > 1 or (max_rows, d) == (299, 1)


def first_cuts(X, max_rows, n):
    trees = [grow(X, max_rows, (seed,)) for seed in range(n)]
    sides = [((X - t.center) @ t.directions[0] <= t.thresholds[0]).sum() for t in trees]
    return np.array([tree.directions[0] for tree in trees]), np.array(sides)


def test_items_are_drawn_in_proportion_to_their_weights():
    rng, weights = np.random.default_rng(0), np.array([1.0, 9.0, 4.0, 0.0])
    drawn = [_draw(weights, rng) for _ in range(20_000)]
    assert all(sorted(items) == [0, 1, 2] for items in drawn)
    shares = np.bincount([items[0] for items in drawn], minlength=4) / len(drawn)
    np.testing.assert_allclose(shares, weights / 14, atol=0.012)


def test_features_are_drawn_by_their_variance_and_shares_near_the_middle():
    X = np.random.default_rng(2).normal(size=(800, 4)) * [1.0, 3.0, 2.0, 0.0]
    directions, sides = first_cuts(X, 100, 300)
    assert set(directions.ravel()) == {0.0, 1.0}
    np.testing.assert_allclose(directions.mean(axis=0), np.array([1, 9, 4, 0]) / 14, atol=0.08)
    assert set(sides) == {200, 300, 400, 500, 600}


def test_directions_are_slanted_where_features_vary_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 40))
    assert grow(X, 150).directions[0].all()
    directions, _ = first_cuts(X, 150, 60)
    assert directions.all()
    # Rows of rank 2 have two principal directions.
    assert 2 <= len(np.unique(directions.round(6), axis=0)) <= 3
    axis = np.ones(4) / 2.0
    X = rng.normal(size=(200, 4)) * 0.1 + rng.normal(size=(200, 1)) * 10 * axis
    tree = grow(X, 100)
    assert tree.n_leaves == 2
    assert abs(tree.directions[0] @ axis) == pytest.approx(1.0, abs=1e-3)
    assert np.linalg.norm(tree.directions[0]) == pytest.approx(1.0)
    # The first child is the one on the side of smaller coordinates.
    leaves = route_rows(tree, X)
    assert (X @ axis)[leaves == 0].max() < (X @ axis)[leaves == 1].min() + 1.0


def test_no_drawn_feature_costs_more_cells_than_the_largest():
    # Three indicators vary the most of all but one feature, and none has whole shares.
    rng = np.random.default_rng(1)
    X = np.zeros((1000, 5))
    X[:, :3] = rng.random((1000, 3)) < [0.45, 0.55, 0.45]
    X[:, 3:] = rng.random((1000, 2)) * [2.0, 1.5]
    directions, sides = first_cuts(X, 250, 60)
    assert (directions[:, :3] == 0).all()
    assert directions[:, 3:].sum(axis=0).min() > 10
    assert set(sides) == {250, 500, 750}


def test_where_an_even_cut_runs():
    rng = np.random.default_rng(1)
    # Across the feature of largest variance.
    X = rng.normal(size=(200, 3)) * [1.0, 3.0, 2.0] + rng.normal(size=(200, 1))
    tree = grow(X, 100)
    assert tree.n_leaves == 2
    np.testing.assert_array_equal(tree.directions[0], [0.0, 1.0, 0.0])
    # At the gap of an indicator, which 30 % of the rows have; a cut into halves would split others.
    X = np.c_[np.arange(1000) < 300, rng.random(1000) * 0.5].astype(float)
    np.testing.assert_array_equal(route_rows(grow(X, 700), X), X[:, 0])
    # Not at that of one row alone, which varies most, unless nothing else tells rows apart.
    X = rng.normal(size=(1000, 3)) * [1, 1, 0]
    X[17, 2] = 40.0
    assert X[:, 2].var() > X[:, :2].var(axis=0).max()
    assert np.bincount(route_rows(grow(X, 600), X)).tolist() == [500, 500]
    alone = X[:, [2, 2]]
    assert sorted(np.bincount(route_rows(grow(alone, 600), alone)).tolist()) == [1, 999]


def scatter_of(kind, d):
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(300, d))
    if kind == "one direction":
        rows = rows[:, :1] * rng.normal(size=d)
    elif kind == "steep":
        rows = rows * 0.9 ** np.arange(d)
    elif kind == "two blocks":
        rows[:150, d // 2 :] = rows[150:, : d // 2] = 0.0
    return rows.T @ rows


@pytest.mark.parametrize("kind", ["one direction", "steep", "two blocks", "flat"])
@pytest.mark.parametrize("d", [1, 2, 40, 200])
def test_the_first_of_all_principal_directions(kind, d):
    scatter = scatter_of(kind, d)
    values, vectors = np.linalg.eigh(scatter)
    found = largest_eigenpair(scatter)
    assert largest_eigenpair(0 * scatter) is None
    if found is None:
        # Of nearly equal ones it leaves the choice to all of them.
        assert kind in ("two blocks", "flat")
        assert d > 40
        return
    assert found[0] == pytest.approx(values[-1], rel=1e-10)
    assert np.linalg.norm(scatter @ found[1] - values[-1] * found[1]) < 1e-5 * values[-1]
    assert abs(found[1] @ vectors[:, -1]) > 1 - 1e-8


@pytest.mark.parametrize("seed", [None, (3,)])
def test_many_features_are_cut_as_by_all_principal_directions(seed, monkeypatch):
    d = LEAST_ITERATED + 20
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 6)) * [8, 5, 3, 2, 1, 1] @ rng.normal(size=(6, d))
    X += 0.1 * rng.normal(size=X.shape)
    tree = grow(X, 100, seed)
    assert (np.count_nonzero(tree.directions, axis=1) == d).all()
    monkeypatch.setattr("daskls.partition.axes.LEAST_ITERATED", d + 1)
    whole = grow(X, 100, seed)
    np.testing.assert_allclose(tree.directions, whole.directions, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(route_rows(tree, X), route_rows(whole, X))


def test_duplicates_beyond_the_bound_share_a_leaf():
    X = np.random.default_rng(3).normal(size=(100, 2))
    X = np.vstack([X, np.repeat(X[:1], 50, axis=0), np.repeat(X[1:2], 7, axis=0)])
    for seed in (None, (0,)):
        counts = check_tree(grow(X, 10, seed), X, 10)
        assert counts.max() == 51
        assert (counts > 10).sum() == 1
    assert grow(np.full((50, 3), 0.1), 7, (0,)).n_leaves == 1
    tiny = np.zeros((40, 3))
    tiny[:, 0] = np.arange(40) * 1e-200
    assert check_tree(grow_tree(tiny, 10, np.zeros(3), (0,)), tiny, 10).tolist() == [10] * 4


@pytest.mark.parametrize("n_ulps", [0, 1])
def test_adjacent_floats_are_told_apart(n_ulps):
    # The midpoint rounds to the lower of two neighbors or to the upper one, whichever is even.
    low = 1.0 + n_ulps * np.spacing(1.0)
    X = np.repeat([[low], [np.nextafter(low, 2.0)]], 8, axis=0)
    tree = grow_tree(X, 8, np.zeros(1))
    assert check_tree(tree, X, 8).tolist() == [8, 8]


@pytest.mark.parametrize("slanted", [False, True])
@pytest.mark.parametrize("layout", ["i4", "f2", ">f4", "by columns"])
def test_rows_of_any_layout_are_cut_tile_by_tile_to_the_same_bits(layout, slanted):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(2 * TILE_ROWS + 100, 3)) * 50)
    X[:, 1:] = X[:, 1:] if not slanted else X[:, :1] + X[:, 1:] // 8
    given = np.asfortranarray(X) if layout == "by columns" else X.astype(layout)
    one, other = (grow_tree(rows, 100, np.full(3, 0.3)) for rows in (given, X))
    np.testing.assert_array_equal(one.directions, other.directions)
    np.testing.assert_array_equal(one.thresholds, other.thresholds)
    assert (np.count_nonzero(one.directions, axis=1) > 1).any() == slanted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_offset_by_a_million_give_the_same_tree(dtype):
    X = np.round(np.random.default_rng(8).normal(size=(200, 3)) * 16) / 16
    near = grow_tree(X, 20, np.zeros(3))
    shifted = (X + 1e6).astype(dtype)
    far = grow_tree(shifted, 20, np.full(3, 1e6))
    np.testing.assert_array_equal(route_rows(far, shifted), route_rows(near, X))
    np.testing.assert_array_equal(far.thresholds, near.thresholds)
    check_tree(grow(shifted, 20), shifted, 20)


def grown_parts(max_rows, d=3, seed=0):
    """Return (X, trunk, its leaves, one branch a leaf)."""
    X = np.random.default_rng(seed).normal(size=(240, d))
    center = X.mean(axis=0)
    trunk = grow_tree(X, max_rows, center)
    leaves = route_rows(trunk, X)
    # Leaves 0, 3, 6 ... stay whole; the others are cut into different numbers of cells.
    branches = [
        grow_tree(X[leaves == i], len(X) if i % 3 == 0 else 5 + 4 * i, center)
        for i in range(trunk.n_leaves)
    ]
    return X, trunk, leaves, branches


@pytest.mark.parametrize("max_rows", [30, 130, 240])
def test_a_grafted_tree_routes_as_trunk_and_branch_do(max_rows):
    X, trunk, leaves, branches = grown_parts(max_rows)
    tree = graft(trunk, branches)
    assert tree.n_leaves == sum(branch.n_leaves for branch in branches)
    X = np.vstack([X, 3 * np.random.default_rng(1).normal(size=(200, 3))])
    leaves = route_rows(trunk, X)
    expected = np.empty(len(X), int)
    first = 0
    for i, branch in enumerate(branches):
        expected[leaves == i] = first + route_rows(branch, X[leaves == i])
        first += branch.n_leaves
    np.testing.assert_array_equal(route_rows(tree, X), expected)
    assert len(set(expected.tolist())) == tree.n_leaves


def test_leaves_are_numbered_through_a_forest():
    trees = [grown_parts(max_rows)[1] for max_rows in (30, 240, 130)]
    forest = Forest(tuple(trees))
    counts = [tree.n_leaves for tree in trees]
    assert counts == [8, 1, 2]
    assert forest.first_leaves == [0, 8, 9, 11]
    assert forest.n_leaves == 11
    assert [forest.partition_of(leaf) for leaf in range(11)] == [0] * 8 + [1] + [2] * 2
    assert forest.center is trees[0].center
    # Cells of one row do not tell how much of the scatter remains within cells; few cells do.
    A = np.random.default_rng(0).random((200, 2))
    halves, ones = (Forest((grow_tree(A, n, A.mean(axis=0)),)) for n in (len(A) // 2, 1))
    assert 0.5 < measure_shrinkage(halves, A).share < 1
    assert measure_shrinkage(ones, A) is None
