"""Numbers by neighborhoods: against scikit-learn and brute force, in y's units."""

import pickle

import dask.array as da
import numpy as np
import pytest
import zarr
from falks import nearest_rows
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor
from support import few

import daskls
from daskls import KernelKNNRegressor, ParameterError

RNG = np.random.default_rng(0)
X = RNG.random((500, 2))
Y = 1e4 + 300 * (np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + RNG.normal(0, 0.05, 500))
TWO = np.stack([Y, 1e-3 * np.cos(3 * X[:, 1])], axis=1)
WEIGHTS = RNG.uniform(0.5, 2.0, 500)
Q = RNG.random((80, 2)) * 1.2 - 0.1


# The mean of the nearest rows


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


def test_means_in_a_polynomial_feature_space():
    rows, asked = X * 4 - 2, Q * 4 - 2
    model = KernelKNNRegressor(7, kernel="poly", gamma=0.7, degree=3, coef0=1.0).fit(rows, Y)
    own = (0.7 * np.einsum("ij,ij->i", rows, rows) + 1.0) ** 3
    distances = own - 2 * (0.7 * asked @ rows.T + 1.0) ** 3
    near = np.argsort(distances, axis=1, kind="stable")[:, :7]
    np.testing.assert_allclose(model.predict(asked), Y[near].mean(axis=1), rtol=1e-12)


# Of every regressor on neighborhoods

SMALL = {
    "KernelKNNRegressor": KernelKNNRegressor(7),
}


@pytest.fixture(params=SMALL)
def small(request):
    """Return an unfitted regressor."""
    return SMALL[request.param]


def test_a_constant_answers_the_constant(small):
    model = clone(small).fit(X, np.full(500, 7.25))
    assert set(model.predict(Q)) == {7.25}
    # Beside a column that varies too.
    y = np.stack([np.full(500, 0.1), Y], axis=1)
    assert np.allclose(clone(small).fit(X, y).predict(Q)[:, 0], 0.1, rtol=1e-9)


def test_columns_are_answered_as_they_are_alone(small):
    both = clone(small).fit(X, TWO).predict(Q)
    assert both.shape == (80, 2)
    for column in range(2):
        alone = clone(small).fit(X, TWO[:, column]).predict(Q)
        np.testing.assert_allclose(both[:, column], alone, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-30, 1e60])
def test_units_of_y_do_not_matter(small, unit):
    plain = clone(small).fit(X, Y).predict(Q)
    np.testing.assert_allclose(clone(small).fit(X, unit * Y).predict(Q), unit * plain, rtol=1e-6)


def test_rows_of_any_kind_and_what_was_kept_answer_alike(small, tmp_path):
    model = clone(small).fit(X, TWO, WEIGHTS)
    expected = model.predict(Q)
    rows, y = da.from_array(X, chunks=(130, 2)), da.from_array(TWO, chunks=(130, 2))
    lazy = clone(small).fit(rows, y, da.from_array(WEIGHTS, chunks=130))
    answer = lazy.predict(da.from_array(Q, chunks=(33, 2)))
    assert isinstance(answer, da.Array)
    assert answer.shape == (80, 2)
    for name, array in (("X", X), ("y", TWO)):
        zarr.create_array(tmp_path / name, data=array, chunks=(200, 2))
    stored = clone(small).fit(str(tmp_path / "X"), str(tmp_path / "y"), WEIGHTS)
    model.save(tmp_path / "model")
    kept = daskls.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))
    for found in (answer.compute(), *(own.predict(Q) for own in (lazy, stored, *kept))):
        assert found.tobytes() == expected.tobytes()
    assert all(type(own) is type(model) for own in kept)
    assert model.score(X, TWO) > 0.9


def test_labels_are_no_numbers(small):
    with pytest.raises(daskls.DataError, match="a regressor needs numbers"):
        clone(small).fit(X, np.where(X[:, 0] > 0.5, "high", "low"))


def test_candidates_of_neighbors_are_refused():
    with pytest.raises(ParameterError, match="takes one"):
        KernelKNNRegressor([5, 10]).fit(X, Y)
    with pytest.raises(ParameterError, match="give one value"):
        KernelKNNRegressor(5, kernel="poly", gamma=[1.0, 2.0]).fit(X, Y)
