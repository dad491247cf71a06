"""Kernels of inner products: one origin for all methods, and units that C=None takes up."""

import naive
import numpy as np
import pytest
from cells import mean_of_svcs
from sklearn.svm import SVC, SVR
from support import compiled

from daskls import KNNSVC, FalkSVC, RandomChunkSVC, VoronoiSVC, VoronoiSVR

RNG = np.random.default_rng(0)
N = 80
# Away from the origin, and not around it.
MEAN = np.array([1.0, -0.5, 2.0])
X = RNG.normal(size=(N, 3)) + MEAN
Y = (X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > -0.5).astype(int)
THREE = np.digitize(X[:, 0] + 0.2 * RNG.normal(size=N), [0.6, 1.4])
QUERIES = RNG.normal(size=(40, 3)) + MEAN
CELL = {"loss": "hinge", "feature_scale": None, "fit_intercept": True}
METHODS = {
    "cell": (VoronoiSVC, N, CELL),
    "chunk": (RandomChunkSVC, N, CELL),
    "centers": (FalkSVC, N, {"selection": None}),
    "neighborhood": (KNNSVC, N, {}),
}
KERNELS = [
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 0.0},
    {"kernel": "poly", "degree": 3, "coef0": 0.0},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_scikit_learns_svm_of_the_rows_as_they_are(method, kernel):
    estimator, size, params = METHODS[method]
    given = {"C": 0.7, "gamma": 0.5, **kernel}
    model = estimator(size, **params, **given, tol=1e-6, random_state=0).fit(X, Y)
    if params is CELL:
        expected = mean_of_svcs(X, Y, QUERIES, **given)
    else:
        expected = SVC(**given, tol=1e-8).fit(X, Y).decision_function(QUERIES)
    found = model.decision_function(QUERIES)
    # Chunks answer with clipped values.
    expected = np.clip(expected, -1, 1) if method == "chunk" else expected
    np.testing.assert_allclose(found, expected, atol=2e-2)
    three = estimator(size, **params, **given, tol=1e-6, random_state=0).fit(X, THREE)
    if params is CELL:
        # Positive for the first class of each pair.
        pairs = -mean_of_svcs(X, THREE, QUERIES, **given, decision_function_shape="ovo")
        labels = [naive.one_vs_one_winner(row, 3) for row in pairs]
    else:
        labels = SVC(**given, tol=1e-8).fit(X, THREE).predict(QUERIES)
    assert (three.predict(QUERIES) == labels).mean() > 0.97


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_support_vector_regression_has_the_same_origin(kernel):
    y = X[:, 0] * X[:, 1] + X[:, 2]
    given = {"C": 2.0, "gamma": 0.5, "epsilon": 0.05, **kernel}
    model = VoronoiSVR(N, loss="epsilon_insensitive", feature_scale=None, **given, tol=1e-6)
    found = model.fit(X, y).predict(QUERIES)
    expected = SVR(**given, tol=1e-8).fit(X, y).predict(QUERIES)
    np.testing.assert_allclose(found, expected, atol=2e-2)


def columns(units, n_classes=2, noise=0.0, seed=0):
    """Return rows, half to train, with columns from 0 to the units, all of equal importance."""
    rng = np.random.default_rng(seed)
    units = np.asarray(units, float)
    share = rng.random((1600, len(units)))
    if n_classes > 2:
        y = (share[:, -1] * n_classes).astype(int)
    else:
        y = share.mean(axis=1) > 0.5
        y ^= rng.random(len(y)) < noise
    return share * units, y


@compiled
@pytest.mark.parametrize("units", [[1000, 30, 500], [1000, 1, 500]], ids=["near", "far apart"])
def test_open_c_is_of_rows_in_units_of_their_spread(units):
    X, y = columns(units, noise=0.1)
    X, y = X[:300], y[:300]
    model = VoronoiSVC(300, **CELL, kernel="linear", tol=1e-6, random_state=0).fit(X, y)
    spread = X.std(axis=0)
    spread = spread if max(units) > 100 * min(units) else np.sqrt((spread**2).mean())
    rows = X / spread
    expected = mean_of_svcs(rows, y, rows, kernel="linear", C=model.fit_report_.C[0])
    np.testing.assert_allclose(model.decision_function(X), expected, atol=2e-2)
    # A given C is of the rows as they are.
    given = VoronoiSVC(300, **CELL, kernel="linear", C=1e-6, tol=1e-6, random_state=0)
    found = given.fit(X, y).decision_function(X)
    np.testing.assert_allclose(found, mean_of_svcs(X, y, X, kernel="linear", C=1e-6), atol=2e-2)
