"""Files of stores, finished and not, are damaged; the next fit gives what an undisturbed one does.

``DASKLS_DAMAGES`` sets how many damages each kind of estimator gets; their seed is fixed.
"""

import os
import shutil
from functools import cache
from itertools import product

import dask
import dask.array as da
import numpy as np
import pytest
from damages import DAMAGES, draw_damages, files_of, kind_of
from small import ENTRIES, answers_of, bits_of, small, tiny_tasks
from support import Calls, checkers, few, model_bits, small_svc
from writes import Writes, stage_of, stop_fit

import daskls
from daskls import DasklsError, StoreError, pipeline
from daskls.methods.cells import fit
from daskls.store.caches import drop_caches
from daskls.store.models import bundle_key
from daskls.store.reader import ModelReader

N_DAMAGES = int(os.environ.get("DASKLS_DAMAGES", 2))
N = 500
X, Y = (da.from_array(a, chunks=100) for a in checkers(N))
QUERIES = checkers(100, seed=1)[0]
# What a fit that ends in the middle puts in place last, of each method that has it.
ENDS = (
    *("exchange-", "partition", "regions", "rows", "leaves", "graphs", "centers", "sampling"),
    *("joint", "bundles"),
)
WAYS = {
    **{name: (name, {}) for name in ENTRIES},
    "partitions": ("VoronoiSVC", {"n_partitions": 2}),
    "approximate": ("KernelKNNClassifier", {"neighbors": "approximate"}),
    "center": ("FalkSVC", {"assign": "center", "selection": "local", "C": [1.0, 10.0]}),
}
# At every change few of them.
EARLY = ("VoronoiSVC", "LocalSamplingSVC", "center")
FEW_WAYS = few([*EARLY, *(way for way in WAYS if way not in EARLY)], len(EARLY))


@pytest.fixture(autouse=True)
def more_small_tasks():
    with tiny_tasks(N_SEARCH_TASKS=12), dask.config.set(scheduler="sync"):
        yield


def make(way, **params):
    name, own = WAYS[way]
    return small(name, **own, **params)


def stopped(model, store, start, at=0):
    """Leave a store whose fit ends before it puts the thing number ``at`` of a start in place."""
    stop_fit(lambda: model.set_params(store=store).fit(X, Y), store, start, at)


def told(store, call):
    try:
        return call()
    except DasklsError as error:
        message = str(error)
    assert str(store) in message
    assert "fit" in message or "train it again" in message
    return None


def check_refit(way, store, file, damage, expected):
    if file.name == "root":
        before = times(store)
        with pytest.raises(StoreError, match=r"Remove the store, then fit again|holds no model"):
            make(way, store=store).fit(X, Y)
        assert times(store) == before
        return
    if damage == "swapped" or file.parts[0] == "bundles":
        # Of two files, what is found after a repair is told. Of a bundle that was finished before,
        # a fit reads the report alone.
        told(store, lambda: make(way, store=store).fit(X, Y))
    assert bits_of(make(way, store=store).fit(X, Y)) == expected


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A function of a way: an undisturbed fit's folder, bits, and what it put in place."""

    @cache
    def fitted(way):
        names, kept = [], tmp_path_factory.mktemp("whole") / "m"
        with Writes(kept, names.append):
            return kept, bits_of(make(way, store=kept).fit(X, Y)), names

    return fitted


@pytest.mark.parametrize("way", FEW_WAYS)
def test_damage_to_an_unfinished_store(way, whole, tmp_path):
    _, expected, names = whole(way)
    for number, start in enumerate(ENDS):
        n = sum(name.startswith(start) for name in names)
        if n == 0:
            continue
        kept, store = tmp_path / f"kept-{number}", tmp_path / "m"
        stopped(make(way), kept, start, n - 1)
        for file, damage, rng in draw_damages(kept, -(-N_DAMAGES // 2), seed=len(ENDS) + number):
            shutil.copytree(kept, store)
            DAMAGES[damage](store / file, rng, store)
            check_refit(way, store, file, damage, expected)
            shutil.rmtree(store)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("VoronoiSVC", marks=pytest.mark.always),
        *few([way for way in WAYS if way != "VoronoiSVC"]),
    ],
)
def test_every_damage_to_every_kind_of_file_of_a_finished_model(way, whole, tmp_path):
    (kept, expected, _), store, n_noticed = whole(way), tmp_path / "m", 0
    scores = answers_of(daskls.load(kept), QUERIES)
    kinds = {(file.parent, kind_of(file)): file.relative_to(kept) for file in files_of(kept)}
    matrix, rng = [*product(kinds.values(), DAMAGES)], np.random.default_rng(0)
    refitted = {*rng.permutation(len(matrix))[:N_DAMAGES]}
    for number, (file, damage) in enumerate(matrix):
        shutil.copytree(kept, store)
        DAMAGES[damage](store / file, rng, store)
        found = told(store, lambda: answers_of(daskls.load(store), QUERIES))
        n_noticed += found is None
        assert found is None or np.array_equal(found, scores)
        if number in refitted or file.name == "root":
            check_refit(way, store, file, damage, expected)
        shutil.rmtree(store)
    # A prediction reads two kinds at the least.
    assert n_noticed >= 2 * len(DAMAGES)


def times(folder):
    return {file: file.stat().st_mtime_ns for file in files_of(folder)}


def test_only_what_is_damaged_is_trained_again(tmp_path, monkeypatch):
    store = tmp_path / "m"
    expected = model_bits(small_svc(store=store).fit(X, Y))
    reader = ModelReader(store)
    damaged = reader.bundles[2]
    file = store / bundle_key(damaged.first_leaf, damaged.last_leaf)
    before = {f: t for f, t in times(store / "bundles").items() if f != file}
    assert len(before) >= 3
    file.write_bytes(b"")
    written = Calls(monkeypatch, fit, "write_bundle", lambda *args: args[1:3])
    small_svc(store=store).fit(X, Y)
    assert written.keys == [(damaged.first_leaf, damaged.last_leaf)]
    assert {f: f.stat().st_mtime_ns for f in before} == before
    assert model_bits(store) == expected
    assert sorted(p.name for p in store.iterdir()) == ["bundles", "index", "partition", "root"]
    # A damaged index needs no training.
    (store / "index").unlink()
    calls = [Calls(monkeypatch, *at) for at in ((fit, "fit_bundle"), (pipeline, "regroup_rows"))]
    small_svc(store=store).fit(X, Y)
    assert [len(own) for own in calls] == [0, 0]
    assert model_bits(store) == expected


class DamagesOnce:
    """Damages the first thing of a kind, once another thing is put in place after it."""

    def __init__(self, store, stage, seed):
        self.store, self.stage, self.rng = store, stage, np.random.default_rng(seed)
        self.name, self.is_done = None, False

    def __call__(self, name):
        if self.name is None:
            self.name = name if stage_of(name) == self.stage else None
        elif not self.is_done and (self.store / self.name).exists():
            self.is_done = True
            kind = sorted(set(DAMAGES) - {"swapped"})[self.rng.integers(len(DAMAGES) - 1)]
            DAMAGES[kind](self.store / self.name, self.rng, self.store)
            # As of another process, which has not read it yet.
            drop_caches()


@pytest.mark.parametrize("way", FEW_WAYS)
def test_damage_in_the_middle_of_a_fit_is_mended_within_it(way, whole, tmp_path, caplog):
    (folder, expected, names), repaired = whole(way), set()
    stages = list(dict.fromkeys(map(stage_of, names)))
    kept = {stage_of(str(file.relative_to(folder))) for file in files_of(folder)}
    for number, stage in enumerate(stages):
        store = tmp_path / str(number)
        damages = DamagesOnce(store, stage, number)
        caplog.clear()
        with Writes(store, damages):
            fitted = told(store, lambda at=store: make(way, store=at).fit(X, Y))
        warned = [r.getMessage() for r in caplog.records if "is being repaired" in r.getMessage()]
        if stage == "root":
            assert fitted is None
            with pytest.raises(StoreError, match=r"Remove the store|holds no model"):
                make(way, store=store).fit(X, Y)
            continue
        assert len(warned) <= 1, warned
        # A finished model's parts may be found damaged when it is finished.
        assert fitted is not None or stage in kept, stage
        if warned:
            assert f"{store}/{damages.name} is damaged" in warned[0]
            repaired.add(stage)
        # By the next fit, which reads them all.
        if not warned:
            fitted = make(way, store=store).fit(X, Y)
        assert bits_of(fitted) == expected, stage
    assert {"partition", "exchange/block"} <= repaired


def test_a_late_task_writes_no_models_into_the_store_of_another_fit(tmp_path, monkeypatch):
    store, trained = tmp_path / "m", fit.grid_arrays
    sent = Calls(monkeypatch, fit, "fit_bundle", lambda *args: args)
    stopped(small_svc(C=0.01), store, "bundles")
    monkeypatch.undo()

    def late(models):
        monkeypatch.undo()
        # The client is gone; the user has removed the store, and begun another fit there.
        shutil.rmtree(store)
        stopped(small_svc(C=100.0), store, "bundles")
        return trained(models)

    monkeypatch.setattr(fit, "grid_arrays", late)
    with pytest.raises(StoreError, match="changed while a fit used it"):
        fit.fit_bundle(*sent.keys[0])
    assert files_of(store / "bundles") == []


def test_what_is_damaged_again_after_its_repair_is_told_and_mended_by_the_next_fit(
    tmp_path, monkeypatch
):
    store, fit_bundle = tmp_path / "m", fit.fit_bundle
    expected = model_bits(small_svc().fit(X, Y))

    def hurting(*task):
        DAMAGES["bit"](files_of(next(store.glob("exchange-*")))[2], np.random.default_rng(0), store)
        drop_caches()
        return fit_bundle(*task)

    monkeypatch.setattr(fit, "fit_bundle", hurting)
    with pytest.raises(StoreError, match=r"exchange-.* is damaged.*call fit again"):
        small_svc(store=store).fit(X, Y)
    monkeypatch.undo()
    assert model_bits(small_svc(store=store).fit(X, Y)) == expected
