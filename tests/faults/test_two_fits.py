"""Two fits on one store: the second is refused while the first lives, and goes on when it died."""

import json
import os

import dask
import pytest
from falks import small_falk
from landmarks import small_landmarks
from samplings import small_local
from support import assert_same_model, checkers, small_svc
from writes import Writes, stop_fit

import daskls
from daskls import StoreError
from daskls.store.owner import OWNER, own_store


def times(store):
    return {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.is_file() and p.name != OWNER}


def test_the_second_fit_is_refused_and_changes_nothing(data, undisturbed, tmp_path):
    store = tmp_path / "m"
    with dask.config.set(scheduler="sync"):
        stop_fit(lambda: small_svc(store=store).fit(*data), store, "bundles", 2)
    with own_store(store):
        before = times(store)
        for X, y in (data, checkers(1200)):
            with pytest.raises(StoreError, match=rf"process {os.getpid()} on .*call fit again"):
                small_svc(store=store).fit(X, y)
        assert times(store) == before
    assert_same_model(undisturbed, small_svc(store=store).fit(*data))
    assert not (store / OWNER).exists()


@pytest.mark.parametrize("make", [small_svc, small_falk, small_landmarks, small_local])
def test_a_fit_that_lost_its_store_is_not_finished(make, data, tmp_path):
    # As of a machine that slept: another one took the store meanwhile, and still has it.
    store = tmp_path / "m"

    def taken_over(name):
        if name == "index":
            owner = json.loads((store / OWNER).read_text())
            owner.update(machine="another", host="desk", pid=77, token="theirs")
            (store / OWNER).write_text(json.dumps(owner))

    with (
        Writes(store, taken_over),
        pytest.raises(StoreError, match=r"taken over by process 77 on desk.*call fit again"),
    ):
        make(store=store).fit(*data)
    with pytest.raises(StoreError, match="not finished"):
        daskls.load(store)
    assert json.loads((store / OWNER).read_text())["token"] == "theirs"
    with pytest.raises(StoreError, match="process 77 on desk"):
        make(store=store).fit(*data)
    os.utime(store / OWNER, (0, 0))
    make(store=store).fit(*data)
    assert daskls.load(store).n_cells_
