"""What is seen of a fitted regressor: surfaces, curves, residuals, and words for numbers."""

import re

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from small import small

from daskls.errors import DataError, ParameterError
from daskls.plotting import GridDisplay, PartitionDisplay, ReportDisplay

PANELS = ["answers", "residuals", "features", "partition", "errors"]
OF_CLASSES = ("class", "confusion", "calibration", "accuracy", "validation error", "%")


def rows(n, seed, n_features=2):
    """Return rows and numbers far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features))
    return X, 1000 + 50 * (np.sin(6 * X[:, 0]) + X[:, -1] + rng.normal(0, 0.1, n))


@pytest.fixture(scope="module")
def plane():
    return small("VoronoiSVR", random_state=0).fit(*rows(300, 0))


@pytest.fixture(scope="module", params=["VoronoiSVR", "RandomChunkSVR"])
def fitted(request):
    return small(request.param).fit(*rows(300, 0))


def middles(low, high, n):
    """Return the middles of n equal parts of a range."""
    return low + (np.arange(n) + 0.5) * (high - low) / n


def test_a_surface_is_what_is_predicted(plane):
    X, y = rows(100, 1)
    display = PartitionDisplay.from_estimator(plane, X=X, y=y, resolution=40).plot()
    x, up = np.meshgrid(*(middles(*ends, 40) for ends in display.limits))
    expected = plane.predict(np.stack([x.ravel(), up.ravel()], axis=1)).reshape(40, 40)
    np.testing.assert_array_equal(display.image_.get_array(), expected)
    # Rows have the colors of their numbers, on the scale of the surface.
    np.testing.assert_array_equal(display.rows_.get_array(), y)
    assert display.rows_.get_clim() == display.image_.get_clim()
    assert display.rows_.cmap.name == display.image_.cmap.name
    (bar,) = [ax for ax in display.figure_.axes if ax is not display.ax_]
    assert bar.get_ylabel() == "y"
    assert display.boundary_ is None
    assert display.ax_.get_legend() is None


def test_a_curve_is_what_is_predicted_and_borders_are_where_the_cell_changes():
    line = small("VoronoiSVR", random_state=0).fit(*rows(300, 0, 1))
    X, y = rows(100, 1, 1)
    display = PartitionDisplay.from_estimator(line, X=X, y=y, resolution=500).plot()
    x, numbers = display.image_.get_data()
    np.testing.assert_allclose(x, middles(X.min(), X.max(), 500))
    np.testing.assert_array_equal(numbers, line.predict(x[:, None]))
    np.testing.assert_array_equal(display.rows_.get_offsets(), np.stack([X[:, 0], y], axis=1))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("feature 0", "y")
    assert len(display.borders_.get_segments()) == line.n_cells_ - 1
    forest = line._fitted_method().space(line._reader)
    for (place, _), _ in display.borders_.get_segments():
        sides = np.array([[place - 0.002], [place + 0.002]])
        assert len(np.unique(forest.find(line._reader.transform(sides))[0])) == 2


def test_what_numbers_do_not_have_is_refused(plane):
    X, y = rows(50, 1)
    show, classes = PartitionDisplay.from_estimator, small("VoronoiSVC").fit(X, y > y.mean())
    for call, kind, words in (
        (lambda: show(plane).plot(fill="class"), ParameterError, "'class'; .*predicts no classes"),
        (lambda: show(classes).plot(fill="number"), ParameterError, "'number'; .* no numbers"),
        (lambda: show(plane, features=(2,)), ParameterError, "one or two different numbers from 0"),
        (lambda: show(plane, X=X, y=["high"] * 50), DataError, "a regressor needs numbers"),
        (lambda: GridDisplay.from_estimator(plane), ParameterError, "listed by `daskls info`"),
    ):
        with pytest.raises(kind, match=words):
            call()


def test_a_report_speaks_of_numbers(fitted):
    X, y = rows(150, 1)
    display = ReportDisplay.from_estimator(fitted, X, y).plot()
    assert list(display.axes_) == PANELS
    facts, found = dict(display.facts), fitted.predict(X)
    assert facts["R2"] == f"{fitted.score(X, y):.4f} of 150 other rows"
    assert facts["RMSE"] == f"{root_mean_squared_error(y, found):.4g}"
    assert facts["mean absolute error"] == f"{mean_absolute_error(y, found):.4g}"
    target = fitted._reader.target
    center, scale = target.center[0], target.scale[0]
    assert facts["numbers"] == f"center {center:.5g}, spread {scale:.4g}"
    # Without its style and its tags.
    page = re.sub(r"<style>.*?</style>|<[^>]*>", " ", display.to_html(), flags=re.DOTALL)
    assert not [word for word in OF_CLASSES if word in page.lower()]
    assert display.notes == []


def test_residuals_are_those_of_the_predictions(plane):
    X, y = rows(150, 1)
    axes = ReportDisplay.from_estimator(plane, X, y).plot().axes_
    found = plane.predict(X)
    for name, expected in (("answers", y), ("residuals", y - found)):
        (dots,) = axes[name].collections
        drawn, both = dots.get_offsets(), np.stack([found, expected], axis=1)
        np.testing.assert_allclose(drawn[drawn[:, 0].argsort()], both[both[:, 0].argsort()])
