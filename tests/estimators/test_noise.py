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
from falks import small_falk
from sklearn.base import clone
from support import checkers

from daskls import DataError, FalkNoiseFilter, KNNSVMNoiseFilter, StoreError
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


def test_rows_are_resampled(flipped, tmp_path):
    X, y, _ = flipped
    noise = FalkNoiseFilter(60, **PARAMS)
    clean_X, clean_y = noise.fit_resample(X, y)
    np.testing.assert_array_equal(clean_X, X[noise.keep_])
    np.testing.assert_array_equal(clean_y, y[noise.keep_])
    rows = zarr.create_array(tmp_path / "X", data=X, chunks=(100, 2))
    stored_X, stored_y = noise.fit_resample(rows, y)
    np.testing.assert_array_equal(stored_X.compute(), clean_X)
    np.testing.assert_array_equal(stored_y, clean_y)


def test_what_is_no_array_of_its_rows_is_refused_in_a_sentence(flipped, tmp_path):
    X, y, _ = flipped
    noise = FalkNoiseFilter(60, **PARAMS).fit(X, y)
    frame = dask.dataframe.from_pandas(pandas.DataFrame(X), npartitions=2)
    for given, message in (
        (frame, r"transform takes NumPy, Dask and Zarr arrays, got .*to_dask"),
        (X[:7], "has 7 rows but the filter was fitted on 900"),
    ):
        with pytest.raises(DataError, match=message):
            noise.transform(given)
    with DatasetWriter(tmp_path / "d", X.shape[1], "f8", with_y=False) as writer:
        writer.append(X)
    with pytest.raises(DataError, match="has no labels y"):
        noise.clean_dataset(tmp_path / "d", tmp_path / "e")
