"""Cells under trial, against kernel ridge regression, refits and finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from daskls.kernels.kernel import find_kernel
from daskls.records import SolverSpec
from daskls.scaling import cells
from daskls.scaling.cells import CodedRows, TrialCell, TrialRows, descend
from daskls.scaling.grid import RIDGES, WIDTHS, Trial, TrialGrid
from daskls.solvers.squares.system import median_distance
from daskls.solvers.squares.target_coding import ClassCoding, NumberCoding

RNG = np.random.default_rng(0)
A = RNG.random((150, 3)).astype("f4")
CODES = (A[:, 0] * 3).astype(int)
Y = np.where(CODES[:, None] == np.arange(3), 1.0, -1.0)
WEIGHTS = RNG.random(150) + 0.5
TRIAL, AIM, ONES = Trial("laplacian", 0.5, 0.03), ClassCoding(3), np.ones(3)
# Two features decide; eight are noise of the same spread.
X = np.random.default_rng(0).random((2500, 10)).astype("f4")


def cell_of(X, codes, weights=None, n_asked=None, n_training=None):
    """Return a cell that predicts its last rows: those that do not train, or each without it."""
    n = len(X)
    weights = np.ones(n) if weights is None else weights
    n_training = n_training or n
    asked = np.arange(n_asked or n - n_training or n)
    return TrialRows(
        CodedRows(np.asarray(X, "f4"), codes, weights, np.arange(n)), n_training, asked
    )


HELD = cell_of(A, CODES, WEIGHTS, n_training=100)


def gamma_of(rows):
    return 1 / (TRIAL.width * median_distance("laplacian", rows))


def test_held_out_rows_are_answered_as_by_kernel_ridge():
    found = TrialCell(HELD, ONES, "laplacian", AIM).errors(TRIAL)
    ridge = KernelRidge(alpha=TRIAL.ridge, kernel="laplacian", gamma=gamma_of(A[:100]))
    values = ridge.fit(A[:100], Y[:100], WEIGHTS[:100]).predict(A[100:])
    squared = ((np.clip(values, -1, 1) - Y[100:]) ** 2).mean(axis=1)
    np.testing.assert_allclose(found.squared, squared, atol=1e-4)
    np.testing.assert_array_equal(found.wrong, values.argmax(axis=1) != CODES[100:])


@pytest.mark.parametrize("factors", [ONES, np.array([1.0, 0.5, 0.0])], ids=["as is", "scaled"])
@pytest.mark.parametrize("n_asked", [60, 25, 1])
def test_rows_that_are_left_out_are_answered_by_all_others(n_asked, factors):
    rows = A[:60].copy()
    # Equal only where the third feature is left out: then each answers for the other.
    rows[1::2, :2] = rows[::2, :2]
    own = cell_of(rows, CODES[:60], n_asked=n_asked)
    found = TrialCell(own, factors, "laplacian", AIM).errors(TRIAL)
    assert len(found.squared) == n_asked
    Z = rows * factors
    gamma = gamma_of(Z.astype("f4"))
    for i in range(59, 59 - n_asked, -7):
        others = np.delete(np.arange(60), i)
        model = KernelRidge(alpha=TRIAL.ridge, kernel="laplacian", gamma=gamma)
        value = np.clip(model.fit(Z[others], Y[others]).predict(Z[i : i + 1]), -1, 1)
        error = ((value - Y[i]) ** 2).mean()
        assert found.squared[i - 60 + n_asked] == pytest.approx(error, abs=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "laplacian"])
def test_equal_rows_have_no_distance(kernel):
    # Products of these leave rounding errors of 1e-8 between them.
    equal = np.repeat(A[:1] * np.float32(0.37), 80, axis=0)
    assert median_distance(kernel, equal) == 1.0
    other = equal[0] + np.array([3.0, 0.0, 0.0], "f4")
    assert median_distance(kernel, np.vstack([equal, other])) == pytest.approx(3.0, rel=1e-6)
    own = cell_of(equal, CODES[:80], WEIGHTS[:80], n_training=50)
    answers = TrialCell(own, ONES, kernel, AIM).errors(Trial(kernel, 8.0, 0.003))
    # As many rows of one place have their mean for an answer.
    mean = np.average(Y[:50], axis=0, weights=WEIGHTS[:50])
    expected = ((np.clip(mean, -1, 1) - Y[50:80]) ** 2).mean(axis=1)
    np.testing.assert_allclose(answers.squared, expected, atol=2e-3)
    np.testing.assert_allclose(cells.errors_of_mean(own, AIM), expected)


@pytest.mark.parametrize("n_training", [40, 60])
@pytest.mark.parametrize("classes", [[1], [1, 3]])
def test_a_class_that_a_cell_lacks_has_no_function_there(classes, n_training):
    """As in the model of the cell: of one class it answers that class, however far a row is."""
    codes, rows = np.array(classes)[np.arange(60) % len(classes)], np.r_[A[:40], A[40:60] + 100]
    found, of_two = (
        TrialCell(cell_of(rows, own, n_training=n_training), ONES, "rbf", ClassCoding(n)).errors(
            Trial("rbf", 0.1, 0.1)
        )
        for own, n in ((codes, 5), (np.searchsorted(classes, codes), 2))
    )
    # Two functions of five err as the one of two classes does; the others know their class.
    np.testing.assert_allclose(found.squared, of_two.squared * 2 / 5, atol=1e-6)
    assert of_two.squared.any() == of_two.wrong.any() == found.wrong.any() == (len(classes) > 1)


def cells_at(*owns):
    return [TrialCell(own, ONES, "rbf", AIM) for own in owns]


def mean_error(owns, trial):
    """Return the error of some cells, computed anew."""
    squared = np.concatenate([cell.errors(trial).squared for cell in cells_at(*owns)])
    return np.average(squared, weights=np.concatenate([own.predicted.weights for own in owns]))


@pytest.mark.parametrize("start", ["usual", "corner"])
def test_descent_ends_where_no_neighbor_is_better(start):
    # Of two cells together.
    owns = HELD, cell_of(A[:60], CODES[:60])
    weights, grid = np.r_[WEIGHTS[100:], np.ones(60)], TrialGrid.of(SolverSpec())
    begin = grid.start("rbf") if start == "usual" else grid.at((0, 0), "rbf")
    trial, answers, n_trials = descend(cells_at(*owns), begin, grid, weights, (2, 1), 999)
    i, j = grid.place(trial)
    least = np.average(answers.squared, weights=weights)
    assert least == pytest.approx(mean_error(owns, trial))
    assert least < mean_error(owns, begin)
    for place in ((i + 2, j), (i - 2, j), (i, j + 1), (i, j - 1)):
        other = grid.at(place, "rbf")
        assert other is None or mean_error(owns, other) > least
    assert n_trials < len(WIDTHS) * len(RIDGES)
    assert descend(cells_at(*owns), begin, grid, weights, (2, 1), 3)[2] <= 3


def slopes_of(rows, codes, factors, trial, weights=None, aim=AIM):
    return TrialCell(cell_of(rows, codes, weights), factors, trial.kernel, aim).error_slopes(trial)


@pytest.mark.parametrize("is_gamma", [False, True])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "exponential", "laplacian"])
def test_slopes_are_those_of_the_leave_one_out_error(kernel, offset, is_gamma):
    rows = X[:160, :4].copy()
    # Copies, which are left out together.
    rows[:20] = rows[20:40]
    codes = (rows[:, 0] + rows[:, 1] ** 2 > 0.7).astype(int) + (rows[:, 2] > 0.8)
    weights = np.random.default_rng(2).random(160) + 0.5
    trial, factors = Trial(kernel, 1.0, 0.1, is_gamma, offset), np.array([1.0, 0.5, 2.0, 1.0])
    weight, error, *slopes = slopes_of(rows, codes, factors, trial, weights)
    assert weight == pytest.approx(weights.sum())
    squared = TrialCell(cell_of(rows, codes, weights), factors, kernel, AIM).errors(trial).squared
    # Summed over three functions. A trial's values are clipped, which moves some.
    assert error == pytest.approx(3 * weights @ squared, rel=0.1)
    step = 0.03
    for j in range(5):
        moves = np.zeros((2, 5))
        moves[:, j] = step, -step
        sides = [
            slopes_of(rows, codes, factors * np.exp(own[1:]), moved, weights)[1]
            for own in moves
            for moved in [replace(trial, width=float(np.exp(own[0])))]
        ]
        expected = (sides[0] - sides[1]) / (2 * step)
        if j or not is_gamma:
            # The median distance is that of some rows; its share by feature, that of their spread.
            near = 1e-3 if is_gamma or not j else 0.03
            assert slopes[j] == pytest.approx(expected, abs=near * error, rel=1e-2)
        else:
            # A given gamma stays.
            assert slopes[0] == 0


def test_a_cell_of_one_distinct_row_is_predicted_and_teaches_nothing():
    every = CodedRows(0 * X[:40, :3], X[:40, 3:4].astype(float), np.ones(40), np.arange(40))
    trial = Trial("rbf", 1.0, 0.1)
    # Held out, and left out.
    for n in (30, 40):
        cell = TrialCell(TrialRows(every, n, np.arange(10)), ONES, "rbf", NumberCoding(1))
        assert np.isfinite(cell.errors(trial).squared).all()
        assert not cell.error_slopes(trial).any()


@pytest.mark.parametrize("effect", [np.abs, lambda x: x])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_features_stand_out_that_say_something_only_together_or_by_their_size(kernel, effect):
    # Derivatives of a model do not show them among forty.
    rows = np.random.default_rng(5).standard_normal((800, 40)).astype("f4")
    value = rows[:, 0] * rows[:, 1] + effect(rows[:, 2])
    own = cell_of(rows, (value > np.median(value)).astype(int))
    trial = Trial(kernel, 1.0, 0.1)
    found, _ = cells.learn_factors([own], np.ones(40), trial, ClassCoding(2))
    assert sorted(np.argsort(-found)[:3].tolist()) == [0, 1, 2]


def test_shares_are_those_of_distances():
    rows = np.random.default_rng(6).standard_cauchy((400, 3)).astype("f4") ** 3
    lengths = {
        "laplacian": np.abs(rows - np.median(rows, axis=0)).mean(axis=0),
        "rbf": rows.var(axis=0, dtype=np.float64),
    }
    for name, own in lengths.items():
        np.testing.assert_allclose(find_kernel(name).shares(rows), own / own.sum(), rtol=1e-5)
        assert not find_kernel(name).shares(0 * rows).any()
