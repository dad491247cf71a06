"""Features that a learned scale lost, and how they come back."""

import numpy as np
import pytest
from scipy.stats import f_oneway

from daskls import VoronoiSVC, VoronoiSVR
from daskls.datasets import make_friedman1
from daskls.scaling.grid import Trial
from daskls.scaling.lost import MOST_GROUPS, probability, with_lost
from daskls.scaling.rungs import RaceRows
from daskls.solvers.squares.aims import ClassAim, NumberAim

RNG = np.random.default_rng(0)
ONES = np.ones(800)


@pytest.mark.parametrize("n_values", [2, 5, MOST_GROUPS, 800])
def test_the_probability_is_that_of_an_analysis_of_variance(n_values):
    x = RNG.permutation(np.arange(800) % n_values).astype("f4")
    y = RNG.standard_normal(800) + 0.1 * x / n_values
    groups = x if n_values <= MOST_GROUPS else x // (800 / MOST_GROUPS)
    expected = f_oneway(*(y[groups == g] for g in np.unique(groups))).pvalue
    assert probability(x, y[:, None], ONES) == pytest.approx(expected, rel=0.05)
    if n_values <= MOST_GROUPS:
        # The units of targets and of weights do not count, nor does a second column like the first.
        several = probability(x, np.stack([y, 3 * y + 1], axis=1), 2 * ONES)
        assert several == pytest.approx(expected, rel=1e-9)


def test_what_cannot_be_compared_says_nothing():
    y = RNG.standard_normal((800, 1))
    # Most rows have the largest value, so that all are one group.
    x = np.minimum(np.arange(800), 9).astype("f4")
    assert probability(x, y, ONES) == 1
    # As many groups as rows.
    assert probability(np.arange(4, dtype="f4"), y[:4], ONES[:4]) == 1
    # A rare indicator is two groups.
    rare = (np.arange(800) < 20).astype("f4")
    assert probability(rare, y + 9 * rare[:, None], ONES) < 1e-9


@pytest.mark.parametrize("aim", [ClassAim(2), NumberAim(1)])
def test_a_symmetric_feature_comes_back_and_those_that_say_nothing_do_not(aim):
    # Of its own, as one draw in a hundred finds a feature that says nothing.
    X = (np.random.default_rng(0).random((1600, 30)) - 0.5).astype("f4")
    # In other units.
    X[:, 2] *= 10
    value = X[:, 0] + (X[:, 2] / 5) ** 2
    targets = (value > 0.3).astype(np.int64) if isinstance(aim, ClassAim) else value[:, None]
    factors = np.where(np.arange(30) == 0, 1.0, 0.001)
    rows = [RaceRows(X[own], targets[own], ONES) for own in (slice(800), slice(800, None))]
    found = with_lost(*rows, factors, Trial("rbf", 1.0, 0.1), aim)
    assert np.flatnonzero(found != factors).tolist() == [2]
    assert found[2] == pytest.approx(X[800:, 0].std() / X[800:, 2].std())
    # What is not gone is not lost.
    factors[2] = 1.0
    assert (with_lost(*rows, factors, Trial("rbf", 1.0, 0.1), aim) == factors).all()


@pytest.mark.parametrize("make", [VoronoiSVC, VoronoiSVR])
def test_of_many_features_a_fit_keeps_those_of_symmetric_effects(make):
    X, y = (np.asarray(own) for own in make_friedman1(3400, d=60, random_state=0)[:2])
    targets = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75])) if make is VoronoiSVC else y
    model = make(random_state=0, n_partitions=1).fit(X, targets)
    largest = np.argsort(-np.asarray(model.feature_scale_))[:5]
    assert sorted(largest.tolist()) == [0, 1, 2, 3, 4]
