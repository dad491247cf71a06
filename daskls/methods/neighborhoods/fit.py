"""A fit on neighborhoods: gather rows by leaf, select parameters, choose and train centers."""

from typing import Any

from daskls.cluster import run_each
from daskls.memory import TaskSizes
from daskls.methods.neighborhoods.groups import build_graphs
from daskls.methods.neighborhoods.parts import Centers
from daskls.methods.neighborhoods.plan import (
    MODELS_NBYTES,
    NeighborSpec,
    grouped_rows,
    neighborhood_nbytes,
    plan_batch,
)
from daskls.methods.neighborhoods.select import select
from daskls.methods.neighborhoods.train import (
    NBYTES_PER_ROW,
    CenterBundle,
    NeighborJob,
    choose_centers,
    fit_centers,
)
from daskls.neighbors.approximate import building_nbytes, graph_nbytes
from daskls.neighbors.search import metric_of
from daskls.plan.bundles import Resources, bundle_work, model_nbytes
from daskls.plan.checks import gathering_nbytes
from daskls.plan.fit import FitCost
from daskls.run.contract import EACH, FitState
from daskls.store.models import all_bundles, finished_bundles, missing_bundles
from daskls.store.reader import write_index

# Centers, relative to the number that would suffice if no two covered the same row. Measured on
# ijcnn1, Covertype, a checkerboard and two spirals of 10^5 to 3 10^6 rows.
OVERLAP = 2.1


def fit_rows(method: NeighborSpec, state: FitState) -> None:
    method = method.for_rows(state.scan.n_kept)
    build_graphs(method, state)
    fit, _ = select(state, method)
    chosen = fit.spec.C, fit.spec.gamma, fit.method.percentiles
    # Of several values each query chooses.
    C, gamma, percentile = (values[0] if values and len(values) == 1 else None for values in chosen)
    # Predictions use the selected parameters, so they are part of the model.
    selected: dict[str, Any] = {"C": C, "gamma": gamma, "percentile": percentile}
    if state.request.probability == EACH:
        selected["class_weight"] = state.class_weight.tolist()
    write_index(state.root, {}, selected, [], [0])


def fit_centers_of(method: NeighborSpec, state: FitState) -> None:
    method = method.for_rows(state.scan.n_kept)
    root = state.root
    build_graphs(method, state)
    fit, k = select(state, method)
    centers = choose_centers(state, fit, method.inner(k), metric_of(fit.spec))
    largest, n_rows = state.sampling.largest_rows, state.scan.n_kept
    batch = plan_batch(state.sizes, k, largest, n_rows, state.resources, method.n_groups)
    job = NeighborJob(fit, k, batch)
    bundles = _bundles(state, centers, k)

    def finished() -> int:
        return sum(last + 1 - first for first, last in finished_bundles(root.store))

    with state.clock.stage("train", len(centers.positions), finished):
        run_each(fit_centers, bundles, job, client=state.client)
    listed = all_bundles(root.store, len(centers.positions))
    reader = fit.open_rows()
    rows = reader.read_positions(centers.positions)
    gamma = fit.spec.gamma[0] if fit.spec.gamma and len(fit.spec.gamma) == 1 else None
    first_cells = [*(first for first, _ in listed), len(rows.X)]
    arrays = {"centers": rows.X, "numbers": rows.numbers}
    write_index(root, arrays, {"gamma": gamma}, listed, first_cells)


def _bundles(state: FitState, centers: Centers, n_neighbors: int) -> list[CenterBundle]:
    """Cut the centers into runs of nearby centers; return those that are not trained."""
    positions = centers.positions.tolist()
    size = _bundle_size(state.sizes, len(positions), n_neighbors)
    starts = range(0, len(positions), size)
    bundles = [(first, min(first + size, len(positions)) - 1) for first in starts]
    return [
        CenterBundle(first, last, tuple(positions[first : last + 1]))
        for first, last in missing_bundles(state.root.store, bundles)
    ]


def _bundle_size(sizes: TaskSizes, n_centers: int, n_neighbors: int) -> int:
    # Training a neighborhood costs the square of its rows.
    work = float(n_neighbors) ** 2
    # A task holds the models of its bundle until they are written.
    by_nbytes = MODELS_NBYTES // model_nbytes(sizes, n_neighbors)
    return max(min(int(bundle_work(n_centers * work) / work), by_nbytes), 1)


# ---- what a fit is expected to take ----


def expected_rows(method: NeighborSpec, sizes: TaskSizes, resources: Resources) -> FitCost:
    """Return what methods take that only gather rows, and train or vote when they predict."""
    nbytes = gathering_nbytes(sizes)
    if method.selects_once:
        k = max(method.for_rows(sizes.n_rows).n_neighbors)
        needed = neighborhood_nbytes(sizes, k, sizes.leaf_rows, sizes.n_rows, 1, method.n_groups)
        nbytes = max(nbytes, needed)
    stored = sizes.n_rows * sizes.row_nbytes
    if method.n_groups is None:
        return FitCost(0, 0, nbytes, stored)
    d = sizes.n_features
    grouped = grouped_rows(d, sizes.leaf_rows, sizes.n_rows)
    nbytes = max(nbytes, building_nbytes(grouped, d))
    return FitCost(-(-sizes.n_rows // grouped), 0, nbytes, stored + graph_nbytes(sizes.n_rows, d))


def expected_centers(method: NeighborSpec, sizes: TaskSizes, resources: Resources) -> FitCost:
    method, rows = method.for_rows(sizes.n_rows), expected_rows(method, sizes, resources)
    k = method.n_neighbors[len(method.n_neighbors) // 2]
    n_centers = _n_centers(sizes.n_rows, method.inner(k))
    arguments = sizes, k, sizes.leaf_rows, sizes.n_rows
    batch = plan_batch(*arguments, resources, method.n_groups)
    n_tasks = -(-n_centers // _bundle_size(sizes, n_centers, k))
    nbytes = neighborhood_nbytes(*arguments, batch, method.n_groups)
    models = model_nbytes(sizes, n_centers * k)
    stored = rows.model_nbytes if method.assign == "point" else 0
    client = NBYTES_PER_ROW * sizes.n_rows
    n_tasks, nbytes = n_tasks + rows.n_tasks, max(nbytes, rows.nbytes)
    return FitCost(n_tasks, n_centers, nbytes, models + stored, client)


def _n_centers(n_rows: int, n_inner: int) -> int:
    """Return the expected number of centers.

    >>> _n_centers(1_000_000, 500), _n_centers(100, 100)
    (4200, 1)
    """
    return max(round(OVERLAP * n_rows / n_inner), 1) if n_inner < n_rows else 1
