"""Pictures of cuts: every leaf has its region, regions fill the picture, rows lie in theirs."""

import numpy as np
import pytest

from daskls.live.map import SIDE, draw_map
from daskls.partition.space import grow_forest
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
