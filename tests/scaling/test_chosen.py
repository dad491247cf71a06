"""What is chosen for all cells, end to end: coding, scale, kernel and width, and the same again."""

from functools import wraps

import dask
import dask.array as da
import numpy as np
import pytest
from small import small_sample

from daskls import VoronoiSVC, VoronoiSVR
from daskls.scaling import candidates

N = 1200
ROWS = np.random.default_rng(1).random((N, 4))
FRESH = np.random.default_rng(2).random((1000, 4))
# An order of steps that no distance of values knows: the logarithm decides.
SKEWED = np.exp(8 * ROWS)


def differ(rows):
    """Return whether the first two features are on the same side of the middle."""
    return ((rows[:, 0] > 0.5) == (rows[:, 1] > 0.5)).astype(int)


LABELS = differ(ROWS)
# Two features decide; eight are noise of the same spread.
X, TEST = (np.random.default_rng(seed).random((n, 10)) for seed, n in ((0, 2500), (1, 2000)))
Y, TRUTH = differ(X), differ(TEST)


def chosen(model):
    return model._reader.resolved.summary


def test_ranks_are_chosen_where_orders_decide():
    model = VoronoiSVC(random_state=0).fit(SKEWED, LABELS)
    assert chosen(model)["coding"] == "ranks"
    plain = VoronoiSVC(random_state=0, feature_coding="none").fit(SKEWED, LABELS)
    wrong = [1 - own.score(np.exp(8 * FRESH), differ(FRESH)) for own in (model, plain)]
    assert wrong[0] < wrong[1] / 2


def test_narrow_widths_are_tried_where_wide_ones_learn_nothing():
    rows = np.random.default_rng(0).random((4000, 2))
    y = np.sin(16 * np.pi * rows).prod(axis=1)
    model = VoronoiSVR(random_state=0).fit(rows[:2000], y[:2000])
    assert model.score(rows[2000:], y[2000:]) > 0.75
    assert model._reader.resolved.spec.width < 0.5


def test_rows_in_units_of_their_own_begin_from_their_spread():
    """Too few rows to prove anything: then units alone decide which scale comes first."""
    rows, units = np.random.default_rng(0).random((150, 2)), np.array([1.0, 1e5])
    plain = VoronoiSVC(random_state=0).fit(rows, differ(rows))
    assert plain.feature_scale_[0] == pytest.approx(plain.feature_scale_[1], rel=0.1)
    model = VoronoiSVC(random_state=0).fit(rows * units, differ(rows))
    assert chosen(model)["decision"] == "spread"
    assert model.feature_scale_[0] / model.feature_scale_[1] == pytest.approx(1e5, rel=0.1)
    assert model.score(FRESH[:, :2] * units, differ(FRESH)) > 0.9


def fits(rows, labels, chunk, **params):
    """Yield models of rows in memory and by chunks, fitted by one thread and by several."""
    own, chunks = (rows, labels), (da.from_array(a, chunks=chunk) for a in (rows, labels))
    for given, scheduler in ((own, "synchronous"), (own, "threads"), (chunks, "threads")):
        with dask.config.set(scheduler=scheduler):
            yield VoronoiSVC(500, random_state=0, **params).fit(*given)


def assert_same_choice(models, queries):
    first, *others = [(chosen(model), model.decision_function(queries)) for model in models]
    for told, values in others:
        assert told == first[0]
        np.testing.assert_array_equal(values, first[1])


def test_one_seed_one_choice_however_rows_come_and_wherever_they_are_looked_at():
    assert_same_choice(fits(SKEWED, LABELS, 170), SKEWED[:200])


def test_one_seed_one_choice_of_regions(monkeypatch):
    small_sample(monkeypatch, 300)
    models = list(fits(X, Y, 330, feature_coding="none"))
    assert_same_choice(models, TEST[:200])
    # Regions decided, as more rows than a sample holds.
    assert chosen(models[0])["chosen"]["n_rows"] > 300 / 5


@pytest.mark.parametrize("n_sample", [300, None], ids=["regions", "all rows"])
def test_a_decision_goes_on_after_its_last_step(n_sample, tmp_path, monkeypatch):
    if n_sample:
        small_sample(monkeypatch, n_sample)
    asked, failing = [], set()

    def counted(task):
        @wraps(task)
        def own(*args):
            if task.__name__ in failing:
                raise OSError("no longer there")
            asked.append(task.__name__)
            return task(*args)

        return own

    tasks = "evaluate_candidate", "learn_scale", "cross_evaluate_candidate"
    for name in tasks:
        monkeypatch.setattr(candidates, name, counted(getattr(candidates, name)))

    def fit(store):
        asked.clear()
        model = VoronoiSVC(500, random_state=0, feature_coding="none", store=store)
        with dask.config.set(scheduler="synchronous"):
            return model.fit(X, Y)

    whole = fit(tmp_path / "whole")
    every = [*asked]
    learns = every.index(next(name for name in every if name != "evaluate_candidate"))
    failing.update(tasks[1:])
    with pytest.raises(OSError, match="no longer there"):
        fit(tmp_path / "resumed")
    assert asked == every[:learns]
    failing.clear()
    resumed = fit(tmp_path / "resumed")
    assert asked == every[learns:]
    assert_same_choice([whole, resumed], TEST[:200])


@pytest.mark.slow
def test_noise_loses_its_part():
    params = {"kernel": "rbf", "feature_coding": "none", "random_state": 0}
    learned, plain = (
        VoronoiSVC(**params, feature_scale=scale).fit(X, Y) for scale in ("learned", None)
    )
    assert chosen(learned)["decision"] == "learned"
    shares = learned.feature_importances_
    assert shares[2:].max() < 0.6 * shares[:2].min()
    assert 1 - learned.score(TEST, TRUTH) < (1 - plain.score(TEST, TRUTH)) / 3
