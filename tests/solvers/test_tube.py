"""Support vector regression: against scikit-learn's SVR, and its duality gap by plain sums."""

import numpy as np
import pytest
from sklearn.svm import SVR
from support import compiled

from daskls import ParameterError, VoronoiSVR

RNG = np.random.default_rng(0)
X = RNG.random((300, 3))
Y = 1e4 + 300 * (np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + RNG.normal(0, 0.05, 300))
Q = RNG.random((60, 3))
TUBE = {"loss": "epsilon_insensitive", "random_state": 0}
GIVEN = {**TUBE, "kernel": "rbf", "gamma": 3.0, "feature_scale": None}


@pytest.mark.parametrize("C", [1e2, 1e3, pytest.param(1e4, marks=[pytest.mark.slow, compiled])])
@pytest.mark.parametrize("epsilon", [0.0, 20.0])
def test_a_cell_is_scikit_learns_svr_in_the_units_of_y(C, epsilon):
    weights = RNG.uniform(0.5, 2.0, 300)
    model = VoronoiSVR(300, **GIVEN, C=C, epsilon=epsilon, tol=1e-5).fit(X, Y, weights)
    expected = SVR(C=C, gamma=3.0, epsilon=epsilon, tol=1e-3).fit(X, Y, weights)
    found = model.predict(Q)
    np.testing.assert_allclose(found, expected.predict(Q), rtol=0, atol=3e-4 * Y.std())
    assert model.fit_report_.C.tolist() == [pytest.approx(C)]
    assert np.isnan(model.fit_report_.validation_error).all()


@compiled
def test_a_cost_is_chosen_by_folds_of_each_cell():
    noisy = Y + 200 * RNG.standard_t(2, 300)
    model = VoronoiSVR(150, **{**GIVEN, "gamma": None}).fit(X, noisy)
    report = model.fit_report_
    assert len(report) == 2
    assert (report.n_tried > 1).all()
    assert (report.n_trained > report.n_tried).all()
    assert np.isfinite(report.validation_error).all()
    # In units of the variance, not of the robust spread.
    pooled = np.average(report.validation_error, weights=report.n_rows)
    assert 1 - pooled == pytest.approx(model.score(X, noisy), abs=0.1)
    # A given list is all that is tried.
    given = VoronoiSVR(150, **GIVEN, C=[1.0, 1e6]).fit(X, noisy)
    assert set(np.round(given.fit_report_.C, 3)) <= {1.0, 1e6}


def waves(n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-3, 3, (n, 2))
    return rows, 2 * np.sin(rows[:, 0]) + np.cos(2 * rows[:, 1]) + rng.normal(0, 0.1, n)


def both_sides(y, hit, rng):
    return y + np.where(hit, rng.choice([-20.0, 20.0], len(y)), 0.0)


@compiled
@pytest.mark.parametrize(
    ("share", "spoil"),
    [
        (0.05, both_sides),
        (0.1, lambda y, hit, rng: y + 30.0 * hit),
        (0.01, lambda y, hit, rng: np.where(hit, 1e30, y)),
        (0.1, lambda y, hit, rng: y + hit * rng.standard_cauchy(len(y))),
    ],
    ids=["both sides", "above", "huge", "cauchy"],
)
@pytest.mark.parametrize("unit", [1.0, pytest.param(1e-3, marks=pytest.mark.slow)])
def test_outliers_change_no_default(share, spoil, unit):
    """Neither the unit of y, nor epsilon, nor kernel, width and C: as SVR in the right units."""
    (rows, y), (new, expected) = waves(800, 0), waves(800, 1)
    rng = np.random.default_rng(2)
    spoiled = spoil(y, rng.random(len(y)) < share, rng)
    model = VoronoiSVR(**TUBE).fit(rows, unit * spoiled)
    svr = SVR(C=10.0, epsilon=0.1).fit(rows, spoiled).score(new, expected)
    assert svr > 0.98
    assert model.score(new, unit * expected) > svr - 0.01


@pytest.mark.parametrize(
    "y",
    # Of the last, half of the numbers are equal.
    [Y, np.where(np.arange(300) < 40, -1e12, Y), np.where(np.arange(300) < 160, 7.0, Y)],
    ids=["normal", "outliers", "equal"],
)
def test_the_default_epsilon_is_a_tenth_of_the_robust_spread(y):
    spread = 1.4826 * np.sort(np.abs(y - np.sort(y)[149]))[149] or y.std()
    given = {**GIVEN, "C": 1e3, "tol": 1e-5}
    default = VoronoiSVR(300, **given).fit(X, y).predict(Q)
    expected = SVR(C=1e3, gamma=3.0, epsilon=spread / 10, tol=1e-5 * spread).fit(X, y)
    np.testing.assert_allclose(default, expected.predict(Q), rtol=0, atol=1e-3 * spread)


def test_what_it_cannot_do_is_one_error(tmp_path):
    both = np.stack([Y, Y], axis=1)
    with pytest.raises(ParameterError, match=r"y has 2 columns.*squared_error"):
        VoronoiSVR(300, **GIVEN, C=1.0, store=tmp_path / "m").fit(X, both)
    with pytest.raises(ParameterError, match=r"epsilon=0.1 has no effect .*'squared_error'"):
        VoronoiSVR(epsilon=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="epsilon"):
        VoronoiSVR(**{**GIVEN, "epsilon": -1.0}).fit(X, Y)


@pytest.mark.parametrize("C", [1.0, None])
def test_numbers_within_the_tube_and_equal_rows_are_a_constant(C):
    """As SVR's: no row has a coefficient, and the offset is between the least and the largest."""
    rows = RNG.random((60, 2))
    y = np.r_[RNG.uniform(0.0, 0.05, 30), 100.0 + RNG.uniform(0.0, 0.05, 30)]
    rows[30:] += 50.0
    model = VoronoiSVR(30, **GIVEN, C=C, epsilon=0.1).fit(rows, y)
    found = model.predict(rows)
    assert (np.abs(found - y) <= 0.1).all()
    assert len(set(found)) == 2
    assert model.fit_report_.n_support.tolist() == [0, 0]
    assert (model.fit_report_.n_trained > 0).all()
    # Of equal rows it is the median.
    y = np.where(np.arange(300) < 100, 0.0, 7.0)
    for rows, own, constant in ((np.ones((300, 3)), y, 7.0), (X, np.full(300, 2.5), 2.5)):
        assert set(VoronoiSVR(**GIVEN, C=1.0).fit(rows, own).predict(Q)) == {constant}
