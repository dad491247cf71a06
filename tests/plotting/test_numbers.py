"""What is seen of a fitted regressor: surfaces, curves, residuals, and words for numbers."""

import re

import dask.array as da
import numpy as np
import pytest
from sklearn import metrics
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from small import small

from daskls.errors import DataError, ParameterError
from daskls.plotting import GridDisplay, PartitionDisplay, ReportDisplay
from daskls.plotting.evaluation import evaluate

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
    # A constant has no lines of equal numbers, either.
    flat = PartitionDisplay.from_estimator(small("VoronoiSVR").fit(X, 0 * y), resolution=9)
    assert flat.plot(fill="cell").boundary_ is None


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
        (lambda: show(plane, features=(1,)), DataError, "has 2 features and the picture 1: pass X"),
        (lambda: show(plane, limits=[0, 1]), ParameterError, r"limits has shape \(2,\); 2 .*, 2\)"),
        (lambda: show(plane, X=X[:, :1]), DataError, r"X has shape \(50, 1\), but rows of 2"),
        (lambda: show(plane, X=X, y=y[1:]), DataError, r"y has shape \(49,\), but X has 50 rows"),
        (lambda: evaluate(plane, X, np.c_[y, y]), DataError, "y has 2 columns, but .* predicts 1"),
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


def test_levels_are_scored_as_by_scikit_learn():
    (X, y), levels = rows(300, 0), (0.9, 0.1, 0.5)
    model = small("VoronoiQuantileRegressor").fit(X, y)
    found, scores = model.predict(X), evaluate(model, da.from_array(X, (70, 2)), y).scores
    pairs = zip(levels, found.T, strict=True)
    expected = [metrics.d2_pinball_score(y, own, alpha=level) for level, own in pairs]
    np.testing.assert_allclose(scores.d2, expected)
    covered = (y[:, None] <= found).mean(axis=0)
    facts = dict(ReportDisplay.from_estimator(model, X, y).facts)
    assert facts["D2"] == f"{model.score(X, y):.4f} of 300 other rows"
    told = ", ".join(f"{own:.4f}" for own in covered)
    assert facts["share at or below 0.9, 0.1, 0.5"] == told
    assert PartitionDisplay.from_estimator(model, X=X, y=y).names[-1] == "y, level 0.9"


def test_of_several_columns_all_are_scored_and_a_slice_of_the_first_is_drawn():
    X, y = rows(300, 0, 3)
    both = np.stack([y, -1e-3 * y], axis=1)
    model = small("VoronoiSVR", interval=0.8).fit(X, both)
    facts = dict(ReportDisplay.from_estimator(model, X, both).facts)
    raw = metrics.r2_score(both, model.predict(X), multioutput="raw_values")
    told = ", ".join(f"{own:.4f}" for own in raw)
    assert facts["R2"] == f"{raw.mean():.4f} of 300 other rows, the mean of {told}"
    assert [("intervals", facts["intervals"])] == model.interval_.describe()
    given = {"X": X, "y": both, "features": (1,), "resolution": 20}
    display = PartitionDisplay.from_estimator(model, **given).plot()
    np.testing.assert_array_equal(display.rows_.get_offsets(), np.stack([X[:, 1], y], axis=1))
    assert display.names[-1] == "y, column 0"
    points = np.tile(X.mean(axis=0), (20, 1))
    points[:, 1] = middles(X[:, 1].min(), X[:, 1].max(), 20)
    np.testing.assert_allclose(display.image_.get_ydata(), model.predict(points)[:, 0])
    note = "slice: 2 other feature(s) at the mean of X"
    assert [text.get_text() for text in display.ax_.texts] == [note]


def test_without_rows_cells_give_the_range_in_the_units_of_the_data():
    (X, y), units = rows(300, 0), np.array([1000.0, 0.01])
    model = small("VoronoiSVR", feature_scale=list(1 / units)).fit(units * (X - 1), y)
    ends = PartitionDisplay.from_estimator(model).limits / units[:, None]
    np.testing.assert_allclose(ends, [[-1, 0]] * 2, atol=0.3)
    assert ((ends[:, 0] < -0.9) & (ends[:, 1] > -0.1)).all()
    model = small("VoronoiSVR", C=None, gamma=None, kernel="auto", feature_scale="spread")
    model.set_params(feature_coding="ranks").fit(X**6, y)
    ends, margin = PartitionDisplay.from_estimator(model).limits, 0.03 * np.ptp(X**6, axis=0)
    np.testing.assert_allclose(ends.T, [(X**6).min(0) - margin, (X**6).max(0) + margin])
