"""What is put is there whole or not at all, under any crash, in a folder and in a bucket."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from damages import files_of
from support import few

from daskls.errors import DamageError, StoreError
from daskls.methods.landmarks.parts import CellStates, read_states, read_stats, write_states
from daskls.records import CellReport, Frame, KernelSpec, LocalModel, SolverSpec
from daskls.store.artifact import open_artifact, read_arrays, write_artifact
from daskls.store.exchange import Exchange
from daskls.store.folder import Folder
from daskls.store.locations import open_store
from daskls.store.models import BundleModels, finished_bundles, write_bundle
from daskls.store.rows import Rows


@pytest.fixture(params=["folder", "bucket"])
def store(request, tmp_path):
    """An empty store in each back end, opened as every module opens its store."""
    is_folder = request.param == "folder"
    store = open_store(tmp_path / "m" if is_folder else request.getfixturevalue("bucket_url"))
    store.make()
    return store


ARRAYS = {"rows": np.arange(60.0).reshape(20, 3), "codes": np.arange(5, dtype="i4")}


def group_arrays(store, place="g"):
    group = open_artifact(store, place)
    return {name: group.read(name).tolist() for name in group.names}


def as_lists(arrays):
    return {name: values.tolist() for name, values in arrays.items()}


def test_of_two_writers_of_a_group_one_is_seen_whole(store):
    assert write_artifact(store, "g", ARRAYS)
    other = {name: values + 1 for name, values in ARRAYS.items()}
    before = store.below()
    assert not write_artifact(store, "g", other)
    assert store.below() == before
    assert group_arrays(store) == as_lists(ARRAYS)
    assert write_artifact(store, "g", other, replace=True)
    assert group_arrays(store) == as_lists(other)


def test_a_group_whose_marker_does_not_verify_is_written_anew(store):
    write_artifact(store, "g", ARRAYS)
    store.put("g/zarr.json", store.read("g/zarr.json", 1 << 16).replace(b"float64", b"float32"))
    store.put("g/zarr.json", store.read("g/zarr.json", 1 << 16)[:-9])
    with pytest.raises(DamageError):
        open_artifact(store, "g")
    other = {name: values + 1 for name, values in ARRAYS.items()}
    assert write_artifact(store, "g", other)
    assert group_arrays(store) == as_lists(other)


@pytest.mark.parametrize("where", ["chunk", "marker"])
def test_a_flipped_bit_in_a_group_is_noticed(store, where):
    write_artifact(store, "g", ARRAYS)
    keys = [key for key in store.below() if key.endswith("c.0.0" if where == "chunk" else "")]
    key = keys[0] if where == "chunk" else "g/zarr.json"
    whole, n_noticed = store.read(key, 1 << 16), 0
    # In a bucket each is a dozen requests.
    bits = range(0, 8 * len(whole), 7 if store.local() else 61)
    for bit in bits:
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        store.put(key, bytes(flipped))
        try:
            # Some bits of a marker change nothing: white space that becomes other white space.
            assert group_arrays(store) == as_lists(ARRAYS)
        except DamageError:
            n_noticed += 1
    assert n_noticed >= 0.98 * len(bits)
    store.put(key, whole)
    assert group_arrays(store) == as_lists(ARRAYS)


def exchange_of(store):
    return Exchange(store.where("x"), 2, 3, 2, "<f4")


def rows(seed, n=30):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2), dtype="f4")
    return Rows(X, rng.integers(0, 3, n).astype("i4"), rng.random(n), np.arange(n))


def leaves(n=30):
    return [np.arange(n, dtype=np.int32) % 3]


def test_two_writers_of_one_block_leave_one_attempt(store):
    exchange = exchange_of(store)
    exchange.create([30])
    first, second = rows(0), rows(1)
    exchange.write_block(0, first, leaves(), 5)
    before = store.below()
    # As of a task of a lost client that began before: its rows are another's, its marker late.
    exchange.write_block(0, second, leaves(), 6)
    assert store.below() == before
    assert exchange.find_block(0) == 5
    exchange.write_block(1, second, leaves(), 7)
    exchange.write_manifest()
    for leaf in range(3):
        found = exchange.read_leaf(leaf).X
        expected = [one.X[leaf::3] for one in (first, second)]
        np.testing.assert_array_equal(found, np.concatenate(expected))


def test_a_block_whose_marker_or_data_is_damaged_is_written_anew(store):
    exchange = exchange_of(store)
    exchange.create([30])
    for spoiled in ("marker", "rows"):
        exchange.write_block(0, rows(0), leaves(), 5)
        (key,) = [key for key in store.below() if key.endswith(spoiled)]
        store.put(key, store.read(key, 1 << 16)[:-1])
        with pytest.raises(DamageError):
            exchange.find_block(0)
        # A marker that does not verify, or names data that are gone, counts as absent.
        exchange.write_block(0, rows(1), leaves(), 6)
        assert exchange.find_block(0) == 6
        exchange.drop_block(0)
        assert store.below() == ["x/grid"]


def test_two_writers_of_a_pack_and_of_states(store):
    assert write_artifact(store, "sampling/kind/000000-000000", ARRAYS)
    other = {name: values + 1 for name, values in ARRAYS.items()}
    assert not write_artifact(store, "sampling/kind/000000-000000", other)
    assert as_lists(read_arrays(store, "sampling/kind/000000-000000")) == as_lists(ARRAYS)
    task = "train", 1, (0, 3)
    for value in (1.0, 2.0):
        states = CellStates(np.full(2, value), np.full((4, 2, 3), value), np.full((4, 2), value))
        write_states(store, *task, states, np.full((4, 2, 5), value))
    assert (read_stats(store, *task) == 1.0).all()
    assert (read_states(store, *task).theta == 1.0).all()
    assert len(store.names("joint/train-001")) == 2


def models(seed, n=3):
    rng = np.random.default_rng(seed)
    return [
        LocalModel(
            frame=Frame(rng.random(2)),
            rows=rng.random((4, 2), dtype="f4"),
            coef=rng.random((1, 4), dtype="f4"),
            classes=np.array([0, 1], np.int32),
            class_ptr=np.array([0, 2, 4]),
            intercepts=np.zeros(1),
            kernel=KernelSpec("rbf", 2.0 + i, 3, 0.0),
            report=CellReport(0, i, 9, 2, 1.0, gamma=2.0 + i, n_support=4),
        )
        for i in range(n)
    ]


def coefs(store, n=3):
    found = BundleModels(store, 0, n - 1, SolverSpec(), n, 2, 2)
    return [model.coef.tolist() for model in found.read_cells(np.arange(n))]


def test_two_writers_of_one_bundle(store):
    barrier, reports = threading.Barrier(2), []

    def write(seed):
        barrier.wait()
        reports.append(write_bundle(store, 0, 2, models(seed), {}))

    threads = [threading.Thread(target=write, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 2
    assert finished_bundles(store) == [(0, 2)]
    # One writer's models or the other's, never a mixture.
    assert coefs(store) in [[model.coef.tolist() for model in models(seed)] for seed in (0, 1)]
    assert open_artifact(store, "bundles/000000-000002").check() == []
    assert not [key for key in store.below() if "/." in key]


# Stops for good at one step of a marker's write.
KILLED = """
import os, signal, sys
from test_artifacts import models, rows, leaves
from daskls.store import folder
from daskls.store.errors import checksum
from daskls.store.exchange import Exchange
from daskls.store.models import write_bundle
store, what, step = sys.argv[1:]
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
if step == "before":
    if what == "block":
        folder.Folder.put = die
    else:
        folder.FolderAttempt.commit = die
elif step == "between":
    # The marker's bytes are half on disk.
    create = folder.create_file
    def create_file(path):
        file = create(path)
        if ".marker." in path or path.endswith("zarr.json") and path.count("/") == at:
            file.write(b"half")
            file.flush()
            die()
        return file
    at = store.count("/") + 3
    folder.create_file = create_file
elif step == "unnamed":
    # The marker is whole, and has not its name yet.
    os.link = os.rename = die
if what == "block":
    exchange = Exchange(store + "/x", 1, 3, 2, "<f4")
    exchange.create([30])
    exchange.write_block(0, rows(0), leaves(), 5)
else:
    write_bundle(store, 0, 2, models(0), {})
die()
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", few(["between", "unnamed", "before", "after"], 2))
@pytest.mark.parametrize("what", ["bundle", "block"])
def test_a_process_that_is_killed_in_a_markers_write(what, step, tmp_path):
    store = tmp_path / "m"
    store.mkdir()
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(store), what, step],
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    exchange = Exchange(str(store / "x"), 1, 3, 2, "<f4")
    is_done = exchange.find_block(0) == 5 if what == "block" else bool(finished_bundles(store))
    assert is_done == (step == "after")
    # What is left of it is in nobody's way.
    if what == "bundle":
        write_bundle(store, 0, 2, models(0), {})
        assert coefs(store) == [model.coef.tolist() for model in models(0)]
    else:
        exchange.write_block(0, rows(0), leaves(), 5)
        exchange.write_manifest()
        np.testing.assert_array_equal(exchange.read_leaf(1).X, rows(0).X[1::3])


def test_links_are_not_followed_out_of_a_store(tmp_path):
    store = Folder(str(tmp_path / "m"))
    store.make()
    store.put("a/b/x", b"inside")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").write_bytes(b"outside")
    (tmp_path / "m" / "c").symlink_to(tmp_path / "out")
    (tmp_path / "m" / "d").symlink_to(tmp_path / "m" / "a")
    (tmp_path / "m" / "a" / "y").symlink_to(tmp_path / "out" / "x")
    assert store.read("a/b/x", 6) == store.read("d/b/x", 6) == b"inside"
    for key in ("c/x", "a/y", "../out/x", "a/../../out/x"):
        with pytest.raises(DamageError, match="link out of the store"):
            store.read(key, 7)
    os.mkfifo(tmp_path / "m" / "pipe")
    with pytest.raises(DamageError, match="no plain file"):
        store.read("pipe", 7)


def test_a_store_that_is_gone_is_not_made_anew(tmp_path):
    store = Folder(str(tmp_path / "m"))
    for write in (
        lambda: store.put("a/b", b""),
        lambda: write_artifact(store, "g", ARRAYS),
        lambda: write_artifact(store, "p/q", ARRAYS),
    ):
        with pytest.raises(StoreError, match="is gone"):
            write()
    assert files_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
