"""A scale of features: every distance is taken in it, in training and in answers."""

import numpy as np
import pytest
from small import small
from support import checkers

X, Y = checkers(600, n_classes=3)
UNITS = np.array([1e3, 1e-3])
SCALED = ["VoronoiSVC", "RandomChunkSVC", "FalkSVC", "KNNSVC", "KernelKNNClassifier"]
Q = np.random.default_rng(5).random((300, 2))


@pytest.mark.parametrize("name", SCALED)
def test_units_do_not_matter_to_the_spread(name):
    model = small(name, feature_scale="spread").fit(X, Y)
    other = small(name, feature_scale="spread").fit(X * UNITS, Y)
    assert model.predict(Q).tolist() == other.predict(Q * UNITS).tolist()
    np.testing.assert_allclose(other.feature_scale_ * UNITS, model.feature_scale_, rtol=1e-12)


@pytest.mark.parametrize("name", SCALED)
def test_given_factors_are_those_of_rows_scaled_beforehand(name):
    factors = [0.5, 4.0]
    model = small(name, feature_scale=factors).fit(X, Y)
    beforehand = small(name).fit(X * factors, Y)
    assert (model.predict(Q) == beforehand.predict(Q * factors)).mean() > 0.99
    np.testing.assert_array_equal(model.feature_scale_, factors)
    np.testing.assert_array_equal(beforehand.feature_scale_, [1.0, 1.0])


@pytest.mark.parametrize("name", SCALED)
def test_a_feature_with_factor_0_is_as_if_it_were_not_there(name):
    noise = np.random.default_rng(0).normal(size=(len(X), 1)) * 100
    model = small(name, feature_scale=[1, 0, 1]).fit(np.c_[X[:, :1], noise, X[:, 1:]], Y)
    without = small(name, feature_scale=[1, 1]).fit(X, Y)
    queries = np.c_[Q[:, :1], np.full(len(Q), 1e17), Q[:, 1:]]
    np.testing.assert_array_equal(model.decision_function(queries), without.decision_function(Q))


def test_rare_values_and_a_constant_have_a_spread():
    # An indicator in another unit, and a count that is 0 in nearly all rows.
    rare, count = np.zeros((2, len(X)))
    rare[::300] = 5
    count[::300], count[1::300] = 1, 2
    rows = np.c_[X, rare, count, np.full(len(X), 9)]
    model = small("VoronoiSVC", feature_scale="spread").fit(rows, Y)
    expected = [1 / 5, 1 / (3.29 * count.std()), 1.0]
    np.testing.assert_allclose(model.feature_scale_[2:], expected)
    plain = small("VoronoiSVC", feature_scale="spread").fit(X, Y)
    queries = np.c_[Q, np.zeros((len(Q), 2)), np.full(len(Q), 9)]
    assert (model.predict(queries) == plain.predict(Q)).mean() > 0.97


def test_offsets_are_taken_off_before_rows_become_float32():
    model = small("VoronoiSVC", feature_scale="spread").fit(X + 1e7, Y)
    plain = small("VoronoiSVC", feature_scale="spread").fit(X, Y)
    assert (model.predict(Q + 1e7) == plain.predict(Q)).mean() > 0.99
    # Queries far away are answered.
    assert np.isfinite(model.decision_function([[1e17, 0.5], [-1e17, 0.5]])).all()
