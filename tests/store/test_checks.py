"""Models whose sums are right and whose values are not, as from a stranger: one clear error.

Nothing is indexed by what they hold, little memory is taken, no file is written.
"""

import shutil
import tracemalloc

import numpy as np
import pytest
from falks import small_falk
from landmarks import small_landmarks
from support import checkers, edit_attributes, edit_header, small_svc

import daskls
from daskls import KernelKNNClassifier, StoreError
from daskls.store.artifact import open_artifact, read_arrays, write_artifact

X, Y = checkers(500)
LARGE = 2**62
# Of models of some hundred kilobytes.
MOST_NBYTES = 64 << 20
MAKERS = {
    "cells": lambda: small_svc(probability="sigmoid"),
    "falk": lambda: small_falk(60),
    "knn": lambda: KernelKNNClassifier(5, random_state=0),
    "landmarks": small_landmarks,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checks")

    def find(kind):
        if not (folder / kind).exists():
            MAKERS[kind]().fit(X, Y).save(folder / kind)
        return folder / kind

    return find


def rewrite(store, key, change):
    if key in ("bundles", "rows"):
        files = (store / key).iterdir()
        key = max(files, key=lambda file: file.stat().st_size).relative_to(store).as_posix()
    opened = open_artifact(store, key)
    arrays, attributes = read_arrays(store, key), dict(opened.attrs)
    change(arrays, attributes)
    write_artifact(store, key, arrays, attributes, replace=True)


def settings(key, name, *values):
    def put(value, arrays):
        arrays[name] = value(arrays[name]) if callable(value) else value

    for own in values:
        yield lambda store, own=own: rewrite(store, key, lambda arrays, _: put(own, arrays))


def at(index, value):
    return lambda values: (values := values.copy(), values.__setitem__(index, value))[0]


def without(key, name):
    return lambda store: rewrite(store, key, lambda arrays, _: arrays.pop(name))


def attribute(key, name, value):
    return lambda store: rewrite(store, key, lambda _, own: own.update({name: value}))


def root(change):
    return lambda store: edit_attributes(store, change)


def meta(**values):
    return root(lambda own: own["meta"].update(values))


def header(name, **values):
    def change(store):
        key = min(store.glob("bundles/*")).relative_to(store).as_posix()
        edit_header(store, key, lambda own: own[name].update(values))

    return change


def garbage(pattern, content=b"\x00" * 64):
    return lambda store: [path.write_bytes(content) for path in store.glob(pattern)]


def linked(pattern):
    return lambda s: [(p.unlink(), p.symlink_to("/etc/passwd")) for p in s.glob(pattern)]


CHANGES = {
    "cells": [
        # A loop, a node that is none, a leaf that is none, one leaf twice.
        *settings("index", "children", at((1, 0), 0), at((0, 0), 10_000), at((0, 0), -10_000)),
        *settings("index", "children", lambda c: np.where(c == -2, -1, c).astype("i4")),
        *settings("index", "children", lambda c: c.astype("f8"), lambda c: c[:, :1]),
        *settings("index", "n_nodes", np.array([LARGE]), np.empty(0, "i8")),
        *settings("index", "thresholds", at(0, np.inf)),
        *settings("index", "directions", lambda d: d[:, :1]),
        *settings("index", "center", lambda c: np.r_[c, 0.0]),
        *settings("index", "first_cell", at(1, LARGE), at(1, 0), lambda f: f[:-1]),
        *settings("index", "bundles", at((0, 1), LARGE)),
        without("index", "first_cell"),
        *settings("bundles", "classes", at(0, -1), at(0, 2)),
        *settings("bundles", "n_support", at(0, LARGE), at(0, -1)),
        *settings("bundles", "rows", lambda r: r[:-1], lambda r: np.c_[r, r], at((0, 0), np.inf)),
        *settings("bundles", "coef", lambda c: c.astype("i8")),
        *settings("bundles", "intercepts", lambda i: np.r_[i, 0.0]),
        *settings("bundles", "center", lambda c: c[:-1]),
        *settings("bundles", "n_kept", at(0, LARGE), at(0, 0)),
        *settings("bundles", "gamma", at(0, np.nan)),
        *settings("bundles", "report", lambda r: r[:-1], lambda r: r[["cell", "leaf"]].copy()),
        attribute("bundles", "decision", "__import__('os')"),
        without("bundles", "report"),
        header("rows", shape=[LARGE, 2]),
        header("rows", dtype="|O"),
        header("__metadata__", records='{"report": [["cell", "<i8"], ["rest", "|V168"]]}'),
        *(garbage("index"), garbage("bundles/*"), linked("root"), linked("bundles/*")),
        garbage("root", (100_000).to_bytes(8, "little") + b"[" * 100_000),
    ],
    "falk": [
        *settings("centers", "owner", at(0, 10_000), lambda o: np.full_like(o, -1)),
        *settings("centers", "owner", lambda o: o[:-1]),
        *settings("centers", "positions", lambda p: p[::-1].copy(), at(-1, LARGE)),
        attribute("centers", "n_rounds", "some"),
        *settings("leaves", "leaf_rows", at(0, LARGE), lambda n: n + 1),
        *settings("leaves", "region_rows", at(0, -5)),
        *settings("leaves", "n_regions", lambda n: n - 1),
        *settings("leaves", "regions", lambda c: c[:, 1:]),
        *settings("leaves", "bundles", at((0, 0), 1)),
        *settings("rows", "X", lambda x: x[:-1], lambda x: np.c_[x, x]),
        attribute("index", "gamma", "wide"),
    ],
    "knn": [
        *settings("rows", "codes", lambda c: c + 5, lambda c: c - 5),
        *settings("rows", "weights", lambda w: w[1:]),
        *settings("rows", "numbers", lambda n: n[1:]),
    ],
    "landmarks": [
        *settings("index", "theta", lambda t: t[:, :-1], lambda t: t[..., 1:]),
        *settings("index", "landmarks", lambda z: z[:, :1]),
        *settings("index", "points", lambda p: p[:, :1]),
        *settings("index", "intercepts", lambda i: np.r_[i, i]),
        attribute("index", "gamma", []),
        attribute("index", "partition", "Forest"),
        *settings("index", "report", lambda r: r[:-1]),
    ],
}
ROOTS = [
    *(root(lambda a, key=key: a.pop(key)) for key in ("meta", "fingerprint")),
    *(root(lambda a, own=own: a.update(own)) for own in ({"meta": []}, {"complete": "yes"})),
    *(root(lambda a, key=key: a["meta"].pop(key)) for key in ("seed", "classes", "spec")),
    *(meta(n_features=n) for n in (-2, 2.0, LARGE, "two")),
    meta(n_rows=None),
    meta(estimator=7),
    *(meta(params=own) for own in (None, "rm")),
    *(meta(method=own) for own in ({"method": "os:system"}, [1])),
    *(
        root(lambda a, own=own: a["meta"]["spec"].update(own))
        for own in ({"kernel": "sigmoid"}, {"C": "x"}, {"unknown": 1})
    ),
    *(meta(classes=own) for own in ([], {"dtype": "<U268435456", "values": ["a"]})),
    root(lambda a: a["meta"]["classes"].update(values=[[1, 2], [3]])),
]


def ask(store):
    model = daskls.load(store)
    if hasattr(model, "predict_proba"):
        model.predict_proba(X)
    scores, told = model.decision_function(X), (model.fit_report_, repr(model), model._repr_html_())
    assert all(own is not None for own in told)
    return scores


def check_refused(whole, folder, changes, match):
    for number, change in enumerate(changes):
        store = folder / f"{number}"
        shutil.copytree(whole, store)
        change(store)
        before = sorted(folder.rglob("*"))
        tracemalloc.start()
        try:
            with pytest.raises(StoreError, match=match.format(store)) as error:
                ask(store)
            assert tracemalloc.get_traced_memory()[1] < MOST_NBYTES, number
        finally:
            tracemalloc.stop()
        assert len(str(error.value).splitlines()) == 1
        assert len(str(error.value)) < 1500
        assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("kind", CHANGES)
def test_a_strange_model_is_one_clear_error(models, tmp_path, kind):
    # Written again as it was, each artifact is taken.
    store = tmp_path / "same"
    shutil.copytree(models(kind), store)
    for file in [file for file in store.rglob("*") if file.is_file()]:
        rewrite(store, file.relative_to(store).as_posix(), lambda arrays, attributes: None)
    np.testing.assert_array_equal(ask(store), ask(models(kind)))
    check_refused(models(kind), tmp_path, CHANGES[kind], "{}")


def test_a_root_that_lacks_what_readers_take(models, tmp_path):
    check_refused(models("cells"), tmp_path, ROOTS, "{0}/root is damaged|{0}")
