"""What is seen of a fitted regressor: surfaces, curves, residuals, and words for numbers."""

import re

import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from small import small
from support import HERE
from support import run_cli as run

import daskls
from daskls import VoronoiSVR
from daskls.errors import DataError, ParameterError
from daskls.plotting import (
    CellDisplay,
    FeatureDisplay,
    GridDisplay,
    PartitionDisplay,
    ReportDisplay,
    SelectionDisplay,
)
from daskls.plotting.evaluation import evaluate
from daskls.store.dataset import DatasetWriter

PANELS = ["answers", "residuals", "features", "partition", "errors"]
OF_CLASSES = ("class", "confusion", "calibration", "accuracy", "validation error", "%")


def rows(n, seed, n_features=2):
    """Return rows and numbers far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features))
    return X, 1000 + 50 * (np.sin(6 * X[:, 0]) + X[:, -1] + rng.normal(0, 0.1, n))


@pytest.fixture(scope="module")
def plane():
    """A model of two features."""
    return small("VoronoiSVR", random_state=0).fit(*rows(300, 0))


@pytest.fixture(scope="module")
def line():
    """A model of one feature."""
    return small("VoronoiSVR", random_state=0).fit(*rows(300, 0, 1))


@pytest.fixture(scope="module", params=["VoronoiSVR", "RandomChunkSVR"])
def fitted(request):
    return small(request.param).fit(*rows(300, 0))


def words_of(page):
    """Return what a page says, without its style and its tags."""
    return re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)


def panels(display):
    return {panel.name: panel for panel in display.panels}


# Surfaces and curves


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


def test_other_fills_have_lines_of_equal_numbers(plane):
    display = PartitionDisplay.from_estimator(plane).plot(fill="validation_error")
    errors = plane.fit_report_.validation_error[display.cells]
    np.testing.assert_array_equal(display.image_.get_array(), errors)
    (bar,) = [ax for ax in display.figure_.axes if ax is not display.ax_]
    assert bar.get_ylabel() == "squared error / variance of y"
    levels, values = display.boundary_.levels, display.values
    assert len(levels) > 2
    assert ((levels > values.min()) & (levels < values.max())).all()
    path = display.boundary_.get_paths()[len(levels) // 2]
    found = plane.predict(path.vertices)
    assert np.median(np.abs(found - levels[len(levels) // 2])) < 0.02 * np.ptp(values)


def test_a_constant_has_no_lines():
    X, _ = rows(200, 0)
    display = PartitionDisplay.from_estimator(small("VoronoiSVR").fit(X, np.full(200, 7.0)))
    assert display.plot(fill="cell").boundary_ is None
    display.plot()
    assert set(np.unique(display.image_.get_array())) == {7.0}


def test_a_curve_is_what_is_predicted_and_borders_are_where_the_cell_changes(line):
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
    # Without rows the cells give the range.
    low, high = PartitionDisplay.from_estimator(line).limits[0]
    assert low < 0.05
    assert high > 0.95


def test_a_curve_along_ranks_has_borders_too():
    X, y = rows(300, 0, 1)
    model = VoronoiSVR(60, feature_coding="ranks", random_state=0).fit(X**6, y)
    assert model._reader.resolved.scale.coding is not None
    low, high = PartitionDisplay.from_estimator(model).limits[0]
    assert (low, high) == pytest.approx(((X**6).min(), (X**6).max()))
    display = PartitionDisplay.from_estimator(model, limits=[-0.1, 1.1], resolution=3000).plot()
    assert len(display.borders_.get_segments()) == model.n_cells_ - 1


def test_one_feature_of_several_is_drawn_with_the_others_at_their_means():
    X, y = rows(300, 0, 3)
    model = small("VoronoiSVR").fit(X, y)
    display = PartitionDisplay.from_estimator(model, X=X, features=(1,), resolution=20).plot()
    point = np.tile(X.mean(axis=0), (20, 1))
    point[:, 1] = middles(X[:, 1].min(), X[:, 1].max(), 20)
    np.testing.assert_allclose(display.image_.get_ydata(), model.predict(point))
    assert display.note == "slice: 2 other feature(s) at the mean of X"
    assert display.ax_.get_xlabel() == "feature 1"


def test_the_first_of_several_columns_is_drawn():
    X, y = rows(300, 0)
    both = np.stack([y, -1e-3 * y], axis=1)
    model = small("VoronoiSVR").fit(X, both)
    display = PartitionDisplay.from_estimator(model, X=X, y=both).plot()
    np.testing.assert_array_equal(display.rows_.get_array(), y)
    assert display.names[-1] == "y, column 0"
    with pytest.raises(DataError, match=r"y has shape \(300,\), but X has 300 rows and the model"):
        PartitionDisplay.from_estimator(model, X=X, y=y)


def test_what_numbers_do_not_have_is_refused(plane, line):
    X, y = rows(50, 1)
    display = PartitionDisplay.from_estimator(plane)
    with pytest.raises(ParameterError, match=r"fill is 'class'; .* 'number'.* predicts no classes"):
        display.plot(fill="class")
    classes = small("VoronoiSVC").fit(X, y > y.mean())
    with pytest.raises(ParameterError, match=r"fill is 'number'; .*'class'.* predicts no numbers"):
        PartitionDisplay.from_estimator(classes).plot(fill="number")
    with pytest.raises(ParameterError, match="two different numbers from 0 to 1"):
        PartitionDisplay.from_estimator(classes, features=(0,))
    with pytest.raises(ParameterError, match="one or two different numbers from 0 to 1"):
        PartitionDisplay.from_estimator(plane, features=(2,))
    with pytest.raises(DataError, match="pass X"):
        PartitionDisplay.from_estimator(plane, features=(1,))
    with pytest.raises(ParameterError, match=r"limits has shape \(2, 2\); 1 feature"):
        PartitionDisplay.from_estimator(line, limits=[[0, 1], [0, 1]])
    with pytest.raises(DataError, match="a regressor needs numbers"):
        PartitionDisplay.from_estimator(plane, X=X, y=np.full(50, "high"))
    with pytest.raises(ParameterError, match="listed by `daskls info`") as told:
        GridDisplay.from_estimator(plane)
    assert "hinge" not in str(told.value)
    with pytest.raises(ParameterError, match="no selection"):
        SelectionDisplay.from_estimator(plane)


def test_histograms_and_importances_of_a_regressor():
    X, y = rows(300, 0, 3)
    model = small("VoronoiSVR", feature_scale=[1.0, 2.0, 3.0]).fit(X, y)
    display = CellDisplay.from_estimator(model).plot()
    names = [ax.get_xlabel() for ax in display.axes_]
    assert names == ["n rows", "squared error / variance of y", "seconds"]
    shown = FeatureDisplay.from_estimator(model).plot()
    np.testing.assert_allclose(shown.importances, np.sort(model.feature_importances_)[::-1])


# Reports


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
    assert facts["baseline"] == "always the mean: R2 0"
    assert [name for name in facts if "R2" in name] == ["R2"]
    words = words_of(display.to_html())
    assert "Residuals" in words
    for word in OF_CLASSES:
        assert word not in words.lower(), word
    assert display.notes == []


def test_residuals_are_those_of_the_predictions(plane):
    X, y = rows(150, 1)
    axes = ReportDisplay.from_estimator(plane, X, y).plot().axes_
    found = plane.predict(X)
    for name, expected in (("answers", y), ("residuals", y - found)):
        (dots,) = axes[name].collections
        drawn, both = dots.get_offsets(), np.stack([found, expected], axis=1)
        np.testing.assert_allclose(drawn[drawn[:, 0].argsort()], both[both[:, 0].argsort()])


def test_of_many_rows_the_client_takes_some(plane, monkeypatch):
    monkeypatch.setattr("daskls.plotting.evaluation.MOST_ROWS", 400)
    X, y = rows(2000, 1)
    found = evaluate(plane, da.from_array(X, (300, -1)), da.from_array(y, 300))
    assert found.scores.n_rows == 2000
    assert found.scores.r2[0] == pytest.approx(plane.score(X, y))
    np.testing.assert_array_equal(found.rows, X[::5])
    np.testing.assert_array_equal(found.true, y[::5])
    np.testing.assert_array_equal(found.predicted, plane.predict(X)[::5])


def test_pictures_of_one_two_and_more_features(plane, line):
    X, y = rows(100, 1)
    ax = ReportDisplay.from_estimator(plane, X, y).plot().axes_["partition"]
    assert len(ax.images) == 1
    X, y = rows(100, 1, 1)
    ax = ReportDisplay.from_estimator(line, X, y).plot().axes_["partition"]
    (curve,), (dots,) = ax.lines, [c for c in ax.collections if len(c.get_offsets()) == 100]
    np.testing.assert_array_equal(curve.get_ydata(), line.predict(curve.get_xdata()[:, None]))
    np.testing.assert_array_equal(dots.get_offsets()[:, 1], y)
    X, y = rows(300, 0, 4)
    wide = small("VoronoiSVR").fit(X, y)
    display = ReportDisplay.from_estimator(wide, X, y)
    assert "principal components of the rows given" in panels(display)["partition"].note
    display.plot()
    labels = {ax.get_ylabel() for ax in display.figure_.axes}
    assert "squared error / variance of y" in labels
    assert "partition" not in panels(ReportDisplay.from_estimator(wide))


def test_without_rows_it_tells_the_r2_of_held_out_ones(fitted):
    display = ReportDisplay.from_estimator(fitted).plot()
    assert not {"answers", "residuals", "features"} & set(panels(display))
    facts, report = dict(display.facts), fitted.fit_report_
    error = np.average(report.validation_error, weights=report.n_rows)
    assert facts["R2 of held-out rows"] == f"{1 - error:.4f}"
    assert [name for name in facts if "R2" in name] == ["R2 of held-out rows"]
    (note,) = [note for note in display.notes if "No test set" in note]
    assert "the R2 of held-out rows is that of rows used to select the model" in note


def test_of_several_columns_the_first_is_drawn():
    X, y = rows(300, 0)
    both = np.stack([y, 1e-3 * X[:, 1]], axis=1)
    model = small("VoronoiSVR").fit(X, both)
    display = ReportDisplay.from_estimator(model, X[:100], both[:100]).plot()
    facts, found = dict(display.facts), model.predict(X[:100])
    raw = r2_score(both[:100], found, multioutput="raw_values")
    told = ", ".join(f"{own:.4f}" for own in raw)
    assert facts["R2"] == f"{raw.mean():.4f} of 100 other rows, the mean of {told}"
    assert facts["RMSE"].count(",") == 1
    assert facts["numbers"].startswith("2 per row: center ")
    (dots,) = display.axes_["answers"].collections
    assert sorted(dots.get_offsets()[:, 1]) == sorted(both[:100, 0])
    assert "column 0" in panels(display)["answers"].note
    with pytest.raises(DataError, match="y has 1 columns, but the model predicts 2"):
        evaluate(model, X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(20, "high"), "y holds <U4, but a regressor needs numbers"),
        (np.full(19, 1.0), "20 rows and y 19 numbers"),
        (np.r_[np.ones(19), np.nan], "y contains NaN or infinity"),
    ],
)
def test_what_is_no_number_is_refused(plane, y, message):
    with pytest.raises(DataError, match=message):
        ReportDisplay.from_estimator(plane, rows(20, 1)[0], y)


def test_equal_numbers_have_the_r2_of_scikit_learn(plane):
    X = rows(20, 1)[0]
    found = evaluate(plane, X, np.full(20, 3.0))
    assert found.scores.r2[0] == r2_score(np.full(20, 3.0), plane.predict(X)) == 0.0


@pytest.mark.parametrize("kind", ["dask", "dataset"])
def test_rows_on_disk_give_the_same_report(kind, plane, tmp_path):
    X, y = rows(150, 1)
    expected = evaluate(plane, X, y)
    if kind == "dask":
        found = evaluate(plane, da.from_array(X, (40, -1)), da.from_array(y, 40))
    else:
        with DatasetWriter(tmp_path / "data", 2, "float64", y_dtype="float64") as writer:
            writer.append(X, y)
        found = evaluate(plane, str(tmp_path / "data"), None)
    for name in ("true", "predicted", "rows"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_the_command_line_reports_on_numbers(plane, tmp_path):
    X, y = rows(150, 1)
    plane.save(tmp_path / "model.zarr")
    lines = [f"{a!r},{b!r},{own!r}" for (a, b), own in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *lines]))
    with DatasetWriter(tmp_path / "rows.zarr", 2, "float64", y_dtype="float64") as writer:
        writer.append(X, y)
    out = tmp_path / "report.html"
    told = run("report", tmp_path / "model.zarr", tmp_path / "rows.zarr", *HERE).stdout
    assert f"{plane.score(X, y):.4f} of 150 other rows" in told
    assert "Residuals" in told
    assert "onfusion" not in told
    run("report", tmp_path / "model.zarr", tmp_path / "rows.zarr", "--html", out, *HERE)
    assert out.read_text("utf-8").count("data:image/png") == 5
    csv = run("report", tmp_path / "model.zarr", tmp_path / "rows.csv", "--label", "y", *HERE)
    assert f"{plane.score(X, y):.4f} of 150 other rows" in csv.stdout


def test_a_notebook_shows_numbers(plane):
    shown = plane._repr_html_()
    for words in ("R2 of held-out rows", "center 1", "Predicted y as colors"):
        assert words in shown
    assert "classes" not in words_of(shown).partition("rows trained on")[2]
    assert daskls.VoronoiSVR()._repr_html_().count("R2") == 0
