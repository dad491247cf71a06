"""Copies of rows in methods of neighbors: counted, never on both sides of a split, never costly."""

import numpy as np
import pytest
from falks import SlowFalk, nearest_rows, small_falk
from sklearn.svm import SVC
from small import small_leaves
from support import checkers

from daskls import KNNSVC, KernelKNNClassifier, KernelKNNRegressor
from daskls.methods.neighborhoods.parts import center_rows, read_centers
from daskls.store.leaves import open_leaves


def crowded(n=900, share=0.5, seed=0):
    """Return rows of a checkerboard; a share of them is one row, with labels of two kinds."""
    rng = np.random.default_rng(seed)
    X, y = checkers(n, seed=seed)
    own = rng.random(n) < share
    X[own], y[own] = [0.4, 0.6], rng.random(own.sum()) < 0.2
    return X, y


QUERIES = np.r_[np.random.default_rng(7).random((60, 2)), [[0.4, 0.6], [0.41, 0.6]]]


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_votes_count_copies_by_row_number(share):
    X, y = crowded(share=share)
    votes = KernelKNNClassifier(15).fit(X, y).predict(QUERIES)
    means = KernelKNNRegressor(15).fit(X, y.astype(float)).predict(QUERIES)
    near = np.array([nearest_rows(X, query, 15) for query in QUERIES])
    np.testing.assert_array_equal(votes, y[near].mean(axis=1) > 0.5)
    np.testing.assert_allclose(means, y[near].mean(axis=1), atol=1e-12)
    assert (near[-2] == np.flatnonzero(X[:, 0] == 0.4)[:15]).all()


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_centers_owners_and_answers_count_copies(share, monkeypatch):
    small_leaves(monkeypatch, 200)
    X, y = crowded(share=share)
    X[::7] = X[3]
    model = small_falk(60, n_assigned=20, tol=1e-7).fit(X, y)
    slow = SlowFalk(X, y, 60, 20, 10.0, 20.0, 0)
    _, numbers = center_rows(model._reader)
    assert sorted(slow.centers) == sorted(numbers.tolist())
    leaves = open_leaves(model._handle.location, model._handle.fingerprint)
    owners = read_centers(model._reader.root).owners(0, len(X))
    np.testing.assert_array_equal(numbers[owners], slow.owner[leaves.read_numbers()])
    for query, value in zip(QUERIES, model.decision_function(QUERIES), strict=True):
        assert value == pytest.approx(slow.decide(query), abs=5e-3)


@pytest.mark.slow
def test_left_out_rows_see_the_nearest_other_rows():
    """The errors of KNNSVC's choice, against SVMs of the k nearest rows that are no copies."""
    X, y = checkers(150, seed=4)
    rows = np.repeat(
        np.arange(150),
        np.random.default_rng(4).choice([1, 2, 3, 40], 150, p=[0.5, 0.3, 0.18, 0.02]),
    )
    X, y = X[rows], y[rows]
    model = KNNSVC(30, C=[0.1, 10.0], gamma=20.0, tol=1e-6, random_state=0).fit(X, y)
    wrong, judged = np.zeros(2), 0
    for row in range(len(X)):
        copies = np.flatnonzero((X[row] == X).all(axis=1))
        if len(copies) > 30:
            # They fill the lists of queries there, whatever C is.
            continue
        others = np.setdiff1d(np.arange(len(X)), copies)
        near = others[nearest_rows(X[others], X[row], 30)]
        judged += 1
        for i, C in enumerate((0.1, 10.0)):
            labels = set(y[near])
            svm = SVC(C=C, gamma=20.0, tol=1e-8)
            answer = (
                labels.pop() if len(labels) == 1 else svm.fit(X[near], y[near]).predict(X[[row]])[0]
            )
            wrong[i] += answer != y[row]
    assert judged < len(X)
    np.testing.assert_allclose(
        np.ravel(model.selected_["errors"]), wrong / judged, atol=2.5 / judged
    )
