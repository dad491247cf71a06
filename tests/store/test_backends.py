"""Each back end keeps the contract; with a new one fits, `load` and predictions work end to end."""

import os
import warnings

import dask
import numpy as np
import pandas as pd
import pytest
from backend_contract import ME, OWNER, BackendContract, make_part, read_part
from distributed import Client
from support import few

import daskls
from daskls import StoreError
from daskls.errors import DamageError
from daskls.store import folder_owner
from daskls.store.bucket import Bucket
from daskls.store.folder import Folder
from daskls.store.artifact import open_artifact
from daskls.store.owner import own_store


class TestFolder(BackendContract):
    @pytest.fixture
    def store(self, tmp_path):
        store = Folder(str(tmp_path / "m"))
        store.make()
        return store

    def test_it_travels_without_what_it_has_looked_at(self, store):
        store.put("a/one", b"1")
        store.size("a/one")
        assert Folder.__reduce__(store) == (Folder, (store.root,), {"then": store.then})

    def test_an_owner_on_a_disk_without_links(self, store, monkeypatch):
        def refuse(*_):
            raise OSError(folder_owner.NO_LINKS[0], "no links here")

        monkeypatch.setattr(os, "link", refuse)
        self.test_of_many_contenders_one_takes_it(store)
        store.drop(OWNER)
        self.test_it_is_taken_over_as_it_was_examined(store)

    def test_what_came_after_the_look_at_a_damaged_marker_stays(self, store, monkeypatch):
        rename = os.rename

        def after(act):
            def late(source, target):
                monkeypatch.undo()
                act()
                rename(source, target)

            monkeypatch.setattr(os, "rename", late)

        store.put("marker", b"damaged")
        seen = store.stamp("marker")
        after(lambda: store.put("marker", b"another's"))
        assert not store.put("marker", b"mine", create=True, instead_of=seen)
        assert store.read("marker", 9) == b"another's"
        make_part(store, 1)
        seen = store.stamp("parts/x/marker")
        after(lambda: make_part(store, 2, replace=True))
        assert not make_part(store, 3, instead_of=seen)
        assert read_part(store) == b"\x02\x02"
        assert store.below() == ["marker", "parts/x/a/file", "parts/x/file", "parts/x/marker"]

    def test_what_killed_contenders_left_goes_with_the_next_owner(self, store):
        for age_s, name in ((100, "dead"), (1, "alive")):
            store.put(f"{OWNER}.{name}.new", ME)
            path = store.local(f"{OWNER}.{name}.new")
            os.utime(path, (os.stat(path).st_mtime - age_s,) * 2)
        store.take(OWNER, ME)
        assert store.below() == [OWNER, f"{OWNER}.alive.new"]


class TestBucket(BackendContract):
    # S3 gives times in whole seconds.
    TICK_S = 1.1

    @pytest.fixture
    def store(self, bucket_url):
        return Bucket(bucket_url)


N = 300
X = np.random.default_rng(0).normal(size=(N, 4)).astype("f4")
Y = (X[:, 0] + X[:, 1] ** 2 > 0.8).astype(int)
ONE = {"C": 1.0, "gamma": 0.5, "random_state": 0}
MODELS = {
    "VoronoiSVC": {**ONE, "cell_size": 100},
    "VoronoiSVR": {**ONE, "cell_size": 100},
    "FalkSVC": {**ONE, "n_neighbors": 40, "probability": True},
    "KNNSVC": {**ONE, "n_neighbors": 30},
    "LandmarkSVC": {"C": 1.0, "random_state": 0, "n_landmarks": 20},
    "NeighborSamplingSVC": {"C": 1.0, "random_state": 0},
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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
    np.testing.assert_array_equal(loaded.predict(X), local.predict(X))
    if params.get("probability"):
        np.testing.assert_array_equal(loaded.predict_proba(X), local.predict_proba(X))
    # The same call finds it finished.
    before = Bucket(bucket_url).below()
    kind(**params, store=bucket_url).fit(X, Y)
    assert Bucket(bucket_url).below() == before


def test_tables_and_clusters_in_a_bucket(bucket_url, tmp_path):
    params = MODELS["VoronoiSVC"]
    expected = daskls.VoronoiSVC(**params).fit(X, Y).predict(X)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    with (
        dask.config.set({"temporary-directory": str(tmp_path)}),
        Client(processes=False, dashboard_address=":0", set_as_default=False) as client,
    ):
        model = daskls.VoronoiSVC(**params, store=bucket_url, client=client).fit(frame, "y")
        np.testing.assert_array_equal(model.predict(frame.drop(columns="y")), expected)
        refused = daskls.VoronoiSVC(**params, store=f"{bucket_url}2", client=client)
        with pytest.raises(daskls.DataError):
            refused.fit(frame, "nope")
    # What Zarr wrote beside the buckets is gone.
    assert not list(tmp_path.glob("daskls-*"))
    assert not Bucket(f"{bucket_url}2").exists("")


def test_a_model_is_saved_from_and_to_a_bucket(bucket_url, tmp_path):
    model, copy = daskls.VoronoiSVC(**MODELS["VoronoiSVC"]).fit(X, Y), f"{bucket_url}-copy"
    model.save(copy)
    daskls.load(copy).save(tmp_path / "back")
    np.testing.assert_array_equal(daskls.load(tmp_path / "back").predict(X), model.predict(X))
    with pytest.raises(StoreError, match="exists already"):
        model.save(copy)


def test_one_fit_at_a_time_in_a_bucket(bucket_url):
    model = daskls.VoronoiSVC(**ONE, store=bucket_url)
    with own_store(bucket_url), pytest.raises(StoreError, match="Another fit is writing the store"):
        model.fit(X, Y)
    assert not Bucket(bucket_url).exists("")
    model.fit(X, Y)


def test_a_damaged_bucket_is_repaired(bucket_url):
    params = MODELS["VoronoiSVC"]
    expected = daskls.VoronoiSVC(**params, store=bucket_url).fit(X, Y).predict(X)
    (key, *_) = Bucket(bucket_url).find("bundles/*/zarr.json")
    Bucket(bucket_url).put(key, b"{}")
    with pytest.raises(DamageError, match="call fit again"):
        open_artifact(Bucket(bucket_url), key.removesuffix("/zarr.json"))
    model = daskls.VoronoiSVC(**params, store=bucket_url).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_other_urls_are_refused_as_before():
    for call in (daskls.VoronoiSVC(store="bucket://m").fit, lambda *_: daskls.load("ftp://m")):
        with pytest.raises(StoreError, match="is a URL; daskls writes to a local or shared"):
            call(X, Y)
