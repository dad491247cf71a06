"""Pictures of cuts: every leaf has its region, regions fill the picture, rows lie in theirs."""

import numpy as np
import pytest
from small import set_sizes

from daskls.live.map import SIDE, draw_map, find_plane, rectangles
from daskls.partition.shuffle import Chunks
from daskls.partition.space import VoronoiCells, grow_forest
from daskls.partition.tree import route_rows


def forest(X, size, n_partitions=1):
    """Return the trees of a sample."""
    return grow_forest(X, size, X.mean(axis=0, dtype=np.float64), n_partitions, 0)


def area(polygon):
    """Return a polygon's area, in shares of the picture."""
    x, y = np.array(polygon, float).T / SIDE
    return abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2


def contains(polygon, points):
    """Tell which points lie in a convex polygon, or within a unit of it."""
    corners = np.array(polygon, float)
    steps = np.roll(corners, -1, axis=0) - corners
    lengths = np.maximum(np.hypot(*steps.T), 1e-9)
    off = points[:, None] - corners
    sides = (steps[:, 0] * off[..., 1] - steps[:, 1] * off[..., 0]) / lengths
    return (sides > -1.5).all(axis=1) | (sides < 1.5).all(axis=1)


@pytest.fixture
def rows():
    return np.random.default_rng(0).random((4000, 2))


def test_rows_lie_in_the_regions_of_their_leaves(rows):
    space = forest(rows, 100)
    drawn = draw_map(space, rows, ["width", "height"])
    assert drawn.names == ("width", "height")
    assert sum(map(area, drawn.polygons)) == pytest.approx(1, abs=0.01)
    (left, right), (low, high) = drawn.limits
    units = (rows - [left, low]) / [right - left, high - low] * SIDE
    inside = ((units >= 0) & (units <= SIDE)).all(axis=1)
    regions = np.array(drawn.region_of)[route_rows(space.trees[0], rows)]
    assert inside.mean() > 0.98
    for region, polygon in enumerate(drawn.polygons):
        assert contains(polygon, units[inside & (regions == region)]).all()


def test_large_partitions_are_thinned(rows, monkeypatch):
    set_sizes(monkeypatch, {"daskls.live.map.MAX_DRAWN": 30})
    for X in (rows, np.random.default_rng(0).random((4000, 5))):
        space = forest(X, 20)
        drawn = draw_map(space, X, list("abcde"))
        assert 25 <= len(drawn.polygons) <= 30
        assert len(drawn.region_of) == space.n_leaves > 100
        assert set(drawn.region_of) - {-1} == set(range(len(drawn.polygons)))
        assert f"{space.n_leaves:,} groups in 30 regions" in drawn.note


def test_more_features_are_shown_in_their_components():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6)) * [0.1, 5, 0.1, 0.1, 2, 0.1]
    space = forest(X, 100)
    drawn = draw_map(space, X, list("abcdef"))
    assert "most of b" in drawn.names[0]
    assert "most of e" in drawn.names[1]
    assert "two principal components" in drawn.note
    assert drawn.limits is None
    assert sorted(drawn.region_of) == list(range(space.n_leaves))
    leaves = route_rows(space.trees[0], X)
    shares = np.bincount(leaves) / len(X)
    own = [area(drawn.polygons[region]) for region in drawn.region_of]
    np.testing.assert_allclose(own, shares, atol=0.002)


def test_the_plane_is_that_of_the_eigenvectors():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4))
    plane, _, _ = find_plane(X, list("abcd"))
    _, _, axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    expected = (X - X.mean(axis=0)) @ axes[:2].T
    np.testing.assert_allclose(abs(plane), abs(expected), atol=1e-9)


def test_very_many_features_are_shown_in_two_of_them(monkeypatch):
    set_sizes(monkeypatch, {"daskls.live.map.MAX_FEATURES": 3})
    X = np.random.default_rng(0).normal(size=(200, 5)) * [1, 2, 9, 1, 5]
    plane, names, how = find_plane(X, list("abcde"))
    assert names == ("c", "e")
    np.testing.assert_array_equal(plane, X[:, [2, 4]])
    assert "two features" in how


def test_one_feature_is_shown_as_strips():
    X = np.random.default_rng(0).random((1000, 1))
    drawn = draw_map(forest(X, 100), X, ["a"])
    assert all(np.ptp(np.array(polygon)[:, 1]) == SIDE for polygon in drawn.polygons)
    assert sum(map(area, drawn.polygons)) == pytest.approx(1, abs=0.01)


def test_rectangles_lie_as_their_points_do():
    rng = np.random.default_rng(0)
    means, weights = rng.normal(size=(60, 2)), rng.integers(1, 50, 60)
    shapes = rectangles(means, weights)
    assert sum(map(area, shapes)) == pytest.approx(1, abs=0.01)
    np.testing.assert_allclose(list(map(area, shapes)), weights / weights.sum(), atol=0.002)
    middles = np.array(shapes).mean(axis=1)
    for side in (0, 1):
        assert np.corrcoef(means[:, side], middles[:, side])[0, 1] > 0.8


def test_chunks_are_squares():
    drawn = draw_map(Chunks(1000, 7, 0), np.zeros((10, 3)), list("abc"))
    assert drawn.region_of == list(range(7))
    assert "no place in space" in drawn.note


def test_points_and_several_partitions():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 2))
    cells = VoronoiCells(X.mean(axis=0), X[:9] - X.mean(axis=0))
    drawn = draw_map(cells, X, ["a", "b"])
    own = [area(drawn.polygons[region]) for region in drawn.region_of]
    np.testing.assert_allclose(own, np.bincount(cells.nearest(X)) / len(X), atol=0.002)
    for width in (2, 3):
        X = rng.random((2000, width))
        space = forest(X, 200, n_partitions=2)
        drawn = draw_map(space, X, list("abc"))
        assert drawn.note.startswith("partition 1 of 2")
        assert len(drawn.region_of) == space.n_leaves
        first = space.trees[0].n_leaves
        assert set(drawn.region_of[first:]) == {-1}
        assert min(drawn.region_of[:first]) >= 0


def test_equal_rows_have_one_region():
    X = np.ones((50, 3))
    assert draw_map(forest(X, 10), X, list("abc")).region_of == [0]
