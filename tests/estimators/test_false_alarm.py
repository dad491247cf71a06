"""A bound on false alarms: rows that nothing else sees, and one threshold from their scores.

The oracles are a plain fit to the other rows, a sort of its scores, and scipy's binomial.
"""

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from small import assert_same_bits, connected, tiny_tasks
from support import few
from writes import StopError, StopsEverywhere, Writes

import daskls
from daskls import DataError, ParameterError, RandomChunkSVC, StoreError, VoronoiSVC
from daskls.errors import DasklsError
from daskls.methods.reserved import threshold_of
from daskls.partition.shuffle import row_keys
from daskls.records import FalseAlarmSpec
from daskls.run import reserve as reserve_size
from daskls.seeds import THRESHOLD_ROWS
from daskls.store.caches import drop_caches
from daskls.store.reserved import read_reserved

N, SEED = 1200, 3
RATE = 0.1
ONE = {"kernel": "rbf", "C": 4.0, "gamma": 6.0, "feature_scale": None, "random_state": SEED}
HINGE = {**ONE, "loss": "hinge", "cv": 2}


def overlapping(n=N, seed=0, share=0.4):
    """Return rows of two classes that overlap."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None], y


X, Y = overlapping()
TEST, Y_TEST = overlapping(4000, seed=9)


def bounded(**params):
    return VoronoiSVC(**{"cell_size": 200, "max_false_alarm": RATE, **ONE, **params})


def held_out(y, counts, seed=SEED):
    """Return which rows are held out, by the order of keys."""
    keys = row_keys(np.arange(len(y)), THRESHOLD_ROWS(seed))
    found = np.zeros(len(y), bool)
    for code, count in enumerate(counts):
        own = np.flatnonzero(y == code)
        found[own[np.argsort(keys[own])[:count]]] = True
    return found


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
    held = held_out(Y, (bound.n_negatives, bound.n_positives))
    assert held.sum() == len(X) - model._reader.meta["n_rows"]
    plain = without_bound(model).fit(X[~held], Y[~held])
    scores = plain.decision_function(X[held])
    n = int((Y[held] == 0).sum())
    assert n == bound.n_negatives >= (Y == 0).sum() // 5
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


def test_the_bound_is_kept_and_used():
    model = bounded().fit(X, Y)
    alarms = model.predict(TEST)
    assert 0.01 < alarms[Y_TEST == 0].mean() < RATE
    assert alarms[Y_TEST == 1].mean() > 0.4


def test_what_a_held_out_row_holds_moves_the_threshold_alone(tmp_path):
    model = bounded(store=tmp_path / "m").fit(X, Y)
    held = held_out(Y, (model.false_alarm_.n_negatives, model.false_alarm_.n_positives))
    moved = X.copy()
    moved[held] += 0.7
    other = bounded().fit(moved, Y)
    assert other.false_alarm_.threshold != model.false_alarm_.threshold
    raw, other_raw = (m.decision_function(TEST) + m.false_alarm_.threshold for m in (model, other))
    np.testing.assert_allclose(raw, other_raw, atol=1e-12)
    # They are part of the data that a store belongs to.
    with pytest.raises(StoreError, match="checksum was"):
        bounded(store=tmp_path / "m").fit(moved, Y)
    with pytest.raises(StoreError, match=r"rate was 0\.1, is 0\.2"):
        bounded(store=tmp_path / "m", max_false_alarm=0.2).fit(X, Y)


def test_rows_of_weight_0_are_as_if_they_were_not_there():
    weights = np.random.default_rng(1).uniform(0.5, 2, N) * (np.arange(N) % 4 > 0)
    kept = weights > 0
    model = bounded().fit(X[kept], Y[kept], weights[kept])
    again = bounded().fit(da.from_array(X, chunks=(250, 2)), Y, weights)
    assert_same_bits(model, again)


@pytest.mark.parametrize("way", few([{}, {"n_partitions": 2}, HINGE], 2))
def test_chunks_tasks_and_threads_change_no_bit(way):
    model = bounded(**way).fit(X, Y)
    for chunks, scheduler, n_bundles in ((100, "threads", 10_000), (N, "sync", 3)):
        with tiny_tasks(N_BUNDLES=n_bundles), dask.config.set(scheduler=scheduler):
            rows = da.from_array(X, chunks=(chunks, 2)), da.from_array(Y, chunks=chunks)
            assert_same_bits(model, clone(model).fit(*rows))
    assert bounded(random_state=0).fit(X, Y).false_alarm_ != model.false_alarm_


def test_a_cluster_changes_no_bit(two_workers, tmp_path):
    expected = bounded().fit(X, Y)
    with tiny_tasks(), connected(two_workers) as client:
        params = {"client": client, "store": tmp_path / "m"}
        assert_same_bits(expected, bounded(**params).fit(da.from_array(X, chunks=(90, 2)), Y))


@pytest.mark.slow
def test_a_fit_that_is_stopped_anywhere_goes_on(tmp_path):
    expected = bounded().fit(X, Y)
    stops, store = StopsEverywhere(), tmp_path / "m"
    rows = da.from_array(X, chunks=(100, 2)), da.from_array(Y, chunks=100)
    with tiny_tasks(), dask.config.set(scheduler="sync"), Writes(store, stops):
        for _ in range(100):
            try:
                model = bounded(store=store).fit(*rows)
                break
            except StopError:
                continue
    assert "false_alarm" in " ".join(stops.names)
    assert_same_bits(expected, model)


def test_a_model_without_its_threshold_is_not_finished(tmp_path):
    store, written = tmp_path / "m", []

    def stop(name):
        if name.startswith("false_alarm"):
            written.append(name)
            raise StopError

    with Writes(store, stop), pytest.raises(StopError):
        bounded(store=store).fit(X, Y)
    assert written
    drop_caches()
    with pytest.raises(StoreError, match=r"no threshold yet.*Call fit again"):
        daskls.load(store)
    assert_same_bits(bounded(store=store).fit(X, Y), bounded().fit(X, Y))
    assert daskls.load(store).false_alarm_.n_negatives > 0


def test_a_damaged_threshold_is_taken_again(tmp_path):
    model = bounded(store=tmp_path / "m").fit(X, Y)
    expected = model.decision_function(TEST)
    part = next(p for p in (tmp_path / "m" / "false_alarm").rglob("*") if p.name.startswith("c"))
    file = part if part.is_file() else next(p for p in part.rglob("*") if p.is_file())
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    drop_caches()
    with pytest.raises(DasklsError, match="false_alarm"):
        read_reserved(model._reader.root)
    np.testing.assert_array_equal(model.fit(X, Y).decision_function(TEST), expected)


def test_saved_and_pickled_models_keep_it(tmp_path):
    import pickle

    names = np.array(["fault", "normal"])
    model = bounded().fit(X, names[Y])
    model.save(tmp_path / "m")
    for again in (daskls.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert (again.max_false_alarm, again.delta) == (RATE, 0.05)
        assert_same_bits(model, again)
    # A false alarm is what the second class is said of wrongly.
    wrong = model.predict(TEST)[Y_TEST == 0] == "normal"
    assert wrong.mean() < RATE
    # A model without a bound has none, whatever this estimator was before.
    assert not hasattr(model.set_params(max_false_alarm=None).fit(X, Y), "false_alarm_")


def test_too_few_negatives_are_an_error_with_the_number_needed():
    y = np.where(np.arange(N) < 500, "calm", "storm")
    with pytest.raises(ParameterError) as caught:
        bounded(max_false_alarm=0.01).fit(X, y)
    for words in ("needs 299 rows of class 'calm'", "y holds 500, half of which is 250", "598 or"):
        assert words in str(caught.value)
    # What it says is enough.
    assert "max_false_alarm to 0.012 or delta to 0.082" in str(caught.value)
    for enough in ({"max_false_alarm": 0.012}, {"max_false_alarm": 0.01, "delta": 0.082}):
        assert bounded(**enough).fit(X, y).false_alarm_.n_negatives == 250
    y[:598] = "calm"
    model = bounded(max_false_alarm=0.01).fit(X, y)
    assert (model.false_alarm_.n_negatives, model.false_alarm_.rank) == (299, 299)


@pytest.mark.parametrize(
    ("params", "y", "says"),
    [
        ({}, np.arange(N) % 3, "two classes, but y holds 3: 0, 1, 2"),
        ({"max_false_alarm": None, "delta": 0.1}, Y, "delta=0.1 has no effect"),
        ({"max_false_alarm": 0.0}, Y, "max_false_alarm"),
        ({"max_false_alarm": 1.0}, Y, "max_false_alarm"),
        ({"delta": 0.0}, Y, "delta"),
    ],
)
def test_what_cannot_be_is_refused(params, y, says):
    with pytest.raises((ParameterError, ValueError), match=says):
        bounded(**params).fit(X, y)


def test_labels_that_change_between_readings_are_refused():
    n_read = []

    def labels(block_info=None):
        n_read.append(0)
        return np.zeros(N, int) if len(n_read) > 1 else Y

    y = da.map_blocks(labels, chunks=((N,),), dtype=int, meta=np.empty(0, int))
    with (
        dask.config.set(scheduler="sync"),
        pytest.raises((DataError, StoreError), match="same val"),
    ):
        bounded().fit(X, y)


def test_many_rows_are_held_out_up_to_a_number(monkeypatch):
    monkeypatch.setattr(reserve_size, "MOST_RESERVED", 100)
    monkeypatch.setattr(reserve_size, "MOST_POSITIVES", 30)
    bound = bounded().fit(X, Y).false_alarm_
    assert (bound.n_negatives, bound.n_positives) == (100, 30)
    # No fewer than are needed, whatever they weigh.
    monkeypatch.setattr(reserve_size, "RESERVED_NBYTES", 16)
    assert bounded().fit(X, Y).false_alarm_.n_negatives == 29


def test_equal_scores_are_no_alarms():
    scores = np.repeat([0.0, 1.0], [50, 50])
    bound = threshold_of(scores, np.ones(100, bool), FalseAlarmSpec(0.1, 0.05))
    assert bound.threshold == 1.0
    assert not (scores > bound.threshold).any()
