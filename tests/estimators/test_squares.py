"""Cells of least squares and of inner products as users see them; repeated rows are a weight."""

from functools import partial
from itertools import product

import naive
import numpy as np
import pytest
from cells import mean_of_svcs
from peaks import peak_of
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.svm import SVC
from small import answers_of
from support import checkers, compiled, few

import daskls
from daskls import RandomChunkSVC, VoronoiQuantileRegressor, VoronoiSVC, VoronoiSVR
from daskls.memory import TaskSizes
from daskls.plan.bundles import cell_nbytes
from daskls.records import CellReport, SolverSpec
from daskls.solvers.base import CellRows
from daskls.solvers.registry import find_solver
from daskls.solvers.squares import system

X, Y = checkers(500, n_classes=3)
Q = np.random.default_rng(3).random((400, 2))
GIVEN = {"loss": "squared_error", "C": 20.0, "gamma": 15.0}


def squares_of(*args, **params):
    """Return VoronoiSVC on rows as they are, with one kernel."""
    return VoronoiSVC(*args, **{"kernel": "rbf", "feature_scale": None, **params})


def exponentials(A, B, gamma):
    """Return values of the exponential kernel, which scikit-learn does not have."""
    return np.exp(-gamma * np.sqrt(((A[:, None] - B) ** 2).sum(axis=2)))


DISTANCES = {"rbf": rbf_kernel, "exponential": exponentials, "laplacian": laplacian_kernel}


@pytest.mark.parametrize("n_classes", [3, 2])
@pytest.mark.parametrize("kernel", DISTANCES)
def test_one_cell_is_kernel_ridge_regression(kernel, n_classes):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    y = Y if n_classes == 3 else np.where(Y > 0, "yes", "no")
    model = squares_of(**GIVEN, kernel=kernel, random_state=0).fit(X, y, weights)
    K, of_queries = (DISTANCES[kernel](rows, X, gamma=15.0) for rows in (X, Q))
    targets = np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    ridge = KernelRidge(alpha=1 / 40, kernel="precomputed").fit(K, targets, sample_weight=weights)
    expected = ridge.predict(of_queries)[:, 1 if n_classes == 2 else slice(None)]
    found = model.decision_function(Q)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    best = found.argmax(1) if n_classes == 3 else (found > 0).astype(int)
    assert model.predict(Q).tolist() == model.classes_[best].tolist()


def test_absent_classes_stay_below_present_ones_however_low():
    # Far from all rows of a cell of three classes, every value is near 0; near -1 inside.
    y = np.repeat(np.arange(6), 30)
    X = 10.0 * y[:, None] + 40 * (y[:, None] > 2)
    X = X + np.random.default_rng(0).normal(size=X.shape) * 0.1
    model = squares_of(cell_size=90, loss="squared_error", C=1e3, gamma=0.05, random_state=0)
    values = model.fit(X, y).decision_function([[0.0], [10.0], [20.0], [5.0]])
    assert (values[:, 3:] == -1).all()
    assert (values[:, :3] > -1).all()
    # Some would be lower.
    assert (values[:, :3] == np.nextafter(-1.0, 0.0)).any()


@pytest.mark.parametrize("kind", [VoronoiSVC, RandomChunkSVC])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "auto"])
def test_what_is_not_given_is_chosen_once_for_all_squares_of(kind, kernel):
    model = kind(150, loss="squared_error", kernel=kernel, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.9
    report = model.fit_report_
    assert len(np.unique(report.C)) == 1
    # Widths are relative: each cell has a gamma of its own.
    assert len(np.unique(report.gamma)) == len(report) > 1


@pytest.mark.parametrize(
    ("kernel", "spread", "C"), [("linear", 1.0, 1e4), ("poly", 10.0, 0.1), ("rbf", 1.0, 1e8)]
)
def test_coefficients_many_times_their_sum_keep_their_digits(kernel, spread, C):
    rng = np.random.default_rng(0)
    rows, queries = (rng.normal(size=(m, 5)) * spread for m in (400, 200))
    rows -= rows.mean(axis=0)
    y = rows[:, 0] * rows[:, 1] + spread * rows[:, 2] > 0
    params = {"kernel": kernel, "gamma": 1.0 if kernel != "rbf" else 0.05, "degree": 2}
    params["coef0"] = float(kernel == "poly")
    model = squares_of(loss="squared_error", C=C, **params, random_state=0).fit(rows, y)
    rows, queries = rows.astype(np.float32).astype(float), queries.astype(np.float32).astype(float)
    expected = KernelRidge(alpha=1 / (2 * C), **params).fit(rows, 2.0 * y - 1).predict(queries)
    np.testing.assert_allclose(model.decision_function(queries), expected, atol=0.02)
    # Kept twice or once, they are the rows of the data.
    assert model.fit_report_.n_support.sum() == 400


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize(
    ("n_classes", "C", "n_asked"), [(5, 10.0, 700), (2, 1e7, 0), (2, 10.0, 100)]
)
def test_memory_of_a_cell_and_its_model_is_planned(kernel, n_classes, C, n_asked, monkeypatch):
    if C == 1e7:
        # So large a C may need float64, which takes nearly twice as much; the plan cannot know.
        monkeypatch.setattr(system, "SAFE_ROUNDINGS", np.inf)
    rng = np.random.default_rng(0)
    m, d = 700, 6
    rows, codes = rng.normal(size=(m, d)), rng.integers(0, n_classes, m)
    spec = SolverSpec(loss="squared_error", kernel=kernel, C=(C,), gamma=(0.3,))
    sizes = TaskSizes(d, 8, n_classes, m, spec)
    solver, models = find_solver(spec), []
    asked = np.linspace(0, m - 1, n_asked).astype(int) if n_asked else None
    cell = CellRows(rows, codes, np.ones(m), CellReport(0, 0, 0, 0, 0.0), (0,), asked)
    peak = peak_of(lambda: models.extend(solver.fit([cell], spec)))
    assert peak <= cell_nbytes(sizes, m) <= (2.5 if C < 1e7 else 1.65) * peak
    kept = models[0].rows.nbytes + models[0].coef.nbytes
    assert kept <= solver.model_nbytes(sizes, m) <= 2 * kept


@pytest.mark.parametrize("spread", [1.0, 1e3])
@pytest.mark.parametrize("gamma", [3.0, 100.0])
@pytest.mark.parametrize("kernel", ["exponential", "laplacian"])
def test_hinge_cells_of_plain_distances_are_those_of_svc(kernel, gamma, spread):
    rows, queries, y = X * spread, Q * spread, np.where(Y > 0, 1, 0)
    params = {"kernel": kernel, "C": 10.0, "gamma": gamma / spread}
    model = squares_of(**params, loss="hinge", tol=1e-6, fit_intercept=True, random_state=0)
    found = model.fit(rows, y).decision_function(queries)
    expected = mean_of_svcs(X, y, Q, kernel=partial(DISTANCES[kernel], gamma=gamma), C=10.0)
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("offset", "k"), few(product((True, False), (3, 2))))
def test_the_reported_error_is_that_of_refits_without_a_row(k, offset):
    rng = np.random.default_rng(5)
    rows, y, weights = rng.random((50, 2)), rng.integers(0, k, 50), rng.integers(1, 4, 50)
    y[:35] = (rows[:35, 0] * k).astype(int)
    # Copies are left out together.
    rows[44:] = rows[38:44]
    params = {"loss": "squared_error", "C": 5.0, "gamma": 9.0, "fit_intercept": offset}
    model = squares_of(**params).fit(rows, y, weights)
    wrong = total = 0
    for row in np.unique(rows, axis=0):
        own = (rows == row).all(axis=1)
        label = squares_of(**params).fit(rows[~own], y[~own], weights[~own]).predict(row[None])
        wrong += (weights[own] * (y[own] != label)).sum()
        total += weights[own].sum()
    assert model.fit_report_.validation_error.tolist() == pytest.approx([wrong / total])
    assert 0 < wrong < total


RNG = np.random.default_rng(0)
# Away from the origin, and not around it.
MEAN = np.array([1.0, -0.5, 2.0])
AWAY = RNG.normal(size=(80, 3)) + MEAN
OF_AWAY = (AWAY[:, 0] * AWAY[:, 1] + 0.3 * RNG.normal(size=80) > -0.5).astype(int)
THREE = np.digitize(AWAY[:, 0] + 0.2 * RNG.normal(size=80), [0.6, 1.4])
QUERIES = RNG.normal(size=(40, 3)) + MEAN
CELL = {"loss": "hinge", "feature_scale": None, "fit_intercept": True}
METHODS = {
    "cell": (VoronoiSVC, 80, CELL),
    "chunk": (RandomChunkSVC, 80, CELL),
    "centers": (daskls.FalkSVC, 80, {"selection": None}),
    "neighborhood": (daskls.KNNSVC, 80, {}),
}
KERNELS = {"linear": {}, "poly": {"degree": 2, "coef0": 0.0}, "more": {"degree": 2, "coef0": 1.0}}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_scikit_learns_svm_of_the_rows_as_they_are(method, kernel):
    estimator, size, params = METHODS[method]
    given = {"C": 0.7, "gamma": 0.5, "kernel": kernel.replace("more", "poly"), **KERNELS[kernel]}
    model = estimator(size, **params, **given, tol=1e-6, random_state=0).fit(AWAY, OF_AWAY)
    if params is CELL:
        expected = mean_of_svcs(AWAY, OF_AWAY, QUERIES, **given)
    else:
        expected = SVC(**given, tol=1e-8).fit(AWAY, OF_AWAY).decision_function(QUERIES)
    found = model.decision_function(QUERIES)
    # Chunks answer with clipped values.
    expected = np.clip(expected, -1, 1) if method == "chunk" else expected
    np.testing.assert_allclose(found, expected, atol=2e-2)
    three = estimator(size, **params, **given, tol=1e-6, random_state=0).fit(AWAY, THREE)
    if params is CELL:
        # Positive for the first class of each pair.
        pairs = -mean_of_svcs(AWAY, THREE, QUERIES, **given, decision_function_shape="ovo")
        labels = [naive.one_vs_one_winner(row, 3) for row in pairs]
    else:
        labels = SVC(**given, tol=1e-8).fit(AWAY, THREE).predict(QUERIES)
    assert (three.predict(QUERIES) == labels).mean() > 0.97


@pytest.mark.always
@compiled
@pytest.mark.parametrize("units", [[1000, 30, 500], [1000, 1, 500]], ids=["near", "far apart"])
def test_open_c_is_of_rows_in_units_of_their_spread(units):
    # Columns from 0 to the units, all of equal importance, and noisy labels.
    rng = np.random.default_rng(0)
    share = rng.random((300, 3))
    X, y = share * np.asarray(units, float), (share.mean(axis=1) > 0.5) ^ (rng.random(300) < 0.1)
    model = VoronoiSVC(300, **CELL, kernel="linear", tol=1e-6, random_state=0).fit(X, y)
    spread = X.std(axis=0)
    spread = spread if max(units) > 100 * min(units) else np.sqrt((spread**2).mean())
    rows = X / spread
    expected = mean_of_svcs(rows, y, rows, kernel="linear", C=model.fit_report_.C[0])
    np.testing.assert_allclose(model.decision_function(X), expected, atol=2e-2)
    # A given C is of the rows as they are.
    given = VoronoiSVC(300, **CELL, kernel="linear", C=1e-6, tol=1e-6, random_state=0)
    found = given.fit(X, y).decision_function(X)
    expected = mean_of_svcs(X, y, X, kernel="linear", C=1e-6)
    np.testing.assert_allclose(found, expected, atol=2e-2)


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
    classes = VoronoiSVC(**RBF).fit(X[rows], t[rows])
    alpha = np.linalg.solve(K + np.eye(len(A)), np.where(t[rows], 1.0, -1.0))
    np.testing.assert_allclose(classes.decision_function(queries), k @ alpha, atol=1e-5)


COPIED = {
    "hinge": (VoronoiSVC, {"loss": "hinge", "tol": 1e-6}, 1),
    "hinge with offset": (VoronoiSVC, {"loss": "hinge", "tol": 1e-6, "fit_intercept": True}, 1),
    "tube": (VoronoiSVR, {"loss": "epsilon_insensitive", "epsilon": 0.2, "tol": 1e-7}, 2),
    "pinball": (VoronoiQuantileRegressor, {"quantile": [0.1, 0.8], "tol": 1e-6}, 2),
    "expectile": (VoronoiQuantileRegressor, {"quantile": 0.8, "loss": "expectile"}, 2),
    "chunk": (RandomChunkSVC, {"tol": 1e-6}, 1),
}


@pytest.mark.parametrize(("method", "params", "target"), COPIED.values(), ids=COPIED)
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_copies_are_a_weight(counts, method, params, target):
    data = made(300)
    params = {"random_state": 0, **ONE, **params}
    if method is RandomChunkSVC:
        del params["feature_scale"]
    rows = np.repeat(np.arange(300), counts)
    queries = made(50, seed=3)[0]
    copies = method(**params).fit(data[0][rows], data[target][rows])
    weighed = method(**params).fit(data[0], data[target], sample_weight=counts)
    found, expected = (answers_of(m, queries) for m in (copies, weighed))
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
    daskls.NeighborSamplingSVC(**NEARBY),
    daskls.LocalSamplingSVC(**NEARBY),
    daskls.LandmarkSVC(n_cells=6, n_landmarks=60, projection="rbf", random_state=0),
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
