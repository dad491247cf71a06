"""A fit on cells or chunks: regroup the rows, train the bundles, write the index."""

import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from daskls.blas import one_blas_thread
from daskls.cluster import run_each
from daskls.kernels.copies import find_copies
from daskls.live.record import report_cells
from daskls.methods.held_out import HeldOutRows, RowSampler, map_held_out, maps_held_out, sampler_of
from daskls.partition.base import Partition
from daskls.partition.grow import cut_into_cells
from daskls.partition.space import BRANCH_SIZES, Space
from daskls.partition.stored import Nested, StoredTrees, read_partition, stored
from daskls.partition.tree import Tree, read_trees, tree_arrays
from daskls.plan.bundles import plan_bundles
from daskls.records import (
    F8,
    Bundle,
    BundleReport,
    CellReport,
    Int32,
    Int64,
    LocalModel,
    SolverSpec,
)
from daskls.run.contract import Fit, FitState, RegroupedRows
from daskls.run.regroup import load_partition
from daskls.seeds import CELL_FOLDS
from daskls.solvers.base import CellRows, evaluated_rows
from daskls.solvers.registry import find_solver
from daskls.store.choices import width_of
from daskls.store.errors import check_counts
from daskls.store.exchange import Exchange, Rows
from daskls.store.layout import Root, check_fit
from daskls.store.models import (
    BundleModels,
    all_bundles,
    find_bundles,
    finished_bundles,
    grid_arrays,
    has_bundle,
    missing_bundles,
    write_bundle,
)
from daskls.store.reader import write_index

# Most bytes of the directions of all cuts for which the index holds them; every process that
# predicts reads it. Beyond, it holds the cuts between leaves, and bundles those inside leaves.
INDEX_NBYTES = 16 << 20


def fit_cells(state: FitState, regrouped: RegroupedRows) -> None:
    root, leaf_rows, cell_size = state.root, regrouped.leaf_rows, state.request.cell_size
    bundles = plan_bundles(state.sizes, leaf_rows.tolist())
    finished = _finished_cells(root, leaf_rows, cell_size)
    with state.clock.stage("train", _n_cells(leaf_rows, cell_size), finished):
        missing = _missing(root, bundles)
        run_each(fit_bundle, missing, state.fit, regrouped.exchange, client=state.client)


def has_cells(root: Root) -> bool:
    """Whether all cells are trained, so that only the index may be missing."""
    part = root.find("partition")
    return part is not None and bool(find_bundles(root.store, read_partition(part).n_leaves))


def _missing(root: Root, bundles: Sequence[Bundle]) -> list[Bundle]:
    """Return the bundles that are not trained, those of the most work first."""
    by_leaves = {(b.first_leaf, b.last_leaf): b for b in bundles}
    missing = [by_leaves[leaves] for leaves in missing_bundles(root.store, list(by_leaves))]
    return sorted(missing, key=lambda b: (-b.work, b.first_leaf))


def _n_cells(leaf_rows: Int64, cell_size: int) -> int:
    return int((-(-leaf_rows // cell_size)).sum())


def _finished_cells(root: Root, leaf_rows: Int64, cell_size: int) -> Callable[[], int]:
    def count() -> int:
        return sum(
            _n_cells(leaf_rows[first : last + 1], cell_size)
            for first, last in finished_bundles(root.store)
        )

    return count


def fit_bundle(bundle: Bundle, fit: Fit, exchange: Exchange) -> BundleReport | None:
    """Train every cell of one bundle and write the models; None where they had been written."""
    if has_bundle(fit.root, bundle.first_leaf, bundle.last_leaf):
        return None
    partition = load_partition(fit)
    solver, sampler = find_solver(fit.spec), sampler_of(fit)
    branches: list[Tree] = []
    models: list[LocalModel] = []
    held: list[HeldOutRows] = []
    with one_blas_thread():
        read = exchange.read_leaves(bundle.first_leaf, bundle.last_leaf)
        # No variable refers to a leaf's rows with their copies.
        for leaf, rows in enumerate(map(Rows.merged, read), bundle.first_leaf):
            tree, cells = _cut(partition, rows, leaf, fit, solver.merges_targets)
            branches.append(tree)
            cell_rows = _cells_of(rows, tree, cells, leaf, partition, fit, sampler)
            models.extend(solver.fit(cell_rows, fit.spec))
            if sampler is not None and maps_held_out(fit):
                held.append(HeldOutRows.of_leaf(rows, cells, models[-tree.n_leaves :], sampler))
    first, last = bundle.first_leaf, bundle.last_leaf
    extra = {**tree_arrays(branches, BRANCH_SIZES), **grid_arrays(models)}
    if held:
        extra |= HeldOutRows.joined(held).arrays()
    check_fit(fit.root, fit.fingerprint)
    written = write_bundle(fit.root, first, last, models, extra)
    report_cells(fit.root, first, last, (model.report for model in models))
    return written


def _cut(
    partition: Partition, rows: Rows, leaf: int, fit: Fit, merges_targets: bool
) -> tuple[Tree, Int32]:
    equal = find_copies(rows.X) if merges_targets else None
    first, of_row = (slice(None), slice(None)) if equal is None else equal
    tree, cells = cut_into_cells(partition, rows.X[first], leaf, fit.cell_size, fit.seed)
    return tree, cells[of_row]


def _cells_of(
    rows: Rows,
    tree: Tree,
    cells: Int32,
    leaf: int,
    partition: Partition,
    fit: Fit,
    sampler: RowSampler | None,
) -> Iterator[CellRows]:
    """Yield the rows of each cell of a leaf; lazily, as the solver decides how many it holds."""
    number = partition.partition_of(leaf)
    for cell in range(tree.n_leaves):
        part = rows.take(np.flatnonzero(cells == cell))
        report = CellReport(cell, leaf, part.n_rows, 0, 0.0, partition=number)
        seed = CELL_FOLDS(fit.seed, leaf=leaf, cell=cell)
        positions = None if sampler is None else sampler.positions(part)
        n_evaluated = evaluated_rows(part.n_rows, fit.n_rows)
        columns = part.X, part.targets, part.weights, report, seed, positions, n_evaluated
        yield CellRows(*columns, part.counts)


def index_cells(state: FitState) -> None:
    root = state.root
    part = root.find("partition")
    assert part is not None
    partition = read_partition(part)
    listed = all_bundles(root.store, partition.n_leaves)
    # Counts and trees are read, no models, so the spec does not matter.
    bundles = [BundleModels(root.store, a, b, SolverSpec()) for a, b in listed]
    map_held_out(state, _one_by_one(bundles))
    finished, leaf_cells = _with_cells(partition, bundles, root, listed)
    first_cells = leaf_cells[[first for first, _ in listed] + [partition.n_leaves]].tolist()
    write_index(root, *stored(finished), listed, first_cells)


def _one_by_one(bundles: list[BundleModels]) -> Iterator[BundleModels]:
    """Yield bundles and close each after use: together they may be larger than memory."""
    for bundle in bundles:
        yield bundle
        bundle.close()


def _with_cells(
    partition: Partition, bundles: list[BundleModels], root: Root, listed: list[tuple[int, int]]
) -> tuple[Partition, Int64]:
    """Return the finished partition, and the first cell of each leaf, with the total at the end.

    The trees inside leaves become part of the partition, unless together they exceed
    `INDEX_NBYTES`: then they stay in the bundles.
    """
    n_features, n_nodes = width_of(root), 0
    # Chunks have no cuts, so there is nothing to bound.
    most = INDEX_NBYTES // (n_features * F8) if isinstance(partition, Space) else sys.maxsize
    branches: list[Tree] = []
    counts: list[Int64] = []
    for bundle in _one_by_one(bundles):
        counts.append(_count_leaves(bundle))
        n_nodes += bundle.count_cells() - len(counts[-1])
        if n_nodes <= most:
            branches.extend(_branches(bundle, n_features))
        else:
            branches.clear()
    leaf_cells = np.cumsum(np.concatenate([[0], *counts]))
    if n_nodes <= most:
        return partition.join(branches), leaf_cells
    assert isinstance(partition, Space)
    trees = StoredTrees(root.store, tuple(listed), leaf_cells, partition.center)
    return Nested(partition, trees), leaf_cells


def _count_leaves(bundle: BundleModels) -> Int64:
    n_leaves = bundle.last_leaf - bundle.first_leaf + 1
    n_nodes: Int64 = bundle.part.read(BRANCH_SIZES, shape=(n_leaves,), kind="i")
    check_counts(bundle.part.where(), BRANCH_SIZES, n_nodes, bundle.count_cells() - n_leaves)
    return n_nodes + 1


def _branches(bundle: BundleModels, n_features: int) -> tuple[Tree, ...]:
    """Return the trees inside a bundle's leaves; with center 0, as the partition knows theirs."""
    n_leaves = bundle.last_leaf - bundle.first_leaf + 1
    n_nodes = bundle.count_cells() - n_leaves
    return read_trees(bundle.part, np.zeros(n_features), BRANCH_SIZES, n_leaves, n_nodes)
