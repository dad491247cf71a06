"""What the displays draw: regions, boundary, counts."""

import sys

import numpy as np
import pytest
from support import PAPERS

import daskls
from daskls.datasets import make_checkerboard
from daskls.plotting import CellDisplay, GridDisplay, PartitionDisplay


def papers(*args, **params):
    """Return cells that are cross-validated, each on its own."""
    return daskls.VoronoiSVC(*args, **PAPERS, **params)


@pytest.fixture(scope="module")
def halves():
    """Two classes, apart at x = 0.5."""
    X = np.random.default_rng(0).random((1200, 2))
    y = np.where(X[:, 0] > 0.5, "right", "left")
    model = papers(200, cv=2, C=[10, 100], gamma=[1, 10], random_state=0).fit(X, y)
    return model, X, y


def test_partition_draws_every_cell_and_the_boundary(halves):
    model, X, y = halves
    display = PartitionDisplay.from_estimator(model, X=X, y=y).plot()
    assert len(np.unique(display.cells)) == model.n_cells_
    assert display.figure_ is display.ax_.figure
    assert len(display.rows_.get_offsets()) == len(X)
    points = np.concatenate([path.vertices for path in display.boundary_.get_paths()])
    inside = points[(points[:, 1] > 0.05) & (points[:, 1] < 0.95)]
    assert len(inside) > 50
    assert np.median(np.abs(inside[:, 0] - 0.5)) < 0.01
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["left", "right"]


def test_cells_are_those_of_queries_and_borders_lie_between_them(halves):
    model, X, _ = halves
    display = PartitionDisplay.from_estimator(model, X=X, resolution=30).plot()
    x, y = (low + (np.arange(30) + 0.5) * (high - low) / 30 for low, high in display.limits)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    space = model._fitted_method().space(model._reader)
    (expected,) = space.find(model._reader.transform(points))
    np.testing.assert_array_equal(display.cells.ravel(), expected)
    np.testing.assert_array_equal(display.values.ravel(), model.decision_function(points))
    half = np.diff(display.limits, axis=1).ravel() / 60
    for start, end in display.borders_.get_segments():
        # Across the middle of each edge.
        step = half * (1 - np.abs(end - start) / (2 * half))
        sides = (start + end) / 2 + np.outer([-1, 1], step)
        assert len(np.unique(space.find(model._reader.transform(sides))[0])) == 2


def test_grid_of_given_values_counts_the_report(halves):
    model, _, _ = halves
    display = GridDisplay.from_estimator(model).plot()
    report = model.fit_report_
    trained = report[report.n_trained > 0]
    expected = [
        [np.sum((trained.gamma == g) & (trained.C == C)) for C in (10, 100)] for g in (1, 10)
    ]
    np.testing.assert_array_equal(display.counts, expected)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["10", "100"]
    assert sorted(int(t.get_text()) for t in display.text_) == sorted(
        np.array(expected)[np.array(expected) > 0]
    )


def test_without_matplotlib_the_error_says_what_to_install(halves, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install daskls\[plots\]"):
        CellDisplay.from_estimator(halves[0]).plot()


def test_grid_draws_the_errors_that_cells_had():
    X, y = make_checkerboard(600, random_state=1)
    grid = {"C": [1.0, 30.0], "gamma": [20.0, 200.0]}
    fixed = {"cv": 2, "tol": 1e-6, "search": "full", "random_state": 0}
    model = papers(150, **grid, **fixed).fit(X, y)
    errors = model._reader.grid_errors(4).reshape(-1, 2, 2)
    assert np.isfinite(errors).all()
    best = model.fit_report_.validation_error
    np.testing.assert_allclose(errors.min(axis=(1, 2)), best, rtol=1e-6)
    # A fit with one C has the errors of its column; later ones start from those before, and a few
    # rows at the boundary may fall to the other side.
    for place, (C, margin) in enumerate(zip(grid["C"], (1e-6, 0.04), strict=True)):
        own = papers(150, C=[C], gamma=grid["gamma"], **fixed).fit(X, y)
        np.testing.assert_allclose(errors[:, :, place], own._reader.grid_errors(2), atol=margin)
    display = GridDisplay.from_estimator(model).plot()
    expected = (errors - best[:, None, None]).mean(axis=0)
    np.testing.assert_allclose(display.image_.get_array(), 100 * expected, atol=1e-5)
