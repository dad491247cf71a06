"""The tables of what a store holds say what each method writes, and the page is made from them."""

import runpy
import warnings
from pathlib import Path

import pytest
from small import CLASSIFIERS, WAYS, small
from support import checkers

from daskls import KNNSVMNoiseFilter
from daskls.methods.base import method_of
from daskls.store.artifact import read_arrays
from daskls.store.contents import SHARED_PARTS
from daskls.store.folder import Folder
from daskls.store.layout import Root

DOCS = Path(__file__).parents[2] / "docs"
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
    own, dtype, dims = array
    if values is None or own != name:
        return own == name
    dtypes = ("float32", "float64") if dtype == "X" else (dtype,)
    n_axes = len(dims.split(", ")) if dims else 0
    found = "records" if values.dtype.names else values.dtype.name
    return dtype == "any" or (found in dtypes and values.ndim == n_axes)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of every method and way for classes, of which nothing was dropped."""
    folder, stores, (X, y) = tmp_path_factory.mktemp("stores"), [], checkers(300, n_classes=3)

    def fit(name, labels=y, **way):
        stores.append(folder / str(len(stores)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small(name, store=stores[-1], **way).fit(X, labels)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "drop", lambda *args, **kwargs: None)
        for name in CLASSIFIERS:
            for way in ({}, *WAYS.get(name, [])):
                fit(name, **way)
        stores.append(folder / "noise")
        KNNSVMNoiseFilter(30, random_state=0, store=stores[-1]).fit(X, y)
        squares = {"loss": "squared_error", "cv": 5}
        own = {"C": None, "gamma": None, "kernel": "auto", "feature_coding": "both"}
        fit("VoronoiSVC", feature_scale="learned", probability="isotonic", **squares, **own)
        fit("RandomChunkSVC", feature_scale="spread", probability="sigmoid", **squares)
        fit("VoronoiSVC", y > 0, max_false_alarm=0.2, **squares)
        fit("VoronoiSVR", interval=0.8)
        # As of more rows than a search without a graph pays for.
        patch.setattr("daskls.neighbors.approximate.LEAST_LINKED", 100)
        fit("KernelKNNClassifier", neighbors="approximate")
        # As of more cells than an index holds.
        patch.setattr("daskls.methods.cells.fit.INDEX_NBYTES", -1)
        fit("VoronoiSVC")
        # As of more rows than a sample holds.
        patch.setattr("daskls.plan.bundles.MIN_SAMPLE", 200)
        patch.setattr("daskls.plan.bundles.SAMPLED_PER_LEAF", 50)
        patch.setattr("daskls.plan.exchange.MOST_RUNS", 1)
        patch.setattr("daskls.run.rows.BLOCK_NBYTES", 1600)
        fit("VoronoiSVC")
    return [Folder(str(store)) for store in stores]


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
