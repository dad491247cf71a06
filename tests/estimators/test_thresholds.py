"""Two classes are parted at a decision value of 0; scikit-learn's classes part them elsewhere."""

import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV
from small import CLASSIFIERS, small, ways
from support import checkers, few

NAMES = np.array(["fault", "normal"])
X, CODES = checkers(600, seed=1)
HELD, CODES_HELD = checkers(300, seed=2)
Y, Y_HELD = NAMES[CODES], NAMES[CODES_HELD]
# Training rows, rows all over the place, and rows so far away that no kernel reaches them.
QUERIES = np.concatenate(
    [X, np.random.default_rng(0).random((2000, 2)) * 1.4 - 0.2, [[50.0, 50.0], [1e3, -1e3]]]
)
LOSSES = {"hinge": {"loss": "hinge", "cv": 2}, "squared_error": {"loss": "squared_error", "cv": 5}}
BY_F1 = make_scorer(f1_score, pos_label="fault")


def assert_parted_at_0(model, rows):
    """Fail unless labels are the signs of decision values, of rows in memory and lazily."""
    scores = model.decision_function(rows)
    expected = np.where(scores > 0, model.classes_[1], model.classes_[0])
    np.testing.assert_array_equal(model.predict(rows), expected)
    lazy = da.from_array(rows, chunks=(700, -1))
    np.testing.assert_array_equal(model.predict(lazy), expected)
    np.testing.assert_array_equal(model.decision_function(lazy) > 0, scores > 0)
    return scores


@pytest.mark.parametrize(("name", "way"), ways(CLASSIFIERS), ids=str)
def test_labels_are_the_signs_of_decision_values(name, way):
    scores = assert_parted_at_0(small(name, **way).fit(X, Y), QUERIES)
    assert 0 < (scores > 0).mean() < 1


@pytest.mark.parametrize("n_partitions", few([2, 1, 3], 2))
@pytest.mark.parametrize("loss", LOSSES)
def test_of_several_partitions_labels_are_the_signs_of_the_mean(loss, n_partitions):
    params = {"cell_size": 12, "C": 10.0, "gamma": 20.0, **LOSSES[loss]}
    model = small("VoronoiSVC", n_partitions=n_partitions, **params).fit(X, Y)
    scores = assert_parted_at_0(model, QUERIES)
    if n_partitions == 2:
        # Cells of one class each, one for either: 1 and -1.
        assert (model.predict(QUERIES[scores == 0]) == "fault").sum() > 1


def test_equal_votes_are_of_the_first_class():
    model = small("KernelKNNClassifier", n_neighbors=6).fit(X, Y)
    scores = assert_parted_at_0(model, QUERIES)
    assert (model.predict(QUERIES[scores == 0]) == "fault").sum() > 50


def test_halfway_between_two_rows_is_of_the_first_class():
    rows, labels = [[-1.0], [1.0], [-7.0], [7.0]], ["left", "right", "left", "right"]
    model = small("KNNSVC", n_neighbors=2, kernel="linear", gamma=None).fit(rows, labels)
    scores = assert_parted_at_0(model, np.array([[0.0], [0.5], [-0.5]]))
    assert scores[0] == 0
    assert model.predict([[0.0]]).tolist() == ["left"]


# scikit-learn's classes


def response_of(model, rows):
    """Return what thresholds are of, for the rare class: probabilities, or else scores."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)[:, 0]
    return -model.decision_function(rows)


@pytest.mark.parametrize("name", few(CLASSIFIERS, 3))
def test_a_threshold_is_chosen_on_held_out_rows(name):
    model = small(name).fit(X, Y)
    tuned = TunedThresholdClassifierCV(model, scoring=BY_F1, cv="prefit", refit=False)
    tuned.fit(HELD, Y_HELD)
    is_fault = response_of(model, QUERIES) >= tuned.best_threshold_
    np.testing.assert_array_equal(tuned.predict(QUERIES) == "fault", is_fault)
    # No worse than the threshold of `predict`, but for how finely thresholds are tried.
    assert BY_F1(tuned, HELD, Y_HELD) > BY_F1(model, HELD, Y_HELD) - 0.02
