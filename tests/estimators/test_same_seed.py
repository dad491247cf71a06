"""The same seed gives the same model bit for bit, whatever reads and trains it."""

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from small import small_sample
from support import (
    assert_same_model,
    checkers,
    model_bits,
    path_of,
    small_svc,
)
from threadpoolctl import threadpool_limits

from daskls.partition.stored import read_partition
from daskls.store.dataset import DatasetWriter
from daskls.store.layout import Root

N = 1200


@pytest.fixture
def many_leaves(monkeypatch):
    """Sample fewer rows than there are."""
    small_sample(monkeypatch, 400)


def test_the_sampled_tree_differs_from_the_exact_one(monkeypatch):
    X, y = checkers(N)
    exact = small_svc().fit(X, y)
    small_sample(monkeypatch, 400)
    sampled = small_svc().fit(X, y)
    assert model_bits(sampled)["tree thresholds"] != model_bits(exact)["tree thresholds"]
    # All rows are in some cell either way.
    assert sampled.fit_report_.n_rows.sum() == exact.fit_report_.n_rows.sum() == N
    assert sampled.fit_report_.n_rows.max() <= 100


def test_all_kinds_of_input_give_one_model(tmp_path, many_leaves, set_block_nbytes):
    X, y = checkers(N)
    labels = np.array(["even", "odd"])[y]
    set_block_nbytes(200 * 16)
    array = zarr.create_array(tmp_path / "X", shape=X.shape, dtype=X.dtype, chunks=(170, 2))
    array[...] = X
    with DatasetWriter(
        tmp_path / "set", 2, X.dtype, classes=["even", "odd"], chunk_rows=130
    ) as writer:
        writer.append(X, y)
    dask_y = da.from_array(labels, chunks=313)
    inputs = {
        "NumPy": (X, labels),
        "Dask": (da.from_array(X, chunks=(77, 1)), dask_y),
        "Zarr": (array, labels),
        "path of an array": (str(tmp_path / "X"), dask_y),
        "path of a data set": (tmp_path / "set", None),
    }
    models = {kind: small_svc().fit(*rows) for kind, rows in inputs.items()}
    bits = {kind: model_bits(model) for kind, model in models.items()}
    for kind in inputs:
        differing = [k for k, v in bits[kind].items() if v != bits["NumPy"][k]]
        # The identity names the dtype of the labels, which may be wider than they need.
        assert [k for k in differing if k != "fingerprint"] == [], kind
        assert models[kind].classes_.tolist() == ["even", "odd"]


def test_blas_threads_leave_no_trace():
    # With hundreds of features OpenBLAS shares the covariance and its eigenvectors out.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 300))
    # One direction of all features has most of the variance: the cut is an eigenvector.
    X += X[:, :1]
    y = (X[:, 0] > 0).astype(int)
    models = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"), dask.config.set(scheduler="sync"):
            models.append(small_svc(cell_size=1000, gamma=1e-3, C=0.1).fit(X, y))
    (tree,) = read_partition(Root.open(path_of(models[0])).find("partition")).trees
    assert ((tree.directions != 0).sum(axis=1) > 1).any()
    assert_same_model(*models)
