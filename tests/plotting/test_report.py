"""The report of a whole fit: of every method, on a page and as one file of HTML."""

import base64
import re

import dask.array as da
import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from small import CLASSIFIERS, small
from support import HERE, read_plain
from support import run_cli as run

import daskls
from daskls.datasets import convert
from daskls.errors import DataError, ParameterError, StoreError
from daskls.plotting import ReportDisplay
from daskls.plotting.evaluation import evaluate

# Those that only a test set gives, as these models have learned no scale.
OF_TEST_ROWS = {"confusion", "roc", "calibration", "features"}


def rows(n, seed, n_features=2):
    """Return rows of three classes with names, one of which HTML must not take for its own."""
    X = np.random.default_rng(seed).random((n, n_features))
    return X, np.array(["<b>one</b>", "three", "two"])[(X[:, 0] > X[:, 1]) + (X[:, 0] > 0.8) * 1]


@pytest.fixture(scope="module")
def model():
    return small("VoronoiSVC", probability=True).fit(*rows(300, 0))


def panels(display):
    return {panel.name: panel for panel in display.panels}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_method_has_a_page(name):
    """Of regressors see test_numbers."""
    fitted, (X, y) = small(name).fit(*rows(300, 0)), rows(150, 1)
    display = ReportDisplay.from_estimator(fitted, X, y).plot()
    assert list(display.axes_) == list(panels(display))
    assert {"confusion", "features", "partition"} <= set(display.axes_)
    assert ("calibration" in display.axes_) == hasattr(fitted, "predict_proba")
    assert dict(display.facts)["accuracy"].startswith(f"{100 * fitted.score(X, y):.2f} %")
    for panel in display.panels:
        ax = display.axes_[panel.name]
        assert [*ax.lines, *ax.patches, *ax.collections, *ax.images], panel.name
    # Without rows it draws what the model tells.
    bare = ReportDisplay.from_estimator(fitted)
    bare.plot()
    assert not OF_TEST_ROWS & set(panels(bare))
    assert [note for note in bare.notes if "No test set" in note]


def test_confusion_is_that_of_the_predictions(model):
    X, y = rows(150, 1)
    found = evaluate(model, X, y).scores
    assert found.labels == model.classes_.tolist()
    expected = confusion_matrix(y, model.predict(X), labels=model.classes_)
    np.testing.assert_array_equal(found.counts, expected)
    ax = ReportDisplay.from_estimator(model, X, y).plot().axes_["confusion"]
    written = [int(text.get_text().replace(",", "")) for text in ax.texts]
    assert written == expected.ravel().tolist()
    # Many classes are colors without numbers.
    many = (np.arange(150) % 40).astype(str)
    display = ReportDisplay.from_estimator(model, X, many).plot()
    assert "Classes of the test set that the model has not seen: 40." in display.notes
    labels, ax = [*model.classes_, *sorted(set(many))], display.axes_["confusion"]
    expected = confusion_matrix(many, model.predict(X), labels=labels)
    np.testing.assert_array_equal(ax.images[0].get_array(), expected)
    assert not [*ax.texts, *ax.get_xticks()]


def test_calibration_is_that_of_scikit_learn_without_bins_of_few_rows():
    (X, _), (Q, _) = rows(300, 0), rows(400, 1)
    halves = small("VoronoiSVC", probability=True, C=10.0, gamma=20.0).fit(X, X[:, 0] > 0.5)
    y, probable = Q[:, 0] + 0.2 * Q[:, 1] > 0.6, halves.predict_proba(Q)[:, 1]
    ax = ReportDisplay.from_estimator(halves, Q, y).plot().axes_["calibration"]
    bins = [np.ceil(10 * probable).clip(1, 10) == tenth for tenth in range(1, 11)]
    points = [[probable[own].mean(), y[own].mean()] for own in bins if own.sum() >= 10]
    np.testing.assert_allclose(ax.lines[-1].get_xydata(), points)
    share, mean = calibration_curve(y, probable, n_bins=10)
    every = np.round(np.stack([mean, share], axis=1), 9)
    assert {*map(tuple, np.round(points, 9))} < {*map(tuple, every)}
    assert "calibration" not in panels(ReportDisplay.from_estimator(halves, Q[:8], y[:8]))


def test_rows_on_disk_give_the_same_report(model, tmp_path):
    X, y = rows(150, 1)
    expected = evaluate(model, X, y)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    data = convert(tmp_path / "rows.npz", tmp_path / "rows.zarr")
    for given in ((da.from_array(X, (40, -1)), da.from_array(y, 40)), (data.path, None)):
        found = evaluate(model, *given)
        np.testing.assert_array_equal(found.scores.counts, expected.scores.counts)
        np.testing.assert_allclose(found.probable, expected.probable, rtol=1e-6)
        np.testing.assert_allclose(found.rows, expected.rows, rtol=1e-6)


def test_a_page_of_html_needs_nothing_else(model, tmp_path):
    display = ReportDisplay.from_estimator(model, *rows(150, 1))
    page = display.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == page
    assert page.count("<img") == len(display.panels) == 6
    with pytest.raises(StoreError, match=r"report\.html.* exists already; give another path"):
        display.to_html(tmp_path / "report.html")
    assert not re.findall("<(script|link|iframe|b)[ >]", page)
    for link in re.findall('(?:src|href)="([^"]*)"', page):
        kind, _, content = link.partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(content).startswith(b"\x89PNG")
    assert "url(" not in page
    assert "http" not in page.replace("http-equiv", "")
    for words in ("&lt;b&gt;one&lt;/b&gt;", *(panel.title for panel in display.panels)):
        assert words in page


def test_what_cannot_be_reported_on_is_refused(model):
    X, y = rows(20, 1)
    for given, rest, kind, words in (
        (LogisticRegression(), {}, ParameterError, "is a LogisticRegression"),
        (daskls.VoronoiSVC(), {}, NotFittedError, "is not fitted"),
        (model, {"y": y}, ParameterError, "y is given without X"),
        (model, {"X": X, "y": y[1:]}, DataError, "20 rows and y 19 labels"),
    ):
        with pytest.raises(kind, match=words):
            ReportDisplay.from_estimator(given, **rest)


def test_the_command_line_writes_and_prints_it(model, tmp_path):
    X, y = rows(150, 1)
    model.save(tmp_path / "model.zarr")
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    out = tmp_path / "report.html"
    told = run("report", tmp_path / "model.zarr", tmp_path / "rows.npz", *HERE).stdout
    assert f"{100 * model.score(X, y):.2f} % of 150 other rows" in told
    given = (tmp_path / "model.zarr", tmp_path / "rows.npz", "--html", out, *HERE)
    assert str(out) in run("report", *given).stdout
    assert out.read_text("utf-8").count("<img") == 6
    np.savez(tmp_path / "bare.npz", X=X)
    bare = convert(tmp_path / "bare.npz", tmp_path / "bare.zarr", label="none").path
    assert "has no labels, so" in run("score", tmp_path / "model.zarr", bare, *HERE, code=1).stderr
    before = out.read_bytes()
    assert "exists already" in run("report", *given, code=1).stderr
    assert out.read_bytes() == before
    assert "No test set was given" in run("report", tmp_path / "model.zarr").stdout
    run("report", tmp_path / "model.zarr", "--label", "y", code=2)
    assert read_plain(tmp_path / "model.zarr" / "root")[0]["complete"]
