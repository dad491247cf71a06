"""FalkSVC and FalkSVR: the papers' equations; neighborhoods that choose and map alone."""

import os

import dask.array as da
import naive
import numpy as np
import pytest
from falks import SlowFalk, nearest_rows, small_falk
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from small import small_leaves, task_memory
from support import checkers, few, load_real

from daskls import KNNSVC, FalkSVR, KernelKNNRegressor, KNNSVMNoiseFilter, MemoryPlanError
from daskls.kernels.steps import UNCLIPPED
from daskls.methods.neighborhoods.parts import center_rows, read_centers
from daskls.methods.predict import PROBABILITIES, predict_block
from daskls.methods.scores import model_scores
from daskls.seeds import SELECTED_ROWS
from daskls.solvers.grid import assign_folds
from daskls.solvers.hinge import width
from daskls.solvers.hinge.neighborhood import HingeNeighborhoods
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


def test_a_neighborhood_of_all_rows_is_the_usual_weighted_svm_or_kernel_ridge():
    X, y = checkers(300)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    model = small_falk(1000, tol=1e-6).fit(X, y, sample_weight=weight)
    svm = SVC(C=10.0, gamma=20.0, tol=1e-6).fit(X, y, sample_weight=weight)
    expected = svm.decision_function(QUERIES)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, atol=2e-3)
    found = small_svr(1000).fit(ROWS, NUMBERS).predict(ASKED)
    expected = ridge_values(ROWS, NUMBERS[:, None], np.ones(500), ASKED)[:, 0]
    assert (np.abs(found - expected) <= 1e-4 * NUMBERS.std()).all()


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
    model = small_falk([40, 80], selection="local", C=[0.1, 10.0], gamma=[1.0, 20.0, 400.0])
    model.fit(*checkers(N))
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
def test_means_of_the_nearest_are_weighted(k, y):
    near = [nearest_rows(ROWS, query, k) for query in ASKED]
    for weights in (np.ones(500), WEIGHTS):
        found = KernelKNNRegressor(k).fit(ROWS, y, weights).predict(ASKED)
        expected = [np.average(y[own], axis=0, weights=weights[own]) for own in near]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def small_svr(n_neighbors, **params):
    given = {"C": 50.0, "gamma": 3.0, "selection": None, "random_state": 0}
    return FalkSVR(n_neighbors, **{**given, **params})


def ridge_values(rows, y, weights, asked, C=50.0, gamma=3.0):
    """Return the values of kernel ridge with an offset, which is not penalized, in float64."""
    alpha, b = naive.bordered_ridge(rbf_kernel(rows, gamma=gamma), y, 1 / (2 * C * weights))
    return rbf_kernel(asked, rows, gamma=gamma) @ alpha + b


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


REAL = pytest.mark.skipif("DASKLS_DATA" not in os.environ, reason="sets lie where DASKLS_DATA says")
COSTS, PERCENTILES = (1.0, 4.0, 16.0, 64.0), (90, 50, 10, 1)
EXACT = {"tol": 1e-7, "random_state": 0}
K = 40


def rows_of(name, n_rows=300):
    """Return some distinct rows of a real set, in units of their spread, and their codes."""
    real = load_real(name)
    first = np.unique(real.X, axis=0, return_index=True)[1]
    first = np.random.default_rng(0).permutation(first)[:n_rows]
    X = real.X[first].astype(float)
    X = X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    return X, np.unique(real.y[first], return_inverse=True)[1]


def decide(params, X, y, weights, queries):
    """Return decision values of the SVM of some rows; of one class +-1."""
    if len(np.unique(y)) == 1:
        return np.full(len(queries), 1.0 if y[0] else -1.0)
    return SVC(tol=1e-7, **params).fit(X, y, weights).decision_function(queries)


def held_out(params, X, y, weights, folds):
    """Return the values of rows in folds from 0 on, each without its fold."""
    values = np.full(len(y), np.nan)
    for fold in range(folds.max() + 1):
        own = folds == fold
        values[own] = decide(params, X[~own], y[~own], weights[~own], X[own])
    return values


def slow_choice(X, y, n_inner, seed):
    """Return the best of the papers' candidates, by folds of the first rows: definition 4."""
    folds = np.full(len(y), -1)
    folds[:n_inner] = assign_folds(y[:n_inner], 5, seed)
    gammas = [np.percentile(pdist(X), p) ** -2 for p in PERCENTILES]
    tried = [{"C": C, "gamma": gamma} for gamma in gammas for C in COSTS]

    def errors(params):
        values = held_out(params, X, y, np.ones(len(y)), folds)[:n_inner]
        return ((values > 0) != y[:n_inner]).sum()

    return min(tried, key=errors)


def slow_sigmoid(values, mine, weights):
    """Return (a, b) of the likeliest sigmoid that does not fall, by Lin's objective."""
    n, n_mine = weights.sum(), weights[mine == 1].sum()
    targets = np.where(mine, (n_mine + 1) / (n_mine + 2), 1 / (n - n_mine + 2))

    def loss(ab):
        z = ab[0] * values + ab[1]
        return (weights * (targets * z + np.logaddexp(0.0, -z))).sum()

    return minimize(loss, [-1.0, 0.0], bounds=[(None, 0), (None, None)], tol=1e-12).x


def slow_probability(params, X, mine, query, weights, counted, seed):
    """Return Platt's probability that a query is of the rows that are 1, by five folds of all."""
    if len(np.unique(mine)) == 1:
        return float(mine[0])
    values = held_out(params, X, mine, weights, assign_folds(mine, 5, seed))
    a, b = slow_sigmoid(values, mine, counted)
    return 1 / (1 + np.exp(a * decide(params, X, mine, weights, query[None])[0] + b))


def ordered(X, query, k, n_inner):
    """Return the nearest rows, the inner ones first, both by row number."""
    near = nearest_rows(X, query, k)
    return np.r_[np.sort(near[:n_inner]), np.sort(near[n_inner:])]


@REAL
@pytest.mark.parametrize("n_inner", [K, 13])
@pytest.mark.parametrize("name", ["ionosphere", "haberman"])
def test_each_query_has_the_candidate_that_its_neighbors_choose(name, n_inner, monkeypatch):
    X, y = rows_of(name)
    chosen, fit = [], HingeNeighborhoods.fit_neighborhood

    def noted(*given):
        chosen.append(fit(*given))
        return chosen[-1]

    monkeypatch.setattr(HingeNeighborhoods, "fit_neighborhood", noted)
    queries = np.random.default_rng(0).permutation(len(y))[:12]
    rest = np.setdiff1d(np.arange(len(y)), queries)
    model = KNNSVC(K, selection="each", n_inner=n_inner, **EXACT).fit(X[rest], y[rest])
    assert model.selected_ is None
    for query in X[queries]:
        score = model.decision_function(query[None])[0]
        own = ordered(X[rest], query, K, n_inner)
        rows, codes = X[rest][own], y[rest][own]
        if len(set(codes)) == 1:
            assert score == (1.0 if codes[0] else -1.0)
            continue
        best = slow_choice(rows, codes, n_inner, (0, own[0], 6))
        found = chosen[-1].report
        assert (found.C, found.gamma) == pytest.approx((best["C"], best["gamma"]), rel=1e-4)
        expected = decide(best, rows, codes, np.ones(K), query[None])[0]
        assert score == pytest.approx(expected, abs=2e-3)
    assert len({(model.report.C, model.report.gamma) for model in chosen}) > 3


@REAL
@pytest.mark.parametrize("name", ["ionosphere", "haberman"])
def test_a_filter_chooses_without_the_row_that_it_judges(name):
    X, y = rows_of(name)
    noise = KNNSVMNoiseFilter(K, selection="each", n_inner=20, **EXACT).fit(X, y)
    for row in range(5, len(y), 29):
        near = nearest_rows(X, X[row], K + 1)
        near = near[near != row]
        mine, seed = (y[near] == y[row]).astype(int), (0, row, 7)
        best = slow_choice(X[near], mine, 20, seed) if len(set(mine)) == 2 else {}
        one = np.ones(K)
        expected = slow_probability(best, X[near], mine, X[row], one, one, seed)
        assert noise.proba_[row] == pytest.approx(expected, abs=2e-3)


@REAL
@pytest.mark.parametrize("selection", [None, "each"])
@pytest.mark.parametrize("name", ["haberman", "segmentation"])
def test_each_query_has_the_sigmoid_of_its_neighbors(name, selection, monkeypatch):
    # At the usual, clipped gap of a search up to 3 of 40 choices on haberman are others.
    monkeypatch.setattr(width, "CLIPPED", UNCLIPPED)
    X, y = rows_of(name)
    X, y, queries = X[20:], y[20:], X[:10]
    given = {"C": 4.0, "gamma": 0.1} if selection is None else {"selection": selection}
    # Candidates are judged by the weights of training: a comparison of choices has none.
    of_first, weights = (
        (2.0, 1.0 + np.arange(len(y)) % 3) if selection is None else (1.0, y * 0.0 + 1)
    )
    model = KNNSVC(K, probability="each", class_weight={0: of_first}, **given, **EXACT)
    model.fit(X, y, weights)
    assert "calibrate" not in model.stage_s_
    found, expected = model.predict_proba(queries), np.zeros((10, y.max() + 1))
    for i, query in enumerate(queries):
        own = ordered(X, query, K, model._fitted_method().inner(K))
        rows, codes, counted = X[own], y[own], weights[own]
        present, seed = np.unique(codes), (0, own[0], 6)
        for code in present[-1:] if len(present) == 2 else present:
            mine, params = (codes == code).astype(int), given
            if selection == "each" and len(present) > 1:
                params = slow_choice(rows, mine, model._fitted_method().inner(K), seed)
            trained = counted * np.where(codes == 0, of_first, 1.0)
            own = params, rows, mine, query, trained, counted, seed
            expected[i, code] = slow_probability(*own)
        if len(present) == 2:
            expected[i, present[0]] = 1 - expected[i, present[1]]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert ((found > 0.01) & (found < 0.99)).any(axis=1).sum() >= 4


def test_neighbors_of_one_class_are_certain(tmp_path):
    X = np.r_[np.random.default_rng(0).random((40, 2)), np.full((40, 2), 9.0)]
    y = np.repeat([0, 1], 40)
    y[40:60] = 2
    model = KNNSVC(20, C=1.0, gamma=1.0, probability="each", random_state=0).fit(X, y)
    assert model.predict_proba([[0.5, 0.5]]).tolist() == [[1.0, 0.0, 0.0]]
    # Equal rows of several labels: their shares.
    model.set_params(n_neighbors=40).fit(X, y)
    model.predict_to_zarr(da.from_array(np.full((3, 2), 9.0)), tmp_path / "p", proba=True)
    found = da.from_zarr(str(tmp_path / "p")).compute()
    np.testing.assert_allclose(found, [[0.0, 0.5, 0.5]] * 3)
    assert predict_block(X[:1], model._handle, PROBABILITIES).shape == (1, 3)
