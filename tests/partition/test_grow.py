import math

import numpy as np
import pytest

from daskls.kernels.route import project
from daskls.partition.grow import TILE_ROWS, grow_tree
from daskls.partition.tree import route_rows


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
    tree = grow(X, max_rows)
    counts = check_tree(tree, X, max_rows)
    # As few leaves as the bound allows, all with nearly the same number of rows.
    assert tree.n_leaves == math.ceil(m / max_rows)
    assert counts.max() <= max_rows
    assert np.ptp(counts) <= 2


@pytest.mark.parametrize("d", [1, 2, 28])
@pytest.mark.parametrize(("m", "max_rows"), [(400, 37), (401, 100), (64, 1)])
def test_drawn_leaves_are_full_too(m, max_rows, d):
    X = np.random.default_rng(d).standard_t(3, size=(m, d))
    trees = [grow(X, max_rows, (seed,)) for seed in range(4)]
    for tree in trees:
        assert tree.n_leaves == math.ceil(m / max_rows)
        assert np.ptp(check_tree(tree, X, max_rows)) <= 2
    again = grow(X, max_rows, (2,))
    np.testing.assert_array_equal(again.directions, trees[2].directions)
    np.testing.assert_array_equal(again.thresholds, trees[2].thresholds)
    assert len({(*tree.directions[0], tree.thresholds[0]) for tree in trees}) > 1


def first_cuts(X, max_rows, n):
    trees = [grow(X, max_rows, (seed,)) for seed in range(n)]
    sides = [((X - t.center) @ t.directions[0] <= t.thresholds[0]).sum() for t in trees]
    return np.array([tree.directions[0] for tree in trees]), np.array(sides)


def test_features_are_drawn_by_their_variance_and_shares_near_the_middle():
    X = np.random.default_rng(2).normal(size=(800, 4)) * [1.0, 3.0, 2.0, 0.0]
    directions, sides = first_cuts(X, 100, 300)
    assert set(directions.ravel()) == {0.0, 1.0}
    np.testing.assert_allclose(directions.mean(axis=0), np.array([1, 9, 4, 0]) / 14, atol=0.08)
    assert set(sides) == {200, 300, 400, 500, 600}


def test_the_cut_runs_across_the_feature_of_largest_variance():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3)) * [1.0, 3.0, 2.0] + rng.normal(size=(200, 1))
    tree = grow(X, 100)
    assert tree.n_leaves == 2
    np.testing.assert_array_equal(tree.directions[0], [0.0, 1.0, 0.0])


def test_an_indicator_is_cut_at_its_gap():
    # 30 % of the rows have the indicator; an even cut would split those without it.
    X = np.zeros((1000, 2))
    X[:300, 0] = 1.0
    X[:, 1] = np.random.default_rng(1).random(1000) * 0.5
    leaves = route_rows(grow(X, 700), X)
    np.testing.assert_array_equal(leaves, X[:, 0])


def test_the_cut_is_slanted_where_features_move_together():
    rng = np.random.default_rng(1)
    axis = np.ones(4) / 2.0
    X = rng.normal(size=(200, 4)) * 0.1 + rng.normal(size=(200, 1)) * 10 * axis
    tree = grow(X, 100)
    assert tree.n_leaves == 2
    assert abs(tree.directions[0] @ axis) == pytest.approx(1.0, abs=1e-3)
    assert np.linalg.norm(tree.directions[0]) == pytest.approx(1.0)
    # The first child is the one on the side of smaller coordinates.
    leaves = route_rows(tree, X)
    assert (X @ axis)[leaves == 0].max() < (X @ axis)[leaves == 1].min() + 1.0


def test_duplicates_beyond_the_bound_share_a_leaf():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 2))
    X = np.vstack([X, np.repeat(X[:1], 50, axis=0), np.repeat(X[1:2], 7, axis=0)])
    tree = grow(X, 10)
    counts = check_tree(tree, X, 10)
    assert counts.max() == 51
    assert (counts > 10).sum() == 1


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
