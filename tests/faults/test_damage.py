"""Files of stores, finished and not, are damaged; the next fit gives what an undisturbed one does.

``DASKLS_DAMAGES`` sets how many damages each kind of estimator gets; their seed is fixed.
"""

import os
import re
import shutil

import dask
import dask.array as da
import numpy as np
import pytest
from damages import DAMAGES, draw_damages, files_of
from samplings import small_local
from small import ENTRIES, answers_of, bits_of, small, tiny_tasks
from support import Calls, checkers, few, model_bits, small_svc
from writes import Writes, stage_of, stop_fit

import daskls
from daskls import DasklsError, StoreError, pipeline
from daskls.methods.cells import fit
from daskls.methods.sampling import search, train
from daskls.store.artifact import open_artifact
from daskls.store.caches import drop_caches
from daskls.store.layout import Root
from daskls.store.models import bundle_key
from daskls.store.reader import ModelReader

N_DAMAGES = int(os.environ.get("DASKLS_DAMAGES", 2))
N = 500
X, Y = (da.from_array(a, chunks=100) for a in checkers(N))
QUERIES = checkers(100, seed=1)[0]
# What a fit that ends in the middle puts in place last, of each method that has it.
ENDS = (
    *(
        "exchange-",
        "partition",
        "regions",
        "rows",
        "leaves",
        "graphs",
        "centers",
        "sampling",
        "joint",
    ),
    "bundles",
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


def check_refit(way, store, file, damage, expected):
    """Fit where one file is damaged: it gives what it does where nothing is."""
    if file.name == "root":
        with pytest.raises(StoreError, match=r"Remove the store, then fit again|holds no model"):
            make(way, store=store).fit(X, Y)
        return
    if damage == "swapped" or file.parts[0] == "bundles":
        # Of two files, what is found after a repair is told. Of a bundle that was finished before,
        # a fit reads the report alone.
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
            check_refit(way, store, file, damage, expected)
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
        check_refit(way, store, file, damage, expected)
        shutil.rmtree(store)


def times(folder):
    """Return when each file below a folder was written."""
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


def test_a_damaged_index_needs_no_training(tmp_path, monkeypatch):
    store = tmp_path / "m"
    expected = model_bits(small_svc(store=store).fit(X, Y))
    (store / "index").unlink()
    calls = [Calls(monkeypatch, *at) for at in ((fit, "fit_bundle"), (pipeline, "regroup_rows"))]
    small_svc(store=store).fit(X, Y)
    assert [len(own) for own in calls] == [0, 0]
    assert model_bits(store) == expected


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_root_is_the_users_to_remove(tmp_path, finished, damage):
    store = tmp_path / "m"
    if finished:
        small_svc(store=store).fit(X, Y)
    else:
        stopped(small_svc(), store, "bundles/", 1)
    DAMAGES[damage](store / "root", np.random.default_rng(3), store)
    before = times(store)
    with pytest.raises(StoreError, match=str(store)):
        daskls.load(store)
    told_to = (
        rf"{store} exists but holds no model. Give a path that does not exist yet"
        if damage == "removed"
        else rf"root is damaged, so it is not known .* the store {store} .* Remove the store"
    )
    for _ in range(2):
        with pytest.raises(StoreError, match=told_to):
            small_svc(store=store).fit(X, Y)
    assert times(store) == before


def test_a_damaged_file_of_another_store_stays(tmp_path):
    # What a prediction finds damaged is named, and left as it is.
    store = tmp_path / "m"
    small_svc().fit(X, Y).save(store)
    file = files_of(store / "bundles")[0]
    file.write_bytes(b"")
    before = times(store)
    with pytest.raises(StoreError, match=rf"{file} is damaged.*Copy the model again; or call fit"):
        daskls.load(store).predict(X.compute())
    assert times(store) == before


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
def test_damage_in_the_middle_of_a_fit_is_mended_within_it(way, tmp_path, caplog):
    names, repaired = [], set()
    with Writes(tmp_path / "whole", names.append):
        expected = bits_of(make(way, store=tmp_path / "whole").fit(X, Y))
    stages = list(dict.fromkeys(map(stage_of, names)))
    kept = {stage_of(str(f.relative_to(tmp_path / "whole"))) for f in files_of(tmp_path / "whole")}
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


@pytest.mark.parametrize("way", FEW_WAYS)
def test_what_killed_writers_left_goes_with_the_next_fit(way, tmp_path):
    store, begun = tmp_path / "m", []
    with Writes(store, begun.append, begun=True):
        stopped(make(way), store, "index")
    staged = [store / name for name in begun if re.search(r"/?\.[^/]+\.[0-9a-f]{32}$", name)]
    assert len(staged) > 10
    for file in staged:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"half")
    make(way, store=store).fit(X, Y)
    assert [f for f in store.rglob("*") if f.name.startswith(".")] == []


def hurt(file, at):
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def test_several_damaged_blocks_are_mended_within_one_fit(tmp_path):
    store = tmp_path / "m"
    expected = model_bits(small_svc().fit(X, Y))
    stopped(small_svc(), store, "bundles")
    blocks = sorted(store.glob("exchange-*/block-*"))
    for file in blocks[::2]:
        hurt(file, 2000)
    assert len(blocks) > 4
    assert model_bits(small_svc(store=store).fit(X, Y)) == expected


def test_a_damaged_report_of_a_finished_bundle_is_mended_from_rows_in_memory(tmp_path):
    store, (X, y) = tmp_path / "m", checkers(N)
    expected = model_bits(small_svc(store=store).fit(X, y))
    Root.open(store).update(complete=False)
    for file in files_of(store / "bundles")[:2]:
        at = open_artifact(store, f"bundles/{file.name}")._spec("report").at
        hurt(file, at)
    assert model_bits(small_svc(store=store).fit(X, y)) == expected


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


def test_a_late_task_writes_no_samples_into_the_store_of_another_fit(tmp_path, monkeypatch):
    store, drawn = tmp_path / "m", train.as_arrays
    sent = Calls(monkeypatch, train, "draw_rows", lambda *args: args)
    monkeypatch.setattr(search, "draw_rows", train.draw_rows)
    stopped(small_local(), store, "sampling/drawn")
    monkeypatch.undo()

    def late(rows):
        monkeypatch.undo()
        shutil.rmtree(store)
        stopped(small_local(C=3.0), store, "sampling/drawn")
        return drawn(rows)

    monkeypatch.setattr(train, "as_arrays", late)
    with pytest.raises(StoreError, match="changed while a fit used it"):
        train.draw_rows(*sent.keys[0])
    assert not list(store.glob("sampling/drawn*/*"))


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
