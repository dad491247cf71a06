"""A new kind of partition: registered, it is trained on, resumed, saved and answered by."""

import shutil

import dask.array as da
import naive
import numpy as np
import pytest
from clusters import ClusterCells, UncutCells
from small import set_sizes
from support import (
    SlowModel,
    assert_same_model,
    checkers,
    is_close,
    model_bits,
    n_bundles,
    path_of,
    small_svc,
)

import daskls
from daskls.errors import DamageError, MemoryPlanError, StoreError
from daskls.methods.cells import fit as fit_cells
from daskls.methods.cells import train
from daskls.methods.cells.method import Voronoi
from daskls.partition import registry
from daskls.partition.stored import model_partition
from daskls.store.groups import open_group, write_group

N = 700
CELL_SIZE = 60
QUERIES = np.random.default_rng(3).uniform(-0.3, 1.3, (60, 2))


class StopError(Exception):
    """A fit that ends in the middle."""


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Register the kinds, and let cells be cut by the first: what a new partition adds."""
    for kind in (ClusterCells, UncutCells):
        monkeypatch.setitem(registry.KINDS, kind.kind, f"clusters:{kind.__name__}")
    monkeypatch.setattr(Voronoi, "cut", lambda _, begun: ClusterCells.grow(begun))
    set_sizes(monkeypatch, {"daskls.plan.bundles.MIN_BUNDLE_COST": 1})


def fit(X=None, **params):
    rows, y = checkers(N)
    return small_svc(cell_size=CELL_SIZE, **params).fit(rows if X is None else X, y)


class SlowClusters(SlowModel):
    """Finds the cell of a row from plain arrays: the nearest center, then its tree."""

    n_partitions = 1

    def walk(self, row, partition=0):
        X = self.index["center"] + self.index["centers"]
        leaf = int(((X - row) ** 2).sum(axis=1).argmin())
        n_nodes = self.index["branch_nodes"]
        first = int(n_nodes[:leaf].sum()) + leaf
        nodes = slice(first - leaf, first - leaf + n_nodes[leaf])
        if n_nodes[leaf] == 0:
            return first
        arrays = (self.index[name][nodes] for name in ("directions", "thresholds", "children"))
        return first + naive.walk(row, self.index["center"], *arrays)


def test_rows_are_trained_and_answered_in_their_cells():
    model = fit()
    X, _ = checkers(N)
    slow = SlowClusters(path_of(model))
    assert len(slow.index["centers"]) >= 3
    assert slow.index["branch_nodes"].max() >= 1
    counts = np.bincount([slow.walk(row) for row in X.tolist()], minlength=model.n_cells_)
    np.testing.assert_array_equal(model.fit_report_.n_rows, counts)
    assert counts.max() <= CELL_SIZE
    for found, row in zip(model.decision_function(QUERIES), QUERIES.tolist(), strict=True):
        assert is_close(found, slow.scores(row))
    assert model.score(*checkers(N)) > 0.8


def test_chunks_leave_no_trace():
    X, _ = checkers(N)
    assert_same_model(fit(), fit(da.from_array(X, (90, 2))))


def test_a_fit_that_was_stopped_goes_on(tmp_path, monkeypatch):
    expected = model_bits(fit(store=tmp_path / "whole"))
    for place, (module, name) in enumerate([(train, "write_bundle"), (fit_cells, "write_index")]):
        store = tmp_path / str(place)
        original, calls = getattr(module, name), []

        def stop(*args, original=original, calls=calls, place=place):
            calls.append(args)
            if len(calls) + place > 1:
                raise StopError
            return original(*args)

        with monkeypatch.context() as patch:
            patch.setattr(module, name, stop)
            with pytest.raises(StopError):
                fit(store=store)
        with pytest.raises(StoreError, match="not finished"):
            daskls.load(store)
        before = {f: f.stat().st_mtime_ns for f in store.glob("bundles/[0-9]*/*/c.*")}
        assert before
        assert model_bits(fit(store=store)) == expected
        assert {f: f.stat().st_mtime_ns for f in before} == before


def test_a_saved_model_answers_as_before(tmp_path):
    model = fit()
    model.save(tmp_path / "m")
    loaded = daskls.load(tmp_path / "m")
    assert n_bundles(loaded) >= 2
    assert_same_model(model, loaded)
    answers = (own.decision_function(QUERIES) for own in (model, loaded))
    np.testing.assert_array_equal(*answers)
    space = model_partition(loaded._reader)
    (cells,) = space.find(QUERIES)
    assert (space.kind, space.n_leaves) == ("Refined", model.n_cells_)
    slow = SlowClusters(tmp_path / "m")
    assert cells.tolist() == [slow.walk(row) for row in QUERIES.tolist()]


def test_leaves_that_are_not_cut_are_the_cells():
    X, y = checkers(80)
    model = small_svc(cell_size=80).fit(X, y)
    assert model_partition(model._reader).kind == "ClusterCells"
    assert model.fit_report_.n_rows.sum() == 80


def test_a_kind_that_leaves_a_cell_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(Voronoi, "cut", lambda _, begun: UncutCells.grow(begun))
    message = rf"'UncutCells' has a cell of \d+ rows, but a cell may hold {CELL_SIZE}"
    with pytest.raises(MemoryPlanError, match=message):
        fit()
    # Equal rows are one cell of any size: no kind could cut them.
    X = np.repeat([[0.25, 0.75]], N, axis=0)
    assert small_svc(cell_size=CELL_SIZE).fit(X, checkers(N)[1]).n_cells_ == 1


def test_a_damaged_partition_is_refused(tmp_path):
    store = tmp_path / "m"
    fit(store=store)
    group = open_group(store, "index")
    arrays = {name: group.read(name) for name in group.names}
    attributes = dict(group.attrs)

    def rewrite(**changed):
        shutil.rmtree(store / "index")
        own = {name: values for name, values in changed.items() if name in arrays}
        others = {name: value for name, value in changed.items() if name not in arrays}
        write_group(store, "index", {**arrays, **own}, {**attributes, **others}, replace=True)

    rewrite()
    assert daskls.load(store).n_cells_ > 1
    for changed in (
        {"children": np.zeros_like(arrays["children"])},
        {"branch_nodes": arrays["branch_nodes"][1:]},
        {"centers": arrays["centers"][:, :1]},
        {"base": "Chunks", "n_rows": 9, "n_leaves": 3, "seed": 0},
    ):
        rewrite(**changed)
        with pytest.raises(DamageError, match=str(store)):
            daskls.load(store)
    rewrite(base="Quadtree")
    with pytest.raises(StoreError, match="kind 'Quadtree', which this daskls does not know"):
        daskls.load(store)
