"""The lazy methods from end to end: scikit-learn's k nearest neighbors, and its SVC around each.

Approximate neighbors; copies of rows, which are never on both sides of a split; noise filters.
"""

import gc
import pickle
import subprocess
import sys
from dataclasses import replace

import dask.array as da
import dask.dataframe
import numpy as np
import pandas
import pytest
import xarray as xr
import zarr
from falks import SlowFalk, nearest_rows, small_falk
from samplings import small_local, small_near
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from small import answers_of, small_leaves
from support import checkers, python_env

import daskls
from daskls import KNNSVC, FalkNoiseFilter, FalkSVC, KernelKNNClassifier, KernelKNNRegressor
from daskls.errors import MemoryPlanError
from daskls.memory import TaskSizes
from daskls.methods.neighborhoods.method import KNN
from daskls.methods.neighborhoods.parts import center_rows, read_centers
from daskls.partition.shuffle import shuffle_numbers
from daskls.plan.bundles import Resources
from daskls.records import SolverSpec
from daskls.seeds import SUBSAMPLES
from daskls.store.dataset import DatasetWriter, open_dataset
from daskls.store.leaves import open_leaves

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


COSTS = 1.0, 4.0, 16.0, 64.0


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
    widths = np.percentile(pdist(X[rows]), (90, 50, 10, 1)) ** -2.0
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


APPROXIMATE = {"neighbors": "approximate", "random_state": 0}
X, Y = checkers(2000)
SVM = {"C": 10.0, "gamma": 20.0}
GIVEN = {
    **{KernelKNNClassifier: {}, KernelKNNRegressor: {}, KNNSVC: SVM},
    **{kind: {**SVM, "selection": None} for kind in (FalkSVC, daskls.FalkSVR)},
}


def test_exact_neighbors_load_no_pynndescent():
    code = "import sys, daskls; daskls.KernelKNNClassifier(1).fit([[0.0], [1.0]], [0, 1])"
    code = f"{code}.predict([[0.0]]); assert 'pynndescent' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env=python_env(), check=True)


# Graphs are built: pynndescent compiles.
@pytest.mark.slow
@pytest.mark.parametrize("kind", GIVEN)
def test_approximate_answers_are_nearly_the_exact_ones(kind):
    exact = kind(20, random_state=0, **GIVEN[kind]).fit(X, Y)
    near = kind(20, **APPROXIMATE, **GIVEN[kind]).fit(X, Y)
    assert np.mean(np.abs(exact.predict(X) - near.predict(X)) < 0.05) > 0.98
    assert len(near._reader.root.store.names("graphs")) == 1
    assert not exact._reader.root.store.names("graphs")
    y = Y.copy()
    y[:2] = 0, 1
    # A k above a quarter of a group, and equal rows: as by exact neighbors.
    odd = ((X, 1900), (np.ones((2000, 2)), 5)) if kind in (KernelKNNClassifier, FalkSVC) else ()
    for rows, k in odd:
        answers = [
            answers_of(kind(k, **how, **GIVEN[kind]).fit(rows, y), rows[:200])
            for how in ({"random_state": 0}, APPROXIMATE)
        ]
        np.testing.assert_array_equal(*answers)


def test_a_graph_that_does_not_fit_is_refused_before_it_is_built():
    sizes, resources = TaskSizes(1000, 4, 2, 1000, SolverSpec()), Resources(1, 100 << 20)
    sizes = replace(sizes, n_rows=10**6, leaf_rows=1000, block_rows=100)
    KNN((5,)).check(sizes, resources)
    with pytest.raises(MemoryPlanError, match=r'The graph of 8388 rows .*pass neighbors="exact"'):
        KNN((5,), n_groups=3).check(sizes, resources)


def crowded(n=900, share=0.5, seed=0):
    """Return rows of a checkerboard; a share of them is one row, with labels of two kinds."""
    rng = np.random.default_rng(seed)
    X, y = checkers(n, seed=seed)
    own = rng.random(n) < share
    X[own], y[own] = [0.4, 0.6], rng.random(own.sum()) < 0.2
    return X, y


AT_COPIES = np.r_[np.random.default_rng(7).random((60, 2)), [[0.4, 0.6], [0.41, 0.6]]]


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_votes_count_copies_by_row_number(share):
    X, y = crowded(share=share)
    votes = KernelKNNClassifier(15).fit(X, y).predict(AT_COPIES)
    means = KernelKNNRegressor(15).fit(X, y.astype(float)).predict(AT_COPIES)
    near = np.array([nearest_rows(X, query, 15) for query in AT_COPIES])
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
    for query, value in zip(AT_COPIES, model.decision_function(AT_COPIES), strict=True):
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


PARAMS = {"C": 10.0, "gamma": 20.0, "random_state": 0}
FILTERS = [FalkNoiseFilter(60, **PARAMS), daskls.KNNSVMNoiseFilter(40, **PARAMS)]


@pytest.fixture(scope="module")
def flipped():
    """Return rows, labels of which a tenth is flipped, and which."""
    X, y = checkers(900, noise=0.0)
    wrong = np.random.default_rng(1).random(len(y)) < 0.1
    return X, np.where(wrong, 1 - y, y), wrong


@pytest.mark.parametrize("noise", FILTERS, ids=["falk", "knnsvm"])
def test_flipped_labels_are_found(noise, flipped):
    X, y, wrong = flipped
    keep = noise.fit(X, y).keep_
    assert (~keep & wrong).sum() > 0.6 * max(wrong.sum(), (~keep).sum())
    if isinstance(noise, FalkNoiseFilter):
        np.testing.assert_array_equal(keep, small_falk(60).fit(X, y).predict(X) == y)


@pytest.mark.parametrize("noise", FILTERS, ids=["falk", "knnsvm"])
def test_lazy_in_lazy_out_and_pickled(noise, flipped):
    X, y, _ = flipped
    expected = noise.fit(X, y).keep_
    rows = da.from_array(X, chunks=(200, 2))
    own = clone(noise).fit(rows, da.from_array(y, chunks=90))
    content = pickle.dumps(own)
    assert isinstance(own.keep_, da.Array)
    np.testing.assert_array_equal(own.transform(rows).compute(), X[expected])
    np.testing.assert_array_equal(own.transform(y), y[expected])
    named = xr.DataArray(rows, dims=("row", "feature"))
    np.testing.assert_array_equal(own.transform(named).compute(), X[expected])
    del own
    gc.collect()
    np.testing.assert_array_equal(np.asarray(pickle.loads(content).keep_), expected)


def test_rows_are_resampled_and_a_data_set_is_cleaned(flipped, tmp_path):
    X, y, _ = flipped
    names, noise = np.array(["left", "right"]), FalkNoiseFilter(60, **PARAMS)
    source, target = tmp_path / "a.zarr", str(tmp_path / "b.zarr")
    clean_X, clean_y = noise.fit_resample(X, names[y])
    np.testing.assert_array_equal(clean_X, X[noise.keep_])
    np.testing.assert_array_equal(clean_y, names[y][noise.keep_])
    rows = zarr.create_array(tmp_path / "X", data=X, chunks=(100, 2))
    stored_X, stored_y = noise.fit_resample(rows, y)
    np.testing.assert_array_equal(stored_X.compute(), clean_X)
    np.testing.assert_array_equal(names[stored_y], clean_y)
    with DatasetWriter(source, 2, "float64", classes=names, chunk_rows=250) as writer:
        writer.append(X, y)
    cleaned = noise.fit(str(source)).clean_dataset(source, target)
    np.testing.assert_array_equal(np.asarray(cleaned.X[:]), clean_X)
    np.testing.assert_array_equal(names[np.asarray(cleaned.y[:])], clean_y)
    assert open_dataset(target).classes == ["left", "right"]
    with pytest.raises(daskls.StoreError, match="already holds"):
        noise.clean_dataset(source, target)


def test_what_is_no_array_of_its_rows_is_refused_in_a_sentence(flipped, tmp_path):
    X, y, _ = flipped
    noise = FalkNoiseFilter(60, **PARAMS).fit(X, y)
    frame = dask.dataframe.from_pandas(pandas.DataFrame(X), npartitions=2)
    for given, message in (
        (frame, r"transform takes NumPy, Dask and Zarr arrays, got .*to_dask"),
        (X[:7], "has 7 rows but the filter was fitted on 900"),
        ("rows.zarr", "takes arrays, not the path 'rows.zarr'; clean_dataset writes a data set"),
    ):
        with pytest.raises(daskls.DataError, match=message):
            noise.transform(given)
    with DatasetWriter(tmp_path / "d", X.shape[1], "f8", with_y=False) as writer:
        writer.append(X)
    with pytest.raises(daskls.DataError, match="has no labels y"):
        noise.clean_dataset(tmp_path / "d", tmp_path / "e")
