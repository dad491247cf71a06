"""Rows in memory as a leaf that searches can read."""

import numpy as np

from daskls.neighbors.regions import measure_regions
from daskls.partition.tree import route_rows
from daskls.records import Int64, LeafRows, Reals, Regions, RowNumbers

__all__ = ["SEARCH_REGION_ROWS", "one_leaf"]

# Rows of a region in which queries look for their nearest center.
CENTER_REGION_ROWS = 256
# Rows of a region that searches for neighbors look at: few enough that a query's nearest row costs
# little, many enough that a product with them is one of matrices.
SEARCH_REGION_ROWS = 1024


def one_leaf(X: Reals, numbers: RowNumbers) -> tuple[LeafRows, Regions, Int64]:
    """Return rows as a leaf that searches can read, its region, and which row each of it is."""
    # Here, so that a process which only predicts never loads the trainers.
    from daskls.partition.grow import grow_tree

    tree = grow_tree(X, CENTER_REGION_ROWS, X.mean(axis=0, dtype=np.float64))
    of_region = route_rows(tree, X)
    order = np.argsort(of_region, kind="stable")
    ptr = np.r_[0, np.cumsum(np.bincount(of_region, minlength=tree.n_leaves))]
    rows = np.ascontiguousarray(X[order])
    leaf = LeafRows(
        rows,
        numbers[order],
        ptr,
        measure_regions(rows, ptr),
        0,
    )
    return leaf, measure_regions(rows, np.array([0, len(rows)])), order
