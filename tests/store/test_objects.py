"""A folder and a bucket keep the contract; in a bucket fits, `load` and predictions work."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from objects_contract import STRANGE, ObjectsContract
from support import few

import daskls
from daskls import StoreError
from daskls.errors import DamageError
from daskls.store.arrays import find_array
from daskls.store.bucket import Bucket
from daskls.store.folder import Folder
from daskls.store.owner import OWNER, own_store

pytestmark = pytest.mark.filterwarnings("ignore")


class TestFolder(ObjectsContract):
    @pytest.fixture
    def store(self, tmp_path):
        store = Folder(str(tmp_path / "m"))
        store.make()
        return store

    def test_what_was_there_stays_if_it_cannot_be_replaced(self, store, monkeypatch):
        store.put("a", b"1")
        rename = os.rename

        def refuse(source, target):
            if ".old" not in source and target == store.root:
                raise OSError(errno.EIO, "no more")
            rename(source, target)

        monkeypatch.setattr(os, "rename", refuse)
        with pytest.raises(StoreError, match="no more"), store.building(replaces=True) as place:
            Path(place.where, "a").write_bytes(b"2")
        assert store.read("a", 9) == b"1"
        assert os.listdir(os.path.dirname(store.root)) == ["m"]

    def test_a_late_task_does_not_make_a_removed_store_again(self, store):
        store.put("a/one", b"1")
        shutil.rmtree(store.root)
        for put in (lambda: store.put("a/two", b"2"), lambda: store.stream("two").__enter__()):
            with pytest.raises(StoreError, match=r"is gone, or a folder above it"):
                put()
        assert not os.path.exists(store.root)

    def test_a_folder_in_the_place_of_an_object_and_the_reverse(self, store):
        store.put("a/one", b"1")
        (Path(store.root) / "two").mkdir()
        with pytest.raises(DamageError, match="no plain file"):
            store.read("two", 9)
        for put in (lambda: store.put("two", b"2"), lambda: store.put("a/one/two", b"2")):
            with pytest.raises(StoreError, match="A file is in the way of"):
                put()
        with pytest.raises(DamageError):
            store.read("a/one/two", 9)
        assert not store.put("two", b"2", create=True)
        store.drop("two", strict=True)
        assert store.put("two", b"2")
        assert store.below() == ["a/one", "two"]

    @pytest.mark.parametrize("is_folder", [False, True])
    def test_a_link_out_of_the_store(self, store, tmp_path, is_folder):
        other, key = tmp_path / "other", "a/one" if is_folder else "one"
        other.mkdir()
        (other / "one").write_bytes(b"1")
        (Path(store.root) / key.partition("/")[0]).symlink_to(other if is_folder else other / "one")
        for read, *at in ((store.size,), (store.read, 9), (store.range, 0, 1)):
            with pytest.raises(DamageError, match=r"a link out of the store, to .*other"):
                read(key, *at)
        store.drop(key.partition("/")[0], strict=True)
        assert (other / "one").read_bytes() == b"1"
        assert store.names() == []

    def test_a_link_to_the_store_or_within_it(self, store, tmp_path):
        store.put("a/one", b"1")
        (Path(store.root) / "two").symlink_to("a/one")
        (tmp_path / "link").symlink_to(store.root)
        other = Folder(f"{tmp_path}/link/")
        assert [other.read(key, 9) for key in ("a/one", "two")] == [b"1", b"1"]

    def test_what_is_no_plain_file_is_not_opened(self, store):
        os.mkfifo(store.where("pipe"))
        os.symlink("/dev/zero", store.where("device"))
        for key in ("pipe", "device"):
            with pytest.raises(DamageError, match=r"no plain file|a link out of the store"):
                store.read(key, 9)


class TestBucket(ObjectsContract):
    # S3 gives times in whole seconds.
    TICK_S = 1.1

    @pytest.fixture
    def store(self, bucket_url):
        return Bucket(bucket_url)

    def test_an_object_and_one_below_it(self, store):
        store.put("a", b"1")
        store.put("a/one", b"1")
        assert store.read("a", 1) == store.read("a/one", 1) == b"1"
        store.drop("a", strict=True)
        assert store.below() == []


N = 300
X = np.random.default_rng(0).normal(size=(N, 4)).astype("f4")
Y = (X[:, 0] + X[:, 1] ** 2 > 0.8).astype(int)
ONE = {"C": 1.0, "gamma": 0.5, "random_state": 0}
MODELS = {
    **{key: {**ONE, "cell_size": 100} for key in ("VoronoiSVC", "VoronoiSVR")},
    "FalkSVC": {**ONE, "n_neighbors": 40, "probability": True},
    "KNNSVC": {**ONE, "n_neighbors": 30},
    "LandmarkSVC": {"C": 1.0, "random_state": 0, "n_landmarks": 20},
    "NeighborSamplingSVC": {"C": 1.0, "random_state": 0},
}


@pytest.mark.always
@pytest.mark.parametrize("name", few(MODELS, 2))
def test_a_fit_in_a_bucket_answers_as_one_in_a_folder(bucket_url, tmp_path, name):
    kind, params = getattr(daskls, name), MODELS[name]
    local = kind(**params, store=tmp_path / "m").fit(X, Y)
    model = kind(**params, store=bucket_url).fit(X, Y)
    assert Bucket(bucket_url).exists("index")
    assert not Bucket(bucket_url).exists(OWNER)
    np.testing.assert_array_equal(model.predict(X), local.predict(X))
    loaded = daskls.load(bucket_url)
    for ask in ("predict", *["predict_proba"] * ("probability" in params)):
        np.testing.assert_array_equal(getattr(loaded, ask)(X), getattr(local, ask)(X))
    # The same call finds it finished.
    before = Bucket(bucket_url).below()
    kind(**params, store=bucket_url).fit(X, Y)
    assert Bucket(bucket_url).below() == before


def test_one_fit_at_a_time_in_a_bucket(bucket_url):
    model = daskls.VoronoiSVC(**ONE, store=bucket_url)
    with own_store(bucket_url), pytest.raises(StoreError, match="Another fit is writing the store"):
        model.fit(X, Y)
    assert not Bucket(bucket_url).exists("")
    model.fit(X, Y)


@pytest.mark.always
@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_a_store_of_any_name(kind, tmp_path, request):
    above = tmp_path if kind == "folder" else request.getfixturevalue("bucket_url")
    store, params = f"{above}/{' '.join(STRANGE[:6])}", MODELS["VoronoiSVC"]
    expected = daskls.VoronoiSVC(**params).fit(X, Y).predict(X)
    daskls.VoronoiSVC(**params, store=store).fit(X, Y)
    model = daskls.load(store)
    np.testing.assert_array_equal(model.predict(X), expected)
    model.predict_to_zarr(X, f"{store} out")
    np.testing.assert_array_equal(find_array(f"{store} out").read(0, N), expected)
    model.save(f"{store} copy")
    daskls.load(f"{store} copy").save(tmp_path / "back")
    np.testing.assert_array_equal(daskls.load(tmp_path / "back").predict(X), expected)
    with pytest.raises(StoreError, match="exists already"):
        model.save(f"{store} copy")


def test_other_urls_are_refused_as_before():
    for call in (daskls.VoronoiSVC(store="bucket://m").fit, lambda *_: daskls.load("ftp://m")):
        with pytest.raises(StoreError, match="is a URL; daskls writes to a local or shared"):
            call(X, Y)
