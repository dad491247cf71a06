"""LandmarkSVC with kernels of projections, beside scikit-learn's SVC on the paper's dual."""

import os

import numpy as np
import pytest
from landmarks import joint_kernel, nearest_clusters, project, small_landmarks
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.svm import SVC
from small import task_memory
from support import checkers, load_real

from daskls import LandmarkSVC, MemoryPlanError
from daskls.records import KernelSpec
from daskls.solvers.landmarks import find_features

KERNELS = {"rbf": {}, "poly": {"degree": 2, "coef0": 1.0}}
SETS = ("heart", "ionosphere", "liver")
real_sets = pytest.mark.skipif(
    not os.environ.get("DASKLS_DATA"), reason="DASKLS_DATA names no folder of real data sets"
)


def standardized(X, n=400):
    X = np.asarray(X[:n], float)
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def joint(model, X, others, gamma=None):
    """Return the kernel of the dual between rows and others, both of them seen one by one."""
    M, N = project(X, model, gamma), project(others, model, gamma)
    width = model.kernel_gamma or 1 / (N.shape[1] * N.var())
    more = {"degree": model.degree, "coef0": model.coef0} if model.kernel == "poly" else {}
    cells = nearest_clusters(X, model), nearest_clusters(others, model)
    return joint_kernel(M, cells[0], N, cells[1], model.kernel, gamma=width, **more)


@real_sets
@pytest.mark.parametrize("projection", ["linear", "rbf"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SETS)
def test_all_rows_as_landmarks_solve_the_kernel_problem(name, kernel, projection):
    data = load_real(name)
    X, y = standardized(data.X), data.y[:400]
    rows, queries = X[: len(X) * 2 // 3], X[len(X) * 2 // 3 :]
    gamma = 0.05 if projection == "rbf" else None
    model = LandmarkSVC(
        *(3,),
        **{"n_landmarks": len(rows), "C": 1.0, "tol": 1e-8, "random_state": 0},
        **{"projection": projection, "gamma": gamma, "kernel": kernel, **KERNELS[kernel]},
    )
    model.fit(rows, y[: len(rows)])
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-8)
    svc.fit(joint(model, rows, rows, gamma), y[: len(rows)])
    for seen in (rows, queries):
        expected = svc.decision_function(joint(model, seen, rows, gamma))
        np.testing.assert_allclose(model.decision_function(seen), expected, atol=1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_several_classes_are_one_against_the_rest(load, kernel):
    X, y = load(return_X_y=True)
    X = standardized(X)
    model = LandmarkSVC(2, n_landmarks=len(X), C=1.0, tol=1e-8, random_state=0, kernel=kernel)
    scores = model.set_params(**KERNELS[kernel]).fit(X, y).decision_function(X)
    K = joint(model, X, X)
    for label in range(3):
        svc = SVC(kernel="precomputed", C=1.0, tol=1e-8).fit(K, y == label)
        np.testing.assert_allclose(scores[:, label], svc.decision_function(K), rtol=1e-3, atol=1e-3)


def nystrom(model, X, rows):
    """Return the kernel between rows and rows through the images of the landmarks."""
    N, Z = project(rows, model), project(model.landmarks_, model)
    width = 1 / (N.shape[1] * N.var())

    def kernel(A, B):
        return np.exp(-width * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    return kernel(project(X, model), Z) @ np.linalg.pinv(kernel(Z, Z)) @ kernel(Z, N)


def test_fewer_landmarks_are_nystroem_s_approximation():
    X = standardized(load_breast_cancer().data)
    y = load_breast_cancer().target[: len(X)]
    model = LandmarkSVC(3, n_landmarks=25, C=1.0, tol=1e-8, kernel="rbf", random_state=0).fit(X, y)
    cells = nearest_clusters(X, model)
    K = nystrom(model, X, X) * (cells[:, None] == cells[None])
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-8).fit(K, y)
    np.testing.assert_allclose(
        model.decision_function(X), svc.decision_function(K), rtol=1e-3, atol=1e-3
    )
    assert model.coef_.shape == (1, 3, 25)


def test_candidates_of_C_follow_the_features():
    X, y = checkers(700)
    model = small_landmarks(C=None, kernel="rbf", n_landmarks=20, cv=2).fit(X, y)
    squares = np.diag(nystrom(model, X, X)).mean()
    shares = np.array(model.selected_["candidates"]) * squares
    np.testing.assert_allclose(shares, [0.03, 0.3, 3, 30, 300, 3e3, 3e4, 3e5], rtol=1e-6)


def test_one_cluster_solves_xor_where_it_is_linear_it_fails():
    X = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    y = X[:, 0] * X[:, 1] > 0
    params = {"n_landmarks": 40, "random_state": 0}
    assert LandmarkSVC(1, **params, C=1.0).fit(X, y).score(X, y) < 0.7
    for kernel in KERNELS:
        model = LandmarkSVC(1, **params, C=1000.0, kernel=kernel, **KERNELS[kernel])
        assert model.fit(X, y).score(X, y) > 0.95, kernel


@pytest.mark.parametrize(("n", "expected"), [(300, 100), (40, 40)])
def test_a_kernel_has_a_hundred_landmarks_or_all_rows(n, expected):
    X, y = checkers(n)
    params = {"C": 1.0, "random_state": 0, "kernel": "rbf"}
    assert LandmarkSVC(2, **params).fit(X, y).landmarks_.shape == (expected, 2)
    assert LandmarkSVC(2, **params, landmarks="pca").fit(X, y).landmarks_.shape == (2, 2)


def test_copies_among_landmarks_add_nothing():
    Z = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 2, axis=0)
    center = np.zeros(3)
    features = find_features(Z, center, Z[::2], None, KernelSpec("rbf", 0.5))
    assert np.linalg.matrix_rank(features.root) == 5
    F = features.apply(Z @ Z[::2].T)
    D = ((Z @ Z[::2].T)[:, None] - (Z @ Z[::2].T)[None]) ** 2
    np.testing.assert_allclose(F @ F.T, np.exp(-0.5 * D.sum(axis=2)), atol=1e-9)
    # Where no image has a length, there is no feature.
    nothing = find_features(0 * Z, center, Z, None, KernelSpec("poly", 1.0))
    assert not nothing.root.any()


def test_a_map_that_fits_no_worker_is_refused():
    X, y = checkers(600)
    params = {"n_landmarks": 500}
    with task_memory(14_000_000):
        small_landmarks(**params).fit(X, y)
        with pytest.raises(MemoryPlanError, match=r"500 landmarks.* lower n_landmarks"):
            small_landmarks(**params, kernel="rbf").fit(X, y)
