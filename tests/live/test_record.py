"""The record of a fit: stages, cells and errors; and the map: every leaf has its region."""

import numpy as np
import pytest

from daskls.live.map import MAX_FEATURES, SIDE, draw_map, find_plane
from daskls.live.record import COUNTED, MEASURES, FitRecord, Map, count_leaves
from daskls.live.view import COLORS, PALETTE, fit_html, top_error
from daskls.partition.space import grow_forest
from daskls.partition.tree import route_rows
from daskls.records import CellReport

TITLE = "VoronoiSVC: 1,000 rows, 2 features"


def cells(*rows):
    """Return a table of cells from (leaf, rows, classes, error)."""
    reports = [
        CellReport(i, leaf, n_rows, n_classes, 1.0, validation_error=error, n_trained=1)
        for i, (leaf, n_rows, n_classes, error) in enumerate(rows)
    ]
    return np.array([report.as_tuple() for report in reports], CellReport.dtype())


def test_leaves_are_counted():
    nan = float("nan")
    table = cells((3, 10, 2, 0.1), (3, 30, 2, 0.3), (4, 50, 1, nan), (5, 20, 2, nan))
    counted = dict(zip(COUNTED, count_leaves(table), strict=True))
    wanted = {"leaf": [3, 4, 5], "cells": [2, 1, 1], "rows": [40, 50, 20], "measured": [40, 0, 0]}
    assert counted == {**wanted, "pure": [0, 50, 0], "wrong": pytest.approx([10, 0, 0])}


def test_the_error_is_that_of_the_report():
    record = FitRecord(TITLE)
    assert record.error is None
    record.add_bundle(0, 1, count_leaves(cells((0, 10, 2, 0.1), (1, 30, 2, 0.3))))
    assert record.error == pytest.approx(10 / 40)
    # A cell of one class has no wrong row.
    record.add_bundle(2, 2, count_leaves(cells((2, 60, 1, float("nan")))))
    assert record.error == pytest.approx(10 / 100)
    assert record.n_cells == 3


def test_stages_follow_each_other():
    record = FitRecord(TITLE)
    record.advance("sample", None, 4, now=0.0)
    record.advance("regroup", 0, 4, now=2.0)
    record.advance("regroup", 1, 4, now=3.0)
    assert record.stages["sample"].seconds(9.0) == 2.0
    assert record.stages["regroup"].left_s(3.0) == pytest.approx(3.0)
    record.advance("regroup", 4, 4, now=5.0)
    assert record.stages["regroup"].ended == 5.0
    # The last report may come again; it begins no second round.
    record.advance("regroup", 4, 4, now=6.0)
    assert record.stages["regroup"].seconds(9.0) == 3.0
    assert record.stages["regroup"].left_s(9.0) == 0.0


def test_a_notebook_shows_stages_errors_and_the_map():
    record = FitRecord("VoronoiSVC of <b>")
    record.advance("train", 1, 4, now=0.0)
    polygons = [[[i, 0], [i + 1, 0], [i + 1, 1], [i, 1]] for i in range(4)]
    limits = ((0.0, 1.0), (0.0, 1.0))
    record.set_map(Map(polygons, [0, 1, 2, 3], limits, ("a", "b"), "squares"))
    record.add_bundle(0, 1, count_leaves(cells((0, 10, 2, 0.1), (1, 10, 2, 0.0))))
    page = fit_html(record, now=3.0)
    assert "of &lt;b&gt;" in page
    for words in ("training cells", "1 of 4", "3 s", "so far: <b>5.00 %</b>", COLORS, "squares"):
        assert words in page
    assert all(f'fill="{color}"><title>1 cell' in page for color in (PALETTE[-1], PALETTE[0]))
    # Two regions wait, and are white; a tenth of the rows is wrong where the colors end.
    assert page.count('fill="#ffffff"><title>not trained yet</title>') == 2
    assert ">10.0 %</text>" in page
    assert "http" not in page
    record.end("finished", now=3.0)
    assert "The fit has finished." in fit_html(record, now=9.0)
    # Of numbers the colors end at a round error of any size.
    for unit in (1e-6, 1.0, 1e6):
        assert top_error([unit, 3.2 * unit], MEASURES["numbers"]) == pytest.approx(4 * unit)


# The map


def forest(X):
    return grow_forest(X, 100, X.mean(axis=0, dtype=np.float64), 1, 0)


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


def test_rows_lie_in_the_regions_of_their_leaves():
    rows = np.random.default_rng(0).random((4000, 2))
    space = forest(rows)
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
    space = forest(X)
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
    # Of very many features, those two of largest variance.
    many = rng.random((50, MAX_FEATURES + 1))
    many[:, [3, 7]] *= [5, 9]
    plane, names, _ = find_plane(many, [str(i) for i in range(MAX_FEATURES + 1)])
    np.testing.assert_array_equal(plane, many[:, [7, 3]])
    assert names == ("7", "3")
