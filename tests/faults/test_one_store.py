"""Fits on one store: at once, one after another on other chunks, tasks twice, full disks."""

import errno
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import pytest
from falks import small_falk
from landmarks import small_landmarks
from samplings import small_local
from support import Calls, assert_same_model, checkers, model_bits, small_svc
from writes import Writes, stop_fit

import daskls
from daskls import StoreError
from daskls.methods.cells import fit
from daskls.run import regroup
from daskls.store import exchange, folder
from daskls.store.artifact import open_artifact
from daskls.store.exchange import stored_grids
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


def test_every_task_twice_at_once_does_no_harm(data, undisturbed, monkeypatch, tmp_path):
    bundle_runs = Calls(monkeypatch, fit, "write_bundle", lambda *args: args[1])
    monkeypatch.setattr(fit, "fit_bundle", twice(fit.fit_bundle))
    monkeypatch.setattr(regroup, "assign_block", twice(regroup.assign_block))
    model = small_svc(store=tmp_path / "m").fit(*data)
    assert_same_model(undisturbed, model)
    # Both runs of at least one bundle came to the writing.
    assert max(bundle_runs.counter().values()) == 2
    assert not list((tmp_path / "m" / "bundles").glob(".*"))


def twice(task):
    def run(*args, **kwargs):
        barrier = threading.Barrier(2)

        def one(_):
            barrier.wait()
            return task(*args, **kwargs)

        with ThreadPoolExecutor(2) as pool:
            return next(iter(pool.map(one, range(2))))

    run.__name__ = task.__name__
    return run


def full_disk(monkeypatch, at, part):
    """Fail on files whose path holds ``part``, but for ``at`` of them; the half that fits stays."""
    create, tried = folder.create_file, []

    def write(path):
        if part in path:
            Path(path).write_bytes(b"half")
            tried.append(path)
            if len(tried) > at:
                raise OSError(errno.ENOSPC, "No space left on device")
        return create(path)

    monkeypatch.setattr(folder, "create_file", write)


# What the paths of files that are being written hold.
PARTS = {
    **{"exchange": "/.block-", "groups": "/.group-", "manifest": "/.manifest-", "root": "m/.root"},
    **{"partition": "/.partition.", "bundles": "/bundles/", "index": "/.index."},
}


@pytest.mark.parametrize("at", [0, 5])
@pytest.mark.parametrize("place", PARTS)
def test_a_full_disk(place, at, data, undisturbed, monkeypatch, tmp_path):
    store = tmp_path / "m"
    once = place in ("manifest", "partition", "index", "root")
    full_disk(monkeypatch, 0 if once else at, PARTS[place])
    with pytest.raises(StoreError, match=r"No space left.*Free some space.*call fit again"):
        small_svc(store=store).fit(*data)
    with pytest.raises(StoreError):
        daskls.load(store)
    # Nothing half written has a name.
    for bundle in store.glob("bundles/*"):
        open_artifact(store, f"bundles/{bundle.name}").check()
    monkeypatch.undo()
    model = small_svc(store=store).fit(*data)
    assert_same_model(undisturbed, model)
    assert sorted(p.name for p in store.iterdir()) == ["bundles", "index", "partition", "root"]


@pytest.mark.parametrize("n_blocks", [1, 7])
@pytest.mark.parametrize("chunks", [(1200,), (350, 1, 849), (40,) * 30])
def test_a_fit_on_other_chunks_goes_on_in_the_blocks_of_the_first(
    tmp_path, data, undisturbed, monkeypatch, chunks, n_blocks
):
    store, (X, y) = tmp_path / "m", checkers(1200)
    rows = da.from_array(X, (chunks, (2,))), da.from_array(y, (chunks,))
    with dask.config.set(scheduler="sync"):
        first = small_svc(store=store)
        stop_fit(lambda: first.fit(*data), store, "exchange-.*/block-", n_blocks)
        assert stored_grids(store) == [(100,) * 12]
        written = Calls(monkeypatch, exchange.Exchange, "write_block", lambda *args: args[1])
        assert model_bits(small_svc(store=store).fit(*rows)) == undisturbed
    # What was written stays, whichever blocks it were.
    assert len(written.keys) == len(set(written.keys)) == 12 - n_blocks
