"""An index of two levels: the answers, tables and pictures of one that holds every cut."""

import shutil

import dask
import dask.array as da
import numpy as np
import pytest
from small import set_sizes, small_sample
from support import checkers, path_of, small_svc

import daskls
from daskls.errors import DamageError
from daskls.store.artifact import open_artifact, write_artifact

N = 1500
QUERIES = np.random.default_rng(3).uniform(-0.3, 1.3, (200, 2))
# Of more cells than an index holds, its leaves of several cells.
NESTED = {"daskls.methods.cells.fit.INDEX_NBYTES": 0}


def fit(store=None, n_partitions=2, **params):
    X, y = checkers(N, n_classes=3)
    return small_svc(cell_size=40, n_partitions=n_partitions, store=store, **params).fit(X, y)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a model of each kind of index, of leaves of several cells."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="threads"):
        small_sample(patch, 300)
        set_sizes(
            patch, {"daskls.plan.bundles.MIN_LEAVES": 6, "daskls.plan.bundles.MIN_BUNDLE_WORK": 3e4}
        )
        one = fit(folder / "one")
        set_sizes(patch, NESTED)
        return one, fit(folder / "two")


def test_the_index_holds_the_cuts_between_leaves_alone(models):
    one, two = (model._reader.index for model in models)
    assert (one.attrs["partition"], two.attrs["partition"]) == ("Forest", "Nested")
    sizes = [len(index.read("thresholds")) for index in (one, two)]
    assert sizes[0] > 30 > sizes[1] > 2
    n_cells = np.diff(two.read("leaf_cells"))
    assert n_cells.sum() == models[0].n_cells_
    assert n_cells.max() > 2
    # A bundle holds the trees of several leaves.
    assert (np.diff(two.read("bundles")) > 0).any()


def test_answers_are_the_same_bits(models):
    one, two = models
    for name in ("predict", "decision_function"):
        expected = getattr(one, name)(QUERIES)
        np.testing.assert_array_equal(getattr(two, name)(QUERIES), expected)
        lazy = getattr(two, name)(da.from_array(QUERIES, (33, 2)))
        np.testing.assert_array_equal(lazy.compute(), expected)
        single = [getattr(two, name)(row[None])[0] for row in QUERIES[:20]]
        np.testing.assert_array_equal(single, getattr(one, name)(QUERIES[:20]))


def test_damage_is_refused(models, tmp_path):
    store = tmp_path / "m"
    shutil.copytree(path_of(models[1]), store)
    index = open_artifact(store, "index")
    arrays = {name: index.read(name) for name in index.names}
    cells = arrays["leaf_cells"]
    for wrong in (cells[1:], cells + 1, cells[::-1].copy(), np.minimum(cells, cells[2])):
        write_artifact(store, "index", {**arrays, "leaf_cells": wrong}, index.attrs, replace=True)
        with pytest.raises(DamageError, match=str(store)):
            daskls.load(store)
    # Cells that are those of other leaves are found where a bundle is opened.
    moved = cells.copy()
    place = int(np.flatnonzero(np.diff(cells) > 1)[0])
    moved[place + 1] -= 1
    write_artifact(store, "index", {**arrays, "leaf_cells": moved}, index.attrs, replace=True)
    with pytest.raises(DamageError, match=str(store)):
        daskls.load(store).predict(QUERIES)
