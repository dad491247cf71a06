"""The search from coarse to fine against the full grid: what is tried, who leaves, who wins."""

import itertools

import numpy as np
import pytest
from cells import SEED, binary_cell, class_cell, fit, queries
from sklearn.metrics import recall_score
from sklearn.svm import SVC
from small import tiny_tiles
from support import compiled, few

from daskls.records import SolverSpec
from daskls.solvers.evaluate import cell_scores
from daskls.solvers.grid import Grid, assign_folds, coarse_points, near_points, resolve_grid
from daskls.solvers.hinge.width import HingePairSolver
from daskls.solvers.rows import LocalRows
from daskls.solvers.search import GridSearch, find_criterion, is_beaten


def noisy_cell(seed, m=600, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    return X, ((X[:, 0] * X[:, 1] > 0) ^ (rng.random(m) < noise)).astype(int)


def search_of(X, codes, weights=None, **spec):
    weights = np.ones(len(X)) if weights is None else weights
    spec = SolverSpec(**{"cv": 3, **spec})
    own = LocalRows.of(X, codes, weights, spec)
    _, cell = own.data(assign_folds(own.present, spec.cv, SEED))
    grid = own.in_units(resolve_grid(spec, own.radius, len(X), X.shape[1]))
    return GridSearch(cell, spec, grid, HingePairSolver)


def wrong_rows(*rows, m=40):
    wrong = np.zeros(m)
    wrong[list(rows)] = 1.0
    return wrong


def test_beaten_beyond_doubt_is_mcnemars_test():
    none = np.zeros(40)
    assert not is_beaten(none, none)
    assert not is_beaten(wrong_rows(*range(4)), none)
    assert is_beaten(wrong_rows(*range(5)), none)
    # Errors that both make say nothing; errors on other rows add doubt.
    both = wrong_rows(*range(20, 40))
    assert is_beaten(both + wrong_rows(*range(5)), both)
    assert not is_beaten(wrong_rows(*range(5)), wrong_rows(5))
    # One heavy row proves no more than one row.
    assert not is_beaten(100.0 * wrong_rows(0), none)


@pytest.mark.parametrize("shape", list(itertools.product((1, 2, 3, 4, 5, 10, 11), repeat=2)))
def test_every_point_is_near_a_coarse_one(shape):
    gammas, costs = coarse_points(shape)
    reached = {
        (g, c)
        for first in itertools.product(gammas, costs)
        for g, c in itertools.product(*near_points(shape, first))
    }
    assert reached == set(itertools.product(*map(range, shape)))
    for n, axis in zip(shape, (gammas, costs), strict=True):
        assert len(axis) == (n if n <= 3 else n // 2)


@compiled
def test_the_coarse_pass_and_the_neighbors_of_its_best_are_tried():
    search = search_of(*noisy_cell(0, m=300))
    choice = search.choose(finish=False)
    assert choice.n_tried == len(search.tried) < 50
    place = search.grid.gammas.index(choice.kernel.gamma), search.grid.costs.index(choice.C)
    coarse = set(itertools.product(*coarse_points((10, 10))))
    assert coarse < search.tried
    # The others are beside one coarse point, which is the choice itself or beside it.
    beside = [
        near
        for first in coarse
        if (near := set(itertools.product(*near_points((10, 10), first)))) >= search.tried - coarse
    ]
    assert any(place in near and near <= search.tried for near in beside)


@compiled
@pytest.mark.parametrize("seed", range(3))
def test_the_chosen_error_is_the_full_searchs_own_of_that_point(seed):
    X, y = noisy_cell(seed)
    fine, full = search_of(X, y), search_of(X, y, search="full")
    best, expected = fine.choose(finish=False), full.choose(finish=False)
    place = fine.grid.gammas.index(best.kernel.gamma), fine.grid.costs.index(best.C)
    # Both stop at the same tolerance from other starts: rows near the boundary may turn, four of
    # 600 on one make of processor.
    assert abs(full.errors[place] - best.error * len(X)) <= 6
    assert best.counts.n_trained < 0.4 * expected.counts.n_trained
    # 3 standard deviations of a paired difference of 60 wrong rows of 600, at the most.
    assert best.error - expected.error <= 3 * np.sqrt(60) / 600


def test_short_axes_are_tried_whole_at_the_tolerance_asked_for():
    X, y = binary_cell()
    options = {"gamma": (0.05, 0.5, 3.0), "C": (0.3, 1.5, 8.0), "cv": 3}
    full, fine = (fit(X, y, search=search, **options).report for search in ("full", "refine"))
    assert fine.n_tried == full.n_tried == 9
    for name in ("gamma", "C", "validation_error"):
        assert getattr(fine, name) == getattr(full, name)


def test_rows_past_the_last_fold_always_train_and_are_never_judged():
    X, y = binary_cell(m=40)
    folds = np.where(np.arange(40) < 24, np.arange(40) % 3, 3)
    own = LocalRows.of(X, y, np.ones(40), SolverSpec(cv=3))
    _, cell = own.data(folds)
    search = GridSearch(cell, SolverSpec(cv=3), Grid((0.5,), (1e-3,)), HingePairSolver)
    assert search.held_out_weight == 24
    search.choose(finish=False)
    betas, _ = search.models
    # At so small a C every row that trains is at its bound.
    assert betas[:, cell.folds == 3].any(axis=0).all()
    for fold in range(3):
        assert not betas[fold, cell.folds == fold].any()


@compiled
@pytest.mark.parametrize("fit_intercept", few([False, True]))
@pytest.mark.parametrize("kernel", few(["rbf", "poly", "linear"], 2))
def test_many_classes_are_refined_too(kernel, fit_intercept):
    X, codes = class_cell(3, m=150 if kernel == "linear" else 300)
    options = {"kernel": kernel, "coef0": 1.0, "fit_intercept": fit_intercept, "cv": 5}
    if kernel == "poly":
        options["gamma"] = (0.01, 0.03, 0.1, 0.3)
    full, fine = (fit(X, codes, search=search, **options) for search in ("full", "refine"))
    assert fine.report.n_trained < full.report.n_trained
    assert fine.report.validation_error <= full.report.validation_error + 0.05
    assert cell_scores(fine, queries(X)).shape == (25, 3)


@pytest.mark.parametrize("share", [1e-9, 0.5, 1])
def test_fewer_matrices_of_pairs_at_once_give_the_same_bits(monkeypatch, share):
    X, codes = class_cell(4)
    options = {"gamma": (0.05, 0.4), "C": (0.3, 3.0), "cv": 3}
    whole = fit(X, codes, **options)
    tiny_tiles(monkeypatch, BLOCKS_SHARE=share)
    search = search_of(X, codes, **options)
    assert len(search.pairs.groups()) > 1
    parts = fit(X, codes, **options)
    for name in ("rows", "coef", "center"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


# The choice by TPR x TNR


GRID = {"gamma": (0.03, 0.3, 3.0), "C": (0.1, 1.0, 10.0, 100.0), "cv": 4}


def rare_cell(seed, m=220):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    return X, (np.hypot(X[:, 0] - 1.2, X[:, 1]) + 0.3 * rng.normal(size=m) < 0.6).astype(int)


def held_out_labels(X, y, weights, gamma, C):
    folds = assign_folds(y, GRID["cv"], SEED)
    predicted = np.empty_like(y)
    for fold in range(GRID["cv"]):
        out = folds == fold
        svc = SVC(C=C, gamma=gamma, tol=1e-6).fit(X[~out], y[~out], weights[~out])
        predicted[out] = svc.predict(X[out])
    return predicted


def product(y, predicted, weights):
    return np.prod(recall_score(y, predicted, average=None, sample_weight=weights))


@compiled
@pytest.mark.parametrize("weighting", ["none", "classes", "rows"])
@pytest.mark.parametrize("seed", range(2))
def test_every_candidates_score_and_the_choice_are_brute_forces(seed, weighting):
    X, y = rare_cell(seed)
    weights = {
        "none": np.ones(len(X)),
        "classes": np.where(y == 1, 10.0, 1.0),
        "rows": np.random.default_rng(5).integers(1, 4, len(X)).astype(float),
    }[weighting]
    expected = [
        [product(y, held_out_labels(X, y, weights, gamma, C), weights) for C in GRID["C"]]
        for gamma in GRID["gamma"]
    ]
    options = {**GRID, "fit_intercept": True, "tol": 1e-6}
    model = fit(X, y, weights, scoring="tpr_x_tnr", **options)
    np.testing.assert_allclose(1 - model.errors, expected, atol=1e-6)
    # Widest first, smallest C first; of equal scores the first.
    place = np.unravel_index(np.argmax(np.round(expected, 9)), (3, 4))
    assert (model.report.gamma, model.report.C) == (GRID["gamma"][place[0]], GRID["C"][place[1]])
    assert model.report.validation_error == pytest.approx(1 - np.max(expected))


@compiled
def test_class_weights_cancel_in_the_score_and_move_the_machines():
    X, y = rare_cell(0)
    judge = find_criterion("tpr_x_tnr", np.where(y == 1, 49.0, 1.0), y, 2, len(y))
    plain = find_criterion("tpr_x_tnr", np.ones(len(y)), y, 2, len(y))
    mistaken = np.random.default_rng(1).random(len(y)) < 0.2
    assert judge.error(judge.weights * mistaken) == pytest.approx(plain.error(mistaken * 1.0))
    recalls = []
    for weight in (1.0, 20.0):
        weights = np.where(y == 1, weight, 1.0)
        model = fit(X, y, weights, scoring="tpr_x_tnr", **{**GRID, "C": (0.3,), "gamma": (0.3,)})
        recalls.append(1 - model.report.validation_error)
    assert recalls[1] > recalls[0] + 0.2


@compiled
@pytest.mark.parametrize("seed", range(3))
def test_the_search_from_coarse_to_fine_scores_as_the_full_one(seed):
    X, y = rare_cell(seed, m=500)
    weights = np.where(y == 1, 12.0, 1.0)
    found = {
        search: fit(X, y, weights, scoring="tpr_x_tnr", search=search, cv=5)
        for search in ("full", "refine")
    }
    assert found["refine"].report.n_trained < 0.6 * found["full"].report.n_trained
    scores = {name: 1 - model.report.validation_error for name, model in found.items()}
    assert scores["refine"] > scores["full"] - 0.05
    assert scores["full"] > 0.5


def test_of_more_classes_it_is_the_product_of_all_recalls():
    rng = np.random.default_rng(3)
    y, predicted = rng.integers(0, 3, 90), rng.integers(0, 3, 90)
    weights = rng.random(90)
    judge = find_criterion("tpr_x_tnr", weights, y, 3, 90)
    expected = 1 - product(y, predicted, weights)
    assert judge.error(weights * (y != predicted)) == pytest.approx(expected)
    X, codes = class_cell(3)
    model = fit(X, codes, scoring="tpr_x_tnr", C=(1.0,), gamma=(0.05, 0.5), cv=3)
    assert 0 < model.report.validation_error < 1
