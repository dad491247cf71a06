"""The method of a store, by the description that it keeps.

Rows in memory as a leaf that searches can read.
"""

from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.neighbors.balls import measure_regions
from daskls.partition.tree import route_rows
from daskls.records import Int64, LeafRows, Reals, Regions, RowNumbers
from daskls.registry import METHODS, find_entry, load_object
from daskls.run.contract import Method
from daskls.store.files import malformed_is_damage


def method_of(values: dict[str, Any], where: str = "The model") -> Method:
    """Return the method that a store describes.

    Parameters
    ----------
    values : dict. What `Method.to_json` gave.
    where : str. Names the model in an error.

    Raises
    ------
    StoreError : no method of that name, or none with such values
    """
    name = str(values.get("name", ""))
    entry = find_entry(name)
    if entry is None:
        known = ", ".join(repr(entry.name) for entry in METHODS)
        raise StoreError(
            f"{where} was made by the method {name!r}, which this daskls does not know; it knows "
            f"{known}. Upgrade daskls."
        )
    with malformed_is_damage(where):
        method: Method = load_object(entry.method).from_json(values)
    return method


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
