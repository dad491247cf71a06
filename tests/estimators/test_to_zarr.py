"""Prediction answers in kind: lazily, in row order, in few tasks of planned memory.

Queries gathered by bundle get the answers of those in blocks, from one read of each model.
"""

from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from peaks import peak_of
from small import small
from support import Calls, CountingScheduler, checkers, start_cluster, tiny_blocks
from writes import KillsAt, read_written

from daskls import DataError, StoreError
from daskls.errors import MemoryPlanError
from daskls.methods import predict, to_zarr
from daskls.methods.predict import INTERVALS, OF_NUMBERS, PROBABILITIES, SCORES, row_nbytes
from daskls.plan.prediction import PredictionPlan
from daskls.store.exchange import Exchange
from daskls.store.folder import Folder

pytestmark = pytest.mark.filterwarnings("ignore::daskls.AdviceWarning")

RNG = np.random.default_rng(0)
X, CODES = checkers(700, n_classes=3)
DIGITS = (X[:, 0] * 10).astype(int)
NUMBERS = X.sum(axis=1) + 0.1 * RNG.normal(size=len(X))
QUERIES = RNG.random((900, 2)) * 1.2 - 0.1
LAZY = da.from_array(QUERIES, chunks=(90, 2))
SQUARED = {"loss": "squared_error", "cv": 5}
LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]
TEXTS = np.array(["a", "longer", "no"])[CODES]
# A method, its parameters, its targets, and what is asked for; nothing stands for labels.
CASES = {
    "texts": ("VoronoiSVC", {"n_partitions": 3}, TEXTS, None),
    "scores of two": ("VoronoiSVC", {}, CODES > 0, SCORES),
    "scores": ("VoronoiSVC", {**SQUARED, "n_partitions": 3}, DIGITS, SCORES),
    "probabilities": ("VoronoiSVC", {**SQUARED, "probability": True}, DIGITS, PROBABILITIES),
    "numbers": ("VoronoiSVR", {"feature_scale": "spread"}, np.c_[[NUMBERS] * 6].T, OF_NUMBERS),
    "intervals": ("VoronoiSVR", {"interval": 0.8, "n_partitions": 3}, NUMBERS, INTERVALS),
    "levels": ("VoronoiQuantileRegressor", {"quantile": LEVELS}, NUMBERS, OF_NUMBERS),
}
# Those whose queries are not gathered, too.
MORE = {
    "labels": ("VoronoiSVC", SQUARED, DIGITS, None),
    "votes": ("VoronoiSVC", {}, DIGITS, SCORES),
    "centers": ("FalkSVC", {"assign": "k_centers", "n_centers": 4}, CODES, SCORES),
    "landmarks": ("LandmarkSVC", {"C": 1.0, "gamma": None}, DIGITS, None),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """Return a model, what is wanted of it, and the answers for all queries."""
    name, params, y, wanted = CASES[request.param]
    model = small(name, **{"gamma": 5.0, **params}).fit(X, y)
    wanted = model.classes_ if wanted is None else wanted
    return model, wanted, predict.predict_array(QUERIES, model._handle, wanted)


@pytest.fixture(scope="module")
def labels():
    return small("VoronoiSVC").fit(X, CODES)


def write(model, wanted, rows, path, most=100, **how):
    """Write the answers of queries, gathered by every model that can."""
    with pytest.MonkeyPatch.context() as patch:
        pays = property(lambda self: self.n_partitions)
        patch.setattr(PredictionPlan, "pays_to_gather", pays)
        to_zarr.predict_to_zarr(rows, model._handle, wanted, model._reader, most, str(path), **how)
    return zarr.open_array(path, mode="r")[:]


def same(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.always
def test_answers_are_those_of_the_rows(case, tmp_path, monkeypatch):
    model, wanted, expected = case
    runs = Calls(monkeypatch, to_zarr, "predict_run", lambda *given: given[0])
    same(write(model, wanted, LAZY, tmp_path / "out"), expected)
    assert len(runs) >= 9
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["c", "zarr.json"]


@pytest.mark.always
@settings(max_examples=8)
@given(
    chunks=st.lists(st.integers(0, 150), min_size=1, max_size=12),
    most=st.integers(1, 200),
    dtype=st.sampled_from(["f8", "f4", ">f8"]),
    # Few regions of space, so that bundles are empty, or hold more than a block.
    low=st.floats(0, 0.9),
    seed=st.integers(0, 9),
)
def test_any_chunks(labels, tmp_path_factory, chunks, most, dtype, low, seed):
    rows = low + (1 - low) * np.random.default_rng(seed).random((sum(chunks), 2))
    rows = rows.astype(dtype)
    lazy = da.from_array(rows, chunks=(tuple(chunks), 2))
    with dask.config.set(scheduler="threads"):
        found = write(labels, SCORES, lazy, tmp_path_factory.mktemp("any") / "out", most)
    same(found, predict.predict_array(rows, labels._handle, SCORES))


def test_with_a_client(labels, client, tmp_path):
    found = write(labels, labels.classes_, LAZY, tmp_path / "out", client=client)
    same(found, labels.predict(QUERIES))


@pytest.mark.slow
def test_a_killed_worker_costs_its_task(labels, tmp_path):
    (tmp_path / "o").mkdir()
    with start_cluster(2, 1) as cluster, Client(cluster, set_as_default=False) as client:
        client.register_plugin(KillsAt(tmp_path / "o", tmp_path / "log", 13, begun=True))
        found = write(labels, SCORES, LAZY, tmp_path / "o" / "out", client=client)
    assert read_written(tmp_path / "log")[1]
    same(found, labels.decision_function(QUERIES))
    assert sorted(path.name for path in (tmp_path / "o" / "out").iterdir()) == ["c", "zarr.json"]


TASKS = ["gather_block", "predict_run", "order_answers"]


def stop(folder):
    raise KeyboardInterrupt


def drop_output(folder):
    (place,) = folder.glob(".out.*")
    Folder(str(place)).drop("")


def damage(folder):
    for path in folder.glob(".out.*/*-*/block-*1"):
        path.write_bytes(path.read_bytes()[:-9])


def drop_model(folder):
    Folder(str(folder / "m")).drop("")


FAULTS = [
    *((stop, task, KeyboardInterrupt, None) for task in TASKS),
    *((drop_output, task, StoreError, r"out is gone.*then predict again") for task in TASKS),
    *(
        (damage, task, StoreError, r"block-000001, which held .*; predict again\.")
        for task in TASKS[1:]
    ),
    *((drop_model, task, StoreError, "m was removed while it was in use") for task in TASKS[:2]),
]


@pytest.mark.always
@pytest.mark.parametrize(("fault", "task", "error", "message"), FAULTS)
def test_what_happens_meanwhile_is_told_and_leaves_nothing(
    fault, task, error, message, tmp_path, monkeypatch
):
    model = small("VoronoiSVC", store=tmp_path / "m").fit(X, CODES)
    original, n_calls = getattr(to_zarr, task), []

    def faulty(*args, **kwargs):
        n_calls.append(1)
        if len(n_calls) == 2:
            fault(tmp_path)
        return original(*args, **kwargs)

    faulty.__name__ = task
    monkeypatch.setattr(to_zarr, task, faulty)
    with dask.config.set(scheduler="sync"), pytest.raises(error, match=message):
        write(model, SCORES, LAZY, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} <= {"m"}


@pytest.mark.parametrize("task", TASKS)
def test_a_task_takes_at_most_what_is_planned_for_its_rows(case, task, tmp_path):
    model, wanted, _ = case
    n_rows, handle = 60_000, model._handle
    asked = np.random.default_rng(0).random((n_rows, 2))
    output = SimpleNamespace(
        chunk_rows=n_rows,
        shape=(n_rows, *predict.answer_width(wanted, model._reader.target)),
        dtype=predict.answer_dtype(wanted).str,
        write=lambda start, values: None,
    )
    n_bundles, columns = len(model._reader.bundles), int(np.prod(output.shape[1:]))
    queries = Exchange(f"{tmp_path}/queries", 1, n_bundles, 2, "<f8")
    answers = Exchange(f"{tmp_path}/answers", 1, 1, columns, output.dtype)
    block = [{"chunk-location": (0, 0), "array-location": [(0, n_rows), (0, 2)]}]
    run = ((0, n_bundles), (0, 1))
    tasks = {
        "gather_block": lambda: to_zarr.gather_block(
            asked, handle=handle, queries=queries, block_info=block
        ),
        "predict_run": lambda: to_zarr.predict_run(
            (0, run), handle, wanted, queries, answers, n_rows
        ),
        "order_answers": lambda: to_zarr.order_answers(0, answers, output),
    }
    for name in TASKS[: TASKS.index(task)]:
        tasks[name]()
    # What is there before queries make a difference is no part of the plan.
    assert peak_of(tasks[task]) < row_nbytes(model._reader, 2, 8, wanted) * n_rows + (4 << 20)


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_a_block_takes_at_most_what_is_planned_for_its_rows(name):
    kind, params, y, wanted = {**CASES, **MORE}[name]
    model = small(kind, **{"gamma": 5.0, **params}).fit(X, y)
    wanted, handle = model.classes_ if wanted is None else wanted, model._handle
    asked = np.random.default_rng(0).random((30_000 if name == "centers" else 120_000, 2))
    predict.predict_block(asked[:100], handle, wanted)
    peak = peak_of(lambda: predict.predict_block(asked, handle, wanted))
    planned = row_nbytes(model._reader, 2, 8, wanted)
    # The rows themselves are there before, once as they are and once as they come; 4 MiB are there
    # before queries make a difference. Nor is the plan so wide that blocks are small for nothing.
    assert peak < (planned - 2 * X.itemsize) * len(asked) + (4 << 20)
    assert peak > planned * len(asked) / 6


def test_building_a_prediction_computes_nothing(labels, tmp_path):
    array = zarr.create_array(tmp_path / "q", data=QUERIES, chunks=(100, 2))
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        for source in (LAZY, tmp_path / "q", array):
            lazy = [labels.predict(source), labels.decision_function(source)]
            assert scheduler.n_tasks == []
            dask.compute(*lazy)
            assert len(scheduler.n_tasks) == 1
            scheduler.n_tasks.clear()


@pytest.mark.parametrize("chunks", [(900,), (1, 2, 897), (60, 1, 1, 0, 438, 400)])
def test_chunks_order_dtype_and_meta(chunks, labels, monkeypatch):
    tiny_blocks(monkeypatch, 70 * 16)
    two = small("VoronoiSVC").fit(X, TEXTS == "a")
    rows = da.from_array(QUERIES, chunks=(chunks, 1))
    for answer in (two.predict, two.decision_function, labels.predict, labels.decision_function):
        lazy, plain = answer(rows), answer(QUERIES)
        assert isinstance(plain, np.ndarray)
        assert lazy.chunks == (chunks, *((c,) for c in plain.shape[1:]))
        assert lazy.dtype == lazy._meta.dtype == plain.dtype
        assert lazy._meta.ndim == plain.ndim
        np.testing.assert_array_equal(lazy.compute(), plain)


def test_a_failed_predict_to_zarr_leaves_nothing_that_looks_finished(labels, tmp_path):
    rows = QUERIES.copy()
    rows[450, 0] = np.inf
    with pytest.raises(DataError, match="first in row 450"):
        labels.predict_to_zarr(da.from_array(rows, chunks=100), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    labels.predict_to_zarr(LAZY, tmp_path / "out")


def test_a_chunk_whose_answers_no_worker_holds_is_refused():
    model = small("VoronoiSVC", **SQUARED, probability=True, gamma=5.0).fit(X, DIGITS)
    one = da.zeros((2_000_000, 2), chunks=(2_000_000, 2))
    # Workers only say that they have little memory: they are threads of this process.
    names = (f"distributed.worker.memory.{name}" for name in ("target", "spill", "pause"))
    with (
        dask.config.set(dict.fromkeys(names, False)),
        start_cluster(1, 1, "530MiB", processes=False) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
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
