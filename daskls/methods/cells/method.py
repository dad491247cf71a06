"""The methods on Voronoi cells and on random chunks, and the memory check of their tasks."""

import math
from dataclasses import dataclass, replace
from typing import Any

from daskls.errors import MemoryPlanError
from daskls.memory import TaskSizes
from daskls.methods.scores import mean_of_all, mean_of_partitions
from daskls.partition.base import Partition
from daskls.partition.stored import read_partition
from daskls.plan.bundles import Resources, SamplePlan, group_nbytes, plan_sample
from daskls.plan.checks import check_block, excess
from daskls.plan.fit import FitCost
from daskls.records import F4, MIB, Float64, Reals
from daskls.run.contract import FitState, Method, RegroupedRows
from daskls.solvers.registry import find_loss, find_solver
from daskls.store.contents import BRANCH_ARRAYS, TREE_ARRAYS, StorePart
from daskls.store.layout import Root
from daskls.store.models import finished_bundles
from daskls.store.reader import ModelReader

CELL_PARTS = (
    StorePart("index", "methods/cells", f"{TREE_ARRAYS}; leaf_cells int64 leaves + 1"),
    StorePart(
        "bundles/*",
        "methods/cells",
        f"branch_nodes int64 leaves; {BRANCH_ARRAYS}; errors float32 cells, combinations",
    ),
)


@dataclass(frozen=True)
class CellMethod(Method):
    """Thomann et al.: an SVM for each Voronoi cell, of one partition or several."""

    name = ""
    is_local = True
    knows_held_out = True
    has_grids = True

    @classmethod
    def parts(cls) -> tuple[StorePart, ...]:
        return CELL_PARTS

    def to_json(self) -> dict[str, Any]:
        """Stores of this method, the oldest, hold no name."""
        return {}

    def check(self, sizes: TaskSizes, resources: Resources) -> None:
        check_cells(sizes, resources)

    def cut(self, state: FitState) -> Partition:
        merges = find_solver(state.request.spec).merges_targets
        return super().cut(replace(state, sample=state.sample.merged(whatever_target=merges)))

    def is_trained(self, root: Root) -> bool:
        from daskls.methods.cells.fit import has_cells

        return has_cells(root)

    def train(self, state: FitState, regrouped: RegroupedRows | None) -> None:
        from daskls.methods.cells.fit import fit_cells, index_cells

        if regrouped is not None:
            fit_cells(state, regrouped)
        index_cells(state)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        leaves = self.space(reader).find(X)
        return mean_of_all(reader, X) if leaves is None else mean_of_partitions(reader, X, leaves)

    def check_index(self, reader: ModelReader) -> None:
        self.space(reader)

    def progress(self, root: Root) -> str:
        part = root.find("partition")
        if part is None:
            return "space is not cut yet"
        done = sum(last - first + 1 for first, last in finished_bundles(root.store))
        return f"{done} of {read_partition(part).n_leaves} groups of cells are trained"


@dataclass(frozen=True)
class RandomChunks(CellMethod):
    """The paper's baseline: random chunks of rows, whose mean predicts."""

    name = "chunks"
    is_local = False
    # All chunks predict a query, but a row is held out of its own chunk only.
    knows_held_out = False

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name}

    def check(self, sizes: TaskSizes, resources: Resources) -> None:
        check_chunks(sizes, resources)

    def cut(self, state: FitState) -> Partition:
        from daskls.partition.shuffle import Chunks

        n_rows = state.scan.n_kept
        return Chunks(n_rows, -(-n_rows // state.request.cell_size), state.seed)

    def expected_leaves(self, n_rows: int, sampling: SamplePlan, cell_size: int) -> int:
        return -(-n_rows // cell_size)

    def expected(
        self, sizes: TaskSizes, n_leaves: int, n_partitions: int, resources: Resources
    ) -> FitCost:
        expected = super().expected(sizes, n_leaves, n_partitions, resources)
        return replace(expected, n_models=n_leaves)


def check_cells(sizes: TaskSizes, resources: Resources) -> None:
    check_block(sizes, resources)
    leaf_rows = sizes.leaf_rows
    leaf = group_nbytes(sizes, leaf_rows, sizes.n_rows)
    if leaf > resources.task_nbytes:
        raise MemoryPlanError(
            f"The largest cell group ({leaf_rows} rows {sizes.at}, cells of up to "
            f"{sizes.cell_size}) needs "
            f"{excess(leaf, resources.task_nbytes)}; {_remedy(sizes, resources)}"
            f"{_cache_remedy(sizes, leaf_rows, resources)}{resources.more}"
        )


def _remedy(sizes: TaskSizes, resources: Resources) -> str:
    """Return advice to lower cell_size, by halving, if that makes leaves small enough."""
    n_rows = sizes.n_rows
    d = sizes.n_features
    # A leaf may hold more rows than planned: assume the same excess for smaller cells.
    overshoot = sizes.leaf_rows / plan_sample(n_rows, d, sizes.cell_size).largest_rows
    cell_size = sizes.cell_size
    while cell_size > 3:
        cell_size //= 2
        smaller = replace(sizes, cell_size=cell_size)
        rows = math.ceil(overshoot * plan_sample(n_rows, d, cell_size).largest_rows)
        if group_nbytes(smaller, rows, n_rows) <= resources.task_nbytes:
            return f"lower cell_size to about {cell_size}, or "
    return ""


def check_chunks(sizes: TaskSizes, resources: Resources) -> None:
    """The largest leaf does not matter, as the sizes of chunks are known beforehand."""
    check_block(sizes, resources)
    size = min(sizes.cell_size, sizes.n_rows)
    needed = group_nbytes(sizes, size, sizes.n_rows)
    if needed > resources.task_nbytes:
        fitting = size
        while fitting > 2 and group_nbytes(sizes, fitting, sizes.n_rows) > resources.task_nbytes:
            fitting //= 2
        raise MemoryPlanError(
            f"A chunk of {size} rows x {sizes.n_features} features needs "
            f"{excess(needed, resources.task_nbytes)}; lower chunk_size to about "
            f"{fitting}, or {_cache_remedy(sizes, size, resources)}{resources.more}"
        )


def _cache_remedy(sizes: TaskSizes, leaf_rows: int, resources: Resources) -> str:
    """Return advice to give the largest cache_size, a share of K, whose groups fit; else ""."""
    spec = sizes.spec
    K = min(leaf_rows, sizes.cell_size) ** 2 * F4 / MIB
    if not find_loss(spec).caches_rows or spec.fit_intercept:
        return ""
    for share in (1, 2, 4, 8, 16, 32):
        cache = round(K / share, 1)
        if cache <= 0 or (spec.cache_size is not None and cache >= spec.cache_size):
            continue
        smaller = replace(sizes, spec=replace(spec, cache_size=cache))
        if group_nbytes(smaller, leaf_rows, sizes.n_rows) <= resources.task_nbytes:
            return f"give cache_size={cache:g}, or "
    return ""
