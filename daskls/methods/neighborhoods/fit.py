"""A fit on neighborhoods: gather rows by leaf, select parameters, choose and train centers.

What is finished in the store is not done again. The expected work of a fit comes last.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from daskls.methods.base import one_leaf
from daskls.methods.neighborhoods.parts import Centers
from daskls.methods.neighborhoods.plan import (
    MAX_BATCHES,
    N_SELECTED,
    NeighborSpec,
    neighborhood_nbytes,
    plan_batch,
)
from daskls.methods.neighborhoods.select import N_RUNNING, N_TASKS, ROUNDS, select
from daskls.methods.neighborhoods.train import (
    MIN_SEARCHED,
    N_SEARCHES,
    NBYTES_PER_ROW,
    CenterBundle,
    NeighborJob,
    choose_centers,
    fit_centers,
)
from daskls.neighbors.search import find_nearest, metric_of
from daskls.plan import (
    BUNDLE_S,
    Demand,
    Outlook,
    StageDemand,
    Work,
    bundle_work,
    group_open,
    model_nbytes,
    n_selecting,
)
from daskls.run.begin import regroup_all
from daskls.run.compute import run_each
from daskls.run.contract import FitState
from daskls.run.pace import Setting, seconds_in
from daskls.run.regroup import gather_rows, gather_stage, has_rows, rows_handle
from daskls.solvers.base import BLANK_REPORT, Neighborhood
from daskls.solvers.grid import count_gammas
from daskls.solvers.registry import find_neighborhood_solver
from daskls.store.layout import Root
from daskls.store.models import done_mask, drop_others, find_tiles, finished_bundles
from daskls.store.reader import write_index

# Functions below that time a piece of work, by the names that a bill carries.
SEARCH = "methods.neighborhoods.fit:search_leaf"
FIT = "methods.neighborhoods.fit:fit_neighborhood"
CHOOSE = "methods.neighborhoods.fit:choose_and_fit"
COMPARE = "methods.neighborhoods.fit:compare_candidates"
# Queries of a timed search, and the mean number of leaves that a search reads.
QUERIES, LEAVES_READ = 256, 4
# Centers, relative to the number that would suffice if no two covered the same row; rows searched
# for each center. Measured on ijcnn1, Covertype, a checkerboard and two spirals of 10^5 to 3 10^6
# rows.
OVERLAP, SEARCHED = 2.1, 1.4
# Assumed where gamma "scale" will be computed from the sample.
USUAL_VARIANCE = 1.0


def fit_rows(method: NeighborSpec, state: FitState) -> None:
    """Gather the rows by leaf and select parameters; each query later trains, or votes."""
    _gather(state)
    method = method.for_rows(state.scan.n_kept)
    chosen = select(state, method, rows_handle(state))
    spec, percentiles = chosen.spec, chosen.percentiles
    C, gamma, percentile = (
        values[0] if values else None for values in (spec.C, spec.gamma, percentiles)
    )
    # Predictions use the selected parameters, so they are part of the model.
    selected = {"C": C, "gamma": gamma, "percentile": percentile}
    write_index(state.root, {}, selected, [], [0])


def fit_centers_of(method: NeighborSpec, state: FitState) -> None:
    """Gather the rows by leaf, choose centers and train their neighborhoods."""
    _gather(state)
    method = method.for_rows(state.scan.n_kept)
    root, handle = state.root, rows_handle(state)
    chosen = select(state, method, handle)
    k = chosen.n_neighbors
    centers = choose_centers(state, handle, method.inner(k), metric_of(chosen.spec))
    own = replace(method, percentiles=chosen.percentiles)
    batch = plan_batch(state.sizes, k, state.sampling.largest_rows, state.resources)
    job = NeighborJob(handle, chosen.spec, own, k, state.seed, batch)
    bundles = _bundles(state, centers, batch, k)
    with state.clock.stage("train", len(centers.positions), _finished(root)):
        run_each(fit_centers, bundles, job, state.client)
    tiles = find_tiles(root.store, len(centers.positions))
    drop_others(root.store, tiles)
    reader = handle.open()
    rows = reader.read_positions(centers.positions)
    gamma = chosen.spec.gamma[0] if chosen.spec.gamma and len(chosen.spec.gamma) == 1 else None
    first_cells = [*(first for first, _ in tiles), len(rows.X)]
    arrays = {"centers": rows.X, "numbers": rows.numbers}
    write_index(root, arrays, {"gamma": gamma}, tiles, first_cells)


def _gather(state: FitState) -> None:
    """Write all rows by leaf, unless they are there."""
    if not has_rows(state):
        _, exchange, leaf_rows = regroup_all(state)
        gather_rows(state, exchange, leaf_rows)


def _bundles(state: FitState, centers: Centers, batch: int, n_neighbors: int) -> list[CenterBundle]:
    """Cut the centers that are not trained into runs of nearby centers."""
    done = done_mask(state.root.store, len(centers.positions))
    # Training a neighborhood costs the square of its rows.
    work = float(n_neighbors) ** 2
    share = int(bundle_work(len(done) * work, state.resources.n_slots) / work)
    # A task holds the models of its bundle until they are written.
    size = max(min(share, MAX_BATCHES * batch), 1)
    positions = centers.positions.tolist()
    groups = group_open([1] * len(positions), done, size)
    return [CenterBundle(first, last, tuple(positions[first : last + 1])) for first, last in groups]


def _finished(root: Root) -> Callable[[], int]:
    """Return a function that counts the centers of the bundles on disk."""
    return lambda: sum(last + 1 - first for first, last in finished_bundles(root.store))


# ---- the bill: the expected work, and the functions that time it on a worker ----


def demand_of_rows(method: NeighborSpec, outlook: Outlook) -> Demand:
    """Return the demand of methods that only gather rows, and train or vote when they predict."""
    method = method.for_rows(outlook.extent.n_rows)
    stages = outlook.grown, gather_stage(outlook), *_selections(method, outlook)
    return Demand(stages, 0, _rows_nbytes(outlook))


def demand_of_centers(method: NeighborSpec, outlook: Outlook) -> Demand:
    """Return the demand of models around centers that cover all rows."""
    extent = outlook.extent
    method = method.for_rows(extent.n_rows)
    k = method.n_neighbors[len(method.n_neighbors) // 2]
    n_centers = _n_centers(extent.n_rows, method.inner(k))
    train = _train(method, outlook, k, n_centers)
    stages = (
        outlook.grown,
        gather_stage(outlook),
        *_selections(method, outlook),
        _cover(outlook, k, n_centers),
        train,
    )
    models = model_nbytes(extent.sizes, n_centers * k)
    kept = _rows_nbytes(outlook) if method.assign == "point" else 0
    client = NBYTES_PER_ROW * extent.n_rows
    return Demand(stages, n_centers, models + kept, client, train.n_tasks)


def _n_centers(n_rows: int, n_inner: int) -> int:
    """Return the expected number of centers.

    >>> _n_centers(1_000_000, 500), _n_centers(100, 100)
    (4200, 1)
    """
    return max(round(OVERLAP * n_rows / n_inner), 1) if n_inner < n_rows else 1


def _rows_nbytes(outlook: Outlook) -> int:
    return outlook.extent.n_rows * outlook.extent.sizes.row_nbytes


def _searching(n_queries: float) -> Work:
    return Work(SEARCH, QUERIES, LEAVES_READ * n_queries / QUERIES)


def _selections(method: NeighborSpec, outlook: Outlook) -> tuple[StageDemand, ...]:
    """Return the stage that selects parameters for all neighborhoods, if there is one."""
    if method.selection not in ("local", "left_out"):
        return ()
    extent, k = outlook.extent, max(method.n_neighbors)
    nbytes = neighborhood_nbytes(extent.sizes, k, extent.leaf_rows, 1)
    n_tasks, works = _selecting(method, outlook)
    return (StageDemand("select", n_tasks, nbytes, tuple(works)),)


def _selecting(method: NeighborSpec, outlook: Outlook) -> tuple[int, list[Work]]:
    """Return the number of tasks of a selection, and their work."""
    n_rows, spec = outlook.extent.n_rows, outlook.extent.sizes.spec
    n_candidates = count_gammas(spec, method.percentiles) * spec.n_costs
    if method.selection == "local":
        compared = [Work(COMPARE, k, N_SELECTED) for k in method.n_neighbors]
        return N_SELECTED, [_searching(N_SELECTED), *compared]
    asked = n_selecting(n_rows)
    n_models = asked * sum(_running(n_candidates))
    works = [_searching(asked), Work(FIT, method.n_neighbors[0], n_models)]
    return len(ROUNDS) * N_TASKS, works


def _running(n_candidates: int) -> Iterator[float]:
    """Yield, for each round of `left_out_errors`, its candidates times its share of the rows."""
    before = 0.0
    for share, n in zip(ROUNDS, (n_candidates, *N_RUNNING), strict=True):
        yield (share - before) * min(n, n_candidates)
        before = share


def _cover(outlook: Outlook, n_neighbors: int, n_centers: int) -> StageDemand:
    sizes, leaf_rows = outlook.extent.sizes, outlook.extent.leaf_rows
    searched = SEARCHED * n_centers
    # The number of rows in a round starts small and doubles.
    n_rounds = 3 + round(2 * math.log2(max(n_centers / 64, 1)))
    a_round = min(max(round(searched / n_rounds / MIN_SEARCHED), 1), N_SEARCHES)
    nbytes = neighborhood_nbytes(sizes, n_neighbors, leaf_rows, 1)
    return StageDemand("cover", n_rounds * a_round, nbytes, (_searching(searched),), n_rounds)


def _train(method: NeighborSpec, outlook: Outlook, k: int, n_centers: int) -> StageDemand:
    sizes, leaf_rows = outlook.extent.sizes, outlook.extent.leaf_rows
    batch = plan_batch(sizes, k, leaf_rows, outlook.resources)
    squared = float(k) ** 2
    most = max(min(int(bundle_work(n_centers * squared) / squared), MAX_BATCHES * batch), 1)
    work = Work(CHOOSE if method.selection == "each" else FIT, k, n_centers)
    nbytes = neighborhood_nbytes(sizes, k, leaf_rows, batch)
    works = _searching(n_centers), work
    return StageDemand("train", -(-n_centers // most), nbytes, works, task_s=BUNDLE_S)


def search_leaf(size: int, setting: Setting) -> float:
    """Time the search for the neighbors of ``size`` rows in one leaf."""
    X, _ = setting.draw(max(setting.leaf_rows, 2))
    leaf, regions, _ = one_leaf(X, np.arange(len(X)))
    k = min(max(_spec(setting).n_neighbors), len(X))
    queries, metric = X[:size], metric_of(setting.spec)
    return seconds_in(lambda: find_nearest(queries, k, regions, lambda _: leaf, metric))


def fit_neighborhood(size: int, setting: Setting) -> float:
    """Time the training of one neighborhood's model with all parameters given."""
    return _fitted(_near(size, setting, is_open=False))


def choose_and_fit(size: int, setting: Setting) -> float:
    """Time the training of one neighborhood's model that chooses its own parameters."""
    return _fitted(_near(size, setting, is_open=True))


def compare_candidates(size: int, setting: Setting) -> float:
    """Time the evaluation of all candidates on the inner rows of one neighborhood."""
    near = _near(size, setting, is_open=True)
    return seconds_in(lambda: find_neighborhood_solver(near.spec).grid_errors(near))


def _fitted(near: Neighborhood) -> float:
    solver = find_neighborhood_solver(near.spec)
    return seconds_in(lambda: solver.fit_neighborhood(near, BLANK_REPORT))


def _near(size: int, setting: Setting, *, is_open: bool) -> Neighborhood:
    """Return a neighborhood of ``size`` rows: of all candidates, or of those in the middle."""
    X, targets = setting.draw(size)
    method, spec = _spec(setting), setting.spec
    percentiles = method.percentiles
    if percentiles is None and spec.gamma is None:
        spec = replace(spec, gamma=(1.0 / (setting.n_features * USUAL_VARIANCE),))
    if not is_open:
        costs = sorted(spec.C or (1.0,))
        spec = replace(spec, C=(costs[len(costs) // 2],), gamma=spec.gamma and spec.gamma[:1])
        percentiles = percentiles and (percentiles[len(percentiles) // 2],)
    inner = min(method.inner(size), size)
    return Neighborhood(X, targets, np.ones(size), inner, spec, percentiles, (0,))


def _spec(setting: Setting) -> NeighborSpec:
    return cast(NeighborSpec, setting.method)
