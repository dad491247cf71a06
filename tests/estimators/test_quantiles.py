"""Answers at levels: shapes, order, no crossing, coverage, scores, weights, partitions."""

import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import d2_pinball_score
from support import compiled

from daskls import VoronoiQuantileRegressor, VoronoiSVR
from daskls.kernels.frame import decide_pairs
from daskls.solvers.level_losses import Expectile, Pinball
from daskls.store.reader import ModelReader

RNG = np.random.default_rng(0)
N = 900
X = RNG.random((N, 2))
SPREAD = 0.2 + X[:, 1]
Y = 1000 + 50 * (np.sin(6 * X[:, 0]) + SPREAD * RNG.standard_normal(N))
Q = RNG.random((300, 2))
LEVELS = (0.9, 0.1, 0.5, 0.7, 0.3)
GIVEN = {"kernel": "rbf", "gamma": 4.0, "feature_scale": None, "random_state": 0}
# Costs in the units of each loss.
COSTS = {"pinball": 500.0, "expectile": 5.0}
LOSSES = list(COSTS)


def small(loss="pinball", **params):
    """Return an estimator of three cells or so, at one C."""
    return VoronoiQuantileRegressor(
        400, **{**GIVEN, "loss": loss, "C": COSTS.get(loss), "quantile": LEVELS, **params}
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_a_float_answers_a_column_and_a_sequence_columns_in_its_order(loss):
    several = small(loss).fit(X, Y)
    found = several.predict(Q)
    lazy = several.predict(da.from_array(Q, chunks=(90, 2)))
    assert lazy.shape == found.shape == (300, 5)
    for column in (0, 2):
        alone = small(loss, quantile=LEVELS[column]).fit(X, Y).predict(Q)
        assert alone.shape == (300,)
        # But where levels crossed and were sorted.
        assert (alone == found[:, column]).mean() > 0.9
    assert small(loss, quantile=[0.7]).fit(X, Y).predict(Q).shape == (300, 1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_partitions", [1, 3])
def test_levels_never_cross_and_are_sorted_after_partitions_are_averaged(loss, n_partitions):
    # Few rows, a narrow kernel and a large C: what is fitted level by level crosses.
    few = X[:150], Y[:150]
    wild = {"gamma": 60.0, "C": 40 * COSTS[loss], "n_partitions": n_partitions}
    model = VoronoiQuantileRegressor(
        60, **{**GIVEN, **wild, "loss": loss, "quantile": LEVELS, "fit_intercept": False}
    ).fit(*few)
    found = model.predict(Q)
    order = np.argsort(LEVELS)
    assert (np.diff(found[:, order], axis=1) >= 0).all()
    raw = mean_of_cells(model, Q)
    assert (np.diff(raw[:, order], axis=1) < 0).any()
    expected = np.empty_like(raw)
    expected[:, order] = np.sort(raw, axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    if loss == "pinball":
        # Summed over levels the loss of no row rises by it.
        lost = [row_losses(Y[:150], mean_of_cells(model, X[:150])), row_losses(*own(model))]
        assert (lost[1] <= lost[0] * (1 + 1e-12)).all()
        assert lost[1].sum() < lost[0].sum()


def own(model):
    """Return what is true and what is answered of the training rows."""
    return Y[:150], model.predict(X[:150])


def row_losses(y, values):
    """Return each row's pinball loss, summed over levels."""
    measure = Pinball()
    columns = zip(values.T, LEVELS, strict=True)
    return sum(measure.losses(y - column, level) for column, level in columns)


def mean_of_cells(model, rows):
    """Return the mean over partitions of what cells answer, in the units of y; nothing sorted."""
    reader = ModelReader(model._reader.root.where())
    views = model._fitted_method().space(reader).find(rows)
    models = dict(enumerate(reader.read_cells(np.arange(reader.n_cells))))
    means = [
        np.mean([decide_pairs(models[view[i]], rows[i : i + 1])[0] for view in views], axis=0)
        for i in range(len(rows))
    ]
    return np.array(means) * reader.target.scale + reader.target.center


@compiled
def test_so_many_rows_are_below_as_a_level_says():
    model = VoronoiQuantileRegressor(quantile=(0.1, 0.5, 0.9), random_state=0).fit(X, Y)
    x = RNG.random((4000, 2))
    y = 1000 + 50 * (np.sin(6 * x[:, 0]) + (0.2 + x[:, 1]) * RNG.standard_normal(4000))
    found = model.predict(x)
    covered = (y[:, None] <= found).mean(axis=0)
    np.testing.assert_allclose(covered, [0.1, 0.5, 0.9], atol=0.06)
    # Wider where y is: what no model of the mean and one deviation answers.
    wide = found[:, 2] - found[:, 0]
    expected = 2 * 1.2816 * 50 * (0.2 + x[:, 1])
    assert np.corrcoef(wide, expected)[0, 1] > 0.9
    assert 0.8 < np.median(wide / expected) < 1.2


@compiled
def test_the_expectile_of_level_one_half_is_the_mean_and_others_are_symmetric():
    half = small("expectile", quantile=0.5).fit(X, Y)
    # Twice the C: the weights of both sides are 1/2.
    mean = VoronoiSVR(400, **GIVEN, C=COSTS["expectile"] / 2).fit(X, Y)
    np.testing.assert_allclose(half.predict(Q), mean.predict(Q), rtol=0, atol=2e-3 * Y.std())
    low = small("expectile", quantile=0.2).fit(X, Y).predict(Q)
    high = small("expectile", quantile=0.8).fit(X, -Y).predict(Q)
    np.testing.assert_allclose(low, -high, rtol=0, atol=2e-3 * Y.std())
    assert (low < half.predict(Q)).mean() > 0.95


def test_score_is_the_mean_of_d2_at_the_levels():
    weights = RNG.uniform(0.5, 2.0, N)
    quantiles = small(quantile=(0.9, 0.3)).fit(X, Y)
    found = quantiles.predict(X)
    for given in (None, weights):
        expected = [
            d2_pinball_score(Y, found[:, column], alpha=level, sample_weight=given)
            for column, level in enumerate((0.9, 0.3))
        ]
        assert quantiles.score(X, Y, given) == pytest.approx(np.mean(expected), rel=1e-12)
    expectiles = small("expectile", quantile=0.9).fit(X, Y)
    missed = Y - expectiles.predict(X)
    lost = np.average(np.where(missed > 0, 0.9, 0.1) * missed**2, weights=weights)
    best = Expectile().constant(Y, weights, 0.9)
    constant = np.average(np.where(best < Y, 0.9, 0.1) * (Y - best) ** 2, weights=weights)
    assert expectiles.score(X, Y, weights) == pytest.approx(1 - lost / constant, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_constants_are_quantiles_and_expectiles(loss):
    y = np.where(np.arange(N) < 300, 0.0, 6.0)
    model = small(loss, quantile=(0.2, 0.5)).fit(np.ones((N, 2)), y)
    expected = [0.0, 6.0] if loss == "pinball" else [2.0, 4.0]
    np.testing.assert_allclose(model.predict(np.ones((2, 2))), [expected] * 2, atol=1e-12)
    same = small(loss, quantile=(0.2, 0.5)).fit(X, np.full(N, 2.5))
    assert {*same.predict(Q).ravel()} == {2.5}
    assert same.score(X, np.full(N, 2.5)) == 1.0
