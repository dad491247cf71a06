"""The exact k nearest rows of queries, leaf by leaf, nearest first, until no other can matter."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from daskls.kernels.nearest import EMPTY, offer_rows, sort_heaps
from daskls.neighbors.regions import lower_bounds
from daskls.records import FloatArray, IntArray, KernelSpec, LeafRows, Regions, SolverSpec

__all__ = ["EUCLIDEAN", "Neighbors", "find_nearest", "metric_of"]

# Queries that are searched together: their distances to a cell are one GEMM.
TILE_QUERIES = 512
# The metric of every kernel whose distance grows with the Euclidean one.
EUCLIDEAN = KernelSpec("rbf")
EPS = float(np.finfo(np.float64).eps)


def metric_of(spec: SolverSpec) -> KernelSpec:
    """Return the kernel in whose feature space rows are near each other.

    The width of an RBF kernel, and a linear kernel, do not change the order of the distances.
    """
    if spec.kernel != "poly" or spec.gamma is None:
        return EUCLIDEAN
    return KernelSpec("poly", spec.gamma[0], spec.degree, spec.coef0)


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest rows of each query, by (squared distance, row number).

    Attributes
    ----------
    distances : float64 array, shape (q, k). Squared; of the metric that was asked for.
    numbers : int64 array, shape (q, k). Global row numbers.
    places : int64 array, shape (q, k). Where the rows stand in the store.
    n_leaves_read : int array, shape (q,). Leaves that the bound did not exclude.
    """

    distances: FloatArray
    numbers: IntArray
    places: IntArray
    n_leaves_read: IntArray


def find_nearest(
    queries: FloatArray,
    n_neighbors: int,
    leaves: Regions,
    read_leaf: Callable[[int], LeafRows],
    metric: KernelSpec = EUCLIDEAN,
) -> Neighbors:
    """Return the exact nearest rows of each query among all leaves.

    Parameters
    ----------
    queries : real array, shape (q, d)
    n_neighbors : int. At most the number of all rows.
    leaves : Regions, one a leaf
    read_leaf : function of a leaf's number. Called for leaves near any of the queries, nearest
        first; what it returned last is not kept.
    metric : KernelSpec. Whose feature space distances are taken in; "rbf" and "linear" order rows
        as the Euclidean distance does. For "poly" there is no bound: all leaves are read.

    Returns
    -------
    neighbors : Neighbors. The same whatever the leaves and their cells are.

    Notes
    -----
    Cost: one GEMM and one pass a tile of queries and a cell that the bounds do not exclude.
    """
    parts = [
        _Tile(queries[start : start + TILE_QUERIES], n_neighbors, metric).search(leaves, read_leaf)
        for start in range(0, len(queries), TILE_QUERIES)
    ]
    if not parts:
        parts = [_Tile(queries, n_neighbors, metric).result()]
    return Neighbors(
        np.concatenate([part.distances for part in parts]),
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.n_leaves_read for part in parts]),
    )


class _Tile:
    """Some queries and the heaps of their nearest rows so far."""

    def __init__(self, queries: FloatArray, n_neighbors: int, metric: KernelSpec) -> None:
        self.exact = np.ascontiguousarray(queries, dtype=np.float64)
        shape = len(queries), n_neighbors
        self.keys = np.full(shape, np.inf)
        self.numbers = np.full(shape, EMPTY)
        self.places = np.full(shape, -1)
        self.n_read = np.zeros(len(queries), np.int64)
        self.metric = metric
        self.bounded = metric.name != "poly"

    def search(self, leaves: Regions, read_leaf: Callable[[int], LeafRows]) -> Neighbors:
        """Visit the leaves, nearest first."""
        bounds = self._bounds(self.exact, leaves)
        # Nearest first for most of the queries; which order it is changes only the time.
        nearest = bounds.min(axis=0, initial=np.inf)
        typical = self._center_distances(leaves)
        for leaf in np.lexsort((typical, nearest)):
            active = np.flatnonzero(bounds[:, leaf] <= self.keys[:, 0])
            if len(active) and np.isfinite(nearest[leaf]):
                self.n_read[active] += 1
                self._visit(read_leaf(int(leaf)), active)
        return self.result()

    def result(self) -> Neighbors:
        """Return the heaps, sorted."""
        return Neighbors(*sort_heaps(self.keys, self.numbers, self.places), self.n_read)

    def _bounds(self, queries: FloatArray, regions: Regions) -> FloatArray:
        if self.bounded:
            return lower_bounds(queries, regions)
        empty = np.isinf(regions.r_max)
        return np.where(empty, np.inf, np.zeros((len(queries), 1)))

    def _center_distances(self, regions: Regions) -> FloatArray:
        """Return the squared distance of each region's center to the queries' mean."""
        steps = regions.centers - self.exact.mean(axis=0)
        distances: FloatArray = np.einsum("ij,ij->i", steps, steps)
        return distances

    def _visit(self, leaf: LeafRows, active: IntArray) -> None:
        """Offer the leaf's rows, cell by cell, each query's nearest cell first."""
        bounds = self._bounds(self.exact[active], leaf.cells)
        home = bounds.argmin(axis=1)
        cells = np.argsort(bounds.mean(axis=0), kind="stable").tolist()
        fresh = not np.isfinite(self.keys[active, 0]).all()
        if fresh:
            for cell in cells:
                self._offer(leaf, cell, active[home == cell])
        for cell in cells:
            wanted = bounds[:, cell] <= self.keys[active, 0]
            self._offer(leaf, cell, active[wanted & (home != cell) if fresh else wanted])

    def _offer(self, leaf: LeafRows, cell: int, active: IntArray) -> None:
        """Offer one cell's rows to some queries."""
        start, stop = leaf.cell_ptr[cell : cell + 2]
        if not len(active) or start == stop:
            return
        X = leaf.X[start:stop]
        approximate, slack = self._approximate(X, leaf.cells.centers[cell], active)
        offer_rows(
            self.exact[active],
            approximate,
            slack,
            X,
            leaf.numbers[start:stop],
            leaf.places[start:stop],
            self.metric.degree if not self.bounded else 0,
            self.metric.gamma,
            self.metric.coef0,
            (self.keys, self.numbers, self.places, active),
        )

    def _approximate(
        self, X: FloatArray, center: FloatArray, active: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return distances by one GEMM, and by how much each query's may be wrong."""
        if not self.bounded:
            center = np.zeros_like(center)
        A = np.subtract(X, center, dtype=np.float64)
        Q = self.exact[active] - center
        # The center's own rounding is part of the rows: their size counts, not that of the steps.
        size = np.abs(A).max() + np.abs(center).max() + np.abs(self.exact[active]).max(axis=1)
        products = Q @ A.T
        norms, own = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", Q, Q)
        d = X.shape[1]
        if self.bounded:
            products *= -2.0
            products += norms
            products += own[:, None]
            # Rounding: of d products and sums each, of vectors that are at most this long.
            length = np.sqrt(norms.max()) + np.sqrt(own)
            slack = 8 * (d + 8) * EPS * length**2 + 8 * EPS * length * size * np.sqrt(d)
            return products, slack
        return self._polynomial(products, norms, own)

    def _polynomial(
        self, products: FloatArray, norms: FloatArray, own: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Turn inner products into squared distances in the polynomial kernel's feature space."""
        kernel = self.metric

        def value(inner: FloatArray) -> FloatArray:
            powers: FloatArray = (kernel.gamma * inner + kernel.coef0) ** kernel.degree
            return powers

        distances = value(products)
        distances *= -2.0
        distances += value(norms)
        distances += value(own)[:, None]
        largest = kernel.gamma * np.maximum(norms.max(), own) + abs(kernel.coef0)
        d = self.exact.shape[1]
        return distances, 32 * (d + 8) * kernel.degree * EPS * largest**kernel.degree
