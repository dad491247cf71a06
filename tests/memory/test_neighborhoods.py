"""What the tasks of the methods on neighborhoods hold, beside what was projected."""

import shutil
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from peaks import assert_projected
from small import set_sizes
from support import few
from writes import stop_fit

from daskls import FalkSVC, FalkSVR
from daskls.memory import TaskSizes, gather_nbytes, neighbor_search_nbytes
from daskls.methods.base import SEARCH_REGION_ROWS
from daskls.methods.neighborhoods.method import Falk
from daskls.methods.neighborhoods.parts import read_centers
from daskls.methods.neighborhoods.plan import SHARED_BY, neighborhood_nbytes
from daskls.methods.neighborhoods.train import CenterBundle, NeighborJob, fit_centers
from daskls.neighbors.approximate import Group, GroupRows, build, building_nbytes, group_nbytes
from daskls.neighbors.graph import GraphSearch
from daskls.neighbors.search import find_nearest
from daskls.records import SolverSpec
from daskls.run import regroup
from daskls.run.contract import Fit
from daskls.store.layout import Root
from daskls.store.leaves import open_leaves

pytestmark = pytest.mark.slow

# A projection must never be below the measured peak, but for what threads of earlier tests hold;
# and not above it by more than this factor.
LOOSEST = 4.0


def rows_of(n, d, n_classes):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype("f4"), rng.integers(n_classes, size=n)


def fit_until(start, model, X, y):
    """Fit, but for what comes from the first thing on whose name begins so."""
    with dask.config.set(scheduler="sync"):
        stop_fit(lambda: model.fit(X, y), model.store, start)


@pytest.mark.parametrize(
    ("k", "batch", "d", "n_classes"),
    few([(600, 6, 10, 4), (600, 1, 4, 2), (600, 6, 60, 2), (1500, 1, 4, 2), (1500, 1, 10, 4)]),
)
def test_training_neighborhoods(k, batch, d, n_classes, tmp_path):
    X, y = rows_of(4000, d, n_classes)
    path = tmp_path / "m"
    model = FalkSVC(k, n_assigned=60, C=1.0, gamma=1.0, tol=1e9, random_state=0, store=path)
    # No step is needed, so that all time goes into what is held.
    spec = SolverSpec(C=(1.0,), tol=1e9, fit_intercept=True)
    check_training(model, X, y, spec, Falk((k,), percentiles=(50.0,)), batch, (d, n_classes))


@pytest.mark.parametrize("largest_C", few([1e6, 2.0]))
@pytest.mark.parametrize(
    ("k", "batch", "d", "width"), few([(600, 6, 10, 4), (1500, 1, 4, 1), (600, 2, 60, 1)])
)
def test_training_neighborhoods_of_numbers(k, batch, d, width, largest_C, tmp_path):
    X, _ = rows_of(4000, d, 2)
    y = np.random.default_rng(1).normal(size=(4000, width))
    path = tmp_path / "m"
    model = FalkSVR(k, n_assigned=60, C=1.0, gamma=1.0, random_state=0, store=path)
    # Of so small a ridge systems are solved in float64; inner rows are left out of all of them.
    costs = (1.0, largest_C)
    spec = SolverSpec(C=costs, fit_intercept=True, loss="squared_error", target="numbers")
    neighbors = Falk((k,), selection="each", percentiles=(90.0,))
    check_training(model, X, y, spec, neighbors, batch, (d, width), 8 * width)


def check_training(model, X, y, spec, neighbors, batch, shape, target_nbytes=4):
    fit_until("bundles", model, X, y)
    (k,), (d, n_classes), path = neighbors.n_neighbors, shape, model.store
    centers = read_centers(Root.open(path)).positions[: 4 * batch].tolist()
    own = str(path), Root.open(path).fingerprint
    fit = Fit(*own, neighbors, spec, 0, 0, np.array([4000]), cache_nbytes=0)
    job = NeighborJob(fit, k, batch)
    bundle = CenterBundle(0, len(centers) - 1, tuple(centers))

    def run():
        shutil.rmtree(path / "bundles", ignore_errors=True)
        fit.open_rows()
        assert fit_centers(bundle, job).n_cells == len(centers)

    sizes = TaskSizes(d, 4, n_classes, SEARCH_REGION_ROWS, spec, target_nbytes=target_nbytes)
    # So many rows that all their models are those of this bundle.
    n_rows = len(centers) * k // SHARED_BY
    projected = neighborhood_nbytes(sizes, k, SEARCH_REGION_ROWS, n_rows, batch)
    assert_projected(run, projected, LOOSEST)


@pytest.mark.parametrize(("d", "several_cells"), few([(20, True), (300, False), (60, True)]))
def test_gathering(d, several_cells, tmp_path, monkeypatch):
    X, y = rows_of(8000, d, 2)
    sizes, gather_one = TaskSizes(d, 4, 2, SEARCH_REGION_ROWS, SolverSpec()), regroup.gather_bundle
    if several_cells:
        # As of data of which a sample shows the leaves.
        low = {"MIN_SAMPLE": 0, "MIN_LEAVES": 1}
        set_sizes(monkeypatch, {f"daskls.plan.bundles.{name}": n for name, n in low.items()})
    largest = []

    def measured(leaves, *shared):
        n_rows = gather_one(leaves, *shared)
        # The plan refuses by what one leaf needs.
        if leaves[0] == leaves[1]:
            projected = gather_nbytes(sizes, n_rows)
            assert_projected(lambda: gather_one(leaves, *shared), projected, LOOSEST)
            largest.append(n_rows)
        return n_rows

    monkeypatch.setattr(regroup, "gather_bundle", measured)
    monkeypatch.setattr(regroup, "has_bundle", lambda *args: False)
    set_sizes(monkeypatch, {"daskls.plan.checks.N_GATHERS": 1000})
    fit_until("centers", FalkSVC(100, C=1.0, random_state=0, store=tmp_path / "m"), X, y)
    assert (max(largest) > 2 * SEARCH_REGION_ROWS) == several_cells


def test_searching(tmp_path):
    X, y = rows_of(4000, 20, 2)
    fit_until("centers", FalkSVC(100, C=1.0, random_state=0, store=tmp_path / "m"), X, y)
    leaves = open_leaves(str(tmp_path / "m"), Root.open(tmp_path / "m").fingerprint, 0)
    sizes = TaskSizes(20, 4, 2, SEARCH_REGION_ROWS, SolverSpec())
    for n, k in ((2000, 50), (300, 1000)):
        projected = neighbor_search_nbytes(sizes, n, k, SEARCH_REGION_ROWS)
        asked = X[:n], k, leaves.regions, leaves.read_leaf
        assert_projected(lambda asked=asked: find_nearest(*asked), projected, LOOSEST)


@pytest.mark.parametrize(("d", "dtype"), few([(300, "f8"), (300, "f4"), (20, "f8")]))
def test_building_and_searching_a_graph(d, dtype):
    X, numbers = rows_of(8000, d, 2)[0].astype(dtype), np.arange(8000)
    leaf = SimpleNamespace(X=X, numbers=numbers, positions=numbers)
    graph, queries = build(GroupRows([leaf]), 0), X[:100].astype(float)

    def search():
        rows = GroupRows([leaf])
        assert (Group(rows, GraphSearch(graph, rows.distinct())).find(queries, 10) >= 0).all()

    assert_projected(search, group_nbytes(8000, d), LOOSEST)
    # Room for the updates of 16,384 rows is there, but no page of it that 8000 do not fill.
    room, projected = (2**14 - 8000) * 330 * 12, building_nbytes(8000, d)
    assert_projected(lambda: build(GroupRows([leaf]), 0), projected, LOOSEST, unseen=-room)
