"""The centers that predict each query: that of its nearest row, or its nearest ones."""

import numpy as np

from daskls.methods.leaves import one_leaf
from daskls.methods.neighborhoods.parts import center_rows, open_centers
from daskls.neighbors.search import find_nearest, home_order, metric_of
from daskls.records import Int64, LeafRows, Reals, Regions
from daskls.store.caches import kept
from daskls.store.leaves import open_leaves
from daskls.store.reader import ModelReader

__all__ = ["find_owners", "nearest_centers"]


def find_owners(reader: ModelReader, X: Reals) -> Int64:
    """Return the center of each query's nearest training row (equation 15)."""
    leaves = open_leaves(reader.root.where(), reader.fingerprint)
    centers = _centers_of(reader)
    order = home_order(X, leaves.regions)
    found = find_nearest(X[order], 1, leaves.regions, leaves.read_leaf, metric_of(reader.spec))
    positions = np.empty(len(X), np.int64)
    positions[order] = found.positions[:, 0]
    cells = np.empty(len(X), np.int64)
    of_leaf = leaves.leaf_of(positions)
    for leaf in np.unique(of_leaf).tolist():
        own = of_leaf == leaf
        start, stop = leaves.first_positions[[leaf, leaf + 1]]
        cells[own] = centers.owners(int(start), int(stop))[positions[own] - start]
    return cells


def nearest_centers(reader: ModelReader, X: Reals, n_centers: int) -> Int64:
    """Return each query's nearest centers, (m, n_centers); ties to the smaller row number."""
    leaf, region, number = _centers_leaf(reader)
    order = home_order(X, leaf.regions)
    found = find_nearest(X[order], n_centers, region, lambda _: leaf, metric_of(reader.spec))
    cells = np.empty((len(X), n_centers), np.int64)
    cells[order] = number[found.positions]
    return cells


# A model's centers, kept open with it.
_centers_of = kept(maxsize=8)(open_centers)


@kept(maxsize=8)
def _centers_leaf(reader: ModelReader) -> tuple[LeafRows, Regions, Int64]:
    """Return the centers as a leaf that searches can read, and which center each row of it is."""
    return one_leaf(*center_rows(reader))
