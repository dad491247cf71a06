"""The choice by TPR x TNR against scikit-learn's SVC on the same folds, and what it is made of."""

import numpy as np
import pytest
from cells import SEED, class_cell, fit
from sklearn.metrics import recall_score
from sklearn.svm import SVC
from support import compiled

from daskls.solvers.grid import assign_folds
from daskls.solvers.search import find_criterion

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
