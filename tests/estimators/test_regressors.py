"""Numbers as targets: against kernel ridge and brute force, in y's units, and what is refused."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from support import few

from daskls import DataError, FalkSVR, KernelKNNRegressor, RandomChunkSVR, VoronoiSVR

RNG = np.random.default_rng(0)
X = RNG.random((500, 3))
Y = 1e4 + 300 * (np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + RNG.normal(0, 0.05, 500))
TWO = np.stack([Y, 1e-3 * np.cos(3 * X[:, 1])], axis=1)
Q = RNG.random((80, 3))
GIVEN = {"kernel": "rbf", "C": 50.0, "gamma": 3.0, "feature_scale": None, "random_state": 0}


@pytest.mark.parametrize("kernel", few(["rbf", "linear", "poly", "laplacian"], 3))
@pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
def test_a_cell_is_kernel_ridge_around_the_center(kernel, y):
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 500)
    model = VoronoiSVR(cell_size=500, **{**GIVEN, "kernel": kernel}, fit_intercept=False)
    found = model.fit(X, y, weights).predict(Q)
    center = np.average(y, axis=0, weights=weights)
    # Inner products are of rows around their mean, and powers of these of rows as they are.
    mean = X.mean(axis=0) if kernel == "linear" else 0.0
    ridge = KernelRidge(alpha=1 / 100, kernel=kernel, gamma=3.0, degree=3, coef0=0.0)
    expected = ridge.fit(X - mean, y - center, weights).predict(Q - mean) + center
    assert found.shape == expected.shape
    # Systems of inner products are solved in float32 up to larger ridges than those of distances:
    # of 24 draws, on two processors, the worst differed by 1.7e-3.
    least = 5e-3 if kernel in ("linear", "poly") else 1e-4
    assert (np.abs(found - expected) <= least * y.std(axis=0)).all()


def test_the_error_of_a_cell_is_that_of_rows_left_out():
    few_rows, y = X[:60], Y[:60]
    model = VoronoiSVR(cell_size=60, **GIVEN, fit_intercept=False).fit(few_rows, y)
    entered = (y - y.mean()) / y.std()
    K = KernelRidge(alpha=1 / 100, kernel="rbf", gamma=3.0)
    everyone = np.arange(60)
    missed = []
    for i in everyone:
        others = everyone != i
        found = K.fit(few_rows[others], entered[others]).predict(few_rows[i : i + 1])
        missed.append((found[0] - entered[i]) ** 2)
    np.testing.assert_allclose(model.fit_report_.validation_error, np.mean(missed), rtol=1e-3)


AT_9 = np.arange(500) == 9
REFUSED = [
    (np.where(Y.mean() < Y, "high", "low"), r"y holds <U4, but a regressor needs numbers"),
    (np.where(AT_9, np.nan, Y), r"NaN or infinity, first in row 9"),
    (np.where(AT_9, 1e300, Y), r"y holds 1e\+300 in row 9; numbers up to"),
]


@pytest.mark.parametrize(("y", "message"), REFUSED)
def test_what_is_no_number_is_refused(y, message):
    for given in (y, da.from_array(y, chunks=-1)):
        with pytest.raises(DataError, match=message):
            VoronoiSVR(200).fit(X, given)
    with pytest.raises(DataError, match=r"y has shape \(1, 500, 1\)"):
        VoronoiSVR(200).fit(X, Y[None, :, None])


FALK = {"C": 50.0, "gamma": 3.0, "selection": None, "random_state": 0}
SMALL = {
    "VoronoiSVR": VoronoiSVR(200, **GIVEN),
    "VoronoiSVR, chosen": VoronoiSVR(200, random_state=0),
    "RandomChunkSVR": RandomChunkSVR(100, **GIVEN),
    "RandomChunkSVR, chosen": RandomChunkSVR(100, random_state=0),
    "KernelKNNRegressor": KernelKNNRegressor(7),
    "FalkSVR": FalkSVR(80, **FALK),
    "FalkSVR, chosen": FalkSVR([60, 90], selection="local", random_state=0),
    "FalkSVR, centers": FalkSVR(80, assign="k_centers", n_assigned=20, **FALK),
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
    assert np.allclose(clone(small).fit(X, y).predict(Q)[:, 0], 0.1, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in SMALL if "chosen" not in name])
def test_columns_are_answered_as_they_are_alone(name):
    # What is chosen is for all columns.
    small, rtol = SMALL[name], 1e-9 if name == "VoronoiSVR" else 1e-6
    both = clone(small).fit(X, TWO).predict(Q)
    assert both.shape == (80, 2)
    for column in range(2):
        alone = clone(small).fit(X, TWO[:, column]).predict(Q)
        np.testing.assert_allclose(both[:, column], alone, rtol=rtol)


@pytest.mark.parametrize("unit", [1e-30, 1e60])
def test_units_of_y_do_not_matter(small, unit):
    plain = clone(small).fit(X, Y).predict(Q)
    np.testing.assert_allclose(clone(small).fit(X, unit * Y).predict(Q), unit * plain, rtol=1e-6)
