"""Two fits on one store: the second is refused while the first lives, and goes on when it died."""

import json
import os

import pytest
from falks import small_falk
from support import small_svc
from writes import Writes

import daskls
from daskls import StoreError
from daskls.store.owner import OWNER


@pytest.mark.parametrize("make", [small_svc, small_falk])
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
