"""Blocks of queries are planned by what their answers take, for threads and for workers."""

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client
from peaks import peak_of
from small import small
from support import Calls, start_cluster

from daskls import MemoryPlanError
from daskls.methods import predict
from daskls.methods.predict import INTERVALS, OF_NUMBERS, PROBABILITIES, SCORES, row_nbytes
from daskls.store.caches import BASELINE_NBYTES

pytestmark = pytest.mark.filterwarnings("ignore::daskls.AdviceWarning")

RNG = np.random.default_rng(0)
X = RNG.random((1000, 2))
DIGITS = (X[:, 0] * 10).astype(int)
NUMBERS = X.sum(axis=1) + 0.1 * RNG.normal(size=len(X))
QUERIES = RNG.random((120_000, 2))


def fitted(name, y, **params):
    return small(name, **{"gamma": 5.0, "C": 10.0, **params}).fit(X, y)


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
    "two classes": ("VoronoiSVC", {}, DIGITS > 5, None),
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
    asked = QUERIES[:30_000] if case == "centers" else QUERIES
    predict.predict_block(asked[:100], handle, wanted)
    peak = peak_of(lambda: predict.predict_block(asked, handle, wanted))
    planned = row_nbytes(model._reader, 2, 8, wanted)
    # The rows themselves are there before, once as they are and once as they come; 4 MiB are there
    # before queries make a difference. Nor is the plan so wide that blocks are small for nothing.
    assert peak < (planned - 2 * X.itemsize) * len(asked) + (4 << 20)
    assert peak > planned * len(asked) / 6


@pytest.fixture
def small_workers():
    """Let workers only say that they have little memory: they are threads of this process."""
    names = ("target", "spill", "pause")
    with dask.config.set({f"distributed.worker.memory.{name}": False for name in names}):
        yield


def rows_of_blocks(monkeypatch, build):
    """Return the rows of each block, or part of a chunk, that a lazy answer is made of."""
    seen = Calls(monkeypatch, predict, "_answer", lambda reader, X, *_: len(X))
    build()
    return seen.keys


@pytest.mark.slow
@pytest.mark.parametrize("n_threads", [1, 4])
def test_blocks_follow_the_memory_of_a_workers_thread(
    n_threads, monkeypatch, tmp_path, small_workers
):
    model = ten_classes()
    asked = da.from_array(QUERIES, chunks=(1000, 2))
    task = (int((470 << 20) * 0.8) - BASELINE_NBYTES) // n_threads
    most = task // 3 // row_nbytes(model._reader, 2, 8, model.classes_)
    assert 5_000 < most < len(QUERIES)
    expected = model.predict(QUERIES)
    limited = start_cluster(1, n_threads, "470MiB", processes=False)
    with limited as cluster, Client(cluster, set_as_default=False) as client:
        own = model.set_params(client=client)
        lazy = own.predict(asked)
        for answer in (
            lambda: np.testing.assert_array_equal(client.compute(lazy).result(), expected),
            lambda: own.predict_to_zarr(asked, tmp_path / "out"),
        ):
            found = rows_of_blocks(monkeypatch, answer)
            assert sum(found) == len(QUERIES)
            # As large as whole chunks allow, and not larger.
            assert most - 1000 < max(found) <= most


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


def test_threads_share_what_is_free(monkeypatch):
    model = ten_classes()
    row = row_nbytes(model._reader, 2, 8, model.classes_)
    monkeypatch.setattr(predict, "free_nbytes", lambda: 2 * 3 * row * 5_000)
    with dask.config.set(num_workers=2):
        found = rows_of_blocks(monkeypatch, lambda: model.predict(QUERIES))
    assert set(found) == {5_000}
