"""Repeated rows: one row of a weight, whatever the method, and on one side of every split."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import log_loss
from sklearn.svm import SVR

from daskls import (
    LandmarkSVC,
    LocalSamplingSVC,
    NeighborSamplingSVC,
    RandomChunkSVC,
    VoronoiQuantileRegressor,
    VoronoiSVC,
    VoronoiSVR,
)

D = 3
ONE = {"kernel": "rbf", "C": 0.5, "gamma": 2.0, "feature_scale": None}
# The answers of rows without offset, so that brute force is a single system.
RBF = {"random_state": 0, "fit_intercept": False, **ONE}


def made(n, seed=0):
    """Return features, labels and numbers of n distinct rows, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, D))
    t = rng.random(n) < 0.15 + 0.7 * ((X[:, 0] > 0.5) == (X[:, 1] > 0.5))
    return X, t, np.sin(4 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(n)


def twenty_of_a_tenth(n):
    """Return how often each row is there: a tenth of them twenty times."""
    counts = np.ones(n, int)
    counts[np.random.default_rng(1).permutation(n)[: n // 10]] = 20
    return counts


def repeated(counts, seed=2):
    """Return the indices of rows that are there so often, in a drawn order."""
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))


COUNTS = {"thrice": np.full(300, 3), "some": twenty_of_a_tenth(300)}


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_least_squares_is_that_of_all_copies(counts):
    X, t, y = made(300)
    # Some rows have copies with another target, too.
    X[200:230] = X[:30]
    rows = repeated(counts)
    A = X[rows].astype("f4").astype("f8")
    queries = made(50, seed=3)[0]
    model = VoronoiSVR(**RBF).fit(X[rows], y[rows])
    K = np.exp(-2.0 * cdist(A, A, "sqeuclidean"))
    center, scale = y[rows].mean(), y[rows].std()
    alpha = np.linalg.solve(K + np.eye(len(A)), (y[rows] - center) / scale)
    k = np.exp(-2.0 * cdist(queries, A, "sqeuclidean"))
    np.testing.assert_allclose(model.predict(queries), k @ alpha * scale + center, atol=1e-5)
    report = model.fit_report_
    assert report.n_rows.sum() == len(rows)
    assert report.n_support.sum() <= 2 * 270
    signs = np.where(t[rows], 1.0, -1.0)
    classes = VoronoiSVC(**RBF).fit(X[rows], t[rows])
    alpha = np.linalg.solve(K + np.eye(len(A)), signs)
    np.testing.assert_allclose(classes.decision_function(queries), k @ alpha, atol=1e-5)


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_the_tube_is_scikit_learns_on_all_copies(counts):
    X, _, y = made(300)
    rows = repeated(counts)
    tube = {"loss": "epsilon_insensitive", "epsilon": 0.2, "tol": 1e-7, "fit_intercept": True}
    model = VoronoiSVR(**{**RBF, **tube}).fit(X[rows], y[rows])
    oracle = SVR(C=0.5, gamma=2.0, epsilon=0.2, tol=1e-8).fit(X[rows], y[rows])
    queries = made(50, seed=3)[0]
    np.testing.assert_allclose(model.predict(queries), oracle.predict(queries), atol=1e-5)
    assert model.fit_report_.n_support.sum() <= 2 * 300


METHODS = {
    "hinge": (VoronoiSVC, {"loss": "hinge", "tol": 1e-6}, 1),
    "hinge with offset": (VoronoiSVC, {"loss": "hinge", "tol": 1e-6, "fit_intercept": True}, 1),
    "pinball": (VoronoiQuantileRegressor, {"quantile": [0.1, 0.8], "tol": 1e-6}, 2),
    "expectile": (VoronoiQuantileRegressor, {"quantile": 0.8, "loss": "expectile"}, 2),
    "chunk": (RandomChunkSVC, {"tol": 1e-6, "feature_scale": "keep"}, 1),
}


@pytest.mark.parametrize(("method", "params", "target"), METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_copies_are_a_weight(counts, method, params, target):
    data = made(300)
    params = {"random_state": 0, **ONE, **params}
    if params["feature_scale"] == "keep":
        del params["feature_scale"]
    rows = np.repeat(np.arange(300), counts)
    queries = made(50, seed=3)[0]
    answer = "decision_function" if hasattr(method, "decision_function") else "predict"
    copies = method(**params).fit(data[0][rows], data[target][rows])
    weighed = method(**params).fit(data[0], data[target], sample_weight=counts)
    found, expected = (getattr(m, answer)(queries) for m in (copies, weighed))
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert copies.fit_report_.n_rows.sum() == len(rows)
    assert copies.fit_report_.validation_error == pytest.approx(
        weighed.fit_report_.validation_error, abs=1e-3, nan_ok=True
    )


@pytest.mark.parametrize("share", [0.9, 0.99, 1.0])
@pytest.mark.parametrize("params", [{}, {"loss": "hinge", "kernel": "rbf", "feature_scale": None}])
def test_one_row_among_others_costs_one_row(share, params):
    n = 5_000
    X, t, _ = made(n)
    n_equal = int(share * n)
    X[:n_equal] = 0.0
    order = np.random.default_rng(5).permutation(n)
    model = VoronoiSVC(random_state=0, **params).fit(X[order], t[order])
    report = model.fit_report_
    assert report.n_rows.sum() == n
    assert report.n_support.sum() <= n - n_equal + 2
    label = t[:n_equal].mean() > 0.5
    assert model.predict(np.zeros((1, D)))[0] == label


HINGE = {"loss": "hinge", "cv": 2, "feature_scale": None, "probability": "sigmoid"}
NEARBY = {"kernel": "rbf", "C": 10.0, "gamma": 20.0, "random_state": 0}
OF_SAMPLES = [
    VoronoiSVC(300, **HINGE, **NEARBY),
    RandomChunkSVC(400, **HINGE, **NEARBY),
    NeighborSamplingSVC(**NEARBY),
    LocalSamplingSVC(**NEARBY),
    LandmarkSVC(n_cells=6, n_landmarks=60, projection="rbf", random_state=0),
]


@pytest.mark.slow
@pytest.mark.parametrize("counts", [twenty_of_a_tenth(1000)], ids=["some"])
@pytest.mark.parametrize("model", OF_SAMPLES, ids=lambda model: type(model).__name__)
def test_what_is_held_out_is_no_copy_of_what_is_trained_on(model, counts):
    X, t, _ = made(1000)
    rows = repeated(counts)
    test, labels, _ = made(4000, seed=99)
    model.fit(X[rows], t[rows])
    if hasattr(model, "predict_proba"):
        # Not surer than the probabilities of the different rows with a weight each.
        lost = log_loss(labels, model.predict_proba(test))
        weighed = model.fit(X, t, counts.astype(float)).predict_proba(test)
        assert lost < log_loss(labels, weighed) + 0.05
        return
    report = model.fit_report_
    found = np.average(report.validation_error, weights=report.n_rows)
    # A tenth of 1000 different rows validates: their error has a deviation of 0.045.
    assert found > 1 - model.score(test, labels) - 0.09
