"""Stores whose sums are right and whose values are not: nothing is indexed by them."""

import shutil

import numpy as np
import pytest
from falks import small_falk
from landmarks import small_landmarks
from support import checkers, edit_attributes, small_svc

import daskls
from daskls import KernelKNNClassifier, StoreError
from daskls.store.artifact import open_artifact, read_arrays, write_artifact

X, Y = checkers(500)
LARGE = 2**62


def knn(**params):
    return KernelKNNClassifier(5, random_state=0, **params)


MAKERS = {
    "cells": small_svc,
    "falk": lambda **params: small_falk(60, **params),
    "knn": knn,
    "landmarks": small_landmarks,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a finished model of each kind."""
    folder = tmp_path_factory.mktemp("checks")
    for name, make in MAKERS.items():
        make().fit(X, Y).save(folder / name)
    return folder


def rewrite(store, key, change):
    """Write an artifact again, whole and sealed, with other arrays or attributes."""
    opened = open_artifact(store, key)
    arrays, attributes = read_arrays(store, key), dict(opened.attrs)
    change(arrays, attributes)
    write_artifact(store, key, arrays, attributes, replace=True)


def key_in(store, kind):
    """Return the key of the bundle that has the most support rows, or of the first rows."""
    return max((store / kind).iterdir(), key=lambda file: file.stat().st_size).relative_to(store)


def setting(name, value):
    """Return a change that gives an array other values."""

    def change(arrays, attributes):
        arrays[name] = value(arrays[name]) if callable(value) else value

    return change


def at(index, value):
    """Return a function that sets one value of an array."""

    def put(values):
        values = values.copy()
        values[index] = value
        return values

    return put


def attribute(name, value):
    """Return a change of an attribute."""

    def change(arrays, attributes):
        attributes[name] = value

    return change


CHANGES = {
    "cells": [
        # A loop, a node that is none, a leaf that is none, one leaf twice.
        ("index", setting("children", at((1, 0), 0))),
        ("index", setting("children", at((1, 0), 1))),
        ("index", setting("children", at((0, 0), 10_000))),
        ("index", setting("children", at((0, 0), -10_000))),
        ("index", setting("children", lambda c: np.where(c == -2, -1, c).astype("i4"))),
        ("index", setting("children", lambda c: c.astype("f8"))),
        ("index", setting("children", lambda c: c[:, :1])),
        ("index", setting("n_nodes", np.array([LARGE]))),
        ("index", setting("n_nodes", np.array([-1]))),
        ("index", setting("n_nodes", np.empty(0, "i8"))),
        ("index", setting("thresholds", at(0, np.inf))),
        ("index", setting("thresholds", lambda t: t[1:])),
        ("index", setting("directions", lambda d: d[:, :1])),
        ("index", setting("center", lambda c: np.r_[c, 0.0])),
        ("index", setting("first_cell", at(1, LARGE))),
        ("index", setting("first_cell", at(1, 0))),
        ("index", setting("first_cell", at(0, -1))),
        ("index", setting("first_cell", lambda f: f[:-1])),
        ("index", setting("bundles", lambda b: b[:, 0])),
        ("index", setting("bundles", at((0, 1), LARGE))),
        ("index", lambda arrays, _: arrays.pop("first_cell")),
        ("index", lambda arrays, _: arrays.pop("thresholds")),
        ("bundles", setting("classes", at(0, -1))),
        ("bundles", setting("classes", at(0, 2))),
        ("bundles", setting("n_support", at(0, LARGE))),
        ("bundles", setting("n_support", at(0, -1))),
        ("bundles", setting("n_support", lambda n: n[:-1])),
        ("bundles", setting("rows", lambda r: r[:-1])),
        ("bundles", setting("rows", lambda r: np.c_[r, r])),
        ("bundles", setting("rows", at((0, 0), np.inf))),
        ("bundles", setting("coef", lambda c: c[:-1])),
        ("bundles", setting("coef", lambda c: c.astype("i8"))),
        ("bundles", setting("intercepts", lambda i: np.r_[i, 0.0])),
        ("bundles", setting("center", lambda c: c[:-1])),
        ("bundles", setting("n_kept", at(0, LARGE))),
        ("bundles", setting("n_kept", at(0, 0))),
        ("bundles", setting("n_kept", at(0, -1))),
        ("bundles", setting("n_kept", lambda n: n[:-1])),
        ("bundles", setting("gamma", at(0, np.nan))),
        ("bundles", setting("gamma", lambda g: g[1:])),
        ("bundles", setting("report", lambda r: r[:-1])),
        ("bundles", setting("report", lambda r: r[["cell", "leaf"]].copy())),
        ("bundles", setting("report", lambda r: r["cell"].copy())),
        ("bundles", attribute("decision", "__import__('os')")),
        ("bundles", lambda arrays, _: arrays.pop("report")),
    ],
    "falk": [
        ("centers", setting("owner", at(0, 10_000))),
        ("centers", setting("owner", lambda o: np.full_like(o, -1))),
        ("centers", setting("owner", lambda o: o[:-1])),
        ("centers", setting("positions", lambda p: p[::-1].copy())),
        ("centers", setting("positions", at(-1, LARGE))),
        ("centers", attribute("n_rounds", "some")),
        ("leaves", setting("leaf_rows", at(0, LARGE))),
        ("leaves", setting("leaf_rows", lambda n: n + 1)),
        ("leaves", setting("region_rows", at(0, -5))),
        ("leaves", setting("n_regions", lambda n: n - 1)),
        ("leaves", setting("regions", lambda c: c[:, 1:])),
        ("leaves", setting("bundles", at((0, 0), 1))),
        ("rows", setting("X", lambda x: x[:-1])),
        ("rows", setting("X", lambda x: np.c_[x, x])),
        ("index", setting("first_cell", at(-1, LARGE))),
        ("index", attribute("gamma", "wide")),
    ],
    "knn": [
        ("rows", setting("codes", lambda c: c + 5)),
        ("rows", setting("codes", lambda c: c - 5)),
        ("rows", setting("weights", lambda w: w[1:])),
        ("rows", setting("numbers", lambda n: n[1:])),
    ],
    "landmarks": [
        ("index", setting("theta", lambda t: t[:, :-1])),
        ("index", setting("theta", lambda t: t[..., 1:])),
        ("index", setting("landmarks", lambda z: z[:, :1])),
        ("index", setting("points", lambda p: p[:, :1])),
        ("index", setting("intercepts", lambda i: np.r_[i, i])),
        ("index", attribute("gamma", [])),
        ("index", attribute("partition", "Forest")),
        ("index", setting("report", lambda r: r[:-1])),
    ],
}


def ask(store):
    model = daskls.load(store)
    scores = model.decision_function(X)
    return scores, model.fit_report_


@pytest.mark.parametrize(
    ("kind", "number"),
    [(kind, i) for kind, changes in CHANGES.items() for i in range(len(changes))],
)
def test_values_that_nothing_may_be_indexed_by(models, tmp_path, kind, number):
    key, change = CHANGES[kind][number]
    store = tmp_path / "m"
    shutil.copytree(models / kind, store)
    rewrite(store, key_in(store, key).as_posix() if key in ("bundles", "rows") else key, change)
    with pytest.raises(StoreError, match=str(store)):
        ask(store)


ROOTS = [
    lambda a: a.pop("meta"),
    lambda a: a.pop("fingerprint"),
    lambda a: a["meta"].pop("seed"),
    lambda a: a.update(meta=[]),
    lambda a: a.update(complete="yes"),
    lambda a: a["meta"].pop("classes"),
    lambda a: a["meta"].pop("spec"),
    lambda a: a["meta"].update(n_features=-2),
    lambda a: a["meta"].update(n_features=2.0),
    lambda a: a["meta"].update(n_rows=None),
    lambda a: a["meta"].update(estimator=7),
    lambda a: a["meta"].update(params=None),
    lambda a: a["meta"]["spec"].update(kernel="sigmoid"),
    lambda a: a["meta"]["spec"].update(C="x"),
    lambda a: a["meta"]["spec"].update(gamma=[]),
    lambda a: a["meta"]["spec"].update(degree=None),
    lambda a: a["meta"]["spec"].update(unknown=1),
    lambda a: a["meta"]["classes"].update(dtype="<U268435456"),
    lambda a: a["meta"]["classes"].update(dtype="no dtype"),
    lambda a: a["meta"]["classes"].update(values=[]),
    lambda a: a["meta"]["classes"].update(values={"a": 1}),
    lambda a: a["meta"]["classes"].update(values=[[1, 2], [3]]),
]


@pytest.mark.parametrize("number", range(len(ROOTS)))
def test_roots_that_lack_what_readers_take(models, tmp_path, number):
    store = tmp_path / "m"
    shutil.copytree(models / "cells", store)
    edit_attributes(store, ROOTS[number])
    with pytest.raises(StoreError, match="m/root is damaged"):
        ask(store)


def test_the_changes_above_are_what_is_noticed(models, tmp_path):
    # Written again as it was, each artifact is taken.
    for kind in MAKERS:
        store = tmp_path / kind
        shutil.copytree(models / kind, store)
        expected = daskls.load(models / kind).decision_function(X)
        for file in [file for file in store.rglob("*") if file.is_file()]:
            rewrite(store, file.relative_to(store).as_posix(), lambda arrays, attributes: None)
        np.testing.assert_array_equal(ask(store)[0], expected)
