"""LocalSamplingSVC and NeighborSamplingSVC: the papers' steps, one model, resumed fits, errors."""

import os
from functools import partial

import dask
import numpy as np
import pytest
from samplings import SlowSampling, keep_parts, small_local, small_near
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from small import assert_same_bits, few_draws, few_steps, set_sizes, small_leaves
from support import checkers, few, load_real, path_of
from writes import StopError, Writes

from daskls import DataError, MemoryPlanError, NonConvergenceWarning
from daskls.methods.sampling import train
from daskls.methods.sampling.parts import read_part
from daskls.partition.shuffle import shuffle_numbers

N = 1500
QUERIES = np.random.default_rng(7).random((300, 2))


def sample_of(model, step):
    """Return the row numbers that a step trained on."""
    return read_part(path_of(model), train.SAMPLES, step, step, ("numbers",))["numbers"]


def check_answers(model, svc, center):
    """The model answers as the slow SVC; its coefficients are float32."""
    expected = svc.decision_function(QUERIES - center)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("n_subsamples", few([4, 1]))
@pytest.mark.parametrize("with_copies", [False, True])
def test_local_sampling_is_the_papers_procedure(n_subsamples, with_copies, monkeypatch):
    keep_parts(monkeypatch)
    small_leaves(monkeypatch, 200)
    X, y = checkers(N, seed=3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
    if with_copies:
        X[200:900] = X[100:120].repeat(35, axis=0)
    slow = SlowSampling(X, y, 0.2, n_subsamples, 10.0, 20.0, 0, weights)
    model = small_local(n_subsamples=n_subsamples, radius_scale=0.7).fit(X, y, weights)
    sample, quotas, counts = slow.sample_of_balls(0.7)
    # Some balls hold more than they may give, some less, so that both ends of the rule count.
    assert (counts > quotas).any()
    assert (counts < quotas).any()
    np.testing.assert_array_equal(sample_of(model, 0), sample)
    svc, center = slow.train(sample)
    check_answers(model, svc, center)
    assert model.n_initial_support_ == len(slow.support_of_subsamples())
    (row,) = model.path_
    assert (row.radius_scale, row.n_rows) == (0.7, len(sample))
    assert row.n_support == len(svc.support_) == model.fit_report_.n_support[0]
    assert row.validation_error == pytest.approx(slow.error(svc, center), abs=1e-9)
    assert model.radius_scale_ == 0.7


def test_rounds_are_those_of_procedure_cglq(monkeypatch):
    keep_parts(monkeypatch)
    small_leaves(monkeypatch, 200)
    X, y = checkers(N, seed=3)
    X[200:300] = X[100:110].repeat(10, axis=0)
    slow = SlowSampling(X, y, 0.1, 1, 10.0, 20.0, 0)
    model = small_near().fit(X, y)
    path = model.path_
    assert len(path) > 2
    best = int(path.validation_error.argmin())
    for row, (sample, svc, center) in zip(path, slow.rounds(3, len(path)), strict=True):
        np.testing.assert_array_equal(sample_of(model, row["round"]), sample)
        assert (row.n_rows, row.n_support) == (len(sample), len(svc.support_))
        assert row.validation_error == pytest.approx(slow.error(svc, center), abs=1e-9)
        if row["round"] == best:
            check_answers(model, svc, center)
    assert model.n_initial_support_ == path.n_support[0]


def test_the_radius_grows_until_two_in_a_row_are_no_better():
    X, y = checkers(N)
    path = small_local().fit(X, y).path_
    assert len(path) > 2
    # Steps whose balls hold no new row are passed over.
    np.testing.assert_allclose(np.round(path.radius_scale * 10) / 10, path.radius_scale)
    assert (np.diff(path.radius_scale) > 0).all()
    errors = path.validation_error
    over = [errors[i - 1 : i + 1].min() >= errors[: i - 1].min() for i in range(2, len(errors))]
    assert not any(over[:-1])
    assert over[-1] or path.radius_scale[-1] == 2.0


@pytest.mark.parametrize("small", [small_local, small_near])
def test_what_was_not_solved_is_said(small, monkeypatch):
    few_steps(monkeypatch, 3)
    with pytest.warns(NonConvergenceWarning, match=r"1 of the 1 pairs .* lower C") as warned:
        small().fit(*checkers(N))
    assert warned[0].filename == __file__


def test_a_ball_that_draws_more_than_a_task_holds_is_refused(monkeypatch):
    X, y = checkers(N)
    few_draws(monkeypatch, 2)
    with pytest.raises(
        MemoryPlanError, match=r"draws at least \d+ rows.*hold 2; give radius_scale below 3"
    ):
        small_local(radius_scale=3.0).fit(X, y)
    small_local(radius_scale=0.01).fit(X, y)


LAST = np.argmax(shuffle_numbers(np.arange(N), N, 0))
OF_ONE_CLASS = [
    (small_local, 0.04, {}, 0, r"Each of the n_subsamples=4 subsamples of 15 rows has rows of one "
     r"class only.*Lower n_subsamples or raise sample_fraction above 0.04: .*; or set another"),
    (small_near, 0.02, {}, 0, r"subsample of 30 rows has.*\. Raise sample_fraction above 0.02: "),
    (small_near, 0.9, {}, LAST, r"1350 rows has rows of one class[^_]*\. Set "),
]  # fmt: skip


@pytest.mark.always
@pytest.mark.parametrize(("make", "share", "params", "rare", "message"), OF_ONE_CLASS)
def test_subsamples_of_one_class_are_one_error(make, share, params, rare, message):
    X, y = np.random.default_rng(0).random((N, 2)), (np.arange(N) == rare).astype(int)
    with pytest.raises(DataError, match=message):
        make(share, **params).fit(X, y)


@pytest.mark.parametrize("make", [small_local, small_near])
@pytest.mark.always
def test_of_equal_rows_the_heavier_class_answers(make):
    X, y = np.full((50, 2), 0.3), np.repeat(["a", "b"], [20, 30])
    model = make(0.3).fit(X, y)
    assert set(model.predict(QUERIES)) == {"b"}
    assert (model.fit_report_.n_rows[0], model.fit_report_.n_support[0]) == (50, 0)
    assert (model.path_.n_rows.tolist(), model.n_initial_support_) == ([50], 0)
    weighted = make(0.3).fit(X, y, np.repeat([4.0, 1.0], [20, 30]))
    assert set(weighted.predict(QUERIES)) == {"a"}


def test_the_search_passes_over_balls_without_rows_however_many_pairs_wait(monkeypatch):
    # Far apart: the balls of the first steps hold nobody.
    grid = np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0)), axis=-1).reshape(-1, 2)
    model, y = small_local(0.3, gamma=0.05), grid.sum(axis=1) > 38
    path = model.fit(grid, y).path_
    assert (path.radius_scale[0], path.n_rows[0]) == (0.1, model.n_initial_support_)
    assert path.radius_scale[1] > 0.25
    set_sizes(monkeypatch, {"daskls.methods.sampling.balls.WAITING_PAIRS": 20})
    assert_same_bits(model, small_local(0.3, gamma=0.05).fit(grid, y))


def test_another_memory_does_not_mix_with_what_a_stopped_search_drew(tmp_path, monkeypatch):
    X, y = checkers(N)
    params = {"radius_scale": 3.0, "store": tmp_path / "m"}
    drawn = []

    def stop(name):
        drawn.append("balls" in name)
        if sum(drawn) > 2:
            raise StopError

    # One task does all of a search's work.
    set_sizes(monkeypatch, {"daskls.methods.sampling.search.N_SEARCH_TASKS": 1})
    with dask.config.set(scheduler="sync"):
        few_draws(monkeypatch, 300)
        with Writes(tmp_path / "m", stop), pytest.raises(StopError):
            small_local(**params).fit(X, y)
        few_draws(monkeypatch, 70)
        model = small_local(**params).fit(X, y)
    assert_same_bits(small_local(radius_scale=3.0).fit(X, y), model)


@pytest.mark.skipif("DASKLS_DATA" not in os.environ, reason="real sets lie where it says")
@pytest.mark.parametrize(
    "small", [partial(small_local, radius_scale=1.0, n_subsamples=2), small_near]
)
@pytest.mark.parametrize("name", ["ionosphere", "diabetes"])
def test_of_the_squared_hinge_the_model_is_the_svm_of_its_sample(name, small, monkeypatch):
    keep_parts(monkeypatch)
    data = load_real(name)
    X, y = (data.X - data.X.mean(axis=0)) / (data.X.std(axis=0) + 1e-9), data.y
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = small(0.3, C=2.0, gamma=0.05, tol=1e-6, loss="squared_hinge")
    model.fit(X, y, sample_weight=weights)
    best = int(model.path_.validation_error.argmin())
    rows = sample_of(model, best)
    # An SVM without upper bounds, of a kernel with a ridge.
    K = rbf_kernel(X[rows], gamma=0.05) + np.diag(0.5 / (2.0 * weights[rows]))
    svc = SVC(C=1e10, kernel="precomputed", tol=1e-6).fit(K, y[rows])
    expected = svc.decision_function(rbf_kernel(X, X[rows], gamma=0.05))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)
    assert abs(model.path_.n_support[best] - len(svc.support_)) <= 2
    hinge = small(0.3, C=2.0, gamma=0.05).fit(X, y, sample_weight=weights)
    assert np.abs(hinge.decision_function(X) - expected).max() > 0.05
