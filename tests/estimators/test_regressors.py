"""Numbers as targets: kernel ridge and brute force, in y's units; answers at levels."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import d2_pinball_score
from support import compiled, few

import daskls
from daskls import DataError, FalkSVR, RandomChunkSVR, VoronoiQuantileRegressor, VoronoiSVR
from daskls.kernels.frame import decide_pairs
from daskls.solvers.level_losses import Expectile, Pinball
from daskls.store.reader import ModelReader

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
    missed = []
    for i in range(60):
        others = np.arange(60) != i
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
    "KernelKNNRegressor": daskls.KernelKNNRegressor(7),
    "FalkSVR": FalkSVR(80, **FALK),
    "FalkSVR, chosen": FalkSVR([60, 90], selection="local", random_state=0),
    "FalkSVR, centers": FalkSVR(80, assign="k_centers", n_assigned=20, **FALK),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_constant_answers_the_constant_and_units_of_y_do_not_matter(name):
    small = SMALL[name]
    assert set(clone(small).fit(X, np.full(500, 7.25)).predict(Q)) == {7.25}
    # Beside a column that varies too.
    y = np.stack([np.full(500, 0.1), Y], axis=1)
    assert np.allclose(clone(small).fit(X, y).predict(Q)[:, 0], 0.1, rtol=1e-12)
    plain = clone(small).fit(X, Y).predict(Q)
    for unit in (1e-30, 1e60):
        found = clone(small).fit(X, unit * Y).predict(Q)
        np.testing.assert_allclose(found, unit * plain, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in SMALL if "chosen" not in name])
def test_columns_are_answered_as_they_are_alone(name):
    # What is chosen is for all columns.
    small, rtol = SMALL[name], 1e-9 if name == "VoronoiSVR" else 1e-6
    both = clone(small).fit(X, TWO).predict(Q)
    assert both.shape == (80, 2)
    for column in range(2):
        alone = clone(small).fit(X, TWO[:, column]).predict(Q)
        np.testing.assert_allclose(both[:, column], alone, rtol=rtol)


N = 900
ROWS = RNG.random((N, 2))
SPREAD = 0.2 + ROWS[:, 1]
NUMBERS = 1000 + 50 * (np.sin(6 * ROWS[:, 0]) + SPREAD * RNG.standard_normal(N))
ASKED = RNG.random((300, 2))
LEVELS = (0.9, 0.1, 0.5, 0.7, 0.3)
OF_LEVELS = {"kernel": "rbf", "gamma": 4.0, "feature_scale": None, "random_state": 0}
# Costs in the units of each loss.
COSTS = {"pinball": 500.0, "expectile": 5.0}
LOSSES = list(COSTS)


def of_levels(loss="pinball", **params):
    """Return an estimator of three cells or so, at one C."""
    return VoronoiQuantileRegressor(
        400, **{**OF_LEVELS, "loss": loss, "C": COSTS.get(loss), "quantile": LEVELS, **params}
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_a_float_answers_a_column_and_a_sequence_columns_in_its_order(loss):
    several = of_levels(loss).fit(ROWS, NUMBERS)
    found = several.predict(ASKED)
    lazy = several.predict(da.from_array(ASKED, chunks=(90, 2)))
    assert lazy.shape == found.shape == (300, 5)
    for column in (0, 2):
        alone = of_levels(loss, quantile=LEVELS[column]).fit(ROWS, NUMBERS).predict(ASKED)
        assert alone.shape == (300,)
        # But where levels crossed and were sorted.
        assert (alone == found[:, column]).mean() > 0.9
    assert of_levels(loss, quantile=[0.7]).fit(ROWS, NUMBERS).predict(ASKED).shape == (300, 1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_partitions", [1, 3])
def test_levels_never_cross_and_are_sorted_after_partitions_are_averaged(loss, n_partitions):
    # Few rows, a narrow kernel and a large C: what is fitted level by level crosses.
    few = ROWS[:150], NUMBERS[:150]
    wild = {"gamma": 60.0, "C": 40 * COSTS[loss], "n_partitions": n_partitions}
    model = VoronoiQuantileRegressor(
        60, **{**OF_LEVELS, **wild, "loss": loss, "quantile": LEVELS, "fit_intercept": False}
    ).fit(*few)
    found = model.predict(ASKED)
    order = np.argsort(LEVELS)
    assert (np.diff(found[:, order], axis=1) >= 0).all()
    raw = mean_of_cells(model, ASKED)
    assert (np.diff(raw[:, order], axis=1) < 0).any()
    expected = np.empty_like(raw)
    expected[:, order] = np.sort(raw, axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    if loss == "pinball":
        # Summed over levels the loss of no row rises by it.
        y, answers = NUMBERS[:150], model.predict(ROWS[:150])
        lost, at_first = row_losses(y, answers), row_losses(y, mean_of_cells(model, ROWS[:150]))
        assert (lost <= at_first * (1 + 1e-12)).all()
        assert lost.sum() < at_first.sum()


def row_losses(y, values):
    """Return each row's pinball loss, summed over levels."""
    columns = zip(values.T, LEVELS, strict=True)
    return sum(Pinball().losses(y - column, level) for column, level in columns)


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
    model = VoronoiQuantileRegressor(quantile=(0.1, 0.5, 0.9), random_state=0).fit(ROWS, NUMBERS)
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
    half = of_levels("expectile", quantile=0.5).fit(ROWS, NUMBERS)
    # Twice the C: the weights of both sides are 1/2.
    mean = VoronoiSVR(400, **OF_LEVELS, C=COSTS["expectile"] / 2).fit(ROWS, NUMBERS)
    np.testing.assert_allclose(
        half.predict(ASKED), mean.predict(ASKED), rtol=0, atol=2e-3 * NUMBERS.std()
    )
    low = of_levels("expectile", quantile=0.2).fit(ROWS, NUMBERS).predict(ASKED)
    high = of_levels("expectile", quantile=0.8).fit(ROWS, -NUMBERS).predict(ASKED)
    np.testing.assert_allclose(low, -high, rtol=0, atol=2e-3 * NUMBERS.std())
    assert (low < half.predict(ASKED)).mean() > 0.95


def test_score_is_the_mean_of_d2_at_the_levels():
    weights = RNG.uniform(0.5, 2.0, N)
    quantiles = of_levels(quantile=(0.9, 0.3)).fit(ROWS, NUMBERS)
    found = quantiles.predict(ROWS)
    for given in (None, weights):
        expected = [
            d2_pinball_score(NUMBERS, found[:, column], alpha=level, sample_weight=given)
            for column, level in enumerate((0.9, 0.3))
        ]
        assert quantiles.score(ROWS, NUMBERS, given) == pytest.approx(np.mean(expected), rel=1e-12)
    with pytest.raises(DataError, match="y has 2 columns, but the model predicts levels of a sin"):
        quantiles.score(ROWS, np.stack([NUMBERS, NUMBERS], axis=1))
    expectiles = of_levels("expectile", quantile=0.9).fit(ROWS, NUMBERS)
    missed = NUMBERS - expectiles.predict(ROWS)
    lost = np.average(np.where(missed > 0, 0.9, 0.1) * missed**2, weights=weights)
    best = Expectile().constant(NUMBERS, weights, 0.9)
    constant = np.average(
        np.where(best < NUMBERS, 0.9, 0.1) * (NUMBERS - best) ** 2, weights=weights
    )
    assert expectiles.score(ROWS, NUMBERS, weights) == pytest.approx(1 - lost / constant, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_constants_are_quantiles_and_expectiles(loss):
    y = np.where(np.arange(N) < 300, 0.0, 6.0)
    model = of_levels(loss, quantile=(0.2, 0.5)).fit(np.ones((N, 2)), y)
    expected = [0.0, 6.0] if loss == "pinball" else [2.0, 4.0]
    np.testing.assert_allclose(model.predict(np.ones((2, 2))), [expected] * 2, atol=1e-12)
    same = of_levels(loss, quantile=(0.2, 0.5)).fit(ROWS, np.full(N, 2.5))
    assert {*same.predict(ASKED).ravel()} == {2.5}
    assert same.score(ROWS, np.full(N, 2.5)) == 1.0
