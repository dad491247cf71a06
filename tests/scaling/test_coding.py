"""Codings of features: against scikit-learn's transformers, and as a model keeps them."""

import numpy as np
import pytest
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer

from daskls import ParameterError, VoronoiSVC
from daskls.kernels.frame import INDICATOR, coded, encoded_names, scaled
from daskls.records import FeatureScale
from daskls.scaling.coding import N_KNOTS, find_bases, fit_coding

RNG = np.random.default_rng(0)
WIDE = RNG.lognormal(size=(3000, 2))
COLORS = RNG.integers(5, size=(3000, 1)) * 10.0
TABLE = np.hstack([WIDE, COLORS, COLORS == 20])


def all_of(coding):
    return np.arange(len(coding.sources))


def test_ranks_are_those_of_the_quantile_transformer():
    coding = fit_coding(TABLE, "ranks", 100)
    found = coded(TABLE, coding, all_of(coding))
    oracle = QuantileTransformer(n_quantiles=len(TABLE), subsample=None).fit_transform(WIDE)
    # Between knots the map is a line, so that it is off by less than the share between two.
    assert np.abs(found[:, :2] - oracle).max() < 1 / N_KNOTS
    np.testing.assert_array_equal(found[:, 2:], TABLE[:, 2:])


def test_ranks_of_few_rows_are_exact_and_equal_rows_have_the_mean_rank():
    x = RNG.permutation(np.r_[np.arange(100.0), np.full(7, 50.0)])[:, None]
    coding = fit_coding(x, "ranks", 10)
    found = coded(x, coding, np.array([0]))[:, 0]
    oracle = QuantileTransformer(n_quantiles=len(x), subsample=None).fit_transform(x)[:, 0]
    np.testing.assert_allclose(found, oracle, atol=1e-12)
    # They end where the sample ends.
    beyond = coded(np.array([[-1e9], [1e9]]), coding, np.array([0]))
    np.testing.assert_array_equal(beyond, [[0.0], [1.0]])


def test_indicators_are_those_of_the_one_hot_encoder():
    coding = fit_coding(TABLE, "indicators", 100)
    found = coded(TABLE, coding, all_of(coding))
    oracle = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(COLORS)
    np.testing.assert_array_equal(found[:, 2:7], INDICATOR * oracle.transform(COLORS))
    unseen = np.array([[0.0, 0.0, 11.0, 1.0]])
    np.testing.assert_array_equal(coded(unseen, coding, np.arange(2, 8)), [[0, 0, 0, 0, 0, 1.0]])


def test_values_are_told_apart_whatever_dtype_a_query_has():
    for dtype in ("float32", "float64", "int16", "uint8"):
        # 0.1 is another number in float32.
        points = np.array([0.1, 0.7, 3.0] if dtype.startswith("float") else [1, 7, 3])
        x = np.resize(points, 60)[:, None]
        coding = fit_coding(x.astype("float32"), "indicators", 10)
        found = coded(x.astype(dtype), coding, np.arange(3))
        assert (found.sum(axis=1) == INDICATOR).all()


def test_kept_features_alone_are_coded():
    (base,) = find_bases(TABLE, ("both",), 100)
    factors = np.where(np.arange(8) % 3 == 1, base.scale.factors, 0.0)
    some = FeatureScale(base.scale.center, factors, base.scale.coding)
    whole = scaled(TABLE, base.scale)
    np.testing.assert_array_equal(scaled(TABLE, some), whole[:, 1::3])
    names = encoded_names(["a", "b", "color", "flag"], base.scale)
    assert names[:4] == ["rank(a)", "rank(b)", "color=0", "color=10"]
    assert names[-1] == "flag"


Y = ((COLORS[:, 0] == 20) ^ (WIDE[:, 0] > 1)).astype(int)
PARAMS = {"kernel": "laplacian", "C": 10.0, "loss": "squared_error", "random_state": 0}


def fitted(coding, **params):
    return VoronoiSVC(1500, **{**PARAMS, **params}, feature_coding=coding).fit(TABLE, Y)


@pytest.mark.parametrize("coding", ["ranks", "indicators", "both"])
def test_a_coded_model_is_one_of_coded_rows(coding):
    model = fitted(coding, feature_scale="spread", gamma=2.0)
    (base,) = find_bases(TABLE, (coding,), 100)
    by_hand = scaled(TABLE, base.scale)
    oracle = VoronoiSVC(1500, **PARAMS, gamma=2.0, feature_coding="none", feature_scale=None)
    expected = oracle.fit(by_hand, Y).decision_function(by_hand[:500])
    np.testing.assert_allclose(model.decision_function(TABLE[:500]), expected, atol=1e-4)
    assert model.n_features_in_ == 4
    assert len(model.coded_features_) == len(model.feature_scale_) == by_hand.shape[1]
    assert len(model.feature_importances_) == 4


def test_codings_that_cannot_be_are_refused():
    for params, match in (
        ({"feature_scale": [1.0] * 4}, "one factor per feature, but feature_coding='ranks'"),
        ({"kernel": "linear", "feature_scale": None}, 'Pass feature_coding="none"'),
    ):
        with pytest.raises(ParameterError, match=match):
            fitted("ranks", **params)
