"""Stage 3: train the cells of one bundle."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskls.partition.grow import grow_tree
from daskls.partition.tree import no_cuts, route_rows
from daskls.records import (
    Bundle,
    BundleReport,
    CellReport,
    Forest,
    LocalModel,
    Partition,
    SolverSpec,
    Tree,
)
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.compute import run_each
from daskls.run.regroup import load_partition
from daskls.seeds import BRANCH, CELL_FOLDS
from daskls.solvers.base import CellRows
from daskls.solvers.registry import find_solver
from daskls.store.exchange import Exchange, Rows
from daskls.store.models import branch_arrays, finished_bundles, write_bundle

__all__ = ["FitJob", "fit_bundle", "train_bundles"]


@dataclass(frozen=True)
class FitJob:
    """What every `fit_bundle` needs: handles and parameters."""

    root: str
    fingerprint: str
    exchange: Exchange
    spec: SolverSpec
    cell_size: int
    seed: int


@undisturbed
def fit_bundle(bundle: Bundle, job: FitJob) -> BundleReport | None:
    """Train every cell of one bundle; write the models, return counts only.

    A retry after a worker's death finds the bundle and returns None.
    Peak memory: ``bundle.nbytes``.
    """
    if (bundle.first_leaf, bundle.last_leaf) in finished_bundles(Path(job.root)):
        return None
    partition = load_partition(job.root, job.fingerprint)
    solver = find_solver(job.spec.loss)
    branches: list[Tree] = []
    models: list[LocalModel] = []
    with one_blas_thread():
        for leaf in range(bundle.first_leaf, bundle.last_leaf + 1):
            rows = job.exchange.read_leaf(leaf)
            branches.append(_cut_leaf(rows, leaf, partition, job))
            cells = _cells_of(rows, branches[-1], leaf, partition, job)
            models.extend(solver.fit(cells, job.spec))
    return write_bundle(
        Path(job.root), bundle.first_leaf, bundle.last_leaf, models, branch_arrays(branches)
    )


def _cut_leaf(rows: Rows, leaf: int, partition: Partition, job: FitJob) -> Tree:
    """Cut a leaf into cells; a chunk, which has no place in space, is one cell."""
    if not isinstance(partition, Forest):
        return no_cuts(np.zeros(rows.X.shape[1]))
    seed = BRANCH(job.seed, leaf=leaf) if partition.partition_of(leaf) else None
    return grow_tree(rows.X, job.cell_size, partition.center, seed)


def _cells_of(
    rows: Rows, branch: Tree, leaf: int, partition: Partition, job: FitJob
) -> Iterator[CellRows]:
    """Yield the rows of each cell of a leaf, as the solver asks for them."""
    cells = route_rows(branch, rows.X)
    for cell in range(branch.n_leaves):
        own = rows.take(np.flatnonzero(cells == cell))
        number = partition.partition_of(leaf) if isinstance(partition, Forest) else 0
        report = CellReport(cell, leaf, len(own.X), 0, 0.0, partition=number)
        seed = CELL_FOLDS(job.seed, leaf=leaf, cell=cell)
        yield CellRows(own.X, own.codes, own.weights, report, seed)


def train_bundles(bundles: tuple[Bundle, ...], job: FitJob, client: Any = None) -> None:
    """Train all bundles, largest first."""
    run_each(fit_bundle, bundles, job, client)
