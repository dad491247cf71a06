"""The cells of a leaf of any kind of partition: none is larger than ``max_rows``."""

import numpy as np

from daskls.errors import MemoryPlanError
from daskls.partition.base import Partition
from daskls.partition.grow import grow_tree
from daskls.partition.tree import Tree, route_rows
from daskls.records import Float64, Int32, Reals

__all__ = ["cut_into_cells"]


def cut_into_cells(
    partition: Partition, X: Reals, leaf: int, max_rows: int, seed: int | None = None
) -> tuple[Tree, Int32]:
    """Cut all rows of a leaf into cells of at most ``max_rows`` rows; equal rows stay together.

    Parameters
    ----------
    partition, X, leaf, max_rows, seed : as of `Partition.cut_leaf`

    Returns
    -------
    tree : Tree
    cells : int32 array, shape (m,). The cell of each row.

    Raises
    ------
    MemoryPlanError : when the partition left a cell larger than that, though its rows differ
    """
    tree = partition.cut_leaf(X, leaf, max_rows, seed)
    cells = route_rows(tree, X)
    sizes = np.bincount(cells, minlength=tree.n_leaves)
    for cell in np.flatnonzero(sizes > max_rows).tolist():
        _check_whole(partition, X[cells == cell], leaf, max_rows, tree.center)
    return tree, cells


def _check_whole(partition: Partition, X: Reals, leaf: int, max_rows: int, center: Float64) -> None:
    """Refuse rows of one cell, more than it may hold, unless no cut tells them apart."""
    if grow_tree(X, max_rows, center).n_leaves > 1:
        raise MemoryPlanError(
            f"Leaf {leaf} of a partition of kind {partition.kind!r} has a cell of {len(X)} rows, "
            f"but a cell may hold {max_rows}, and the plan counts on it. Raise the size of cells "
            f"to {len(X)}, or take a partition that cuts its leaves."
        )
