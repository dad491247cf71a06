import os

import numpy as np
import pytest

from daskls.datasets import covtype_split, load_real, real
from daskls.errors import DataError

needs_data = pytest.mark.skipif(
    not os.environ.get("DASKLS_DATA"), reason="DASKLS_DATA names no folder of real data sets"
)


def test_unset_folder_says_how_to_set_it(monkeypatch):
    monkeypatch.delenv("DASKLS_DATA", raising=False)
    with pytest.raises(DataError, match="DASKLS_DATA is not set; set it to a folder"):
        load_real("covtype")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DASKLS_DATA", str(tmp_path))
    return tmp_path


def test_whole_and_split_sets(folder):
    X, y = np.arange(6).reshape(3, 2), np.array([1, 2, 1])
    np.savez(folder / "whole.npz", X=X, y=y)
    np.savez(folder / "split.npz", X_train=X, y_train=y, X_test=X[:1], y_test=y[:1])
    whole, split = load_real("whole"), load_real("split")
    np.testing.assert_array_equal(whole.X, X)
    np.testing.assert_array_equal(whole.y, y)
    assert whole.X_test is None
    assert whole.y_test is None
    np.testing.assert_array_equal(split.X, X)
    np.testing.assert_array_equal(split.X_test, X[:1])
    np.testing.assert_array_equal(split.y_test, y[:1])


def test_missing_files_and_arrays_are_named(folder):
    np.savez(folder / "half.npz", X=np.zeros((2, 2)))
    with pytest.raises(DataError, match="Found there: half"):
        load_real("covtype")
    with pytest.raises(DataError, match="has no array 'y'; it needs X, y"):
        load_real("half")


def test_covtype_split_on_a_small_stand_in(folder, monkeypatch):
    monkeypatch.setattr(real, "COVTYPE_N_TRAIN", 30)
    rng = np.random.default_rng(0)
    X = rng.integers(-50, 3000, (40, 5)).astype(np.int16)
    X[:, 4] = 7
    y = rng.integers(1, 8, 40).astype(np.int8)
    np.savez(folder / "covtype.npz", X=X, y=y)
    data = covtype_split()
    order = np.random.default_rng(2017).permutation(40)
    whole = np.concatenate([data.X, data.X_test])
    wide = X[order].astype(float)
    expected = (wide - wide.min(0)) / np.maximum(wide.max(0) - wide.min(0), 1)
    np.testing.assert_allclose(whole, expected, rtol=1e-6)
    labels = np.concatenate([data.y, data.y_test])
    np.testing.assert_array_equal(labels == 1, y[order] == 2)
    assert set(labels.tolist()) == {-1, 1}
    assert (data.X.dtype, len(data.X), len(data.X_test)) == (np.float32, 30, 10)


def test_covtype_split_needs_enough_rows(folder):
    np.savez(folder / "covtype.npz", X=np.zeros((4, 2)), y=np.ones(4))
    with pytest.raises(DataError, match="over 464429 rows, got 4"):
        covtype_split()


@needs_data
@pytest.mark.slow
def test_covtype_has_the_papers_sizes():
    data = covtype_split()
    assert data.X.shape == (464_429, 54)
    assert data.X_test.shape == (116_583, 54)
    assert data.X.dtype == np.float32
    assert min(data.X.min(), data.X_test.min()) == 0
    assert max(data.X.max(), data.X_test.max()) == 1
    assert (data.y == 1).sum() + (data.y_test == 1).sum() == 283_301
