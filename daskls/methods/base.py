"""Common to methods: a model's method by its stored description; rows as a searchable leaf."""

from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.neighbors.balls import measure_regions
from daskls.partition.tree import route_rows
from daskls.records import Int64, LeafRows, Reals, Regions, RowNumbers
from daskls.registry import METHODS, load_object
from daskls.run.contract import Method
from daskls.store.errors import malformed_is_damage

# Rows of a region in a search for the nearest center.
CENTER_REGION_ROWS = 256
# Rows of a region in a search for neighbors: few enough to find a query's nearest row cheaply, many
# enough that distances come from matrix products.
SEARCH_REGION_ROWS = 1024


def method_of(values: dict[str, Any], where: str = "The model") -> Method:
    """Return the method that a store describes; StoreError for an unknown one."""
    name = str(values.get("name", ""))
    entry = next((m for m in METHODS if m.name == name), None)
    if entry is None:
        known = ", ".join(repr(entry.name) for entry in METHODS)
        raise StoreError(
            f"{where} was made by the method {name!r}, which this daskls does not know; it knows "
            f"{known}. Upgrade daskls."
        )
    with malformed_is_damage(where):
        method: Method = load_object(entry.method).from_json(values)
    return method


def one_leaf(X: Reals, numbers: RowNumbers) -> tuple[LeafRows, Regions, Int64]:
    """Return rows as a leaf for searches, its region, and the index in ``X`` of each leaf row."""
    # Imported here so that a process that only predicts never loads the trainers.
    from daskls.partition.grow import grow_tree

    tree = grow_tree(X, CENTER_REGION_ROWS, X.mean(axis=0, dtype=np.float64))
    of_region = route_rows(tree, X)
    order = np.argsort(of_region, kind="stable")
    ptr = np.r_[0, np.cumsum(np.bincount(of_region, minlength=tree.n_leaves))]
    rows = np.ascontiguousarray(X[order])
    leaf = LeafRows(rows, numbers[order], ptr, measure_regions(rows, ptr), 0)
    return leaf, measure_regions(rows, np.array([0, len(rows)])), order
