"""The report of a whole fit: of every method, on a page and as one file of HTML."""

import base64
from html.parser import HTMLParser

import dask.array as da
import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from small import CLASSIFIERS, small
from support import HERE, few, read_plain
from support import run_cli as run

import daskls
from daskls.datasets import convert
from daskls.errors import DataError, ParameterError
from daskls.plotting import ReportDisplay
from daskls.plotting.evaluation import evaluate

# Those that only a test set gives, as these models have learned no scale.
OF_TEST_ROWS = {"confusion", "roc", "calibration", "features"}


def rows(n, seed, n_features=2):
    """Return rows of three classes with names, one of which HTML must not take for its own."""
    X = np.random.default_rng(seed).random((n, n_features))
    return X, np.array(["<b>one</b>", "three", "two"])[(X[:, 0] > X[:, 1]) + (X[:, 0] > 0.8) * 1]


@pytest.fixture(scope="module", params=few(sorted(CLASSIFIERS), 4))
def fitted(request):
    """A model of every method; of regressors see test_numbers."""
    return small(request.param).fit(*rows(300, 0))


@pytest.fixture(scope="module")
def model():
    """Cells with probabilities."""
    return small("VoronoiSVC", probability=True).fit(*rows(300, 0))


@pytest.fixture(scope="module")
def halves():
    """Two classes, with probabilities."""
    X, _ = rows(300, 0)
    return small("VoronoiSVC", probability=True, C=10.0, gamma=20.0).fit(X, X[:, 0] > 0.5)


class Page(HTMLParser):
    """What a page of HTML holds."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.words.append(data)


def panels(display):
    return {panel.name: panel for panel in display.panels}


@pytest.mark.slow
def test_every_method_has_a_page(fitted):
    X, y = rows(150, 1)
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


def curve_of(named, probable):
    """Return the points of a calibration curve of bins of ten rows or more, one bin at a time."""
    tenths = np.ceil(10 * probable).clip(1, 10)
    bins = [tenths == tenth for tenth in range(1, 11)]
    return [[probable[own].mean(), named[own].mean()] for own in bins if own.sum() >= 10]


def test_calibration_is_that_of_scikit_learn_without_bins_of_few_rows(halves):
    X, _ = rows(400, 1)
    y = X[:, 0] + 0.2 * X[:, 1] > 0.6
    ax = ReportDisplay.from_estimator(halves, X, y).plot().axes_["calibration"]
    probable = halves.predict_proba(X)[:, 1]
    points = curve_of(y, probable)
    np.testing.assert_allclose(ax.lines[-1].get_xydata(), points)
    share, mean = calibration_curve(y, probable, n_bins=10)
    assert len(points) < len(mean)
    assert set(map(tuple, np.round(points, 9))) < set(
        map(tuple, np.round(np.stack([mean, share], axis=1), 9))
    )
    few = ReportDisplay.from_estimator(halves, X[:8], y[:8])
    assert "calibration" not in panels(few)


@pytest.mark.parametrize("kind", ["dask", "dataset"])
def test_rows_on_disk_give_the_same_report(kind, model, tmp_path):
    X, y = rows(150, 1)
    expected = evaluate(model, X, y)
    if kind == "dask":
        found = evaluate(model, da.from_array(X, (40, -1)), da.from_array(y, 40))
    else:
        np.savez(tmp_path / "rows.npz", X=X, y=y)
        convert(tmp_path / "rows.npz", tmp_path / "rows.zarr")
        found = evaluate(model, str(tmp_path / "rows.zarr"), None)
    np.testing.assert_array_equal(found.scores.counts, expected.scores.counts)
    np.testing.assert_allclose(found.probable, expected.probable, rtol=1e-6)
    np.testing.assert_allclose(found.rows, expected.rows, rtol=1e-6)


def test_a_page_of_html_needs_nothing_else(model, tmp_path):
    X, y = rows(150, 1)
    display = ReportDisplay.from_estimator(model, X, y)
    text = display.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == text
    page = Page(text)
    assert page.tags.count("img") == len(display.panels) == 6
    assert not {"script", "link", "iframe", "b"} & set(page.tags)
    for link in page.links:
        kind, _, content = link.partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(content).startswith(b"\x89PNG")
    assert "url(" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert any("<b>one</b>" in words for words in page.words)
    for panel in display.panels:
        assert panel.title in page.words


def test_what_cannot_be_reported_on_is_refused(model):
    X, y = rows(20, 1)
    with pytest.raises(ParameterError, match="is a LogisticRegression"):
        ReportDisplay.from_estimator(LogisticRegression())
    with pytest.raises(NotFittedError):
        ReportDisplay.from_estimator(daskls.VoronoiSVC())
    with pytest.raises(ParameterError, match="y is given without X"):
        ReportDisplay.from_estimator(model, y=y)
    with pytest.raises(DataError, match="20 rows and y 19 labels"):
        ReportDisplay.from_estimator(model, X, y[1:])


def test_the_command_line_writes_and_prints_it(model, tmp_path):
    X, y = rows(150, 1)
    model.save(tmp_path / "model.zarr")
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    out = tmp_path / "report.html"
    told = run("report", tmp_path / "model.zarr", tmp_path / "rows.npz", *HERE).stdout
    assert f"{100 * model.score(X, y):.2f} % of 150 other rows" in told
    given = (tmp_path / "model.zarr", tmp_path / "rows.npz", "--html", out, *HERE)
    assert str(out) in run("report", *given).stdout
    assert Page(out.read_text("utf-8")).tags.count("img") == 6
    before = out.read_bytes()
    assert "exists already" in run("report", *given, code=1).stderr
    assert out.read_bytes() == before
    assert "No test set was given" in run("report", tmp_path / "model.zarr").stdout
    run("report", tmp_path / "model.zarr", "--label", "y", code=2)
    assert read_plain(tmp_path / "model.zarr" / "root")[0]["complete"]
