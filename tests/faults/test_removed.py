"""A store that is removed in the middle: one sentence says so, and nothing comes back."""

import dask.array as da
import numpy as np
import pytest
from falks import small_falk
from support import (
    assert_same_model,
    checkers,
    small_svc,
)
from writes import remove

import daskls
from daskls import StoreError

GONE = r"model at .*m was removed while it was in use"


@pytest.mark.slow
@pytest.mark.parametrize("make", [small_svc, small_falk])
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


def test_a_store_moved_and_put_back_is_the_same(data, undisturbed, tmp_path):
    model = small_svc(store=tmp_path / "m").fit(*data)
    (tmp_path / "m").rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="Put it back"):
        model.predict(np.zeros((1, 2)))
    (tmp_path / "moved").rename(tmp_path / "m")
    assert_same_model(undisturbed, model)
