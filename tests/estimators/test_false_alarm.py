"""A bound on false alarms: one threshold, from the scores of rows that nothing else sees.

The oracles are a plain fit to the other rows, a sort of its scores, and scipy's binomial. What
such a fit shares with one that has intervals is tested in ``test_reserved.py``.
"""

import dask.array as da
import numpy as np
import pytest
from reserves import HINGE, RATE, bounded, held_out, overlapping
from scipy import stats
from sklearn.base import clone
from small import set_sizes
from support import few

from daskls import ParameterError, RandomChunkSVC

N = 1200
X, Y = overlapping(N)
TEST, Y_TEST = overlapping(4000, seed=9)


def without_bound(model):
    return clone(model).set_params(max_false_alarm=None)


@pytest.mark.parametrize(
    "model",
    [
        bounded(),
        bounded(**HINGE),
        bounded(n_partitions=2, class_weight="balanced"),
        RandomChunkSVC(chunk_size=200, max_false_alarm=RATE, **HINGE),
        *few([bounded(probability="sigmoid"), bounded(C=None, gamma=None, kernel="auto")], 0),
    ],
    ids=str,
)
def test_it_is_a_plain_fit_to_the_other_rows_less_a_threshold(model):
    model.fit(X, Y)
    bound = model.false_alarm_
    held = held_out(X, Y, Y, (bound.n_negatives, bound.n_positives))
    assert held.sum() == len(X) - model._reader.meta["n_rows"]
    plain = without_bound(model).fit(X[~held], Y[~held])
    scores = plain.decision_function(X[held])
    n = int((Y[held] == 0).sum())
    assert n == bound.n_negatives
    assert abs(n - (Y == 0).sum() / 5) < 4 * np.sqrt((Y == 0).sum() * 0.16)
    chance = stats.binom(n, 1 - RATE).sf(np.arange(n))
    rank = 1 + int(np.argmax(chance <= 0.05))
    assert (bound.rank, bound.rate) == (rank, RATE)
    assert bound.delta == pytest.approx(chance[rank - 1])
    assert bound.threshold == np.sort(scores[Y[held] == 0])[rank - 1]
    expected = plain.decision_function(TEST) - bound.threshold
    np.testing.assert_array_equal(model.decision_function(TEST), expected)
    np.testing.assert_array_equal(model.predict(TEST), (expected > 0).astype(int))
    lazy = da.from_array(TEST, chunks=(700, 2))
    np.testing.assert_array_equal(model.predict(lazy), model.predict(TEST))
    np.testing.assert_array_equal(model.decision_function(lazy), expected)
    if hasattr(plain, "predict_proba"):
        np.testing.assert_array_equal(model.predict_proba(TEST), plain.predict_proba(TEST))
    assert (plain.fit_report_.n_rows == model.fit_report_.n_rows).all()


def test_a_false_alarm_is_what_the_second_class_is_said_of_wrongly():
    normal = bounded().fit(X, np.array(["fault", "normal"])[Y]).predict(TEST) == "normal"
    assert 0.01 < normal[Y_TEST == 0].mean() < RATE
    assert normal[Y_TEST == 1].mean() > 0.4


def test_too_few_negatives_are_an_error_with_the_number_needed():
    y = np.where(np.arange(N) < 500, "calm", "storm")
    with pytest.raises(ParameterError) as caught:
        bounded(max_false_alarm=0.01).fit(X, y)
    for words in (
        "needs 299 rows of class 'calm'",
        "are 500 of positive weight, half of which is 250",
        "598 or",
    ):
        assert words in str(caught.value)
    # What it says is enough.
    assert "max_false_alarm to 0.012 or delta to 0.082" in str(caught.value)
    for enough in ({"max_false_alarm": 0.012}, {"max_false_alarm": 0.01, "delta": 0.082}):
        assert 250 <= bounded(**enough).fit(X, y).false_alarm_.n_negatives < 350
    y[:598] = "calm"
    for seed in range(3):
        bound = bounded(max_false_alarm=0.01, random_state=seed).fit(X, y).false_alarm_
        assert 299 <= bound.n_negatives < 400
        assert bound.delta <= 0.05


REFUSED = [
    ({}, np.arange(N) % 3, "two classes, but y holds 3: 0, 1, 2"),
    ({"max_false_alarm": None, "delta": 0.1}, Y, "delta=0.1 has no effect"),
    *(({"max_false_alarm": rate}, Y, "max_false_alarm") for rate in (0.0, 1.0)),
    ({"delta": 0.0}, Y, "delta"),
]


@pytest.mark.parametrize(("params", "y", "says"), REFUSED)
def test_what_cannot_be_is_refused(params, y, says):
    with pytest.raises(ValueError, match=says):
        bounded(**params).fit(X, y)


def test_many_rows_are_held_out_up_to_a_number(monkeypatch):
    most = {"daskls.run.reserve.MOST_RESERVED": 100, "daskls.run.reserve.MOST_POSITIVES": 30}
    set_sizes(monkeypatch, most)
    bound = bounded().fit(X, Y).false_alarm_
    assert 60 < bound.n_negatives < 140
    assert 10 < bound.n_positives < 50
    # No fewer than are needed, whatever they weigh.
    set_sizes(monkeypatch, {"daskls.run.reserve.RESERVED_NBYTES": 16})
    assert 29 <= bounded().fit(X, Y).false_alarm_.n_negatives < 70
