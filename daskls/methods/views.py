"""Which cells answer each query: one a partition, or the models of one or several centers."""

import numpy as np

from daskls.errors import StoreError
from daskls.neighbors.regions import measure_regions
from daskls.neighbors.search import find_nearest, metric_of
from daskls.partition.tree import route_rows
from daskls.records import FloatArray, IntArray, LeafRows, Regions
from daskls.store.caches import kept
from daskls.store.centers import Centers, read_centers
from daskls.store.layout import Root
from daskls.store.leaves import open_leaves
from daskls.store.reader import ModelReader

__all__ = ["find_views", "home_order", "one_leaf"]

# Centers of a cell in which queries look for their nearest one.
CELL_ROWS = 256
# The methods of one model, which answers everywhere.
ONE_MODEL = ("local-sampling", "cglq")


def find_views(reader: ModelReader, X: FloatArray) -> list[IntArray]:
    """Return the cells that answer: a list of int arrays (m,), whose answers are averaged.

    Parameters
    ----------
    reader : ModelReader. Of a model with cells.
    X : real array, shape (m, d)
    """
    method = reader.method
    if method.get("name") in ONE_MODEL:
        return [np.zeros(len(X), np.int64)]
    if method.get("name") != "falk":
        forest = reader.forest
        return [
            first + route_rows(tree, X)
            for tree, first in zip(forest.trees, forest.first_leaves, strict=False)
        ]
    if method["assign"] == "point":
        return [_owners(reader, X)]
    n_centers = method["n_centers"] if method["assign"] == "k_centers" else 1
    return list(_nearest_centers(reader, X, min(n_centers, reader.n_cells)).T)


def home_order(X: FloatArray, regions: Regions) -> IntArray:
    """Return queries in an order in which those near the same leaf stand together."""
    nearest = np.empty(len(X), np.int64)
    norms = np.einsum("ij,ij->i", regions.centers, regions.centers) / 2
    for start in range(0, len(X), 1024):
        part = X[start : start + 1024].astype(np.float64)
        nearest[start : start + 1024] = (part @ regions.centers.T - norms).argmax(axis=1)
    return np.argsort(nearest, kind="stable")


def _owners(reader: ModelReader, X: FloatArray) -> IntArray:
    """Return the center of each query's nearest training row (equation 15)."""
    leaves = open_leaves(str(reader.path), reader.fingerprint)
    centers = _centers_of(reader)
    order = home_order(X, leaves.regions)
    found = find_nearest(X[order], 1, leaves.regions, leaves.read_leaf, metric_of(reader.spec))
    places = np.empty(len(X), np.int64)
    places[order] = found.places[:, 0]
    cells = np.empty(len(X), np.int64)
    of_leaf = leaves.leaf_of(places)
    for leaf in np.unique(of_leaf).tolist():
        own = of_leaf == leaf
        start, stop = leaves.first_places[[leaf, leaf + 1]]
        cells[own] = centers.owners(int(start), int(stop))[places[own] - start]
    return cells


def _nearest_centers(reader: ModelReader, X: FloatArray, n_centers: int) -> IntArray:
    """Return each query's nearest centers, (m, n_centers); ties to the smaller row number."""
    leaf, region, number = _centers_leaf(reader)
    order = home_order(X, leaf.cells)
    found = find_nearest(X[order], n_centers, region, lambda _: leaf, metric_of(reader.spec))
    cells = np.empty((len(X), n_centers), np.int64)
    cells[order] = number[found.places]
    return cells


@kept(maxsize=8)
def _centers_of(reader: ModelReader) -> Centers:
    """Return a model's centers, kept open with it."""
    centers = read_centers(Root.open(reader.path))
    if centers is None:
        raise StoreError(f"The model at {reader.path} lacks its centers. Copy or train it again.")
    return centers


@kept(maxsize=8)
def _centers_leaf(reader: ModelReader) -> tuple[LeafRows, Regions, IntArray]:
    """Return the centers as a leaf that searches can read, and which center each row of it is."""
    return one_leaf(*reader.centers)


def one_leaf(X: FloatArray, numbers: IntArray) -> tuple[LeafRows, Regions, IntArray]:
    """Return rows as a leaf that searches can read, its region, and which row each of it is."""
    # Here, so that a process which only predicts never loads the trainers.
    from daskls.partition.grow import grow_tree

    tree = grow_tree(X, CELL_ROWS, X.mean(axis=0, dtype=np.float64))
    of_cell = route_rows(tree, X)
    order = np.argsort(of_cell, kind="stable")
    ptr = np.r_[0, np.cumsum(np.bincount(of_cell, minlength=tree.n_leaves))]
    rows = np.ascontiguousarray(X[order])
    leaf = LeafRows(
        rows,
        numbers[order],
        ptr,
        measure_regions(rows, ptr),
        0,
    )
    return leaf, measure_regions(rows, np.array([0, len(rows)])), order
