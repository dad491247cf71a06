"""Prediction answers in kind: lazily, in row order, in few tasks, on any scheduler."""

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from support import Calls, CountingScheduler, checkers, small_svc, tiny_blocks

from daskls import DataError, StoreError
from daskls.methods import predict

N = 600
X, Y = checkers(N, seed=1)
QUERIES = np.random.default_rng(5).random((500, 2))


@pytest.fixture(scope="module")
def model():
    return small_svc().fit(X, np.array(["lower", "upper"])[Y])


@pytest.fixture(scope="module")
def many():
    X, y = checkers(N, n_classes=3)
    return small_svc().fit(X, y)


def test_building_a_prediction_computes_nothing(model, tmp_path):
    array = zarr.create_array(tmp_path / "q", data=QUERIES, chunks=(100, 2))
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        for source in (da.from_array(QUERIES, chunks=100), tmp_path / "q", array):
            lazy = [model.predict(source), model.decision_function(source)]
            assert scheduler.n_tasks == []
            dask.compute(*lazy)
            assert len(scheduler.n_tasks) == 1
            scheduler.n_tasks.clear()


def test_a_slice_computes_one_super_block(model, monkeypatch):
    tiny_blocks(monkeypatch, 100 * 16)
    calls = Calls(monkeypatch, predict, "predict_block", lambda X, *args, **kwargs: len(X))
    lazy = model.predict(da.from_array(QUERIES, chunks=(50, 2)))
    assert lazy.chunks == ((50,) * 10,)
    calls.keys.clear()
    first = lazy[:10].compute()
    assert calls.keys == [100]
    np.testing.assert_array_equal(first, model.predict(QUERIES[:10]))
    calls.keys.clear()
    lazy.compute()
    assert calls.keys == [100] * 5


@pytest.mark.parametrize("chunks", [(500,), (1, 2, 497), (60, 1, 1, 0, 238, 200)])
def test_chunks_order_dtype_and_meta(model, many, chunks, monkeypatch):
    tiny_blocks(monkeypatch, 70 * 16)
    rows = da.from_array(QUERIES, chunks=(chunks, 1))
    for answer in (model.predict, model.decision_function, many.predict, many.decision_function):
        lazy, plain = answer(rows), answer(QUERIES)
        assert isinstance(plain, np.ndarray)
        assert lazy.chunks == (chunks, *((c,) for c in plain.shape[1:]))
        assert lazy.dtype == lazy._meta.dtype == plain.dtype
        assert lazy._meta.ndim == plain.ndim
        np.testing.assert_array_equal(lazy.compute(), plain)


@pytest.mark.parametrize("kind", ["Dask", "Zarr", "path", "NumPy"])
def test_predict_to_zarr_equals_predict(model, many, kind, tmp_path, monkeypatch):
    tiny_blocks(monkeypatch, 120 * 16)
    rows = {
        "Dask": da.from_array(QUERIES, chunks=((7, 200, 293), 2)),
        "Zarr": zarr.create_array(tmp_path / "q", data=QUERIES, chunks=(60, 2)),
        "path": str(tmp_path / "q"),
        "NumPy": QUERIES,
    }[kind]
    for fitted in (many, model):
        path = tmp_path / str(len(fitted.classes_))
        fitted.predict_to_zarr(rows, path)
        np.testing.assert_array_equal(zarr.open_array(path)[:], fitted.predict(QUERIES))
    with pytest.raises(StoreError, match="exists already"):
        model.predict_to_zarr(rows, path)


def test_a_failed_predict_to_zarr_leaves_nothing_that_looks_finished(many, tmp_path):
    model = many
    rows = QUERIES.copy()
    rows[450, 0] = np.inf
    with pytest.raises(DataError, match="first in row 450"):
        model.predict_to_zarr(da.from_array(rows, chunks=100), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    model.predict_to_zarr(da.from_array(QUERIES, chunks=100), tmp_path / "out")


def test_tasks_grow_with_blocks_and_not_with_cells(monkeypatch):
    tiny_blocks(monkeypatch)
    n_tasks = {}
    for cell_size in (50, 300):
        model = small_svc(cell_size=cell_size).fit(X, Y)
        for n_blocks in (10, 20):
            lazy = model.predict(da.from_array(QUERIES, chunks=(500 // n_blocks, 2)))
            n_tasks[cell_size, n_blocks] = len(dict(lazy.__dask_graph__()))
    assert n_tasks[50, 10] == n_tasks[300, 10]
    assert n_tasks[50, 20] == n_tasks[300, 20] <= 2 * n_tasks[50, 10]
    assert n_tasks[50, 10] <= 5 * 10


@pytest.mark.parametrize("n_blocks", [6, 30])
def test_tasks_of_a_fit_grow_with_blocks_plus_bundles(n_blocks, set_block_nbytes):
    set_block_nbytes(1)
    scheduler = CountingScheduler()
    chunks = N // n_blocks
    with dask.config.set(scheduler=scheduler, num_workers=2):
        model = small_svc(cell_size=30).fit(
            da.from_array(X, chunks=(chunks, 2)), da.from_array(Y, chunks=chunks)
        )
    # Three passes over the blocks (labels, sample, exchange), then the bundles.
    assert sum(scheduler.n_tasks) <= 3 * 4 * n_blocks + model.n_cells_ + 10
    assert len(scheduler.n_tasks) <= 6


def test_score(model):
    labels = np.array(["lower", "upper"])[Y]
    plain = float(np.mean(model.predict(X) == labels))
    assert model.score(X, labels) == plain > 0.8
    rows = da.from_array(X, chunks=100)
    assert model.score(rows, da.from_array(labels, chunks=70)) == plain
    weights = np.arange(N)
    weighted = np.average(model.predict(X) == labels, weights=weights)
    assert model.score(rows, labels, sample_weight=weights) == pytest.approx(weighted)
