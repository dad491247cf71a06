"""FalkSVC and FalkSVR, and means of the nearest: the papers' equations, selection, errors."""

import naive
import numpy as np
import pytest
from falks import SlowFalk, nearest_rows, small_falk
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVC
from small import small_leaves, task_memory
from support import checkers, few

from daskls import FalkSVR, KernelKNNRegressor, MemoryPlanError
from daskls.methods.neighborhoods.parts import center_rows, read_centers
from daskls.methods.scores import model_scores
from daskls.seeds import SELECTED_ROWS
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


def test_a_neighborhood_that_fits_no_worker_is_refused_before_training():
    X, y = checkers(5000)
    with task_memory(40 << 20):
        with pytest.raises(MemoryPlanError, match=r"lower n_neighbors to about \d+"):
            small_falk(5000).fit(X, y)
        small_falk(100).fit(X, y)


RNG = np.random.default_rng(0)
ROWS = RNG.random((500, 2))
NUMBERS = 1e4 + 300 * (np.sin(6 * ROWS[:, 0]) + ROWS[:, 1] ** 2 + RNG.normal(0, 0.05, 500))
TWO = np.stack([NUMBERS, 1e-3 * np.cos(3 * ROWS[:, 1])], axis=1)
WEIGHTS = RNG.uniform(0.5, 2.0, 500)
ASKED = RNG.random((80, 2)) * 1.2 - 0.1


@pytest.mark.parametrize("y", [NUMBERS, TWO], ids=["one", "two"])
@pytest.mark.parametrize("k", few([1, 5, 20, 1000], 2))
def test_means_are_those_of_scikit_learn(k, y):
    found = KernelKNNRegressor(k).fit(ROWS, y).predict(ASKED)
    expected = KNeighborsRegressor(min(k, 500)).fit(ROWS, y).predict(ASKED)
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= 1e-12 * np.abs(expected).max(axis=0)).all()


def test_means_are_weighted():
    found = KernelKNNRegressor(15).fit(ROWS, TWO, WEIGHTS).predict(ASKED)
    for query, own in zip(ASKED, found, strict=True):
        near = nearest_rows(ROWS, query, 15)
        expected = np.average(TWO[near], axis=0, weights=WEIGHTS[near])
        np.testing.assert_allclose(own, expected, rtol=1e-9)


def small_svr(n_neighbors, **params):
    """Return a regressor that trains in a blink."""
    given = {"C": 50.0, "gamma": 3.0, "selection": None, "random_state": 0}
    return FalkSVR(n_neighbors, **{**given, **params})


def ridge_values(rows, y, weights, asked, C=50.0, gamma=3.0):
    """Return the values of kernel ridge with an offset, which is not penalized, in float64."""
    alpha, b = naive.bordered_ridge(rbf_kernel(rows, gamma=gamma), y, 1 / (2 * C * weights))
    return rbf_kernel(asked, rows, gamma=gamma) @ alpha + b


def test_a_neighborhood_of_all_rows_is_the_usual_kernel_ridge():
    found = small_svr(1000).fit(ROWS, NUMBERS).predict(ASKED)
    expected = ridge_values(ROWS, NUMBERS[:, None], np.ones(500), ASKED)[:, 0]
    assert (np.abs(found - expected) <= 1e-4 * NUMBERS.std()).all()


def left_out_errors(rows, y, weights, n_inner, C, gamma):
    """Return the weighted squared error of inner rows, each without itself, by brute force."""
    missed = np.empty(n_inner)
    for i in range(n_inner):
        keep = np.arange(len(rows)) != i
        value = ridge_values(rows[keep], y[keep], weights[keep], rows[i : i + 1], C, gamma)
        missed[i] = ((value[0] - y[i]) ** 2).mean()
    return missed @ weights[:n_inner]


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["local", "each"])
def test_inner_rows_are_left_out_one_at_a_time(selection):
    params = {"C": [5.0, 50.0, 500.0], "gamma": [1.0, 4.0], "selection": selection}
    rows, y, weights = ROWS[:150], TWO[:150], WEIGHTS[:150]
    model = small_svr(40, **params).fit(rows, y, weights)
    entered = (y - np.average(y, axis=0, weights=weights)) / model._reader.target.scale
    grid = [(C, gamma) for gamma in params["gamma"] for C in params["C"]]

    def errors_around(row):
        near = nearest_rows(rows, rows[row], 40)
        given = rows[near], entered[near], weights[near], 20
        return [left_out_errors(*given, C, gamma) for C, gamma in grid], weights[near[:20]].sum()

    if selection == "each":
        report, numbers = model.fit_report_, center_rows(model._reader)[1]
        for cell in range(len(numbers)):
            best = grid[int(np.argmin(errors_around(numbers[cell])[0]))]
            assert (report.C[cell], report.gamma[cell]) == pytest.approx(best, rel=1e-6)
        assert len(set(zip(report.C, report.gamma, strict=True))) > 1
        return
    errors = np.array(model.selected_["errors"])
    assert errors.shape == (1, 2, 3)
    drawn = SELECTED_ROWS.generator(0, n_rows=150).choice(150, 10, replace=False)
    found = [errors_around(row) for row in drawn.tolist()]
    expected = np.sum([own for own, _ in found], axis=0) / sum(weight for _, weight in found)
    np.testing.assert_allclose(errors.ravel(), expected, rtol=1e-3)
    best = grid[int(errors.argmin())]
    assert (model.selected_["C"], model.selected_["gamma"]) == best
