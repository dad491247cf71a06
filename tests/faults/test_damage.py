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
from falks import falk_bits, small_falk
from landmarks import landmark_bits, small_landmarks
from samplings import sampling_bits, small_local, small_near
from small import tiny_tasks
from support import Calls, checkers, model_bits, small_svc

import daskls
from daskls import KNNSVC, DasklsError, KernelKNNClassifier, RandomChunkSVC, StoreError
from daskls.methods.cells import train
from daskls.methods.landmarks import fit as fit_joint
from daskls.methods.landmarks import solve as joint
from daskls.methods.neighborhoods import train as neighborhoods
from daskls.methods.sampling import balls, enrich
from daskls.methods.sampling import train as sampling
from daskls.run import begin, gather
from daskls.store import exchange
from daskls.store.models import bundle_key
from daskls.store.reader import ModelReader

N_DAMAGES = int(os.environ.get("DASKLS_DAMAGES", 2))
N = 500
X, Y = (da.from_array(a, chunks=100) for a in checkers(N))
QUERIES = checkers(100, seed=1)[0]
GRID = {"C": [1.0, 10.0], "gamma": [5.0, 20.0], "cv": 2}


class StopError(Exception):
    """Ends a fit in the middle."""


class Kind:
    """An estimator, how its bits are read, and where its fits end: (module, function, call)."""

    def __init__(self, make, bits, stops):
        self.make, self.bits, self.stops = make, bits, stops


def chunks(**params):
    return RandomChunkSVC(chunk_size=100, C=10.0, gamma=20.0, cv=2, random_state=0, **params)


def knn(**params):
    return KernelKNNClassifier(5, random_state=0, **params)


def knnsvc(**params):
    return KNNSVC(20, C=10.0, gamma=20.0, random_state=0, **params)


def forest(**params):
    return small_svc(n_partitions=2, **params)


def falk_center(**params):
    return small_falk(60, assign="center", selection="local", **GRID, **params)


def landmarks(**params):
    return small_landmarks(C=[0.1, 10.0], cv=3, **params)


KINDS = {
    "cells": Kind(small_svc, model_bits, [(train, "write_bundle", 0), (train, "write_bundle", 2)]),
    "partitions": Kind(forest, model_bits, [(train, "write_bundle", 7)]),
    "chunks": Kind(chunks, model_bits, [(train, "write_bundle", 3)]),
    "falk": Kind(
        lambda **params: small_falk(60, **params),
        falk_bits,
        [(gather, "write_leaf_index", 0), (neighborhoods, "write_bundle", 3)],
    ),
    "falk center": Kind(falk_center, falk_bits, [(neighborhoods, "write_bundle", 3)]),
    "knn": Kind(knn, falk_bits, [(gather, "write_leaf_index", 0)]),
    "knnsvc": Kind(knnsvc, falk_bits, [(gather, "write_leaf_index", 0)]),
    "landmarks": Kind(
        landmarks,
        landmark_bits,
        [(joint, "write_states", 12), (fit_joint, "_read_solution", 0)],
    ),
    "local sampling": Kind(
        small_local,
        sampling_bits,
        [(sampling, "write_bundle", 1), (balls, "write_part", 3), (gather, "write_leaf_index", 0)],
    ),
    "near sampling": Kind(
        small_near, sampling_bits, [(sampling, "write_bundle", 1), (enrich, "write_part", 2)]
    ),
}


@pytest.fixture(autouse=True)
def more_small_tasks():
    """Several parts of each kind, in this process."""
    with tiny_tasks(N_TASKS=12), dask.config.set(scheduler="sync"):
        yield


def stopped(kind, store, place):
    """Leave a store whose fit ended in the middle."""
    module, name, at = place
    original, calls = getattr(module, name), []

    def stop(*args, **kwargs):
        calls.append(name)
        if len(calls) > at:
            raise StopError
        return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, stop)
        with pytest.raises(StopError):
            kind.make(store=store).fit(X, Y)


@pytest.mark.slow
def test_there_is_something_of_every_kind_to_damage(tmp_path):
    names = set()
    for name, kind in KINDS.items():
        for number, place in enumerate(kind.stops):
            store = tmp_path / f"{name} {number}"
            stopped(kind, store, place)
            names |= {
                # Without the numbers of a chunk's name.
                (file.relative_to(store).parts[0].split("-")[0] + file.suffix).rstrip(".0123456789")
                for file in store.rglob("*")
                if file.is_file()
            }
    expected = {"exchange.rows", "exchange.marker", "exchange", "partition", "rows", "leaves"}
    expected |= {"landmarks", "joint.states", "joint.stats", "sampling", "centers", "bundles"}
    assert expected <= names


def told(store, call):
    """Return what a call gives; None where it says what is damaged, and what to do."""
    try:
        return call()
    except DasklsError as error:
        message = str(error)
    assert str(store) in message
    assert "fit" in message
    return None


def check_refit(kind, store, expected):
    """Fit up to twice: the first may say what is damaged, the second is as if nothing was."""
    told(store, lambda: kind.make(store=store).fit(X, Y))
    assert kind.bits(kind.make(store=store).fit(X, Y)) == expected


@pytest.mark.parametrize("name", KINDS)
def test_damage_to_an_unfinished_store(name, tmp_path):
    kind = KINDS[name]
    expected = kind.bits(kind.make().fit(X, Y))
    for number, place in enumerate(kind.stops):
        kept = tmp_path / f"kept-{number}"
        stopped(kind, kept, place)
        n = -(-N_DAMAGES // len(kind.stops))
        for file, damage, rng in draw_damages(kept, n, seed=number):
            store = tmp_path / "m"
            shutil.copytree(kept, store)
            DAMAGES[damage](store / file, rng, store)
            check_refit(kind, store, expected)
            shutil.rmtree(store)


@pytest.mark.parametrize("name", KINDS)
def test_damage_to_a_finished_model(name, tmp_path):
    kind = KINDS[name]
    model = kind.make(store=tmp_path / "kept").fit(X, Y)
    expected, scores = kind.bits(model), model.decision_function(QUERIES)
    for file, damage, rng in draw_damages(tmp_path / "kept", N_DAMAGES, seed=0):
        store = tmp_path / "m"
        shutil.copytree(tmp_path / "kept", store)
        DAMAGES[damage](store / file, rng, store)
        found = told(store, lambda path=store: daskls.load(path).decision_function(QUERIES))
        assert found is None or np.array_equal(found, scores)
        check_refit(kind, store, expected)
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
    written = Calls(monkeypatch, train, "write_bundle", lambda *args: args[1:3])
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
    calls = [Calls(monkeypatch, *at) for at in ((train, "fit_bundle"), (begin, "regroup_rows"))]
    small_svc(store=store).fit(X, Y)
    assert [len(own) for own in calls] == [0, 0]
    assert model_bits(store) == expected


@pytest.mark.parametrize("finished", [True, False])
def test_a_damaged_root_is_written_anew_from_its_copy(tmp_path, finished):
    store = tmp_path / "m"
    expected = model_bits(small_svc().fit(X, Y))
    for damage in ("removed", "truncated", "swapped", "bit"):
        if finished:
            small_svc(store=store).fit(X, Y)
        else:
            stopped(KINDS["cells"], store, (train, "write_bundle", 1))
        DAMAGES[damage](store / "zarr.json", np.random.default_rng(3), store)
        with pytest.raises(StoreError):
            daskls.load(store)
        assert model_bits(small_svc(store=store).fit(X, Y)) == expected
        shutil.rmtree(store)


def test_a_root_that_changed_places_with_its_copy(tmp_path):
    store = tmp_path / "m"
    expected = model_bits(small_svc().fit(X, Y))
    stopped(KINDS["cells"], store, (train, "write_bundle", 1))
    (store / "zarr.json").rename(store / "aside")
    (store / "partition" / "zarr.json").rename(store / "zarr.json")
    (store / "aside").rename(store / "partition" / "zarr.json")
    assert model_bits(small_svc(store=store).fit(X, Y)) == expected


def test_a_root_without_a_copy_is_the_users_to_remove(tmp_path):
    store = tmp_path / "m"
    stopped(KINDS["cells"], store, (begin, "write_partition", 0))
    (store / "zarr.json").write_bytes(b"{")
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"{store} is: remove it, then fit again"):
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
    store, fit_bundle = tmp_path / "m", train.fit_bundle
    expected = model_bits(small_svc().fit(X, Y))
    hurt = []

    def hurting(bundle, job):
        if not hurt:
            hurt.append(sorted(store.glob("exchange-*/*.rows"))[2])
            content = bytearray(hurt[0].read_bytes())
            content[len(content) // 2] ^= 1
            hurt[0].write_bytes(content)
        return fit_bundle(bundle, job)

    monkeypatch.setattr(train, "fit_bundle", hurting)
    with pytest.raises(StoreError) as caught:
        small_svc(store=store).fit(X, Y)
    assert str(hurt[0]) in str(caught.value)
    assert "call fit again" in str(caught.value)
    assert not hurt[0].exists()
    assigned = Calls(monkeypatch, exchange.Exchange, "write_block", lambda *args: args[1])
    assert model_bits(small_svc(store=store).fit(X, Y)) == expected
    assert assigned.keys == [2]
