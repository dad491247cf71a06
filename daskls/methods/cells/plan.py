"""Memory of the tasks that train cells or chunks."""

import math
from dataclasses import replace

from daskls.errors import MemoryPlanError
from daskls.memory import TaskSizes
from daskls.plan import Extent, Resources, check_block, group_nbytes, mib, plan_sample
from daskls.records import F4, MIB
from daskls.solvers.registry import find_loss

__all__ = ["check_cells", "check_chunks"]


def check_cells(extent: Extent, resources: Resources) -> None:
    """Refuse, before any training, tasks that would not fit in memory.

    Raises
    ------
    MemoryPlanError : when a block, or the largest leaf with its largest cell, needs more than a
        task may use. The message names the parameter to change.
    """
    check_block(extent, resources)
    sizes, leaf_rows = extent.sizes, extent.leaf_rows
    leaf = group_nbytes(sizes, leaf_rows)
    if leaf > resources.task_nbytes:
        raise MemoryPlanError(
            f"The largest cell group ({leaf_rows} rows {extent.at}, cells of up to "
            f"{sizes.cell_size}) needs {mib(leaf)} but a task may use "
            f"{mib(resources.task_nbytes)}; {_remedy(extent, resources)}"
            f"{_cache_remedy(sizes, leaf_rows, resources)}{resources.more}"
        )


def _remedy(extent: Extent, resources: Resources) -> str:
    """Name the largest cell_size, by halving, whose groups would fit.

    Of very many rows a leaf is as large as that of the smallest cells: then only memory helps.
    """
    sizes, n_rows = extent.sizes, extent.n_rows
    d = sizes.n_features
    # A leaf may hold more than planned: count on as much more of a smaller one.
    overshoot = extent.leaf_rows / plan_sample(n_rows, d, sizes.cell_size).largest_rows
    cell_size = sizes.cell_size
    while cell_size > 3:
        cell_size //= 2
        smaller = replace(sizes, cell_size=cell_size)
        rows = math.ceil(overshoot * plan_sample(n_rows, d, cell_size).largest_rows)
        if group_nbytes(smaller, rows) <= resources.task_nbytes:
            return f"lower cell_size to about {cell_size}, or "
    return ""


def _cache_remedy(sizes: TaskSizes, leaf_rows: int, resources: Resources) -> str:
    """Name the largest cache_size, a share of K, whose groups would fit; nothing if none does."""
    spec, K = sizes.spec, min(leaf_rows, sizes.cell_size) ** 2 * F4 / MIB
    if not find_loss(spec).caches_rows or spec.fit_intercept:
        return ""
    for share in (1, 2, 4, 8, 16, 32):
        cache = round(K / share, 1)
        if cache <= 0 or (spec.cache_size is not None and cache >= spec.cache_size):
            continue
        smaller = replace(sizes, spec=replace(spec, cache_size=cache))
        if group_nbytes(smaller, leaf_rows) <= resources.task_nbytes:
            return f"give cache_size={cache:g}, or "
    return ""


def check_chunks(extent: Extent, resources: Resources) -> None:
    """Refuse, before any training, chunks that would not fit in the memory of a task.

    The rows of the largest leaf do not matter: the chunks' sizes are known beforehand.

    Raises
    ------
    MemoryPlanError : when a block or a chunk needs more than a task may use
    """
    check_block(extent, resources)
    sizes = extent.sizes
    size = min(sizes.cell_size, extent.n_rows)
    needed = group_nbytes(sizes, size)
    if needed > resources.task_nbytes:
        fitting = size
        while fitting > 2 and group_nbytes(sizes, fitting) > resources.task_nbytes:
            fitting //= 2
        raise MemoryPlanError(
            f"A chunk of {size} rows x {sizes.n_features} features needs {mib(needed)} but "
            f"a task may use {mib(resources.task_nbytes)}; lower chunk_size to about "
            f"{fitting}, or {_cache_remedy(sizes, size, resources)}{resources.more}"
        )
