"""The tables of what a store holds say what each method writes, and the page is made from them."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import daskls
from daskls.methods.base import method_of
from daskls.store.artifact import read_arrays
from daskls.store.contents import SHARED_PARTS
from daskls.store.folder import Folder
from daskls.store.layout import Root

DOCS = Path(__file__).parents[2] / "docs"
LABELS = {"two": np.array([-1, 1]), "three": np.array([3, 5, 8])}
ONE = {"C": 4.0, "gamma": 2.0}
PAPERS = {"loss": "hinge", "kernel": "rbf", "feature_scale": None}
GRID = {"C": [1.0, 10.0], "gamma": [1.0, 4.0]}
LANDMARKS = {"n_cells": 2, "n_landmarks": 12, "cv": 2, "C": [0.1, 1.0]}
SAMPLED = {"sample_fraction": 0.3, **ONE}
# case: (estimator, labels, parameters)
CASES = {
    "VoronoiSVC-two": ("VoronoiSVC", "two", {**PAPERS, "cell_size": 120, **GRID}),
    "RandomChunkSVC-two": ("RandomChunkSVC", "two", {"chunk_size": 120, **GRID}),
    "FalkSVC-two": ("FalkSVC", "two", {"n_neighbors": 40, **ONE}),
    "KNNSVC-two": ("KNNSVC", "two", {"n_neighbors": 30, **ONE}),
    "KernelKNNClassifier-two": ("KernelKNNClassifier", "two", {"n_neighbors": 5}),
    "LandmarkSVC-two": ("LandmarkSVC", "two", LANDMARKS),
    "LandmarkSVC-three": ("LandmarkSVC", "three", LANDMARKS),
    "LandmarkSVC-rbf": ("LandmarkSVC", "three", {**LANDMARKS, "projection": "rbf"}),
    "LandmarkSVC-kernel": ("LandmarkSVC", "two", {**LANDMARKS, "kernel": "rbf"}),
    "LocalSamplingSVC-two": (
        "LocalSamplingSVC",
        "two",
        {**SAMPLED, "n_subsamples": 2, "radius_scale": 1.0},
    ),
    "NeighborSamplingSVC-two": ("NeighborSamplingSVC", "two", SAMPLED),
    "KNNSVMNoiseFilter-two": ("KNNSVMNoiseFilter", "two", {"n_neighbors": 30}),
}
# Made by nobody here: no method scales features yet; the others are no artifacts.
UNSEEN = {
    ("bundles/*", "scale"),
    (".owner", "*"),
    (".probe-*", "*"),
    ("input-*/*", "*"),
    ("held-out-*/*", "*"),
}


def held_in(store):
    """Yield key, name and values (None of other files) of all that a store holds."""
    for key in store.below():
        # Stores of their own, inputs, and the owner.
        if key.startswith(("held-out-", "input-", ".")):
            continue
        found = {"attributes": None} if key == "root" else read_arrays(store, key)
        yield from ((key, name, values) for name, values in found.items())


def is_kind(array, name, values):
    """Whether an array is what a table says of one: its name, dtype and dimensions."""
    own, dtype, dims = array
    if values is None or own != name:
        return own == name
    dtypes = ("float32", "float64") if dtype == "X" else (dtype,)
    n_axes = len(dims.split(", ")) if dims else 0
    found = "records" if values.dtype.names else values.dtype.name
    return dtype == "any" or (found in dtypes and values.ndim == n_axes)


def draw_rows(labels):
    """Return rows in the unit square, and labels of bands across it."""
    X = np.random.default_rng(0).random((300, 2))
    classes = LABELS[labels]
    bands = X[:, 1] + 0.25 * np.sin(6 * X[:, 0])
    edges = np.quantile(bands, np.arange(1, len(classes)) / len(classes))
    return X, classes[np.searchsorted(edges, bands)]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of every method, of which nothing was dropped."""
    folder = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "drop", lambda *args, **kwargs: None)
        for case in CASES:
            estimator, labels, params = CASES[case]
            model = getattr(daskls, estimator)(store=folder / case, random_state=0, **params)
            model.fit(*draw_rows(labels))
        for scale, kind in (("learned", daskls.VoronoiSVC), ("spread", daskls.RandomChunkSVC)):
            model = kind(120, loss="squared_error", feature_scale=scale, store=folder / scale)
            model.set_params(probability="isotonic" if scale == "learned" else "sigmoid")
            model.set_params(random_state=0).fit(*draw_rows("three"))
        bounded = daskls.VoronoiSVC(120, max_false_alarm=0.2, store=folder / "bounded")
        bounded.set_params(random_state=0).fit(*draw_rows("two"))
        # Nothing is chosen for all cells: other parts of its store are as those of classes.
        covering = daskls.VoronoiSVR(120, interval=0.8, store=folder / "covering", random_state=0)
        covering.set_params(kernel="rbf", C=1.0, gamma=5.0, feature_scale=None)
        covering.fit(*draw_rows("two"))
        # As of more rows than a search without a graph pays for.
        patch.setattr("daskls.neighbors.approximate.LEAST_LINKED", 100)
        linked = daskls.KernelKNNClassifier(5, neighbors="approximate", store=folder / "linked")
        linked.fit(*draw_rows("two"))
        # As of more cells than an index holds.
        patch.setattr("daskls.methods.cells.fit.INDEX_NBYTES", -1)
        nested = daskls.VoronoiSVC(120, store=folder / "nested", random_state=0)
        nested.fit(*draw_rows("three"))
        # As of more rows than a sample holds.
        patch.setattr("daskls.plan.bundles.MIN_SAMPLE", 200)
        patch.setattr("daskls.plan.bundles.SAMPLED_PER_LEAF", 50)
        patch.setattr("daskls.plan.exchange.MOST_RUNS", 1)
        patch.setattr("daskls.run.rows.BLOCK_NBYTES", 1600)
        dense = daskls.VoronoiSVC(120, store=folder / "dense", random_state=0)
        dense.fit(*draw_rows("three"))
    more = "learned", "spread", "bounded", "covering", "linked", "nested", "dense"
    return [Folder(str(folder / case)) for case in (*CASES, *more)]


@pytest.mark.slow
def test_the_tables_are_what_stores_hold(stores):
    seen, known = set(), set()
    for store in stores:
        method = method_of(Root.open(store).attributes["meta"].get("method", {}))
        table = (*SHARED_PARTS, *method.parts())
        known.update((part.key, name) for part in table for name, *_ in part.arrays)
        for key, name, values in held_in(store):
            own = {
                (part.key, name)
                for part in table
                if part.matches(key)
                for array in part.arrays
                if is_kind(array, name, values)
            }
            shown = None if values is None else (values.dtype, values.shape)
            assert own, (store.where(key), name, shown)
            seen |= own
    # And no row of it is of what nobody writes.
    assert known - seen == UNSEEN


def test_the_page_is_made_from_the_tables():
    made = runpy.run_path(str(DOCS / "list_stores.py"))["stores_page"]()
    page = (DOCS / "stores.md").read_text(encoding="utf-8")
    assert page == made, "make docs-stores writes it anew"
