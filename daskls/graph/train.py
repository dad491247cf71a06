"""Stage 3: train the cells of one bundle."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskls.graph.cluster import one_blas_thread, run_each
from daskls.graph.regroup import load_trunks
from daskls.partition.grow import grow_tree
from daskls.partition.tree import route_rows
from daskls.records import Bundle, BundleReport, CellReport, LocalModel, SolverSpec, Tree
from daskls.solvers.cell import fit_cell
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


def branch_seed(seed: int, leaf: int) -> tuple[int, ...]:
    """Name a leaf of a further partition; the last number keeps it apart from any cell's seed."""
    return seed, leaf, 0, 2


def fit_bundle(bundle: Bundle, job: FitJob) -> BundleReport | None:
    """Train every cell of one bundle; write the models, return counts only.

    A retry after a worker's death finds the bundle and returns None.
    Peak memory: ``bundle.nbytes``.
    """
    if (bundle.first_leaf, bundle.last_leaf) in finished_bundles(Path(job.root)):
        return None
    trunks = load_trunks(job.root, job.fingerprint)
    branches: list[Tree] = []
    models: list[LocalModel] = []
    with one_blas_thread():
        for leaf in range(bundle.first_leaf, bundle.last_leaf + 1):
            rows = job.exchange.read_leaf(leaf)
            partition = trunks.partition_of(leaf)
            seed = branch_seed(job.seed, leaf) if partition else None
            branches.append(grow_tree(rows.X, job.cell_size, trunks.center, seed))
            models.extend(_fit_leaf(rows, branches[-1], leaf, partition, job))
    return write_bundle(
        Path(job.root), bundle.first_leaf, bundle.last_leaf, models, branch_arrays(branches)
    )


def _fit_leaf(
    rows: Rows, branch: Tree, leaf: int, partition: int, job: FitJob
) -> Iterator[LocalModel]:
    """Yield the model of each cell of a leaf; one cell's matrices in memory at a time."""
    cells = route_rows(branch, rows.X)
    for cell in range(branch.n_leaves):
        own = rows.take(np.flatnonzero(cells == cell))
        report = CellReport(cell, leaf, len(own.X), 0, 0.0, partition=partition)
        seed = (job.seed, leaf, cell)
        yield fit_cell(own.X, own.codes, own.weights, job.spec, report, seed)


def train_bundles(bundles: tuple[Bundle, ...], job: FitJob, client: Any = None) -> None:
    """Train all bundles, largest first."""
    run_each(fit_bundle, bundles, job, client)
