"""Numbers on the command line: what a label is, a fit, its score and its answers."""

import json

import numpy as np
import pytest
from sklearn.metrics import d2_pinball_score, mean_absolute_error, r2_score, root_mean_squared_error
from support import run_cli

import daskls
from daskls import DataError, VoronoiSVC, VoronoiSVR
from daskls.run.confusion import score_dataset
from daskls.sources.labels import kind_of_arrays, kind_of_data, kind_of_values
from daskls.store.dataset import DatasetWriter, open_dataset

RNG = np.random.default_rng(0)
X = RNG.random((400, 2)).round(4)
Y = (1000 + 50 * np.sin(5 * X[:, 0]) + RNG.normal(0, 2, 400)).round(3)
GIVEN = ["--kernel", "rbf", "--C", "50", "--gamma", "3", "--random-state", "0"]


def run(*args, code=0):
    """Run a command; return what it prints."""
    return run_cli(*args, code=code).output


@pytest.fixture
def table(tmp_path):
    """Return the path of a table with a column of prices, and one of grades."""
    path = tmp_path / "rows.csv"
    rows = np.column_stack([X, Y, np.arange(400) % 3])
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    path.write_text("\n".join(["a,b,price,grade", *lines]))
    return path


def test_a_fit_says_what_the_label_is_and_scores_it(table, tmp_path):
    model = tmp_path / "m"
    told = run("fit", table, model, "--label", "price", "--drop", "grade", *GIVEN, "-q")
    assert "price: it holds fractions, so they are taken as numbers, a regression;" in told
    assert "R2 of held-out rows" in told
    assert "VoronoiSVR" in told
    found = daskls.load(model).predict(str(table))
    measures = json.loads(run("score", model, table, "--json", "-q"))
    assert measures["n_rows"] == 400
    assert measures["r2"] == pytest.approx(r2_score(Y, found), rel=1e-9)
    assert measures["rmse"] == pytest.approx(root_mean_squared_error(Y, found), rel=1e-9)
    assert measures["mae"] == pytest.approx(mean_absolute_error(Y, found), rel=1e-9)
    told = run("score", model, table, "-q")
    assert all(name in told for name in ("R2", "RMSE", "MAE"))
    assert "400 numbers in" in run("predict", model, table, tmp_path / "out.csv", "-q")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "price"
    np.testing.assert_array_equal(np.array(lines[1:], float), found)
    told = run("info", model)
    assert "numbers" in told
    assert "spread" in told
    assert "classes" not in told


def test_few_whole_numbers_are_classes_unless_one_insists(table, tmp_path):
    told = run("fit", table, tmp_path / "a", "--label", "grade", *GIVEN, "-q")
    assert "grade: it holds 3 whole numbers, so they are taken as classes; override" in told
    assert type(daskls.load(tmp_path / "a")) is VoronoiSVC
    given = ("--task", "regression", *GIVEN, "-q")
    told = run("fit", table, tmp_path / "b", "--label", "grade", *given)
    assert "override by" not in told
    assert type(daskls.load(tmp_path / "b")) is VoronoiSVR


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "l3", "--task", "regression"), "--method l3 learns classes only"),
        (("--class-weight", "balanced"), "VoronoiSVR has no --class-weight; Vor"),
        (("--loss", "hinge"), "must be a str among"),
        (("--quantile", "0.5", "--epsilon", "1"), "VoronoiQuantileRegressor has no --epsilon"),
    ],
)
def test_what_is_not_for_numbers_is_refused(table, tmp_path, options, message):
    told = run("fit", table, tmp_path / "m", "--label", "price", *options, "-q", code=2)
    assert message in told
    assert not (tmp_path / "m").exists()


def test_intervals_are_two_columns_of_a_table(table, tmp_path):
    model, out = tmp_path / "m", tmp_path / "out.csv"
    given = ["--label", "price", "--drop", "grade", *GIVEN, "-q"]
    run("fit", table, model, *given, "--interval", "0.9")
    assert "400 intervals in" in run("predict", model, table, out, "--interval", "-q")
    lines = out.read_text().splitlines()
    assert lines[0] == "price lower,price upper"
    found = np.array([line.split(",") for line in lines[1:]], float)
    expected = daskls.load(model).predict_interval(str(table))
    np.testing.assert_array_equal(found, expected)
    assert "intervals" in run("info", model)
    measures = json.loads(run("score", model, table, "--json", "-q"))
    lower, upper = expected.T
    assert measures["covered"] == [np.mean((lower <= Y) & (upper >= Y))]
    assert measures["width"] == pytest.approx([np.mean(upper - lower)])
    assert "in their intervals" in run("score", model, table, "-q")
    run("fit", table, tmp_path / "plain", *given)
    told = run("predict", tmp_path / "plain", table, tmp_path / "o.csv", "--interval", code=1)
    assert "has no intervals. Fit a regressor with --interval 0.9" in told
    told = run("predict", tmp_path / "plain", table, tmp_path / "o.csv", "--proba", code=1)
    assert "predicts numbers, which have no probabilities" in told


def test_levels_are_scored_and_predicted_each(table, tmp_path):
    model, levels = tmp_path / "m", [0.9, 0.1]
    given = ("--label", "price", "--drop", "grade", *GIVEN, "-q")
    run("fit", table, model, *given, "--quantile", "0.9,0.1")
    found = daskls.load(model).predict(str(table))
    measures = json.loads(run("score", model, table, "--json", "-q"))
    for level, values, own in zip(levels, found.T, measures["levels"], strict=True):
        assert own["level"] == level
        lost = np.maximum(level * (Y - values), (1 - level) * (values - Y)).mean()
        assert own["loss"] == pytest.approx(lost, rel=1e-9)
        assert own["d2"] == pytest.approx(d2_pinball_score(Y, values, alpha=level), abs=1e-3)
        assert own["covered"] == pytest.approx((values >= Y).mean())
    run("predict", model, table, tmp_path / "out.csv", "-q")
    names, *lines = (tmp_path / "out.csv").read_text().splitlines()
    assert names == "price at 0.9,price at 0.1"
    np.testing.assert_array_equal([line.split(",") for line in lines], found.astype(str))


def test_a_data_set_is_scored_block_by_block(tmp_path):
    both = np.stack([Y, 2 * Y - X[:, 1]], axis=1)
    model = VoronoiSVR(100, kernel="rbf", C=50.0, gamma=3.0, random_state=0).fit(X, Y)
    with DatasetWriter(tmp_path / "d", 2, "float64", y_dtype="float64", chunk_rows=70) as writer:
        writer.append(X, Y)
    found = score_dataset(model, open_dataset(tmp_path / "d"), None, None)
    assert found.r2.tolist() == [pytest.approx(model.score(X, Y), rel=1e-9)]
    wide = VoronoiSVR(100, kernel="rbf", C=50.0, gamma=3.0, random_state=0).fit(X, both)
    columns = [f"center {own.mean():.5g}, spread {own.std():.4g}" for own in both.T]
    assert wide._reader.target.describe() == ("numbers", f"2 per row: {'; '.join(columns)}")
    with pytest.raises(DataError, match="has 1 columns, but the model predicts 2"):
        score_dataset(wide, open_dataset(tmp_path / "d"), None, None)
    with DatasetWriter(tmp_path / "e", 2, "float64", classes=["a", "b"]) as writer:
        writer.append(X, np.arange(400) % 2)
    with pytest.raises(DataError, match="y holds classes, but a regressor needs numbers"):
        score_dataset(model, open_dataset(tmp_path / "e"), None, None)


@pytest.mark.always
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.arange(10).repeat(2), "classes"),
        (np.arange(11).repeat(9), "numbers"),
        (np.arange(26).repeat(10), "classes"),
        (np.array([1.0, 2.0, 2.5]), "numbers"),
        (np.arange(5.0).repeat(3), "classes"),
    ],
)
def test_whole_numbers_are_classes_where_they_are_few_or_frequent(values, kind, tmp_path):
    assert kind_of_values([values])[0] == kind
    assert kind_of_values(np.array_split(values, 3))[0] == kind
    np.savez(tmp_path / "rows.npz", X=np.zeros((len(values), 2)), y=values)
    assert kind_of_arrays(str(tmp_path / "rows.npz"), None)[0] == kind
    for word, wanted in (("", kind), ("word 1:2", "classes")):
        lines = [*(f"{value} 1:2 # note" for value in values), word]
        (tmp_path / "rows.svm").write_text("\n".join(lines))
        assert kind_of_arrays(str(tmp_path / "rows.svm"), None)[0] == wanted
    # Those of a data set are as they were written.
    with DatasetWriter(tmp_path / "d", 2, "float64", y_dtype="float64") as writer:
        writer.append(np.zeros((len(values), 2)), values)
    is_whole = (values == np.floor(values)).all()
    assert kind_of_data(open_dataset(tmp_path / "d"))[0] == ("classes" if is_whole else "numbers")
