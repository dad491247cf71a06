"""A model from a stranger, who can compute checksums: one clear error, little memory, no file."""

import shutil
import tracemalloc

import pytest
from support import checkers, edit_attributes, edit_header, small_svc

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


def header(name, **values):
    """Return a change of what a bundle's header says of one of its arrays."""
    return lambda store: edit_header(store, bundle_of(store), lambda own: own[name].update(values))


def attribute(key, **values):
    """Return a change of an artifact's attributes."""
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
    "rows without end": header("rows", shape=[LARGE, 2]),
    "features without end": header("rows", shape=[2, LARGE]),
    "rows that are fewer than none": header("rows", shape=[-1, 2]),
    "no shape": header("rows", shape=[]),
    "a shape of words": header("rows", shape=["a", "b"]),
    "a shape that overflows": header("rows", shape=[2**33, 2**33]),
    "objects": header("rows", dtype="|O"),
    "another dtype": header("rows", dtype="I32"),
    "an array behind the end": header("rows", data_offsets=[1 << 40, (1 << 40) + 8]),
    "a report of other columns": header(
        "__metadata__", records='{"report": [["cell", "<i8"], ["rest", "|V168"]]}'
    ),
    "a report of text without end": header(
        "__metadata__", records='{"report": [["a", "<U268435456"]]}'
    ),
    "no sums": lambda store: edit_header(store, bundle_of(store), lambda own: own.pop("crc32c")),
    "an unknown meaning of functions": attribute("bundle", decision="__import__('os')"),
    "features of another number": meta(n_features=LARGE),
    "features that are words": meta(n_features="two"),
    "an unknown method": meta(method={"method": "os:system"}),
    "a method that is a list": meta(method=[1]),
    "parameters that are none": meta(params="rm"),
    "no classes": meta(classes=[]),
    "no meta": without("root", "meta"),
    "no fingerprint": without("root", "fingerprint"),
    "an index that is garbage": garbage("index"),
    "a root that nests without end": garbage(
        "root", (100_000).to_bytes(8, "little") + b"[" * 100_000
    ),
    "a root that is no text": garbage("root", (8).to_bytes(8, "little") + b"\xff\xfe" * 4),
    "bundles of zeros": garbage("bundles/*"),
    "bundles that are links": linked("bundles/*"),
    "a root that is a link": linked("root"),
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
    assert len(ask_all(model)[0])
