"""Where rows repeat, copies are on one side of what chooses, calibrates and evaluates.

The oracles are new rows of the same generator, and the different rows with a weight each.
"""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from support import few

from daskls import (
    LandmarkSVC,
    LocalSamplingSVC,
    NeighborSamplingSVC,
    RandomChunkSVC,
    VoronoiSVC,
)
from daskls.methods.calibrate import _with_copies

N = 1000
GIVEN = {"kernel": "rbf", "C": 10.0, "gamma": 20.0, "random_state": 0}
HINGE = {**GIVEN, "loss": "hinge", "cv": 2, "feature_scale": None, "probability": "sigmoid"}


def quarters(n, seed):
    """Return rows whose class is that of their quarter with a chance of 0.8."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    chance = np.where(X[:, 0] * X[:, 1] > 0, 0.8, 0.2)
    return X, (rng.random(n) < chance).astype(int)


X, Y = quarters(N, 1)
TEST, Y_TEST = quarters(4000, 99)


def copied(how, seed=0):
    """Return how often each row is there, and the rows of copies, shuffled."""
    rng = np.random.default_rng(seed)
    copies = np.ones(N, int)
    if how == "a tenth":
        copies[rng.permutation(N)[: N // 10]] = 20
    else:
        copies[:] = how
    return copies, rng.permutation(np.repeat(np.arange(N), copies))


@pytest.mark.parametrize("copies", [2, 5])
def test_folds_keep_copies_together_whatever_their_class(copies):
    rng = np.random.default_rng(0)
    content = rng.permutation(np.repeat(np.arange(300), copies))
    folds = _with_copies(rng.integers(5, size=len(content)), content[:, None].astype("f4"))
    assert len(np.unique(np.stack([content, folds]), axis=1).T) == 300
    assert (np.bincount(folds, minlength=5) > 0.1 * len(folds)).all()


def test_folds_stay_where_no_row_repeats_and_where_most_are_equal():
    folds = np.random.default_rng(0).integers(5, size=400)
    rows = np.arange(400.0)[:, None]
    np.testing.assert_array_equal(_with_copies(folds, rows), folds)
    np.testing.assert_array_equal(_with_copies(folds, np.minimum(rows, 40)), folds)


@pytest.mark.parametrize(
    ("model", "how"),
    few(
        [
            (VoronoiSVC(300, **HINGE), 3),
            (RandomChunkSVC(400, **HINGE), "a tenth"),
            (VoronoiSVC(300, **HINGE), "a tenth"),
            (RandomChunkSVC(400, **HINGE), 3),
        ],
        0,
    ),
    ids=str,
)
def test_probabilities_are_not_surer_than_those_of_weighted_rows(model, how):
    copies, rows = copied(how)
    losses = [
        log_loss(Y_TEST, model.fit(*given).predict_proba(TEST))
        for given in ((X[rows], Y[rows]), (X, Y, copies.astype(float)))
    ]
    assert losses[0] < losses[1] + 0.05


@pytest.mark.parametrize(
    ("model", "how"),
    few(
        [
            (NeighborSamplingSVC(**GIVEN), 3),
            (LandmarkSVC(n_cells=6, n_landmarks=60, projection="rbf", random_state=0), 3),
            (LocalSamplingSVC(**GIVEN), 3),
            (LandmarkSVC(n_cells=6, n_landmarks=60, projection="rbf", random_state=0), "a tenth"),
        ],
        1,
    ),
    ids=str,
)
def test_validation_errors_are_those_of_new_rows(model, how):
    _, rows = copied(how)
    model.fit(X[rows], Y[rows])
    report = model.fit_report_
    found = np.average(report.validation_error, weights=report.n_rows)
    wrong = 1 - model.score(TEST, Y_TEST)
    # A tenth of 1000 different rows validates: their error has a deviation of 0.045.
    assert found > wrong - 0.09
