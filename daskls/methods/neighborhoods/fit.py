"""A fit on neighborhoods: gather rows by leaf, select parameters, choose and train centers.

What is finished in the store is not done again.
"""

from collections.abc import Callable
from dataclasses import replace

from daskls.methods.neighborhoods.parts import Centers
from daskls.methods.neighborhoods.plan import MAX_BATCHES, NeighborSpec, plan_batch
from daskls.methods.neighborhoods.select import select
from daskls.methods.neighborhoods.train import (
    CenterBundle,
    NeighborJob,
    choose_centers,
    fit_centers,
)
from daskls.neighbors.search import metric_of
from daskls.plan import bundle_cost, group_open
from daskls.run.begin import regroup_all
from daskls.run.compute import run_each
from daskls.run.contract import FitState
from daskls.run.regroup import gather_rows, has_rows, rows_handle
from daskls.store.layout import Root
from daskls.store.models import done_mask, drop_others, find_tiles, finished_bundles
from daskls.store.reader import write_index


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
    cost = float(n_neighbors) ** 2
    share = int(bundle_cost(len(done) * cost, state.resources.n_slots) / cost)
    # A task holds the models of its bundle until they are written.
    size = max(min(share, MAX_BATCHES * batch), 1)
    positions = centers.positions.tolist()
    groups = group_open([1] * len(positions), done, size)
    return [CenterBundle(first, last, tuple(positions[first : last + 1])) for first, last in groups]


def _finished(root: Root) -> Callable[[], int]:
    """Return a function that counts the centers of the bundles on disk."""
    return lambda: sum(last + 1 - first for first, last in finished_bundles(root.store))
