import naive
import numpy as np
import pytest
from cells import SEED, TIGHT, binary_cell, check_model, class_cell, fit, queries
from sklearn.svm import SVC

from daskls.solvers.evaluate import cell_scores
from daskls.solvers.grid import assign_folds


def check_grid(X, codes, weights, gammas, costs, **kernel):
    """Every combination's error, the choice among them, and the chosen fold models' mean."""
    own = np.ones(len(X)) if weights is None else weights
    oracle = naive.CellOracle(X, codes, own, assign_folds(codes, 3, SEED), **kernel)
    options = {"kernel": kernel.get("name", "rbf"), "cv": 3, "tol": TIGHT}
    options["coef0"] = kernel.get("coef0", 0.0)
    errors = {}
    for gamma in gammas:
        for C in costs:
            errors[gamma, C], closest = oracle.validation_error(gamma, C)
            # The data is such that no error rests on a decision that rounding could turn.
            assert closest > 1e-4
            one = fit(X, codes, weights, gamma=(gamma,), C=(C,), **options)
            assert one.report.validation_error == pytest.approx(errors[gamma, C], rel=1e-6)
            assert (one.report.gamma, one.report.C) == (gamma, C)
            assert one.report.n_at_limit == 0
    model = fit(X, codes, weights, gamma=gammas, C=costs, **options)
    chosen = min(errors, key=lambda key: (errors[key], key[0], key[1]))
    assert (model.report.gamma, model.report.C) == chosen
    assert model.report.validation_error == pytest.approx(errors[chosen], rel=1e-6)
    assert len(set(errors.values())) > 1
    X_query = queries(X)
    check_model(model, oracle.mean_decisions(*chosen, X_query), X_query)
    return model


def cell_of(name):
    """Return (X, codes, weights or None, gammas, costs), and the kernel where it is another."""
    rng = np.random.default_rng(2)
    if name == "two classes":
        return *binary_cell(0), None, (0.05, 0.5, 3.0), (0.3, 1.5, 8.0)
    if name == "weighted":
        return *binary_cell(2), rng.uniform(0.2, 3.0, 60), (0.05, 1.0), (0.1, 3.0)
    if name in ("linear", "poly"):
        return *binary_cell(2), None, (1.0 if name == "linear" else 0.1,), (0.02, 1.0)
    if name != "few of a class":
        n_classes, seed = (3, 2) if name == "three classes" else (4, 0)
        return *class_cell(n_classes, seed, m=60), None, (0.05, 0.4), (0.3, 3.0)
    # A class of fewer rows than folds.
    X, codes = class_cell(3, seed=3, m=60)
    codes[[10, 40]] = 9
    return X, codes, np.random.default_rng(4).uniform(0.2, 3.0, 60), (0.3,), (0.1, 3.0)


@pytest.mark.always
@pytest.mark.parametrize(
    "name",
    [
        *("two classes", "weighted", "linear", "poly", "three classes", "few of a class"),
        pytest.param("four classes", marks=pytest.mark.slow),
    ],
)
def test_a_grid_equals_the_oracle(name):
    kernels = {"linear": {"name": "linear"}, "poly": {"name": "poly", "coef0": 1.0}}
    X, codes, weights, gammas, costs = cell_of(name)
    model = check_grid(X, codes, weights, gammas, costs, **kernels.get(name, {}))
    if name == "weighted":
        plain = fit(X, codes, gamma=gammas, C=costs, cv=3, tol=TIGHT).report.validation_error
        assert model.report.validation_error != pytest.approx(plain, rel=1e-3)


def test_one_class_is_a_constant():
    X, _ = binary_cell()
    model = fit(X, np.full(len(X), 6))
    assert (model.classes.tolist(), len(model.rows)) == ([6], 0)
    np.testing.assert_array_equal(cell_scores(model, X), 0.0)
    report = model.report
    assert (report.n_classes, report.n_rows, report.n_trained) == (1, len(X), 0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fewer_rows_than_folds_are_dealt_a_row_a_fold(n_classes):
    X, codes = class_cell(n_classes, m=14)
    few, own = (fit(X, codes, cv=cv) for cv in (40, 14))
    assert len(few.classes) == n_classes
    for name in ("rows", "coef", "intercepts", "classes", "class_ptr"):
        np.testing.assert_array_equal(getattr(few, name), getattr(own, name))
    for name in ("C", "gamma", "validation_error"):
        assert getattr(few.report, name) == getattr(own.report, name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_equal_rows_give_the_weighted_majority(kernel, dtype):
    # The mean of equal rows need not equal them.
    X = np.full((7, 3), 0.1 if dtype != np.int8 else 3, dtype)
    codes = np.array([0, 1, 1, 1, 1, 2, 2])
    assert fit(X, codes, kernel=kernel).classes.tolist() == [1]
    weights = np.array([1, 1, 1, 1, 1, 3, 3.0])
    model = fit(X, codes, weights, kernel=kernel)
    assert model.classes.tolist() == [2]
    assert model.report.radius == 0
    np.testing.assert_array_equal(cell_scores(model, X), 0.0)


def test_ties_go_to_the_widest_kernel_and_then_to_the_smallest_C():
    X = np.concatenate([np.linspace(-3, -2, 10), np.linspace(2, 3, 10)])[:, None]
    codes = np.repeat([0, 1], 10)
    model = fit(X, codes, gamma=(1.0, 0.1, 0.4), C=(4.0, 1.0, 2.0), cv=5)
    assert model.report.validation_error == 0
    assert (model.report.gamma, model.report.C) == (0.1, 1.0)
    own = fit(X, codes, cv=5)
    gammas, costs, _ = naive.grid_values(own.report.radius, 20, 1, 5)
    assert own.report.gamma == pytest.approx(gammas[0])
    np.testing.assert_allclose(own.report.C, costs[0])


def test_edge_names_the_axes_chosen_at_their_ends():
    X, codes = binary_cell(0)
    one = {"C": (1.0,), "cv": 3}
    for gamma, edge in (((1e-6, 1.0, 1e4), ""), ((1e-6, 1.0), "gamma"), ((1e4, 1.0), "gamma")):
        report = fit(X, codes, gamma=gamma, **one).report
        assert (report.gamma, report.edge) == (1.0, edge)
    separable = np.where(X[:, 0] > 2, 1, 0)
    X[:, 0] += 3 * separable
    for gamma, edge in (((0.1, 1.0), "C gamma"), ((0.1,), "C")):
        assert fit(X, separable, gamma=gamma, C=(1.0, 2.0), cv=3).report.edge == edge


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_features_offset_by_a_million_give_the_same_model(kernel, dtype):
    X, codes = binary_cell(9)
    X, X_query = np.round(X * 16) / 16, np.round(queries(X) * 16) / 16
    gamma = (0.2, 1.0) if kernel == "rbf" else None
    options = {"kernel": kernel, "gamma": gamma, "C": (0.1, 1.0), "cv": 3, "tol": TIGHT}
    near, far = fit(X, codes, **options), fit((X + 1e6).astype(dtype), codes, **options)
    for name in ("C", "gamma", "validation_error"):
        assert getattr(far.report, name) == getattr(near.report, name)
    assert far.report.radius == pytest.approx(near.report.radius, rel=1e-6)
    found = cell_scores(far, (X_query + 1e6).astype(dtype))
    np.testing.assert_allclose(found, cell_scores(near, X_query), atol=5e-3)


# Of the last two, squares are beyond float32.
@pytest.mark.parametrize("exponent", [-30, 30, -80, 80])
def test_the_own_grid_knows_no_unit(exponent):
    unit = 2.0**exponent
    X, codes = binary_cell(10, m=30)
    one, other = (fit(X * by, codes, C=(1.0,), cv=3) for by in (1.0, unit))
    assert other.report.validation_error == pytest.approx(one.report.validation_error)
    assert other.report.gamma * unit**2 == pytest.approx(one.report.gamma, rel=1e-5)
    found = cell_scores(other, queries(X) * unit)
    np.testing.assert_allclose(found, cell_scores(one, queries(X)), atol=1e-3)


@pytest.mark.parametrize(("n_classes", "n_pairs"), [(2, 1), (3, 3)])
def test_the_report_counts(n_classes, n_pairs):
    X, codes = class_cell(n_classes)
    options = {"gamma": (0.5, 1.0), "C": (0.5, 1.0, 2.0), "cv": 3}
    report = fit(X, codes, **options).report
    assert (report.cell, report.leaf, report.n_rows, report.n_classes) == (5, 2, 72, n_classes)
    center = X.mean(axis=0)
    assert report.radius == pytest.approx(max(np.linalg.norm(X - center, axis=1)), rel=1e-6)
    # The chosen fold models are trained on.
    assert report.n_trained == 6 * 3 * n_pairs + 3 * n_pairs
    assert report.n_steps > 0
    assert report.n_at_limit == 0
    assert report.seconds > 0


def test_offset_of_fold_models_is_their_mean():
    X, y = binary_cell(m=90)
    options = {"gamma": (0.5,), "C": (2.0,), "cv": 3, "tol": TIGHT, "fit_intercept": True}
    model = fit(X, y, **options)
    svc, folds, expected = SVC(gamma=0.5, C=2.0, tol=1e-8), assign_folds(y, 3, SEED), []
    for fold in range(3):
        svc.fit(X[folds != fold], y[folds != fold])
        expected.append(svc.decision_function(queries(X)) / 3)
    np.testing.assert_allclose(cell_scores(model, queries(X)), np.sum(expected, axis=0), atol=5e-3)
