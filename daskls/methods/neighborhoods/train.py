"""Stages 4 and 5 of FaLK-SVM: choose the centers in rounds of searches, then train them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.blas import one_blas_thread
from daskls.cluster import compute_each
from daskls.errors import MemoryPlanError
from daskls.live.record import report_cells
from daskls.methods.neighborhoods.groups import in_batches, nearest_of_rows
from daskls.methods.neighborhoods.parts import Centers, read_centers, write_centers
from daskls.neighbors.search import Neighbors, metric_of, rows_beyond
from daskls.partition.cover import Cover, n_ranked_rows, order_rows
from daskls.records import (
    BundleReport,
    CellReport,
    Float64,
    Int64,
    Ints,
    KernelSpec,
    LocalModel,
    RowNumbers,
)
from daskls.run.contract import Fit, FitState
from daskls.run.resources import free_nbytes
from daskls.seeds import EVALUATED, NEIGHBORHOOD
from daskls.solvers.base import Neighborhood
from daskls.solvers.registry import find_neighborhood_solver
from daskls.store.exchange import Rows
from daskls.store.layout import check_fit
from daskls.store.leaves import LeafReader
from daskls.store.models import has_bundle, write_bundle

# Bytes that the client holds for each row while centers are chosen: its position in the order, its
# center, the rank and the center's number; and what sorting the order takes.
NBYTES_PER_ROW = 44
# Most tasks that search a round, and the fewest rows of each.
N_SEARCHES = 64
MIN_SEARCHED = 256
# Most positions that travel to the client in one round.
ROUND_POSITIONS = 1 << 22


@dataclass(frozen=True)
class NeighborJob:
    fit: Fit
    n_neighbors: int
    batch: int

    def near(self, rows: Rows, i: int, k: int, seed: tuple[int, ...]) -> Neighborhood:
        return Neighborhood(
            rows.X[i, :k],
            rows.targets[i, :k],
            rows.weights[i, :k],
            self.fit.method.inner(k),
            self.fit.spec,
            self.fit.method.percentiles,
            seed,
        )


@dataclass(frozen=True)
class CenterBundle:
    """The centers that one task trains: ``positions`` are those of centers first .. last."""

    first: int
    last: int
    positions: tuple[int, ...]


def choose_centers(state: FitState, fit: Fit, n_assigned: int, metric: KernelSpec) -> Centers:
    stored = read_centers(state.root)
    if stored is not None:
        return stored
    reader = fit.open_rows()
    check_client(reader.n_rows)
    numbers = reader.read_numbers()
    cover = Cover(center_order(state, numbers, n_assigned), n_assigned)
    with state.clock.stage("cover", reader.n_rows, lambda: cover.n_covered):
        run_cover(cover, numbers, fit, metric, state.client)
    owner = cover.resolved_owner()
    return write_centers(state.root, cover.centers, owner, cover.n_rounds, cover.n_searched)


def check_client(n_rows: int) -> None:
    needed, free = NBYTES_PER_ROW * n_rows, free_nbytes()
    if needed > free:
        raise MemoryPlanError(
            f"Choosing the centers of {n_rows} rows needs {needed >> 20} MiB on the client but "
            f"{free >> 20} MiB are free; fit on fewer rows, or on a larger machine."
        )


def center_order(state: FitState, numbers: RowNumbers, n_assigned: int) -> Int64:
    """Return the positions of all rows in the order in which they are considered as centers."""
    sample, n_ranked = state.sample, n_ranked_rows(len(numbers), n_assigned)
    return order_rows(numbers, state.seed, sample.numbers, sample.X, n_ranked)


def run_cover(cover: Cover, numbers: RowNumbers, fit: Fit, metric: KernelSpec, client: Any) -> None:
    most = max(ROUND_POSITIONS // cover.n_assigned, 1)
    reader, looked_at = fit.open_rows(), set[int]()
    while len(positions := cover.next_round()[:most]):
        lists = search_positions(positions, cover.n_assigned, fit, metric, client)
        cover.take_round(positions, numbers[positions], lists)
        # Where one row is out of its own list, equal rows fill it, and there may be many more.
        is_out = (lists != positions[:, None]).all(axis=1)
        crowded = set(reader.leaf_of(positions[is_out]).tolist()) - looked_at
        calls = [(leaf, cover.n_assigned, fit) for leaf in sorted(crowded)]
        for beyond in compute_each(find_beyond, calls, client) if calls else []:
            cover.follow(*beyond)
        looked_at |= crowded


def search_positions(
    positions: Int64, n_neighbors: int, fit: Fit, metric: KernelSpec, client: Any
) -> Ints:
    order = np.argsort(positions, kind="stable")
    parts = np.array_split(order, min(-(-len(positions) // MIN_SEARCHED), N_SEARCHES))
    calls = [(positions[part], n_neighbors, fit, metric) for part in parts]
    lists = compute_each(search_block, calls, client)
    nearest = np.empty((len(positions), n_neighbors), lists[0].dtype)
    for part, block in zip(parts, lists, strict=True):
        nearest[part] = block
    return nearest


def search_block(positions: Int64, n_neighbors: int, fit: Fit, metric: KernelSpec) -> Ints:
    reader = fit.open_rows()
    with one_blas_thread():
        neighbors = nearest_of_rows(fit.method, reader, positions, n_neighbors, metric)
    return _compact(neighbors.positions, reader)


def find_beyond(leaf: int, n_neighbors: int, fit: Fit) -> tuple[Ints, Ints]:
    """Return the rows of a leaf that no list holds, and whom they follow: see `rows_beyond`."""
    reader = fit.open_rows()
    positions, first = rows_beyond(reader.read_leaf(leaf), n_neighbors)
    return _compact(positions, reader), _compact(first, reader)


def _compact(positions: Int64, reader: LeafReader) -> Ints:
    """Return positions as they travel to the client: int32 halves their bytes."""
    return positions.astype(np.int32) if reader.n_rows < 2**31 else positions


def fit_centers(bundle: CenterBundle, job: NeighborJob) -> BundleReport | None:
    """Train the neighborhoods of one bundle and write the models; None where they had been."""
    root = job.fit.root
    if has_bundle(root, bundle.first, bundle.last):
        return None
    reader = job.fit.open_rows()
    positions = np.array(bundle.positions, np.int64)
    with one_blas_thread():
        models = list(_fit_all(bundle, positions, reader, job))
    leaves = reader.leaf_of(positions)
    check_fit(root, job.fit.fingerprint)
    written = write_bundle(root, bundle.first, bundle.last, models, {"leaf": leaves})
    report_cells(root, bundle.first, bundle.last, (model.report for model in models))
    return written


def _fit_all(
    bundle: CenterBundle, positions: Int64, reader: LeafReader, job: NeighborJob
) -> Iterator[LocalModel]:
    """Yield the model of each center; one neighborhood's matrices in memory at a time."""
    number, solver = bundle.first, find_neighborhood_solver(job.fit.spec)
    leaves = reader.leaf_of(positions)
    for neighbors, rows in gather_neighborhoods(reader, positions, job):
        for i in range(len(rows.X)):
            leaf = int(leaves[number - bundle.first])
            report = CellReport(number, leaf, 0, 0, 0.0, n_read=int(neighbors.n_leaves_read[i]))
            # Seeded by the center's row number: its number among centers depends on all others.
            seed = NEIGHBORHOOD(job.fit.seed, row=int(neighbors.numbers[i, 0]))
            yield solver.fit_neighborhood(job.near(rows, i, job.n_neighbors, seed), report)
            number += 1


def gather_neighborhoods(
    reader: LeafReader, positions: Int64, job: NeighborJob
) -> Iterator[tuple[Neighbors, Rows]]:
    metric = metric_of(job.fit.spec)

    def find(searched: Int64) -> Neighbors:
        return nearest_of_rows(job.fit.method, reader, searched, job.n_neighbors, metric)

    n_searched = job.batch if job.fit.method.n_groups is None else len(positions)
    for _, neighbors in in_batches(find, positions, n_searched, job.batch):
        yield neighbors, reader.read_positions(neighbors.positions)


def evaluate_row(position: int, job: NeighborJob) -> Float64:
    """Return `grid_errors` around one row for every k: (n_k, n_gammas, n_costs, 2)."""
    reader, solver = job.fit.open_rows(), find_neighborhood_solver(job.fit.spec)
    with one_blas_thread():
        neighbors, rows = next(gather_neighborhoods(reader, np.array([position]), job))
        evaluated = []
        for k in job.fit.method.n_neighbors:
            seed = EVALUATED(job.fit.seed, row=int(neighbors.numbers[0, 0]), n_neighbors=k)
            evaluated.append(solver.grid_errors(job.near(rows, 0, k, seed)))
    return np.stack(evaluated)
