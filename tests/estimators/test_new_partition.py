"""The worked example of a new kind of partition: its cells, and what is refused of such a kind.

What the contract says of it is run by `tests/test_worked_examples.py`.
"""

import dask.array as da
import naive
import numpy as np
import pytest
from small import set_sizes
from support import SlowModel, assert_same_model, checkers, is_close, path_of, small_svc

from daskls.methods.cells.method import CellMethod
from daskls.partition.base import KINDS
from daskls.partition.stored import model_partition
from examples import load_example

N = 700
CELL_SIZE = 60
QUERIES = np.random.default_rng(3).uniform(-0.3, 1.3, (60, 2))


@pytest.fixture(autouse=True)
def clusters(monkeypatch):
    """Return the example's class; registered, and what cells are cut by."""
    module = load_example(monkeypatch, "kmeans_cells", "daskls/partition/clusters.py")

    monkeypatch.setitem(KINDS, "Clusters", f"{module.__name__}:Clusters")
    cut_by(monkeypatch, module.Clusters)
    set_sizes(monkeypatch, {"daskls.plan.bundles.MIN_BUNDLE_WORK": 1})
    return module


def cut_by(patch, kind):
    """Let `VoronoiSVC` cut its cells by a kind of partition."""

    def cut(_, state):
        return kind.grow(state.sample.X, state.sampling.max_sampled_rows, state.seed)

    patch.setattr(CellMethod, "cut", cut)


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
    assert_same_model(model, fit(da.from_array(X, (90, 2))))
    space = model_partition(model._reader)
    assert (space.kind, space.n_leaves) == ("Refined", model.n_cells_)
    (cells,) = space.find(QUERIES)
    assert cells.tolist() == [slow.walk(row) for row in QUERIES.tolist()]
