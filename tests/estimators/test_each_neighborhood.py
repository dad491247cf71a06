"""Neighborhoods that choose C and width, and map their own values: against scikit-learn's SVC."""

import os

import dask.array as da
import numpy as np
import pytest
from falks import nearest_rows
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.svm import SVC
from support import load_real

from daskls import KNNSVC, KNNSVMNoiseFilter
from daskls.kernels.steps import UNCLIPPED
from daskls.methods.predict import PROBABILITIES, predict_block
from daskls.solvers.grid import assign_folds
from daskls.solvers.hinge import width
from daskls.solvers.hinge.neighborhood import HingeNeighborhoods

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
