"""What displays draw of a model, and what a notebook shows of it."""

import sys

import numpy as np
import pytest
from falks import small_falk
from matplotlib import pyplot as plt
from samplings import small_local
from small import CLASSIFIERS, PLACES, small
from support import PAPERS, checkers, few

import daskls
from daskls import DataError, ParameterError
from daskls.datasets import make_checkerboard
from daskls.plotting import (
    CellDisplay,
    FeatureDisplay,
    GridDisplay,
    PartitionDisplay,
    ReportDisplay,
    SelectionDisplay,
)

BOARD, OF_BOARD = checkers(600)


def papers(*args, **params):
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
    display = GridDisplay.from_estimator(halves[0]).plot()
    cells = halves[0].fit_report_[halves[0].fit_report_.n_trained > 0]
    wanted = [[sum((cells.gamma == g) & (cells.C == C)) for C in (10, 100)] for g in (1, 10)]
    np.testing.assert_array_equal(display.counts, wanted)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["10", "100"]
    written = sorted(int(t.get_text()) for t in display.text_)
    assert written == sorted(own for row in wanted for own in row if own)


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


def test_bars_are_the_importances_from_the_largest_on():
    wide = np.c_[BOARD, np.random.default_rng(0).random((600, 3))]
    model = small("VoronoiSVC", feature_scale=[4.0, 2.0, 1.0, 0.0, 1.0]).fit(wide, OF_BOARD)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[3] == 0
    assert importances[0] == pytest.approx(2 * importances[1], rel=0.1)
    display = FeatureDisplay.from_estimator(model, n_shown=2, feature_names="abcde").plot()
    assert display.names == ["a", "b"]
    assert display.n_left_out == 1
    assert display.rest == pytest.approx(importances[[2, 4]].sum())
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["a", "b", "all others"]
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, [*importances[:2], display.rest])
    # So does the report where there are no rows whose columns could be shuffled.
    ax = ReportDisplay.from_estimator(model).plot().axes_["features"]
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == ["feature 0", "feature 1"]


@pytest.mark.parametrize("name", few(sorted(PLACES), 4))
def test_without_a_scale_permutation_is_named(name):
    model = small(name)
    if "feature_scale" in model.get_params():
        model.set_params(feature_scale=None)
    model.fit(BOARD, OF_BOARD if name in CLASSIFIERS else BOARD[:, 0])
    assert not hasattr(model, "feature_importances_")
    for ask in (lambda: model.feature_importances_, lambda: FeatureDisplay.from_estimator(model)):
        with pytest.raises((AttributeError, ParameterError), match=r"permutation_importance\("):
            ask()


@pytest.mark.parametrize(
    ("params", "widths"),
    [
        ({"gamma": [1.0, 20.0]}, ["1", "20"]),
        ({"gamma": None, "percentiles": [10, 50, 90]}, ["90 %", "50 %", "10 %"]),
        ({"gamma": None, "kernel": "linear"}, ["1"]),
    ],
)
def test_a_selection_shows_its_errors_and_the_chosen_one(params, widths):
    X, y = BOARD[:400], OF_BOARD[:400]
    model = small_falk([30, 60], selection="local", C=[0.1, 10.0], **params).fit(X, y)
    display = SelectionDisplay.from_estimator(model).plot()
    assert (display.width_labels, display.cost_labels) == (widths, ["0.1", "10"])
    assert display.n_neighbors == [30, 60]
    errors = np.array(model.selected_["errors"])
    for image, own in zip(display.images_, errors, strict=True):
        np.testing.assert_allclose(image.get_array(), 100 * own)
    k, g, c = display.chosen
    assert errors[k, g, c] == errors.min()
    assert display.frame_ in display.axes_[k].patches
    assert display.frame_.get_xy() == (c - 0.5, g - 0.5)
    notes = [panel.note for panel in ReportDisplay.from_estimator(model).panels]
    of_k = f"Errors of candidates, k = {display.n_neighbors[k]}; framed: the chosen one."
    assert (of_k in notes) == ("percentile" in model.selected_)


def test_a_notebook_shows_rows_choice_error_seconds_and_a_picture_if_it_can(monkeypatch):
    model = daskls.VoronoiSVC(cell_size=300, feature_scale=None, random_state=0)
    shown = model.fit(BOARD, OF_BOARD)._repr_html_()
    for words in ("600 rows, 2 features", "2 with 600 rows kept", "kernel of all cells"):
        assert words in shown
    for words in ("baseline", "seconds of the fit", "data:image/png;base64,"):
        assert words in shown
    assert "600 rows, 2 features" in model._repr_mimebundle_()["text/html"]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = model._repr_html_()
    assert "600 rows, 2 features" in shown
    assert "<img" not in shown


def test_what_cannot_be_drawn_is_refused(halves):
    model, y = halves[0], np.arange(400) % 2
    apart = papers(200, C=1, gamma=1, random_state=0).fit(BOARD[:400] + 9 * y[:, None], y)
    falk, histograms = small_falk().fit(BOARD, OF_BOARD), CellDisplay.from_estimator
    sampled = small_local(C=[1.0, 10.0]).fit(BOARD, OF_BOARD)
    for call, kind, words in (
        (lambda: GridDisplay.from_estimator(apart), DataError, "each holds one class"),
        (lambda: GridDisplay.from_estimator(falk), ParameterError, "drawn by SelectionDisplay"),
        (lambda: SelectionDisplay.from_estimator(falk), ParameterError, "no selection for all"),
        (lambda: SelectionDisplay.from_estimator(sampled), ParameterError, "only the chosen"),
        (lambda: histograms(model, fields=["edge"]), ParameterError, "no number 'edge'"),
        (
            lambda: histograms(model).plot(plt.figure().gca()),
            ParameterError,
            "ax holds 1 axes, but 3 are",
        ),
    ):
        with pytest.raises(kind, match=words):
            call()
