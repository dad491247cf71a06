"""Stage 3: train the cells of one bundle."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.methods.held_out import Draw, HeldRows
from daskls.partition.base import Partition
from daskls.partition.cells import cut_into_cells
from daskls.partition.space import BRANCH_SIZES
from daskls.partition.tree import Tree, tree_arrays
from daskls.records import Bundle, BundleReport, CellReport, Int32, LocalModel, SolverSpec
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.compute import run_each
from daskls.run.regroup import load_partition
from daskls.run.tell import tell_cells
from daskls.seeds import CELL_FOLDS
from daskls.solvers.base import CellRows
from daskls.solvers.registry import find_solver
from daskls.store.exchange import Exchange, Rows
from daskls.store.models import grid_arrays, has_bundle, write_bundle

__all__ = ["FitJob", "fit_bundle", "train_bundles"]


@dataclass(frozen=True)
class FitJob:
    """Arguments of every `fit_bundle`: handles and parameters."""

    root: str
    fingerprint: str
    exchange: Exchange
    spec: SolverSpec
    cell_size: int
    seed: int
    draw: Draw | None = None


@undisturbed
def fit_bundle(bundle: Bundle, job: FitJob) -> BundleReport | None:
    """Train every cell of one bundle; write the models, return counts only.

    A retry after a worker's death finds the bundle and returns None.
    Peak memory: ``bundle.nbytes``.
    """
    if has_bundle(job.root, bundle.first_leaf, bundle.last_leaf):
        return None
    partition = load_partition(job.root, job.fingerprint)
    solver = find_solver(job.spec)
    branches: list[Tree] = []
    models: list[LocalModel] = []
    held: list[HeldRows] = []
    with one_blas_thread():
        read = job.exchange.read_leaves(bundle.first_leaf, bundle.last_leaf)
        for leaf, rows in enumerate(read, bundle.first_leaf):
            tree, cells = cut_into_cells(partition, rows.X, leaf, job.cell_size, job.seed)
            branches.append(tree)
            models.extend(solver.fit(_cells_of(rows, tree, cells, leaf, partition, job), job.spec))
            if job.draw is not None:
                held.append(HeldRows.of_leaf(rows, cells, models[-tree.n_leaves :], job.draw))
    first, last = bundle.first_leaf, bundle.last_leaf
    extra = {**tree_arrays(branches, BRANCH_SIZES), **grid_arrays(models)}
    if held:
        extra |= HeldRows.joined(held).arrays()
    written = write_bundle(job.root, first, last, models, extra)
    tell_cells(job.root, first, last, (model.report for model in models))
    return written


def _cells_of(
    rows: Rows, tree: Tree, cells: Int32, leaf: int, partition: Partition, job: FitJob
) -> Iterator[CellRows]:
    """Yield the rows of each cell of a leaf, as the solver asks for them."""
    number = partition.partition_of(leaf)
    for cell in range(tree.n_leaves):
        own = rows.take(np.flatnonzero(cells == cell))
        report = CellReport(cell, leaf, len(own.X), 0, 0.0, partition=number)
        seed = CELL_FOLDS(job.seed, leaf=leaf, cell=cell)
        asked = None if job.draw is None else job.draw.positions(own)
        yield CellRows(own.X, own.targets, own.weights, report, seed, asked)


def train_bundles(bundles: tuple[Bundle, ...], job: FitJob, client: Any = None) -> None:
    """Train all bundles, largest first."""
    run_each(fit_bundle, bundles, job, client)
