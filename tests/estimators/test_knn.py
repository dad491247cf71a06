"""The lazy methods from end to end: scikit-learn's k nearest neighbors, and its SVC around each."""

import numpy as np
import pytest
from falks import nearest_rows
from samplings import small_local, small_near
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from support import checkers

from daskls import KNNSVC, KernelKNNClassifier
from daskls.partition.shuffle import shuffle_numbers
from daskls.seeds import SUBSAMPLES

N = 700
QUERIES = np.random.default_rng(7).random((150, 2))


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_votes_are_those_of_scikit_learn(k, n_classes):
    X, y = checkers(N, n_classes=n_classes)
    model = KernelKNNClassifier(k).fit(X, y)
    peer = KNeighborsClassifier(k).fit(X, y)
    np.testing.assert_array_equal(model.predict(QUERIES), peer.predict(QUERIES))
    share = peer.predict_proba(QUERIES)
    expected = share[:, 1] - share[:, 0] if n_classes == 2 else share
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, atol=1e-12)


def test_votes_are_weighted_and_equal_ones_are_of_the_first_class():
    X, y = checkers(N)
    weight = np.where(y == 1, 100.0, 1.0)
    model = KernelKNNClassifier(25).fit(X, y, sample_weight=weight)
    for query, label in zip(QUERIES, model.predict(QUERIES), strict=True):
        near = nearest_rows(X, query, 25)
        assert label == np.argmax(np.bincount(y[near], weight[near], minlength=2))
    even = KernelKNNClassifier(6).fit(X, y)
    tied = even.predict(QUERIES)[even.decision_function(QUERIES) == 0]
    assert len(tied) > 5
    assert not tied.any()


@pytest.mark.parametrize(("degree", "coef0"), [(2, 0.0), (3, 1.0)])
def test_votes_in_a_polynomial_feature_space(degree, coef0):
    X, y = checkers(N)
    X = X * 4 - 2
    model = KernelKNNClassifier(7, kernel="poly", gamma=0.7, degree=degree, coef0=coef0).fit(X, y)
    distances = [feature_distances(X, query, 0.7, degree, coef0) for query in QUERIES]
    near = np.argsort(distances, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(model.predict(QUERIES), y[near].mean(axis=1) > 0.5)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_each_query_is_answered_by_the_svm_of_its_neighbors(kernel):
    X, y = checkers(N)
    params = {"C": 5.0, "gamma": 3.0, "kernel": kernel, "coef0": 1.0}
    model = KNNSVC(40, tol=1e-7, **params).fit(X, y)
    scores = model.decision_function(QUERIES)
    n_svms = 0
    for query, score in zip(QUERIES, scores, strict=True):
        near = nearest_rows(X, query, 40)
        if kernel == "poly":
            near = np.argsort(feature_distances(X, query, 3.0, 3, 1.0), kind="stable")[:40]
        if len(set(y[near])) == 1:
            assert score == (1.0 if y[near][0] else -1.0)
            continue
        n_svms += 1
        svm = SVC(tol=1e-7, **params).fit(X[near], y[near])
        expected = svm.decision_function(query[None])[0]
        assert score == pytest.approx(expected, rel=0.02, abs=0.01)
    assert n_svms > 20


def feature_distances(X, query, gamma, degree, coef0):
    """Return distances in the feature space of a polynomial, less what is the query's alone."""
    return (gamma * (X**2).sum(axis=1) + coef0) ** degree - 2 * (
        gamma * X @ query + coef0
    ) ** degree


COSTS, PERCENTILES = (1.0, 4.0, 16.0, 64.0), (90.0, 50.0, 10.0, 1.0)


def distances(X):
    """Return the distances of all pairs of rows."""
    i, j = np.triu_indices(len(X), 1)
    return np.sqrt(((X[i] - X[j]) ** 2).sum(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("make", [small_local, small_near])
def test_samples_take_what_errs_least_in_cross_validation(make):
    X, y = checkers(700)
    model = make(C=None, gamma=None).fit(X, y)
    found = model.selected_
    # All rows but those that validate.
    assert found["n_rows"] == 630
    first = np.argsort(shuffle_numbers(np.arange(700), 700, SUBSAMPLES(0)))
    fraction = model._reader.meta["method"]["sample_fraction"]
    n_sampled = int(fraction * 700)
    rows = np.r_[first[:n_sampled], first[n_sampled + 70 :]]
    widths = np.percentile(distances(X[rows]), PERCENTILES) ** -2.0
    assert found["C"] in COSTS
    # Some of the pairs are looked at; the percentiles themselves lie a factor of 3 apart.
    assert np.abs(widths / found["gamma"] - 1).min() < 0.15
    errors = {
        (C, gamma): 1 - cross_val_score(SVC(C=C, gamma=gamma), X[rows], y[rows]).mean()
        for C in COSTS
        for gamma in widths
    }
    own = 1 - cross_val_score(SVC(C=found["C"], gamma=found["gamma"]), X[rows], y[rows]).mean()
    # Folds differ: errors are compared within two standard deviations of a difference.
    assert found["validation_error"] == pytest.approx(own, abs=0.02)
    assert own <= min(errors.values()) + 0.02 < max(errors.values())
    given = make(C=found["C"], gamma=found["gamma"]).fit(X, y)
    assert given.selected_ is None
    np.testing.assert_array_equal(model.decision_function(X), given.decision_function(X))
