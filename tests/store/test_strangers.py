"""A model from a stranger, who can compute checksums: one clear error, little memory, no file."""

import shutil
import tracemalloc

import pytest
from support import checkers, edit_attributes, small_svc

import daskls
from daskls import StoreError

X, Y = checkers(300)
LARGE = 2**62
# Of a model of some hundred kilobytes.
MOST_NBYTES = 64 << 20


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return a finished model of two bundles' worth of cells, with probabilities."""
    path = tmp_path_factory.mktemp("strangers") / "model"
    small_svc(probability="sigmoid").fit(X, Y).save(path)
    return path


def bundle_of(store):
    return next(iter(sorted(store.glob("bundles/*")))).relative_to(store).as_posix()


def array(name, **values):
    """Return a change of what a bundle says of one of its own arrays."""
    return lambda store: edit_attributes(
        store, lambda own: own["arrays"][name].update(values), bundle_of(store)
    )


def slot(name, **values):
    """Return a change of where a small array lies in the packed one."""
    return lambda store: edit_attributes(
        store, lambda own: own["packed"][name].update(values), bundle_of(store)
    )


def attribute(key, **values):
    """Return a change of a group's attributes."""
    return lambda store: edit_attributes(
        store, lambda own: own.update(values), bundle_of(store) if key == "bundle" else key
    )


def meta(**values):
    """Return a change of what the root says of the model."""
    return lambda store: edit_attributes(store, lambda own: own["meta"].update(values))


def without(key, name):
    """Return a change that drops an attribute."""
    return lambda store: edit_attributes(store, lambda own: own.pop(name), key)


def garbage(pattern, content=b"\x00" * 64):
    """Return a change that replaces files."""

    def change(store):
        for path in store.glob(pattern):
            path.write_bytes(content)

    return change


def linked(pattern):
    """Return a change that puts a link to the machine's files in a file's place."""

    def change(store):
        for path in store.glob(pattern):
            path.unlink()
            path.symlink_to("/etc/passwd")

    return change


STRANGE = {
    "a prefix that leaves the group": attribute("bundle", prefix="../../../../etc/"),
    "an absolute prefix": attribute("bundle", prefix="/etc/"),
    "a prefix that is a list": attribute("bundle", prefix=["a"]),
    "rows without end": array("rows", shape=[LARGE, 2]),
    "features without end": array("rows", shape=[2, LARGE]),
    "rows that are fewer than none": array("rows", shape=[-1, 2]),
    "no shape": array("rows", shape=[]),
    "a shape of words": array("rows", shape=["a", "b"]),
    "a shape that overflows": array("rows", shape=[2**33, 2**33]),
    "objects": array("rows", dtype="|O"),
    "text": array("rows", dtype="<U1000000"),
    "records": array("rows", dtype="f4,f4"),
    "a chunk of no rows": array("rows", chunk_rows=0),
    "a chunk without end": array("rows", chunk_rows=LARGE),
    "no sums": array("rows", sums=[]),
    "sums that are words": array("rows", sums=["a"]),
    "a small array behind the packed ones": slot("center", at=1 << 40),
    "a small array before them": slot("center", at=-8),
    "a small array without end": slot("center", shape=[LARGE, 2]),
    "a small array of objects": slot("center", dtype="|O"),
    "an unknown meaning of functions": attribute("bundle", decision="__import__('os')"),
    "a report without end": attribute("bundle", report=[[0] * 30] * 5),
    "a report of words": attribute("bundle", report="rows"),
    "features of another number": meta(n_features=LARGE),
    "features that are words": meta(n_features="two"),
    "an unknown method": meta(method={"method": "os:system"}),
    "a method that is a list": meta(method=[1]),
    "parameters that are none": meta(params="rm"),
    "no classes": meta(classes=[]),
    "no meta": without("", "meta"),
    "no fingerprint": without("", "fingerprint"),
    "an index that is garbage": garbage("index/**/c.*"),
    "a description that nests without end": garbage("zarr.json", b"[" * 100_000),
    "a description that is no text": garbage("bundles/*/zarr.json", b"\xff\xfe"),
    "chunks that are links": linked("bundles/*/rows/c*"),
    "a description that is a link": linked("bundles/*/zarr.json"),
}


def ask_all(store):
    """Ask a model what users ask."""
    loaded = daskls.load(store)
    loaded.predict(X)
    loaded.predict_proba(X)
    return loaded.fit_report_, repr(loaded), loaded._repr_html_()


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_model_is_one_clear_error(model, tmp_path, name):
    store = tmp_path / "m"
    shutil.copytree(model, store)
    STRANGE[name](store)
    before = sorted(path for path in tmp_path.rglob("*"))
    tracemalloc.start()
    try:
        with pytest.raises(StoreError) as error:
            ask_all(store)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 1500
    assert peak < MOST_NBYTES
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_the_model_itself_is_none_of_them(model):
    assert len(STRANGE) >= 30
    assert len(ask_all(model)[0])
