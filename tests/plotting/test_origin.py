"""What a report tells of rows, label and columns, and how good a model is beside no model."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from small import small

import daskls
from daskls.plotting import ReportDisplay
from daskls.plotting.evaluation import evaluate, importances_by_shuffling
from daskls.plotting.plane import columns_of
from daskls.seeds import SHUFFLED

N = 240


def make_frame(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.random((N, 3)), columns=[*"abc"])
    frame = frame.assign(color=rng.choice(["red", "green", "blue"], N))
    frame["id"] = [f"row {i}" for i in range(N)]
    return frame.assign(t=np.where((frame.color == "red") ^ (frame.a > 0.6), "no", "yes"))


FRAME, TEST = make_frame(0), make_frame(1)
BARE = FRAME[["a", "b", "c"]].to_numpy()


def report(model, *rows):
    display = ReportDisplay.from_estimator(model, *rows)
    return display, dict(display.facts), {panel.name: panel for panel in display.panels}


@pytest.fixture(scope="module")
def model():
    return small("VoronoiSVC").fit(FRAME, "t", drop="id")


@pytest.mark.filterwarnings("ignore:.*left out 'id'", "ignore::daskls.AdviceWarning")
def test_rows_and_label_are_called_as_they_were_given(tmp_path):
    FRAME.drop(columns="id").to_csv(tmp_path / "rows.csv", index=False)
    for X, y, called in (
        (tmp_path / "rows.csv", "t", " of rows.csv, label t"),
        (FRAME, FRAME.t, " of pandas.DataFrame, label t"),
        (BARE.tolist(), FRAME.t.tolist(), " of list"),
        (da.from_array(BARE), np.array(FRAME.t.tolist()), " of dask.Array"),
    ):
        own = small("VoronoiSVC").fit(X, y)
        own.save(tmp_path / called)
        for same in (own, daskls.load(tmp_path / called)):
            title = ReportDisplay.from_estimator(same).title
            assert title.startswith(f"VoronoiSVC: {N} rows{called}")
            assert title in same._repr_html_()
        # A folder may be the name of its user.
        assert str(tmp_path) not in str(own._reader.meta["origin"])


@pytest.mark.filterwarnings("ignore::daskls.AdviceWarning")
def test_the_baseline_is_the_most_frequent_class():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 2)), np.array([*"abc", *rng.choice([*"abc"], 57, p=[0.2, 0.5, 0.3])])
    own, share = daskls.KernelKNNClassifier(5).fit(X, y), 100 * np.mean(y == "b")
    assert max(y.tolist(), key=y.tolist().count) == "b"
    told = report(own, X, y)[1]["baseline"]
    assert told.startswith("always b, ")
    assert told.endswith(f"{share:.2f} % right")
    wrong = report(small("VoronoiSVC").fit(X, y))[1]["baseline"]
    assert wrong.endswith(f"{100 - share:.2f} % wrong")
    # An earlier version wrote nothing of where rows are from.
    old = small("VoronoiSVC").fit(X, y)
    del old._reader.meta["origin"]
    assert report(old)[1]["baseline"] == "not known of a model of an earlier version"


def test_shuffled_columns_lose_what_the_frame_loses(model):
    """The oracle shuffles the columns of the frame, all features of one at once."""
    names, owner = columns_of(model)
    assert len(owner) > len(names) == 4
    with model._test_rows(TEST, "t") as rows:
        lost, n_rows = importances_by_shuffling(model, evaluate(model, *rows), owner)
    order, expected = SHUFFLED.generator(0).permutation(N), []
    for name in names:
        shuffled = TEST.assign(**{name: TEST[name].to_numpy()[order]})
        expected.append(model.score(TEST, "t") - model.score(shuffled, "t"))
    np.testing.assert_allclose(lost, expected, atol=1e-12)
    assert n_rows == N
    ax = ReportDisplay.from_estimator(model, TEST, "t").plot().axes_["features"]
    best = names[int(np.argmax(expected))]
    assert ax.get_yticklabels()[0].get_text() == best
    assert ax.patches[0].get_width() == pytest.approx(max(expected))


def test_the_roc_curve_is_of_test_rows(model):
    display, _, panels = report(model, TEST, "t")
    assert "rows of the test set" in panels["roc"].note
    legend = display.plot().axes_["roc"].get_legend().get_texts()[0].get_text()
    assert f"{roc_auc_score(TEST.t == 'yes', model.decision_function(TEST)):.2f}" in legend
    assert "roc" not in report(model, TEST[TEST.t == "yes"], "t")[2]
