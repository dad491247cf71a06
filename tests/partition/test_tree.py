import numpy as np
import pytest

from daskls.partition.grow import grow_tree
from daskls.partition.space import Forest
from daskls.partition.tree import graft, route_rows


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
