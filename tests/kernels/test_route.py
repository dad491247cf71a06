"""The walk of rows through a tree: the leaf of a plain loop, to the last bit."""

import naive
import numpy as np
import pytest

from daskls.kernels.route import CENTERED_ROWS, project, route, take_centered
from daskls.partition.tree import Tree


def walk(X, center, directions, thresholds, children):
    """Route by products alone, whatever the directions are."""
    return route(X, center, directions, thresholds, children, np.full(len(thresholds), -1))


def random_tree(seed, d, n_nodes=12):
    """Return (center, directions, thresholds, children) of a random binary tree."""
    rng = np.random.default_rng(seed)
    children = np.full((n_nodes, 2), -1)
    places = [(0, 0), (0, 1)]
    for node in range(1, n_nodes):
        parent, side = places.pop(rng.integers(len(places)))
        children[parent, side] = node
        places += [(node, 0), (node, 1)]
    children[children < 0] = ~rng.permutation(n_nodes + 1)
    drawn = rng.normal(size=d), rng.normal(size=(n_nodes, d)), rng.normal(size=n_nodes) * 0.3
    return *drawn, children.astype(np.int32)


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 28, 100])
def test_leaves_equal_the_naive_walk(d, dtype):
    X = (np.random.default_rng(d).normal(size=(150, d)) * 20).astype(dtype)
    tree = random_tree(d, d)
    leaves = walk(X, *tree)
    assert leaves.dtype == np.int32
    expected = [naive.walk(row, *tree) for row in X]
    np.testing.assert_array_equal(leaves, expected)
    assert len(set(expected)) > 2
    # A leaf does not depend on the block.
    for size in (1, 2, 10, 149):
        parts = [walk(X[start : start + size], *tree) for start in range(0, len(X), size)]
        np.testing.assert_array_equal(np.concatenate(parts), leaves)
    np.testing.assert_array_equal(walk(np.asfortranarray(X), *tree), leaves)
    np.testing.assert_array_equal(walk(X[::-1], *tree)[::-1], leaves)


def test_center_is_subtracted_in_float64():
    X = (1e6 + np.array([[0.0625], [0.125], [0.25]])).astype(np.float32)
    tree = (np.array([1e6 + 0.09]), np.ones((1, 1)), np.zeros(1), np.array([[~0, ~1]], np.int32))
    np.testing.assert_array_equal(walk(X, *tree), [0, 1, 1])


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 17, 28, 130])
def test_a_row_routes_as_its_projection_says_to_the_last_bit(d):
    # Growing compares `project` with a threshold, routing computes the product anew.
    rng = np.random.default_rng(d)
    A = rng.normal(size=(40, d))
    direction = rng.normal(size=d)
    position = np.empty(40)
    project(A, np.arange(40), np.zeros(d), direction, position)
    np.testing.assert_allclose(position, A @ direction, rtol=1e-12, atol=1e-12)
    for i in range(40):
        for threshold, leaf in [(position[i], 0), (np.nextafter(position[i], -np.inf), 1)]:
            tree = (np.zeros(d), direction[None], np.array([threshold]))
            assert walk(A[i : i + 1], *tree, np.array([[~0, ~1]], np.int32))[0] == leaf


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_are_centered_one_by_one_to_the_last_bit(dtype):
    rng = np.random.default_rng(3)
    X, center, direction = rng.normal(size=(50, 7)).astype(dtype), rng.normal(size=7), np.ones(7)
    rows = rng.permutation(50)[:20]
    A = np.subtract(X[rows], center, dtype=np.float64)
    found, position, expected = np.empty((20, 7)), np.empty(20), np.empty(20)
    take_centered(X, rows, center, found)
    np.testing.assert_array_equal(found, A)
    project(X, rows, center, direction, position)
    project(A, np.arange(20), np.zeros(7), direction, expected)
    np.testing.assert_array_equal(position, expected)


@pytest.mark.parametrize("layout", ["f4", "f8", "i2", "by columns"])
def test_nodes_across_features_route_as_their_products_do_to_the_last_bit(layout):
    rng = np.random.default_rng(0)
    for share in (1.0, 0.6):
        X = rng.integers(-3, 4, (CENTERED_ROWS + 500, 5)) * (1 if layout == "i2" else 0.1)
        X = np.asfortranarray(X) if layout == "by columns" else X.astype(layout)
        center, directions, _, children = random_tree(1, 5, n_nodes=40)
        axes = np.where(rng.random(40) < share, rng.integers(0, 5, 40), -1).astype(np.int32)
        directions[axes >= 0] = np.eye(5)[axes[axes >= 0]]
        # Every threshold is the coordinate of some row, and of all that are equal to it.
        at = np.subtract(X[rng.integers(0, len(X), 40)], center, dtype=np.float64, order="C")
        thresholds = np.empty(40)
        for i in range(40):
            project(at, np.array([i]), np.zeros(5), directions[i], thresholds[i : i + 1])
        tree = Tree(center, directions, thresholds, children)
        np.testing.assert_array_equal(tree.axes, axes)
        found = route(X, center, directions, thresholds, children, axes)
        np.testing.assert_array_equal(found, walk(X, center, directions, thresholds, children))
        assert len(np.unique(found)) > 10
