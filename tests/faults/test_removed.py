"""A store that is removed in the middle: one sentence says so, and nothing comes back."""

import pickle
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client
from falks import small_falk
from landmarks import small_landmarks
from samplings import small_local, small_near
from support import (
    Spies,
    assert_same_model,
    checkers,
    install_spies,
    path_of,
    plan_removal,
    read_log,
    small_svc,
    start_cluster,
    tiny_blocks,
)
from writes import Writes

import daskls
from daskls import FalkNoiseFilter, StoreError

# Which call of a stage finds the store removed.
REMOVALS = [
    *((small_svc, stage, at) for stage in ("sample", "rows written") for at in (1, 7)),
    *((small_svc, "regroup", at) for at in (1, 12)),
    *((small_svc, stage, at) for stage in ("cell", "bundle written") for at in (1, 5)),
    *((small_falk, stage, 1) for stage in ("leaves written", "search", "centers written")),
    *((small_local, stage, 1) for stage in ("large", "draws written", "sample written")),
    (small_near, "nearest written", 1),
    *((small_landmarks, "round written", at) for at in (1, 6)),
]


@pytest.fixture(scope="module")
def cluster():
    with start_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def spies(tmp_path):
    undo = install_spies(tmp_path)
    yield
    for owner, name, original in undo:
        setattr(owner, name, original)


def remove(store):
    """Remove a folder that others write into."""
    while store.exists():
        shutil.rmtree(store, ignore_errors=True)


@pytest.mark.parametrize(("make", "stage", "at"), REMOVALS)
def test_a_store_removed_in_a_fit(make, stage, at, data, tmp_path, spies):
    parent = tmp_path / "stores"
    plan_removal(tmp_path, stage, at, parent / "m")
    # Tasks that are under way when the fit gives up end before the pool does.
    with (
        ThreadPoolExecutor(4) as pool,
        dask.config.set(pool=pool),
        pytest.raises(StoreError, match=r"was removed while fit was writing it\..*begins anew"),
    ):
        make(store=parent / "m").fit(*data)
    assert read_log(tmp_path, "removed") == [stage]
    assert list(parent.iterdir()) == []
    make(store=parent / "m").fit(*data)


def test_a_store_removed_while_numpy_input_is_written(tmp_path):
    def act(name):
        if name.startswith("input-"):
            remove(tmp_path / "m")

    with (
        Writes(tmp_path / "m", act),
        pytest.raises(StoreError, match="was removed while fit was writing it"),
    ):
        small_svc(store=tmp_path / "m").fit(*checkers(300))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("stage", "at"), [("sample", 5), ("rows written", 6), ("cell", 5), ("bundle written", 5)]
)
def test_a_store_removed_in_a_fit_on_a_cluster(stage, at, cluster, data, tmp_path):
    store = tmp_path / "stores" / "m"
    plan_removal(tmp_path, stage, at, store)
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        client.register_plugin(Spies(tmp_path))
        with pytest.raises(StoreError, match="was removed while fit was writing it"):
            small_svc(client=client, store=store).fit(*data)
        # Tasks that are under way on the workers end.
        while any(client.processing().values()):
            time.sleep(0.05)
        client.unregister_worker_plugin("spies")
    assert read_log(tmp_path, "removed") == [stage]
    assert list(store.parent.iterdir()) == []


GONE = r"model at .*m was removed while it was in use"


@pytest.mark.parametrize("make", [small_svc, small_falk, small_landmarks, small_local])
def test_a_model_removed_before_a_prediction(make, data, tmp_path):
    make(store=tmp_path / "m").fit(*data)
    model = daskls.load(tmp_path / "m")
    X = checkers(500, seed=1)[0]
    lazy = model.predict(da.from_array(X, (50, 2)))
    remove(tmp_path / "m")
    calls = [
        lambda: model.predict(X),
        lambda: model.decision_function(X),
        lambda: model.score(*data),
        lambda: model.predict_to_zarr(da.from_array(X), tmp_path / "out"),
        lambda: model.save(tmp_path / "copy"),
        lambda: model.fit_report_,
        lazy.compute,
    ]
    for call in calls:
        with pytest.raises(StoreError, match=GONE):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_model_removed_in_a_prediction(data, tmp_path, monkeypatch):
    from daskls.methods import predict

    small_svc(store=tmp_path / "m").fit(*data)
    model = daskls.load(tmp_path / "m")
    X = da.from_array(checkers(500, seed=1)[0], (50, 2))
    score_rows, n_calls = predict.score_rows, []

    def removed(reader, X):
        n_calls.append(len(X))
        if len(n_calls) == 4:
            remove(tmp_path / "m")
        return score_rows(reader, X)

    monkeypatch.setattr(predict, "score_rows", removed)
    tiny_blocks(monkeypatch, 800)
    with (
        ThreadPoolExecutor(4) as pool,
        dask.config.set(pool=pool),
        pytest.raises(StoreError, match=GONE),
    ):
        model.predict_to_zarr(X, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("at", [1, 4, 10])
def test_an_output_removed_in_a_prediction(at, data, tmp_path, monkeypatch):
    from daskls.methods import predict

    model = small_svc().fit(*data)
    X = da.from_array(checkers(500, seed=1)[0], (50, 2))
    predict_block, n_calls = predict.predict_block, []

    def removed(*args, **kwargs):
        answer = predict_block(*args, **kwargs)
        n_calls.append(1)
        if len(n_calls) == at:
            remove(tmp_path / "out")
        return answer

    monkeypatch.setattr(predict, "predict_block", removed)
    tiny_blocks(monkeypatch, 800)
    with (
        dask.config.set(scheduler="sync"),
        pytest.raises(StoreError, match=r"out is gone.*then predict again"),
    ):
        model.predict_to_zarr(X, tmp_path / "out")
    assert len(n_calls) == at
    assert list(tmp_path.iterdir()) == []
    model.predict_to_zarr(X, tmp_path / "out")


def test_a_filter_whose_model_was_removed(data, tmp_path):
    noise = FalkNoiseFilter(n_neighbors=60, random_state=0, store=tmp_path / "m").fit(*data)
    remove(tmp_path / "m")
    with pytest.raises(StoreError, match=GONE):
        np.asarray(noise.keep_)


def test_a_temporary_store_removed_before_it_is_pickled(data):
    model = small_svc().fit(*data)
    remove(path_of(model))
    with pytest.raises(StoreError, match="was removed while it was in use"):
        pickle.dumps(model)


def test_a_store_moved_and_put_back_is_the_same(data, undisturbed, tmp_path):
    model = small_svc(store=tmp_path / "m").fit(*data)
    (tmp_path / "m").rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="Put it back"):
        model.predict(np.zeros((1, 2)))
    (tmp_path / "moved").rename(tmp_path / "m")
    assert_same_model(undisturbed, model)
