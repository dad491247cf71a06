"""The race against the full grid: who leaves, who must not, and what is saved."""

import naive
import numba
import numpy as np
import pytest
from cells import SEED, binary_cell, class_cell, fit, queries

from daskls.records import CellReport, SolverSpec
from daskls.solvers.cell import fit_cell
from daskls.solvers.evaluate import cell_scores
from daskls.solvers.folds import deal_folds
from daskls.solvers.path import WidthPath
from daskls.solvers.race import Race, is_beaten

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without compilation")


def errors(*rows, m=40):
    wrong = np.zeros(m, bool)
    wrong[list(rows)] = True
    return wrong


def small_race(n_gammas=2, n_costs=3, n_folds=4, *, on=True):
    return Race(np.ones(40), np.arange(n_folds + 1) * 40 // n_folds, n_gammas, n_costs, on=on)


def test_beaten_beyond_doubt_is_mcnemars_test():
    none = np.zeros(40)
    assert not is_beaten(none, none)
    assert not is_beaten(errors(*range(9)).astype(float), none)
    assert is_beaten(errors(*range(10)).astype(float), none)
    # Errors that both make say nothing; errors on other rows add doubt.
    both = errors(*range(20, 40)).astype(float)
    assert is_beaten(both + errors(*range(10)), both)
    assert not is_beaten(errors(*range(10)).astype(float), errors(*range(10, 13)).astype(float))
    # One heavy row proves no more than one row.
    assert not is_beaten(100.0 * errors(0), none)


def test_rounds():
    assert small_race().rounds == [(0, 1), (2, 3)]
    assert small_race(on=False).rounds == [(0, 1, 2, 3)]
    assert small_race(n_folds=2).rounds == [(0, 1)]
    # A fold without rows is trained by nobody.
    holes = Race(np.ones(4), np.array([0, 2, 2, 4]), 1, 1, on=True)
    assert holes.rounds == [(0, 2)]


def test_the_beaten_leave_and_the_best_stays():
    race = small_race()
    for cost, n_wrong in enumerate((2, 12, 5)):
        race.add(0, cost, (0, 1), errors(*range(n_wrong)))
        race.add(1, cost, (0, 1), errors(*range(19)))
    race.drop_beaten()
    assert race.costs_of(0) == [0, 2]
    assert race.costs_of(1) == []
    assert not race.is_open


def test_the_end_of_a_line_is_its_gammas_alone():
    race = small_race()
    race.end_line(0, [1, 2])
    assert race.costs_of(0) == [0]
    assert race.costs_of(1) == [0, 1, 2]
    race.add(0, 0, (0, 1), errors(*range(15)))
    for cost in range(3):
        race.add(1, cost, (0, 1), errors(cost))
    race.drop_beaten()
    assert race.costs_of(0) == []


def test_off_there_is_one_round_in_which_nobody_leaves():
    assert not small_race(on=False).is_open
    assert not small_race(n_folds=2).is_open
    assert small_race().is_open


def line(X, y, folds, costs, doubt):
    """Train one binary line without the first fold; return the places left and the counts."""
    order = np.argsort(folds, kind="stable")
    K = naive.kernel_matrix(X[order], X[order], "rbf", gamma=30.0).astype(np.float32)
    signs = np.where(y[order] > 0, 1, -1).astype(np.float32)
    fold_ptr = np.searchsorted(folds[order], np.arange(folds.max() + 2))
    path = WidthPath(K, signs, np.ones_like(signs), fold_ptr, SolverSpec(), {})
    solutions, decisions = path.train(list(range(len(costs))), np.array(costs), (0, 1), doubt)
    wrong = np.array([(row > 0) != (signs > 0) for row in decisions])[:, : fold_ptr[1]]
    return solutions[0].places, path.counts, wrong.astype(float)


@compiled
def test_a_line_ends_where_a_fold_has_worsened_beyond_doubt():
    # A fifth of the labels is wrong: a large C learns them.
    X, y = noisy_cell(0, m=900, noise=0.2)
    folds = deal_folds(y, 3, SEED)
    costs = np.geomspace(0.05, 5000, 8).tolist()
    places, counts, wrong = line(X, y, folds, costs, 0.0)
    assert places == tuple(range(8))
    assert counts.n_trained == 16
    best = [wrong[: i + 1][wrong[: i + 1].sum(axis=1).argmin()] for i in range(8)]
    first = next(i for i in range(1, 8) if is_beaten(wrong[i], best[i - 1]))
    ended, counts, _ = line(X, y, folds, costs, 3.0)
    # The other fold may end it earlier still.
    assert 0 < len(ended) <= first < 8
    assert ended == tuple(range(len(ended)))
    assert counts.n_trained < 16


def test_the_weight_decided_wrongly_is_summed_over_all_folds():
    race = Race(np.array([1.0, 3.0, 1.0, 1.0, 1.0]), np.array([0, 2, 5]), 1, 1, on=True)
    race.add(0, 0, (0, 1), np.array([False, True, True, False, False]))
    assert (race.wrong_weight(0, 0), race.held_out_weight) == (4.0, 7.0)
    # Rows past the last fold are never held out.
    partly = Race(np.ones(8), np.array([0, 2, 5]), 1, 1, on=True)
    assert partly.held_out_weight == 5.0


def test_equal_weights_decided_wrongly_are_equal_in_any_order():
    weights = np.array([0.1, 0.2, 0.3, 0.3, 0.2, 0.1])
    race = Race(weights, np.array([0, 3, 6]), 2, 1, on=True)
    assert weights[:3].sum() != weights[3:].sum()
    race.add(0, 0, (0, 1), np.arange(6) < 3)
    race.add(1, 0, (0, 1), np.arange(6) >= 3)
    assert race.wrong_weight(0, 0) == race.wrong_weight(1, 0)


def noisy_cell(seed, m=600, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    return X, ((X[:, 0] * X[:, 1] > 0) ^ (rng.random(m) < noise)).astype(int)


@compiled
@pytest.mark.parametrize("seed", range(3))
def test_racing_trains_less_and_chooses_no_worse_beyond_doubt(seed):
    X, y = noisy_cell(seed)
    full, race = (fit(X, y, search=search, cv=5) for search in ("full", "race"))
    assert full.report.n_trained == 500 + 5
    assert race.report.n_trained < 400
    # 3 standard deviations of a paired difference of 60 wrong rows of 600, at the most.
    doubt = 3 * np.sqrt(60) / 600
    assert abs(race.report.validation_error - full.report.validation_error) <= doubt


def test_one_combination_is_the_same_model():
    X, y = binary_cell()
    models = [fit(X, y, C=(3.0,), gamma=(1.0,), search=search) for search in ("full", "race")]
    assert {m.report.n_trained for m in models} == {5 + 5}
    for name in ("rows", "coef", "center"):
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))


@compiled
def test_many_classes_race_too():
    X, codes = class_cell(3, m=300)
    full, race = (fit(X, codes, search=search, cv=5) for search in ("full", "race"))
    assert race.report.n_trained < full.report.n_trained
    assert race.report.validation_error <= full.report.validation_error + 0.1
    assert cell_scores(race, queries(X)).shape == (25, 3)


@compiled
def test_the_same_bits_twice():
    X, y = noisy_cell(4)
    models = [
        fit_cell(X, y, np.ones(len(X)), SolverSpec(), CellReport(0, 0, 0, 0, 0.0), SEED)
        for _ in range(2)
    ]
    for name in ("rows", "coef", "center", "class_ptr"):
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))
