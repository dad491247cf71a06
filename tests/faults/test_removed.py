"""A store that is removed in the middle: one sentence says so, and nothing comes back."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest
from falks import small_falk
from landmarks import small_landmarks
from samplings import small_local
from support import assert_same_model, checkers, path_of, small_svc, tiny_blocks
from writes import remove

import daskls
from daskls import StoreError
from daskls.methods import predict, to_zarr

GONE = r"model at .*m was removed while it was in use"


@pytest.mark.slow
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


# What is removed (an output lies in a hidden place until it is whole), where, and what is told.
IN_A_PREDICTION = [
    ("m", predict, "score_rows", GONE),
    (".out.*", to_zarr, "predict_block", r"out is gone.*then predict again"),
]


@pytest.mark.always
@pytest.mark.parametrize(("what", "module", "name", "told"), IN_A_PREDICTION)
def test_what_is_removed_in_a_prediction(what, module, name, told, data, tmp_path, monkeypatch):
    small_svc(store=tmp_path / "m").fit(*data)
    model = daskls.load(tmp_path / "m")
    X = da.from_array(checkers(500, seed=1)[0], (50, 2))
    call, n_calls = getattr(module, name), []

    def removed(*args, **kwargs):
        n_calls.append(1)
        if len(n_calls) == 4:
            remove(next(tmp_path.glob(what)))
        return call(*args, **kwargs)

    monkeypatch.setattr(module, name, removed)
    tiny_blocks(monkeypatch, 800)
    with (
        ThreadPoolExecutor(4) as pool,
        dask.config.set(pool=pool),
        pytest.raises(StoreError, match=told),
    ):
        model.predict_to_zarr(X, tmp_path / "out")
    assert [*tmp_path.iterdir()] == [tmp_path / "m"] * (what != "m")


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
