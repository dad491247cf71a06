"""Polygons of cells: each point of one routes to its cell, and together they fill the window."""

import numpy as np
import pytest

from daskls.partition.grow import grow_tree
from daskls.partition.polygons import cell_polygons, color_cells, plane_tree, power_polygons
from daskls.partition.tree import Tree, route_rows

LIMITS = np.array([[-1.0, 2.0], [-0.5, 1.5]])


def area(polygon):
    x, y = polygon.T
    return abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2


def grown(d, n=2000):
    X = np.random.default_rng(0).random((n, d))
    return grow_tree(X, 50, X.mean(axis=0))


def points_inside(polygon, rng):
    """Random convex combinations of the corners, strictly inside."""
    weights = rng.dirichlet(np.ones(len(polygon)), 20)
    return weights @ polygon


@pytest.mark.parametrize("d", [2, 5])
def test_points_of_a_polygon_route_to_its_cell(d):
    tree, rng = grown(d), np.random.default_rng(1)
    point = np.full(d, 0.45)
    features = (0, d - 1)
    polygons = cell_polygons(plane_tree(tree, features, point), LIMITS)
    n_checked = 0
    for cell, polygon in polygons.items():
        if area(polygon) < 1e-6:
            continue
        X = np.tile(point, (20, 1))
        X[:, features] = points_inside(polygon, rng)
        # On a border the router's rounding decides.
        assert np.mean(route_rows(tree, X) == cell) > 0.9
        n_checked += 1
    assert n_checked > 10 if d == 2 else n_checked > 3


def test_polygons_fill_the_window():
    polygons = cell_polygons(grown(2), LIMITS)
    assert sum(map(area, polygons.values())) == pytest.approx(6.0)
    assert len(polygons) == grown(2).n_leaves


def test_a_tree_of_one_leaf_is_the_window():
    tree = Tree(np.zeros(2), np.zeros((0, 2)), np.zeros(0), np.zeros((0, 2), np.int32))
    polygons = cell_polygons(tree, LIMITS)
    assert area(polygons[0]) == 6.0


def test_colors_of_neighbors_differ():
    labels = np.arange(12).reshape(3, 4).repeat(2, axis=0).repeat(2, axis=1)
    colors = color_cells(labels, 12, 4)[labels]
    across = labels[:, 1:] != labels[:, :-1]
    assert (colors[:, 1:] != colors[:, :-1])[across].all()
    assert len(np.unique(colors)) == 4


@pytest.mark.parametrize("d", [2, 4])
def test_regions_of_points_hold_what_is_nearest(d):
    rng = np.random.default_rng(0)
    points = rng.random((30, d)) * 3 - 1
    point = np.full(d, 0.3)
    offsets = ((points[:, 2:] - 0.3) ** 2).sum(axis=1)
    polygons = power_polygons(points[:, :2], offsets, LIMITS)
    assert sum(map(area, polygons.values())) == pytest.approx(6.0)
    assert len(polygons) > 15 if d == 2 else len(polygons) > 4
    for number, polygon in polygons.items():
        X = np.tile(point, (20, 1))
        X[:, :2] = points_inside(polygon, rng)
        nearest = ((X[:, None] - points) ** 2).sum(axis=2).argmin(axis=1)
        assert (nearest == number).all()
