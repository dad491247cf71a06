"""Numbers by neighborhoods: against scikit-learn and brute force, in y's units."""

import naive
import numpy as np
import pytest
from falks import SlowFalk, nearest_rows
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsRegressor
from support import few

from daskls import FalkSVC, FalkSVR, KernelKNNRegressor, ParameterError
from daskls.methods.neighborhoods.parts import center_rows
from daskls.seeds import SELECTED_ROWS

RNG = np.random.default_rng(0)
X = RNG.random((500, 2))
Y = 1e4 + 300 * (np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + RNG.normal(0, 0.05, 500))
TWO = np.stack([Y, 1e-3 * np.cos(3 * X[:, 1])], axis=1)
WEIGHTS = RNG.uniform(0.5, 2.0, 500)
Q = RNG.random((80, 2)) * 1.2 - 0.1


@pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
@pytest.mark.parametrize("k", few([1, 5, 20, 1000], 2))
def test_means_are_those_of_scikit_learn(k, y):
    found = KernelKNNRegressor(k).fit(X, y).predict(Q)
    expected = KNeighborsRegressor(min(k, 500)).fit(X, y).predict(Q)
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= 1e-12 * np.abs(expected).max(axis=0)).all()


def test_means_are_weighted():
    found = KernelKNNRegressor(15).fit(X, TWO, WEIGHTS).predict(Q)
    for query, own in zip(Q, found, strict=True):
        near = nearest_rows(X, query, 15)
        expected = np.average(TWO[near], axis=0, weights=WEIGHTS[near])
        np.testing.assert_allclose(own, expected, rtol=1e-9)


def falk(n_neighbors, **params):
    """Return a regressor that trains in a blink."""
    given = {"C": 50.0, "gamma": 3.0, "selection": None, "random_state": 0}
    return FalkSVR(n_neighbors, **{**given, **params})


def ridge_values(rows, y, weights, asked, C=50.0, gamma=3.0):
    """Return the values of kernel ridge with an offset, which is not penalized, in float64."""
    alpha, b = naive.bordered_ridge(rbf_kernel(rows, gamma=gamma), y, 1 / (2 * C * weights))
    return rbf_kernel(asked, rows, gamma=gamma) @ alpha + b


@pytest.mark.slow
@pytest.mark.parametrize("assign", ["point", "center"])
@pytest.mark.parametrize("y", [Y[:, None], TWO], ids=["one", "two"])
def test_the_model_of_the_nearest_center_answers(y, assign):
    model = falk(60, assign=assign, n_assigned=20).fit(X, y if y.shape[1] > 1 else y[:, 0], WEIGHTS)
    found = model.predict(Q).reshape(80, -1)
    # The centers are those of the classifier, whose tests know them.
    twin = FalkSVC(60, C=1.0, gamma=3.0, selection=None, n_assigned=20, assign=assign)
    twin = twin.set_params(random_state=0).fit(X, Y.mean() < Y, WEIGHTS)
    numbers = center_rows(model._reader)[1]
    assert numbers.tolist() == center_rows(twin._reader)[1].tolist()
    assert 5 < len(numbers) < 100
    if assign == "center":
        owners = numbers[[nearest_rows(X[numbers], query, 1)[0] for query in Q]]
        assert not model._reader.root.store.exists("rows")
    else:
        slow = SlowFalk(X, Y, 60, 20, 50.0, 3.0, 0)
        owners = slow.owner[[nearest_rows(X, query, 1)[0] for query in Q]]
    expected = np.empty_like(found)
    for i, center in enumerate(owners.tolist()):
        near = nearest_rows(X, X[center], 60)
        expected[i] = ridge_values(X[near], y[near], WEIGHTS[near], Q[i : i + 1])[0]
    assert (np.abs(found - expected) <= 1e-4 * y.std(axis=0)).all()


def test_a_neighborhood_of_all_rows_is_the_usual_kernel_ridge():
    found = falk(1000).fit(X, Y).predict(Q)
    expected = ridge_values(X, Y[:, None], np.ones(500), Q)[:, 0]
    assert (np.abs(found - expected) <= 1e-4 * Y.std()).all()


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
    rows, y, weights = X[:150], TWO[:150], WEIGHTS[:150]
    model = falk(40, **params).fit(rows, y, weights)
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


def test_equal_rows_and_cells_of_one_number():
    rows = np.repeat(X[:50], 4, axis=0)
    y = np.where(rows[:, 0] > 0.5, 3.0, -2.0) + np.tile([0.0, 0.0, 1.0, 1.0], 50)
    model = falk(24, C=1e4, gamma=200.0).fit(rows, y)
    # Equal rows are as one of their mean.
    assert (np.abs(model.predict(X[:50]) - np.where(X[:50, 0] > 0.5, 3.5, -1.5)) < 0.05).all()
    flat = falk(30).fit(X, np.where(X[:, 0] > 0.5, 3.0, -2.0))
    assert (flat.fit_report_.n_trained == 0).any()
    assert (flat.fit_report_.n_classes == 0).all()
    assert (flat.predict(Q[Q[:, 0] > 0.9]) == 3.0).all()
    alike = FalkSVR(10, random_state=0).fit(np.zeros((50, 3)), Y[:50])
    # Of rows equally near the first are neighbors.
    np.testing.assert_allclose(alike.predict(np.zeros((1, 3))), Y[:10].mean(), rtol=1e-9)
    two = FalkSVR(selection=None, C=1e4, gamma=1.0).fit([[0.0], [1.0]], [0.0, 1.0])
    assert two.predict([[0.0], [1.0]]).round(2).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": [1, 2]}, "selection is None"),
        ({"selection": "left_out"}, "selection"),
        ({"C": 1e20}, "leaves a ridge of"),
    ],
)
def test_parameters_out_of_range_are_one_error(params, message):
    with pytest.raises((ParameterError, ValueError), match=message):
        falk(**{"n_neighbors": 60, **params}).fit(X, Y)
