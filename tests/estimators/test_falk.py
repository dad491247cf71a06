"""FalkSVC from end to end: the papers' equations, one model whatever runs it, selection, errors."""

import numpy as np
import pytest
from falks import SlowFalk, nearest_rows, small_falk
from sklearn.svm import SVC
from small import small_leaves, task_memory
from support import checkers

from daskls import FalkSVC, MemoryPlanError
from daskls.methods.neighborhoods.parts import center_rows, read_centers
from daskls.methods.scores import model_scores
from daskls.store.leaves import open_leaves

N = 900
QUERIES = np.random.default_rng(7).random((300, 2))


@pytest.mark.slow
@pytest.mark.parametrize(("k", "inner"), [(60, None), (40, 7), (30, 30)])
def test_centers_owners_and_answers_are_those_of_the_equations(k, inner, monkeypatch):
    small_leaves(monkeypatch, 100)
    X, y = checkers(N)
    X[100:140] = X[100]
    model = small_falk(k, n_assigned=inner, tol=1e-6).fit(X, y)
    slow = SlowFalk(X, y, k, inner or k // 2, 10.0, 20.0, 0)
    _, numbers = center_rows(model._reader)
    assert sorted(slow.centers) == sorted(numbers.tolist())
    leaves = open_leaves(model._handle.location, model._handle.fingerprint)
    owners = read_centers(model._reader.root).owners(0, N)
    assert (numbers[owners] == slow.owner[leaves.read_numbers()]).all()
    found = model.decision_function(QUERIES)
    expected = np.array([slow.decide(query) for query in QUERIES])
    # The local solvers end at a small gap, not at none.
    np.testing.assert_allclose(found, expected, atol=5e-3)
    assert (np.sign(found) == np.sign(expected))[np.abs(expected) > 5e-3].all()


def test_a_neighborhood_of_all_rows_is_the_usual_weighted_svm():
    X, y = checkers(300)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    model = small_falk(1000, tol=1e-6).fit(X, y, sample_weight=weight)
    svm = SVC(C=10.0, gamma=20.0, tol=1e-6).fit(X, y, sample_weight=weight)
    expected = svm.decision_function(QUERIES)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, atol=2e-3)


@pytest.mark.parametrize("assign", ["center", "k_centers"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_nearest_centers_answer(n_classes, assign):
    X, y = checkers(N, n_classes=n_classes)
    n_centers = {"n_centers": 3} if assign == "k_centers" else {}
    model = small_falk(assign=assign, **n_centers).fit(X, y)
    centers, _ = center_rows(model._reader)
    point = small_falk().fit(X, y)
    scores = model.decision_function(QUERIES)
    for query, score in zip(QUERIES[:40], scores[:40], strict=True):
        cells = nearest_rows(centers, query, n_centers.get("n_centers", 1)).tolist()
        own = [model_scores(point._reader.read_cell(c), query[None], n_classes)[0] for c in cells]
        if assign == "center":
            np.testing.assert_array_equal(score, own[0])
        elif n_classes == 2:
            assert score == pytest.approx(np.clip(own, -1, 1).mean())
    assert not model._reader.root.store.exists("rows")


def test_local_selection_takes_the_best_mean_error():
    X, y = checkers(N)
    model = small_falk([40, 80], selection="local", C=[0.1, 10.0], gamma=[1.0, 20.0, 400.0]).fit(
        X, y
    )
    chosen = model.selected_
    errors = np.array(chosen["errors"])
    assert errors.shape == (2, 3, 2)
    k, g, c = np.argwhere(errors == errors.min())[0]
    expected = ([40, 80][k], [1.0, 20.0, 400.0][g], [0.1, 10.0][c])
    assert (chosen["n_neighbors"], chosen["gamma"], chosen["C"]) == expected
    assert errors.max() > errors.min()
    trained = model.fit_report_.n_trained > 0
    assert (model.fit_report_.n_rows == chosen["n_neighbors"]).all()
    assert (model.fit_report_.C[trained] == chosen["C"]).all()


def test_percentiles_give_every_neighborhood_its_own_width():
    X, y = checkers(N)
    model = small_falk(60, selection="local", C=[10.0], gamma=None, percentiles=[50]).fit(X, y)
    report, (centers, _) = model.fit_report_, center_rows(model._reader)
    for cell in np.flatnonzero(report.n_trained)[:5]:
        near = X[nearest_rows(X, centers[cell], 60)]
        distances = np.sqrt(((near[:, None] - near) ** 2).sum(-1))[np.triu_indices(60, 1)]
        assert report.gamma[cell] == pytest.approx(np.median(distances) ** -2, rel=1e-4)


def test_each_neighborhood_may_choose():
    X, y = checkers(N)
    model = small_falk(60, selection="each", C=[0.1, 10.0], gamma=[1.0, 20.0]).fit(X, y)
    trained = model.fit_report_.n_trained > 0
    choices = set(zip(model.fit_report_.C[trained], model.fit_report_.gamma[trained], strict=True))
    assert len(choices) > 1
    assert choices <= {(c, g) for c in (0.1, 10.0) for g in (1.0, 20.0)}
    assert np.isfinite(model.fit_report_.validation_error[trained]).all()


REFUSED = [
    ({"n_neighbors": 10, "n_assigned": 11}, "n_assigned=11 is above n_neighbors=10"),
    *(({"n_neighbors": k}, "n_neighbors") for k in (0, 2.5)),
    ({"n_neighbors": [10, 20]}, "cannot choose from"),
    ({"n_neighbors": []}, "empty grid"),
    ({"C": [1, 2]}, "selection is None"),
    ({"selection": "local", "gamma": None, "percentiles": [101]}, "between 0 and 100"),
    ({"assign": "row"}, "assign"),
    ({"kernel": "poly", "selection": "each", "gamma": [1, 2]}, "feature space depends on it"),
]


@pytest.mark.parametrize(("params", "message"), REFUSED, ids=str)
def test_parameters_out_of_range_are_one_error(params, message):
    with pytest.raises(ValueError, match=message):
        small_falk(**params).fit(*checkers(100))


def test_a_neighborhood_that_fits_no_worker_is_refused_before_training():
    X, y = checkers(5000)
    with task_memory(40 << 20):
        with pytest.raises(MemoryPlanError, match=r"lower n_neighbors to about \d+"):
            small_falk(5000).fit(X, y)
        small_falk(100).fit(X, y)


def test_equal_rows_and_few_rows():
    X = np.zeros((50, 3))
    y = np.r_[np.zeros(20), np.ones(30)].astype(int)
    model = FalkSVC(10, random_state=0).fit(X, y)
    assert model.selected_["n_neighbors"] == 10
    assert model.n_cells_ == 1
    # Of rows equally near the first are neighbors, all of one class.
    assert set(model.predict(X)) == {0}
    two = FalkSVC(selection=None, random_state=0).fit([[0.0], [1.0]], [0, 1])
    assert two.predict([[0.1], [0.9]]).tolist() == [0, 1]
