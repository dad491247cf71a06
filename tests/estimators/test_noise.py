"""Noise filters from end to end: flipped labels are found, by the probabilities that we state."""

import gc
import pickle

import dask.array as da
import dask.dataframe
import numpy as np
import pandas
import pytest
import xarray as xr
import zarr
from falks import nearest_rows, small_falk
from sklearn.base import clone
from sklearn.calibration import _sigmoid_calibration
from sklearn.svm import SVC
from support import checkers, few

from daskls import DataError, FalkNoiseFilter, KNNSVMNoiseFilter, ParameterError, StoreError
from daskls.solvers.grid import assign_folds
from daskls.store.dataset import DatasetWriter, open_dataset

PARAMS = {"C": 10.0, "gamma": 20.0, "random_state": 0}
FILTERS = [FalkNoiseFilter(60, **PARAMS), KNNSVMNoiseFilter(40, **PARAMS)]


@pytest.fixture(scope="module")
def flipped():
    """Return rows, labels of which a tenth is flipped, and which."""
    X, y = checkers(900, noise=0.0)
    wrong = np.random.default_rng(1).random(len(y)) < 0.1
    return X, np.where(wrong, 1 - y, y), wrong


@pytest.mark.parametrize("noise", FILTERS, ids=["falk", "knnsvm"])
def test_flipped_labels_are_found(noise, flipped):
    X, y, wrong = flipped
    removed = ~noise.fit(X, y).keep_
    assert (removed & wrong).sum() > 0.6 * wrong.sum()
    assert (removed & wrong).sum() > 0.6 * removed.sum()


def test_falk_keeps_what_falk_svm_answers(flipped):
    X, y, _ = flipped
    keep = FalkNoiseFilter(60, **PARAMS).fit(X, y).keep_
    np.testing.assert_array_equal(keep, small_falk(60).fit(X, y).predict(X) == y)


@pytest.mark.slow
def test_probabilities_against_scikit_learn(flipped):
    X, y, _ = flipped
    noise = KNNSVMNoiseFilter(40, tol=1e-7, **PARAMS).fit(X, y)
    n_compared = 0
    for row in range(0, 900, 23):
        near = nearest_rows(X, X[row], 41)
        near = near[near != row]
        mine = y[np.sort(near)] == y[row]
        if mine.all() or not mine.any():
            assert noise.proba_[row] == float(mine[0])
            continue
        if min(mine.sum(), (~mine).sum()) < 2:
            # A fold's training rows are of one class, for which scikit-learn has no model.
            continue
        n_compared += 1
        assert noise.proba_[row] == pytest.approx(slow_probability(X, y, row, near), abs=0.02)
    assert n_compared > 10


def test_unanimous_neighbors_are_certain():
    y = np.repeat([0, 1], 60)
    X = np.random.default_rng(0).random((120, 2)) + 5 * y[:, None]
    y[7] = 1
    noise = KNNSVMNoiseFilter(1, **PARAMS).fit(X, y)
    near = np.array([nearest_rows(X, row, 2)[1] for row in X])
    np.testing.assert_array_equal(noise.proba_, (y[near] == y).astype(float))
    assert noise.proba_[7] == 0.0


def slow_probability(X, y, row, near):
    """Return Platt's probability of a row's label from held-out values of its neighbors."""
    mine = y[near] == y[row]
    folds = assign_folds(mine.astype(int), 5, (0, row, 7))
    values = np.empty(len(near))
    for fold in range(5):
        held_out = folds == fold
        svm = SVC(C=10.0, gamma=20.0, tol=1e-7).fit(X[near[~held_out]], mine[~held_out])
        values[held_out] = svm.decision_function(X[near[held_out]])
    a, b = _sigmoid_calibration(values, mine)
    if a > 0:
        # A sigmoid that would fall is flat: the mean of Platt's targets.
        n, k = len(mine), mine.sum()
        return (k * (k + 1) / (k + 2) + (n - k) / (n - k + 2)) / n
    svm = SVC(C=10.0, gamma=20.0, tol=1e-7).fit(X[near], mine)
    return 1 / (1 + np.exp(a * svm.decision_function(X[row][None])[0] + b))


@pytest.mark.parametrize("noise", few(FILTERS), ids=["falk", "knnsvm"])
@pytest.mark.parametrize("labels", few(["lazy", "in memory"]))
def test_lazy_in_lazy_out(noise, labels, flipped):
    X, y, _ = flipped
    expected = noise.fit(X, y).keep_
    rows = da.from_array(X, chunks=(200, 2))
    noise.fit(rows, da.from_array(y, chunks=90) if labels == "lazy" else y)
    assert isinstance(noise.keep_, da.Array)
    np.testing.assert_array_equal(noise.keep_.compute(), expected)
    np.testing.assert_array_equal(noise.transform(rows).compute(), X[expected])
    np.testing.assert_array_equal(noise.transform(y), y[expected])
    named = xr.DataArray(rows, dims=("row", "feature"))
    np.testing.assert_array_equal(noise.transform(named).compute(), X[expected])


@pytest.mark.slow
@pytest.mark.parametrize("noise", FILTERS, ids=["falk", "knnsvm"])
def test_resampling_and_wrong_lengths(noise, flipped):
    X, y, _ = flipped
    clean_X, clean_y = noise.fit_resample(X, y)
    np.testing.assert_array_equal(clean_X, X[noise.keep_])
    np.testing.assert_array_equal(clean_y, y[noise.keep_])
    with pytest.raises(DataError, match="has 7 rows but the filter was fitted on 900"):
        noise.transform(X[:7])


def test_a_data_set_is_cleaned(flipped, tmp_path):
    X, y, _ = flipped
    names = np.array(["left", "right"])
    source, target = tmp_path / "a.zarr", str(tmp_path / "b.zarr")
    with DatasetWriter(source, 2, "float64", classes=names, chunk_rows=250) as writer:
        writer.append(X, y)
    noise = FalkNoiseFilter(60, **PARAMS)
    expected = noise.fit(X, names[y]).keep_
    cleaned = noise.fit(str(source)).clean_dataset(source, target)
    np.testing.assert_array_equal(np.asarray(cleaned.X[:]), X[expected])
    np.testing.assert_array_equal(np.asarray(cleaned.y[:]), y[expected])
    assert open_dataset(target).classes == ["left", "right"]
    with pytest.raises(StoreError, match="already holds"):
        noise.clean_dataset(source, target)


def test_more_classes_and_the_threshold():
    X, y = checkers(600, n_classes=4, noise=0.1)
    noise = KNNSVMNoiseFilter(30, threshold=0.2, **PARAMS).fit(X, y)
    assert ((noise.proba_ >= 0) & (noise.proba_ <= 1)).all()
    np.testing.assert_array_equal(noise.keep_, noise.proba_ >= 0.2)
    noise.set_params(threshold=0.8)
    assert noise.keep_.sum() < (noise.proba_ >= 0.2).sum()


@pytest.mark.parametrize("noise", few(FILTERS), ids=["falk", "knnsvm"])
def test_lazy_filters_travel(noise, flipped):
    X, y, _ = flipped
    expected = noise.fit(X, y).keep_
    other = clone(noise).fit(da.from_array(X, chunks=(200, 2)), da.from_array(y, chunks=200))
    content = pickle.dumps(other)
    del other
    gc.collect()
    np.testing.assert_array_equal(pickle.loads(content).keep_, expected)


def test_zarr_rows_and_paths(flipped, tmp_path):
    X, y, _ = flipped
    rows = zarr.create_array(tmp_path / "X", data=X, chunks=(100, 2))
    noise = FalkNoiseFilter(60, **PARAMS)
    clean_X, clean_y = noise.fit_resample(rows, y)
    np.testing.assert_array_equal(clean_X.compute(), X[noise.keep_.compute()])
    np.testing.assert_array_equal(clean_y, y[noise.keep_.compute()])
    with pytest.raises(DataError, match="clean_dataset"):
        noise.transform(str(tmp_path / "X"))


def test_a_kernel_that_overflows_is_one_error(flipped):
    X, y, _ = flipped
    with pytest.raises(DataError, match="overflows"):
        KNNSVMNoiseFilter(20, kernel="poly", gamma=1.0).fit(X * 1e7, y)


def test_the_svm_of_neighbors_takes_one_C():
    X, y = checkers(100)
    with pytest.raises(ParameterError, match=r'C has 2 candidates; .* or selection="each"'):
        KNNSVMNoiseFilter(20, C=[1.0, 10.0]).fit(X, y)
    model = KNNSVMNoiseFilter(20, random_state=0).fit(X, y)
    assert model.model_.selected_ is None


def test_what_is_no_array_is_refused_in_a_sentence(flipped, tmp_path):
    X, y, _ = flipped
    noise = FalkNoiseFilter(60, **PARAMS).fit(X, y)
    frame = dask.dataframe.from_pandas(pandas.DataFrame(X), npartitions=2)
    for given in (frame, frame[0]):
        with pytest.raises(
            DataError, match=r"transform takes NumPy, Dask and Zarr arrays, got .*to_dask"
        ):
            noise.transform(given)
    with DatasetWriter(tmp_path / "d", X.shape[1], "f8", with_y=False) as writer:
        writer.append(X)
    with pytest.raises(DataError, match="has no labels y"):
        noise.clean_dataset(tmp_path / "d", tmp_path / "e")
