"""Stage 5 of FaLK-SVM: train the neighborhoods of the centers of one bundle."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.methods.neighborhoods.spec import NeighborSpec
from daskls.neighbors.search import Neighbors, find_nearest, metric_of
from daskls.records import BundleReport, CellReport, Float64, Int64, LocalModel, SolverSpec
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.compute import run_each
from daskls.run.gather import RowsHandle
from daskls.run.tell import tell_cells
from daskls.seeds import EVALUATED, NEIGHBORHOOD
from daskls.solvers.base import Neighborhood
from daskls.solvers.registry import find_neighborhood_solver
from daskls.store.exchange import Rows
from daskls.store.leaves import LeafReader
from daskls.store.models import has_bundle, write_bundle

__all__ = [
    "CenterBundle",
    "NeighborJob",
    "evaluate_row",
    "fit_centers",
    "train_centers",
]


@dataclass(frozen=True)
class CenterBundle:
    """Centers that one task trains: ``positions`` of those numbered first .. last."""

    first: int
    last: int
    positions: tuple[int, ...]


@dataclass(frozen=True)
class NeighborJob:
    """Arguments of every task on neighborhoods: a handle and the parameters that were chosen.

    ``batch`` neighborhoods are gathered at once.
    """

    handle: RowsHandle
    spec: SolverSpec
    neighbors: NeighborSpec
    n_neighbors: int
    seed: int
    batch: int

    def near(self, rows: Rows, i: int, k: int, seed: tuple[int, ...]) -> Neighborhood:
        """Return the k nearest rows of one of several neighborhoods, as solvers take them."""
        return Neighborhood(
            rows.X[i, :k],
            rows.targets[i, :k],
            rows.weights[i, :k],
            self.neighbors.inner(k),
            self.spec,
            self.neighbors.percentiles,
            seed,
        )


def gather_neighborhoods(
    reader: LeafReader, positions: Int64, job: NeighborJob
) -> Iterator[tuple[Neighbors, Rows]]:
    """Yield the neighbors of some rows, and the neighbors' rows, batch by batch."""
    metric, read_leaf = metric_of(job.spec), job.handle.source(reader)
    for start in range(0, len(positions), job.batch):
        X = reader.read_positions(positions[start : start + job.batch]).X
        found = find_nearest(X, job.n_neighbors, reader.regions, read_leaf, metric)
        yield found, reader.read_positions(found.positions)


@undisturbed
def fit_centers(bundle: CenterBundle, job: NeighborJob) -> BundleReport | None:
    """Train the neighborhood of every center of one bundle; write the models, return counts only.

    A retry after a worker's death finds the bundle and returns None.
    """
    root = job.handle.root
    if has_bundle(root, bundle.first, bundle.last):
        return None
    reader = job.handle.open()
    positions = np.array(bundle.positions, np.int64)
    with one_blas_thread():
        models = list(_fit_all(bundle, positions, reader, job))
    leaves = reader.leaf_of(positions)
    written = write_bundle(root, bundle.first, bundle.last, models, {"leaf": leaves})
    tell_cells(root, bundle.first, bundle.last, (model.report for model in models))
    return written


def _fit_all(
    bundle: CenterBundle, positions: Int64, reader: LeafReader, job: NeighborJob
) -> Iterator[LocalModel]:
    """Yield the model of each center; one neighborhood's matrices in memory at a time."""
    number, solver = bundle.first, find_neighborhood_solver(job.spec)
    leaves = reader.leaf_of(positions)
    for found, rows in gather_neighborhoods(reader, positions, job):
        for i in range(len(rows.X)):
            leaf = int(leaves[number - bundle.first])
            report = CellReport(number, leaf, 0, 0, 0.0, n_read=int(found.n_leaves_read[i]))
            # The center's own row names it: the number of a center depends on all others.
            seed = NEIGHBORHOOD(job.seed, row=int(found.numbers[i, 0]))
            yield solver.fit_neighborhood(job.near(rows, i, job.n_neighbors, seed), report)
            number += 1


def train_centers(bundles: list[CenterBundle], job: NeighborJob, client: Any = None) -> None:
    """Train all bundles."""
    run_each(fit_centers, bundles, job, client)


@undisturbed
def evaluate_row(position: int, job: NeighborJob) -> Float64:
    """Return the errors around one row, as of `NeighborhoodSolver.grid_errors`, for every k.

    Shape (n_k, n_gammas, n_costs, 2). One search serves all candidates of k.
    """
    reader, solver = job.handle.open(), find_neighborhood_solver(job.spec)
    with one_blas_thread():
        found, rows = next(gather_neighborhoods(reader, np.array([position]), job))
        evaluated = []
        for k in job.neighbors.n_neighbors:
            seed = EVALUATED(job.seed, row=int(found.numbers[0, 0]), n_neighbors=k)
            evaluated.append(solver.grid_errors(job.near(rows, 0, k, seed)))
    return np.stack(evaluated)
