"""LandmarkSVC beside scikit-learn's SVC on the joint kernel, of projections, in any unit."""

import os

import landmarks
import numpy as np
import pytest
from landmarks import joint_kernel, nearest_clusters, project, small_landmarks, svc_objective
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC
from small import assert_same_bits, task_memory
from support import checkers, few, load_real
from threadpoolctl import threadpool_limits

from daskls import GridEdgeWarning, LandmarkSVC, MemoryPlanError, NonConvergenceWarning
from daskls.methods.landmarks.plan import count_clusters, pick_cost
from daskls.partition.shuffle import row_keys
from daskls.seeds import ROW_FOLDS

N = 700


def signs_of(y, label):
    return np.where(y == label, 1.0, -1.0)


@pytest.mark.parametrize("projection", ["linear", "rbf"])
@pytest.mark.parametrize(("C", "tol"), [(1e-3, 1e-6), (100.0, 1e-6), (10.0, 1e-1)])
def test_the_joint_objective_is_that_of_svc(C, tol, projection):
    X, y = checkers(N)
    gamma = 5.0 if projection == "rbf" else None
    model = small_landmarks(C=C, projection=projection, gamma=gamma, tol=tol).fit(X, y)
    M, cells = project(X, model, gamma), nearest_clusters(X, model)
    signs = signs_of(y, 1)
    assert len(np.unique(cells)) == 6
    found = landmarks.joint_objective(
        model.coef_[0], model.intercept_[0], M, cells, signs, np.full(N, C)
    )
    expected = svc_objective(M, cells, signs, C)
    # The gap at the end is what tol says.
    assert found - expected <= (1e-4 * expected if tol < 1e-3 else tol * C * N)


def test_weighted_classes_are_problems_of_their_own_on_the_same_clusters():
    X, y = checkers(N, n_classes=3)
    weights, of_class = np.random.default_rng(0).uniform(0.1, 3.0, N), {0: 1.0, 1: 4.0, 2: 0.5}
    model = small_landmarks(C=2.0, tol=1e-6, class_weight=of_class)
    model.fit(X, y, sample_weight=weights)
    M, cells = project(X, model), nearest_clusters(X, model)
    costs = weights * np.array([of_class[label] for label in y])
    for label in range(3):
        signs = signs_of(y, label)
        given = model.coef_[label], model.intercept_[label], M, cells, signs, 2.0 * costs
        expected = svc_objective(M, cells, signs, 2.0, costs)
        assert abs(landmarks.joint_objective(*given) - expected) <= 1e-4 * expected
    own = (model.coef_[:, cells] * M).sum(axis=2).T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), own, rtol=1e-9, atol=1e-9)
    assert (model.predict(X) == own.argmax(axis=1)).all()


def test_cross_validation_counts_as_a_plain_loop_does():
    X, y = checkers(N)
    costs = [0.01, 1.0, 100.0]
    with pytest.warns(GridEdgeWarning, match="larger ones"):
        model = small_landmarks(C=costs, cv=4, tol=1e-7).fit(X, y)
    M, cells, signs = project(X, model), nearest_clusters(X, model), signs_of(y, 1)
    folds = row_keys(np.arange(N), ROW_FOLDS(0)) % np.uint64(4)
    errors = []
    for C in costs:
        wrong = []
        for fold in range(4):
            inn, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            svc = SVC(C=C, kernel="precomputed", tol=1e-8)
            svc.fit(joint_kernel(M[inn], cells[inn], M[inn], cells[inn]), signs[inn])
            answers = svc.predict(joint_kernel(M[out], cells[out], M[inn], cells[inn]))
            wrong.append((answers != signs[out]).mean())
        errors.append(np.mean(wrong))
    selected = model.selected_
    # One row on a boundary may fall to either side.
    np.testing.assert_allclose(selected["errors"], errors, atol=1.01 / 150)
    assert selected["C"] == costs[int(np.argmin(selected["errors"]))]
    assert np.unique(model.fit_report_.C).tolist() == [selected["C"]]
    own = model.fit_report_
    mean = np.average(own.validation_error, weights=own.n_rows)
    assert mean == pytest.approx(min(selected["errors"]), abs=5e-3)


def test_threads_leave_no_trace():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 60))
    y = (X[:, 0] > 0).astype(int)
    models = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            models.append(small_landmarks(landmarks="pca", C=0.1).fit(X, y))
    assert_same_bits(*models)


def test_what_was_not_solved_and_the_lower_edge_are_said():
    X, y = checkers(200)
    with pytest.warns(NonConvergenceWarning, match=r"joint problems ended .* lower C") as warned:
        # Far below what rounding leaves: at 1e-16 some processors reach it.
        model = LandmarkSVC(8, C=[1.0, 100.0], cv=3, tol=1e-200, random_state=0).fit(X, y)
    assert warned[0].filename == __file__
    report = model.fit_report_
    assert 0 < report.n_at_limit[0] <= report.n_trained[0] == 2 * 3 + 1
    assert np.isfinite(model.decision_function(X)).all()
    # Labels without a pattern but for their mean: what bends least errs least.
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(600, 20)), (rng.random(600) < 0.25).astype(int)
    with pytest.warns(GridEdgeWarning, match="give smaller ones"):
        LandmarkSVC(5, C=[1e-7, 10.0, 100.0], cv=3, random_state=0).fit(X, y)


@pytest.mark.parametrize("landmarks", ["random", "pca"])
def test_landmarks_are_rows_or_components(landmarks):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)) * [5, 4, 3, 2, 1]
    y = X[:, 0] > 0
    model = LandmarkSVC(2, n_landmarks=3, landmarks=landmarks, C=1.0, random_state=0).fit(X, y)
    found = model.landmarks_
    assert found.shape == (3, 5)
    if landmarks == "random":
        away = np.abs(found[:, None] - X).max(axis=2)
        assert (away.min(axis=1) < 1e-14).all()
        assert len(set(away.argmin(axis=1))) == 3
    else:
        axes = np.linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :3].T
        np.testing.assert_allclose(np.abs((found * axes).sum(axis=1)), 1.0, atol=1e-6)


KERNELS = {"rbf": {}, "poly": {"degree": 2, "coef0": 1.0}}
real_sets = pytest.mark.skipif(
    "DASKLS_DATA" not in os.environ, reason="real sets lie where it says"
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
@pytest.mark.parametrize("name", ["ionosphere", "liver"])
def test_all_rows_as_landmarks_solve_the_kernel_problem(name, kernel, projection):
    data = load_real(name)
    X, y = standardized(data.X), data.y[:400]
    rows, queries = X[: len(X) * 2 // 3], X[len(X) * 2 // 3 :]
    gamma = 0.05 if projection == "rbf" else None
    params = {"projection": projection, "gamma": gamma, "kernel": kernel, **KERNELS[kernel]}
    model = small_landmarks(3, n_landmarks=len(rows), tol=1e-8, **params)
    model.fit(rows, y[: len(rows)])
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-8)
    svc.fit(joint(model, rows, rows, gamma), y[: len(rows)])
    for seen in (rows, queries):
        expected = svc.decision_function(joint(model, seen, rows, gamma))
        np.testing.assert_allclose(model.decision_function(seen), expected, atol=1e-3)


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


def test_a_map_that_fits_no_worker_is_refused():
    X, y = checkers(600)
    params = {"n_landmarks": 500}
    with task_memory(14_000_000):
        small_landmarks(**params).fit(X, y)
        with pytest.raises(MemoryPlanError, match=r"500 landmarks.* lower n_landmarks"):
            small_landmarks(**params, kernel="rbf").fit(X, y)


N_NOISY = 1200
TRAIN = slice(0, 800)
KINDS = [(p, z) for p in ("linear", "rbf") for z in ("random", "pca")]
# A grid may end where the best C lies; what is said then has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::daskls.GridEdgeWarning")


def noisy_rows():
    """Return rows around 0.5 of three features, one of them small and without a meaning; labels."""
    X, y = checkers(N_NOISY, noise=0.1)
    return np.column_stack([X, 0.2 * np.random.default_rng(5).random(N_NOISY)]), y


def fit(X, y, n_cells=8, **params):
    return LandmarkSVC(n_cells, cv=3, random_state=0, **params).fit(X[TRAIN], y[TRAIN])


@pytest.mark.slow
@pytest.mark.parametrize(("projection", "landmarks"), few(KINDS))
@pytest.mark.parametrize("dtype", few(["f8", "f4"]))
def test_powers_of_two_leave_every_bit_of_the_answers(projection, landmarks, dtype):
    X, y = noisy_rows()
    X = X.astype(dtype)
    kind = {"projection": projection, "landmarks": landmarks}
    model = fit(X, y, **kind)
    scores = model.decision_function(X)
    for power in (-30, -3, 1, 17):
        unit = X.dtype.type(2.0**power)
        other = fit(X * unit, y, **kind)
        assert other.decision_function(X * unit).tobytes() == scores.tobytes()
        assert other.selected_["errors"] == model.selected_["errors"]
        places = [m.selected_["candidates"].index(m.selected_["C"]) for m in (other, model)]
        assert places[0] == places[1]
        assert (other.center_ == model.center_ * 2.0**power).all()
        assert (other.cluster_centers_ == model.cluster_centers_ * 2.0**power).all()


@pytest.mark.parametrize(("projection", "landmarks"), KINDS)
def test_the_candidates_follow_the_projections(projection, landmarks):
    X, y = noisy_rows()
    model = fit(X, y, projection=projection, landmarks=landmarks, n_landmarks=3)
    rows, center, landmarks_ = X[TRAIN], X[TRAIN].mean(axis=0), model.landmarks_
    if projection == "rbf":
        gamma = 1 / (3 * rows.var())
        seen = np.exp(-gamma * ((rows[:, None] - landmarks_) ** 2).sum(axis=2))
    else:
        vectors = landmarks_ if landmarks == "pca" else landmarks_ - center
        seen = (rows - center) @ vectors.T
    shares = np.array(model.selected_["candidates"]) * (seen**2).sum(axis=1).mean()
    np.testing.assert_allclose(shares, [0.03, 0.3, 3, 30, 300, 3e3, 3e4, 3e5], rtol=1e-9)
    np.testing.assert_allclose(model.center_, center, rtol=1e-12)


TIES = [
    # Of equal errors the smallest C inside the grid that tells rows apart.
    ([0.3, 0.2, 0.1, 0.1, 0.4], [], [1, 1, 1, 1, 1], 2),
    ([0.5, 0.5, 0.5, 0.5, 0.6], [], [0, 0, 1, 1, 1], 2),
    # On the edge where it is better, or nothing inside is as good.
    ([0.4, 0.3, 0.3, 0.2, 0.1], [], [1, 1, 1, 1, 1], 4),
    # Better is better, whatever it tells.
    ([0.4, 0.5, 0.6, 0.6, 0.6], [], [0, 1, 1, 1, 1], 0),
    # What was not solved says nothing, unless nothing was.
    ([0.3, 0.2, 0.1, 0.1, 0.1], [2, 3, 4], [1, 1, 1, 1, 1], 1),
    ([0.3, 0.2, 0.1, 0.1, 0.1], [0, 1, 2, 3, 4], [1, 1, 1, 1, 1], 2),
]


def test_clusters_grow_with_the_rows_that_count_and_ties_are_decided():
    counts = [count_clusters(n) for n in (2, 500, 634, 1600, 3000, 8000, 8617, 8618, 10**9)]
    assert counts == [2, 2, 2, 8, 20, 89, 99, 100, 100]
    for errors, unsolved, told, best in TIES:
        is_open = np.isin(np.arange(5), unsolved)
        assert pick_cost(errors, is_open, np.array(told, bool)) == best
