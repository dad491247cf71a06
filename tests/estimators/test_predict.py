"""Prediction answers in kind: lazily, in row order, in few tasks of planned memory."""

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client
from peaks import peak_of
from small import small
from support import CountingScheduler, checkers, small_svc, start_cluster, tiny_blocks

from daskls import DataError
from daskls.errors import MemoryPlanError
from daskls.methods import predict
from daskls.methods.predict import INTERVALS, OF_NUMBERS, PROBABILITIES, SCORES, row_nbytes

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


def test_a_failed_predict_to_zarr_leaves_nothing_that_looks_finished(many, tmp_path):
    model = many
    rows = QUERIES.copy()
    rows[450, 0] = np.inf
    with pytest.raises(DataError, match="first in row 450"):
        model.predict_to_zarr(da.from_array(rows, chunks=100), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    model.predict_to_zarr(da.from_array(QUERIES, chunks=100), tmp_path / "out")


pytestmark = pytest.mark.filterwarnings("ignore::daskls.AdviceWarning")

RNG = np.random.default_rng(0)
SQUARE = RNG.random((1000, 2))
DIGITS = (SQUARE[:, 0] * 10).astype(int)
NUMBERS = SQUARE.sum(axis=1) + 0.1 * RNG.normal(size=len(SQUARE))
MANY = RNG.random((120_000, 2))


def fitted(name, y, **params):
    return small(name, **{"gamma": 5.0, "C": 10.0, **params}).fit(SQUARE, y)


def ten_classes(**params):
    return fitted("VoronoiSVC", DIGITS, **TEN, **params)


TEN = {"loss": "squared_error", "cv": 5}
LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]
# A method, its parameters, its targets, and what is asked for; nothing stands for labels.
CASES = {
    "labels": ("VoronoiSVC", TEN, DIGITS, None),
    "scores": ("VoronoiSVC", {**TEN, "n_partitions": 2}, DIGITS, SCORES),
    "probabilities": ("VoronoiSVC", {**TEN, "probability": True}, DIGITS, PROBABILITIES),
    "votes": ("VoronoiSVC", {}, DIGITS, SCORES),
    "centers": ("FalkSVC", {"assign": "k_centers", "n_centers": 4}, DIGITS % 3, SCORES),
    "landmarks": ("LandmarkSVC", {"C": 1.0, "gamma": None}, DIGITS, None),
    "numbers": ("VoronoiSVR", {"feature_scale": "spread"}, np.c_[[NUMBERS] * 6].T, OF_NUMBERS),
    "intervals": ("VoronoiSVR", {"interval": 0.8, "n_partitions": 2}, NUMBERS, INTERVALS),
    "levels": ("VoronoiQuantileRegressor", {"quantile": LEVELS}, NUMBERS, OF_NUMBERS),
}


@pytest.mark.parametrize("case", CASES)
def test_a_block_takes_at_most_what_is_planned_for_its_rows(case):
    name, params, y, wanted = CASES[case]
    model = fitted(name, y, **params)
    wanted, handle = model.classes_ if wanted is None else wanted, model._handle
    asked = MANY[:30_000] if case == "centers" else MANY
    predict.predict_block(asked[:100], handle, wanted)
    peak = peak_of(lambda: predict.predict_block(asked, handle, wanted))
    planned = row_nbytes(model._reader, 2, 8, wanted)
    # The rows themselves are there before, once as they are and once as they come; 4 MiB are there
    # before queries make a difference. Nor is the plan so wide that blocks are small for nothing.
    assert peak < (planned - 2 * SQUARE.itemsize) * len(asked) + (4 << 20)
    assert peak > planned * len(asked) / 6


@pytest.fixture
def small_workers():
    """Let workers only say that they have little memory: they are threads of this process."""
    names = ("target", "spill", "pause")
    with dask.config.set({f"distributed.worker.memory.{name}": False for name in names}):
        yield


def test_a_chunk_whose_answers_no_worker_holds_is_refused(small_workers):
    model = ten_classes(probability=True)
    one = da.zeros((2_000_000, 2), chunks=(2_000_000, 2))
    limited = start_cluster(1, 1, "530MiB", processes=False)
    with limited as cluster, Client(cluster, set_as_default=False) as client:
        model.set_params(client=client)
        refused = (
            r"chunk of X has 2000000 rows, which take 183 MiB with their answers, but a worker may "
            r"use 120 MiB; pass X.rechunk\(\{0: 327680\}\), call predict_to_zarr"
        )
        with pytest.raises(MemoryPlanError, match=refused):
            model.predict_proba(one)
        # Labels fit, and so does what the message says.
        assert model.predict(one).chunks == ((2_000_000,),)
        assert model.predict_proba(one.rechunk({0: 327_680})).shape == (2_000_000, 10)
    # This process has no such limit; that the client is closed is for the compute to tell.
    assert model.predict_proba(one).shape == (2_000_000, 10)
