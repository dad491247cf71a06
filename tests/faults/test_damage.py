"""Files of stores, finished and not, are damaged; the next fit gives what an undisturbed one does.

``DASKLS_DAMAGES`` sets how many damages each kind of estimator gets; their seed is fixed.
"""

import os
import shutil

import dask
import dask.array as da
import numpy as np
import pytest
from damages import DAMAGES, draw_damages, files_of
from small import ENTRIES, answers_of, bits_of, small, tiny_tasks
from support import Calls, checkers, few, model_bits, small_svc
from writes import Writes, stop_fit

import daskls
from daskls import DasklsError, StoreError
from daskls.methods.cells import fit
from daskls.run import begin
from daskls.store import exchange
from daskls.store.models import bundle_key
from daskls.store.reader import ModelReader

N_DAMAGES = int(os.environ.get("DASKLS_DAMAGES", 2))
N = 500
X, Y = (da.from_array(a, chunks=100) for a in checkers(N))
QUERIES = checkers(100, seed=1)[0]
# What a fit that ends in the middle puts in place last, of each method that has it.
ENDS = ("exchange-", "partition", "rows", "leaves", "centers", "sampling", "joint", "bundles")
WAYS = {
    **{name: (name, {}) for name in ENTRIES},
    "partitions": ("VoronoiSVC", {"n_partitions": 2}),
    "center": ("FalkSVC", {"assign": "center", "selection": "local", "C": [1.0, 10.0]}),
}
# At every change few of them.
EARLY = ("VoronoiSVC", "LocalSamplingSVC", "center")
FEW_WAYS = few([*EARLY, *(way for way in WAYS if way not in EARLY)], len(EARLY))


@pytest.fixture(autouse=True)
def more_small_tasks():
    """Several parts of each kind, in this process."""
    with tiny_tasks(N_SEARCH_TASKS=12), dask.config.set(scheduler="sync"):
        yield


def make(way, **params):
    """Return an estimator of one of the ways."""
    name, own = WAYS[way]
    return small(name, **own, **params)


def stopped(model, store, start, at=0):
    """Leave a store whose fit ends before it puts the thing number ``at`` of a start in place."""
    stop_fit(lambda: model.set_params(store=store).fit(X, Y), store, start, at)


def told(store, call):
    """Return what a call gives; None where it says what is damaged, and what to do."""
    try:
        return call()
    except DasklsError as error:
        message = str(error)
    assert str(store) in message
    assert "fit" in message
    return None


def check_refit(way, store, expected):
    """Fit up to twice: the first may say what is damaged, the second is as if nothing was."""
    told(store, lambda: make(way, store=store).fit(X, Y))
    assert bits_of(make(way, store=store).fit(X, Y)) == expected


@pytest.mark.parametrize("way", FEW_WAYS)
def test_damage_to_an_unfinished_store(way, tmp_path):
    names = []
    with Writes(tmp_path / "whole", names.append):
        expected = bits_of(make(way, store=tmp_path / "whole").fit(X, Y))
    for number, start in enumerate(ENDS):
        n = sum(name.startswith(start) for name in names)
        if n == 0:
            continue
        kept, store = tmp_path / f"kept-{number}", tmp_path / "m"
        stopped(make(way), kept, start, n - 1)
        for file, damage, rng in draw_damages(kept, -(-N_DAMAGES // 2), seed=len(ENDS) + number):
            shutil.copytree(kept, store)
            DAMAGES[damage](store / file, rng, store)
            check_refit(way, store, expected)
            shutil.rmtree(store)


@pytest.mark.parametrize("way", FEW_WAYS)
def test_damage_to_a_finished_model(way, tmp_path):
    model = make(way, store=tmp_path / "kept").fit(X, Y)
    expected, scores = bits_of(model), answers_of(model, QUERIES)
    for file, damage, rng in draw_damages(tmp_path / "kept", N_DAMAGES, seed=0):
        store = tmp_path / "m"
        shutil.copytree(tmp_path / "kept", store)
        DAMAGES[damage](store / file, rng, store)
        found = told(store, lambda path=store: answers_of(daskls.load(path), QUERIES))
        assert found is None or np.array_equal(found, scores)
        check_refit(way, store, expected)
        shutil.rmtree(store)


def times(folder):
    """Return when each file below a folder was written."""
    return {file: file.stat().st_mtime_ns for file in files_of(folder)}


def test_only_what_is_damaged_is_trained_again(tmp_path, monkeypatch):
    store = tmp_path / "m"
    expected = model_bits(small_svc(store=store).fit(X, Y))
    reader = ModelReader(store)
    damaged = reader.bundles[2]
    folder = store / bundle_key(damaged.first_leaf, damaged.last_leaf)
    before = {f: t for f, t in times(store / "bundles").items() if folder not in f.parents}
    assert len(before) >= 3
    (folder / "coef" / "c.0").write_bytes(b"")
    written = Calls(monkeypatch, fit, "write_bundle", lambda *args: args[1:3])
    small_svc(store=store).fit(X, Y)
    # A leaf may be another bundle's part now: it is trained by itself.
    assert {leaf for a, b in written.keys for leaf in range(a, b + 1)} == set(
        range(damaged.first_leaf, damaged.last_leaf + 1)
    )
    assert {f: f.stat().st_mtime_ns for f in before} == before
    assert model_bits(store) == expected
    assert sorted(p.name for p in store.iterdir()) == ["bundles", "index", "partition", "zarr.json"]


def test_a_damaged_index_needs_no_training(tmp_path, monkeypatch):
    store = tmp_path / "m"
    expected = model_bits(small_svc(store=store).fit(X, Y))
    shutil.rmtree(store / "index")
    calls = [Calls(monkeypatch, *at) for at in ((fit, "fit_bundle"), (begin, "regroup_rows"))]
    small_svc(store=store).fit(X, Y)
    assert [len(own) for own in calls] == [0, 0]
    assert model_bits(store) == expected


@pytest.mark.slow
@pytest.mark.parametrize("finished", [True, False])
def test_a_damaged_root_is_written_anew_from_its_copy(tmp_path, finished):
    store = tmp_path / "m"
    expected = model_bits(small_svc().fit(X, Y))
    for damage in ("removed", "truncated", "swapped", "bit"):
        if finished:
            small_svc(store=store).fit(X, Y)
        else:
            stopped(small_svc(), store, "bundles/", 1)
        DAMAGES[damage](store / "zarr.json", np.random.default_rng(3), store)
        with pytest.raises(StoreError):
            daskls.load(store)
        assert model_bits(small_svc(store=store).fit(X, Y)) == expected
        shutil.rmtree(store)


def test_a_root_that_changed_places_with_its_copy(tmp_path):
    store = tmp_path / "m"
    expected = model_bits(small_svc().fit(X, Y))
    stopped(small_svc(), store, "bundles/", 1)
    (store / "zarr.json").rename(store / "aside")
    (store / "partition" / "zarr.json").rename(store / "zarr.json")
    (store / "aside").rename(store / "partition" / "zarr.json")
    assert model_bits(small_svc(store=store).fit(X, Y)) == expected


def test_a_root_without_a_copy_is_the_users_to_remove(tmp_path):
    store = tmp_path / "m"
    stopped(small_svc(), store, "partition")
    (store / "zarr.json").write_bytes(b"{")
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"{store} are unknown: remove it, then fit again"):
            small_svc(store=store).fit(X, Y)
    assert (store / "zarr.json").exists()


def test_a_damaged_file_of_another_store_stays(tmp_path):
    # What a prediction finds damaged is named, and left as it is.
    store = tmp_path / "m"
    small_svc().fit(X, Y).save(store)
    file = next(f for f in files_of(store / "bundles") if f.match("packed/c.0"))
    file.write_bytes(b"")
    before = times(store)
    with pytest.raises(StoreError, match=rf"{file} is damaged.*Copy the model again; or call fit"):
        daskls.load(store).predict(X.compute())
    assert times(store) == before


def test_damage_in_the_middle_of_a_fit_is_told_and_mended_by_the_next(tmp_path, monkeypatch):
    store, fit_bundle = tmp_path / "m", fit.fit_bundle
    expected = model_bits(small_svc().fit(X, Y))
    hurt = []

    def hurting(bundle, job):
        if not hurt:
            hurt.append(sorted(store.glob("exchange-*/*.rows"))[2])
            content = bytearray(hurt[0].read_bytes())
            content[len(content) // 2] ^= 1
            hurt[0].write_bytes(content)
        return fit_bundle(bundle, job)

    monkeypatch.setattr(fit, "fit_bundle", hurting)
    with pytest.raises(StoreError) as caught:
        small_svc(store=store).fit(X, Y)
    assert str(hurt[0]) in str(caught.value)
    assert "call fit again" in str(caught.value)
    assert not hurt[0].exists()
    assigned = Calls(monkeypatch, exchange.Exchange, "write_block", lambda *args: args[1])
    assert model_bits(small_svc(store=store).fit(X, Y)) == expected
    assert assigned.keys == [2]
