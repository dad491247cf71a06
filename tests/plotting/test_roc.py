"""The ROC curve of held-out rows: scikit-learn's, of rows that are found by brute force."""

import numpy as np
import pytest
from reserves import held_out, overlapping
from sklearn.metrics import roc_auc_score, roc_curve

from daskls import ParameterError, VoronoiSVC, VoronoiSVR
from daskls.methods.held_out import HeldOutRows
from daskls.plotting import ReportDisplay, RocDisplay

N = 1500
ONE = {
    "random_state": 0,
    "cell_size": 300,
    "kernel": "rbf",
    "C": 4.0,
    "gamma": 6.0,
    "feature_scale": None,
}
X, Y = overlapping(N)


def test_it_is_of_the_rows_that_were_held_out():
    bounded = VoronoiSVC(max_false_alarm=0.1, **ONE).fit(X, np.where(Y, "on", "off"))
    bound = bounded.false_alarm_
    held = np.flatnonzero(held_out(X, Y, Y, (bound.n_negatives, bound.n_positives), seed=0))
    decisions = bounded.decision_function(X[held])
    display = RocDisplay.from_estimator(bounded).plot()
    assert display.display_.roc_auc == pytest.approx(roc_auc_score(Y[held], decisions), abs=1e-12)
    fpr, tpr, _ = roc_curve(Y[held], decisions)
    np.testing.assert_allclose(display.display_.fpr, fpr)
    np.testing.assert_allclose(display.display_.tpr, tpr)
    above = decisions > 0
    assert display.predicted == (above[Y[held] == 0].mean(), above[Y[held] == 1].mean())
    # Of the negatives so many lie above the score of a rank.
    assert display.predicted[0] == pytest.approx(1 - bound.rank / bound.n_negatives)
    assert np.bincount(display.codes).tolist() == [bound.n_negatives, bound.n_positives]
    assert (display.max_false_alarm, display.labels) == (0.1, ("off", "on"))
    assert bound.describe(["off", "on"])[0] in ReportDisplay.from_estimator(bounded).facts


@pytest.mark.parametrize("n_partitions", [1, 2])
def test_without_a_bound_it_is_of_values_without_each_row(n_partitions):
    weights = np.random.default_rng(1).uniform(0.5, 2, N)
    model = VoronoiSVC(n_partitions=n_partitions, **ONE).fit(X, Y, weights)
    held = HeldOutRows.joined(HeldOutRows.read(bundle.part) for bundle in model._reader.bundles)
    values = np.zeros(N)
    clipped = held.scores if n_partitions == 1 else held.scores.clip(-1, 1)
    np.add.at(values, held.numbers, clipped.astype(float) / n_partitions)
    display = RocDisplay.from_estimator(model).plot()
    expected = roc_auc_score(Y, values, sample_weight=weights)
    area = display.display_.roc_auc
    assert area == pytest.approx(expected, abs=1e-6)
    assert display.max_false_alarm is None
    # Nearly that of rows that nobody has seen.
    other = overlapping(6000, seed=7)
    assert abs(area - roc_auc_score(other[1], model.decision_function(other[0]))) < 0.03


def test_what_has_no_curve_is_refused():
    for model, y, words in (
        (VoronoiSVC(**ONE), np.arange(N) % 3, "has 3 classes"),
        (VoronoiSVR(**ONE), X[:, 0], "has numbers as targets"),
        (VoronoiSVC(probability=False, **ONE), Y, "max_false_alarm="),
    ):
        model.fit(X, y)
        with pytest.raises(ParameterError, match=words):
            RocDisplay.from_estimator(model)
        assert "roc" not in [panel.name for panel in ReportDisplay.from_estimator(model).panels]
    with pytest.raises(ParameterError, match="A dict has no curve; pass a fitted classifier"):
        RocDisplay.from_estimator({})
