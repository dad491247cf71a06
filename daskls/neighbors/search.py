"""The exact k nearest rows of queries: leaves are read nearest first, until no other can matter.

Rows of a leaf are packed in blocks, which are kept as long as the leaf is. Of equal rows only the k
of the smallest numbers are packed, as no query finds others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from daskls.errors import ParameterError
from daskls.kernels.blocks import (
    BLOCK_ROWS,
    FEATURE_STEP,
    fill_blocks,
    nearest_regions,
    offer_blocks,
    order_blocks,
    raise_bounds,
)
from daskls.kernels.copies import find_copies
from daskls.kernels.kernel import find_kernel, kernels_with
from daskls.kernels.nearest import EMPTY, offer_rows, sort_heaps
from daskls.records import (
    EPS,
    Float32,
    Float64,
    Int32,
    Int64,
    KernelSpec,
    LeafRows,
    Mask,
    Reals,
    Regions,
    RowNumbers,
    SolverSpec,
)

# Queries that are searched together: each leaf is read once for all of them.
TILE_QUERIES = 512
# Rows whose products with a tile of queries are held at once.
PRODUCT_ROWS = 1024
# Queries whose products with the centers of leaves are held at once.
ORDERED_ROWS = 1024
# The number of blocks is padded to a multiple of this: one AVX-512 vector of float32.
BLOCK_STEP = 16
# The metric of every kernel that orders neighbors as the Euclidean distance does.
EUCLIDEAN = KernelSpec()


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest rows of each query, by (squared distance, row number), in the metric."""

    distances: Float64
    numbers: RowNumbers
    positions: Int64
    n_leaves_read: Int64

    def take(self, queries: Int64) -> "Neighbors":
        return Neighbors(
            self.distances[queries],
            self.numbers[queries],
            self.positions[queries],
            self.n_leaves_read[queries],
        )

    def others(self, numbers: RowNumbers) -> Mask:
        """Return which neighbors are not the query itself, (q, k): all but one of each query."""
        is_other: Mask = self.numbers != numbers[:, None]
        # Where more rows are equal than there are neighbors, a row may be missing from its own
        # list: then the last one is left out.
        is_other[is_other.all(axis=1), -1] = False
        return is_other


def find_nearest(
    queries: Reals,
    n_neighbors: int,
    leaves: Regions,
    read_leaf: Callable[[int], LeafRows],
    metric: KernelSpec = EUCLIDEAN,
) -> Neighbors:
    """Return the exact nearest rows of each query among all leaves, whatever these are.

    Leaves near any of the queries are read, nearest first; where the metric does not order
    neighbors as the Euclidean distance does, there is no bound, and all leaves are read. Cost: a
    bound per query and leaf; a bound per block of rows of each leaf that is not excluded; the
    distances to all rows of each block that is not excluded.
    """
    copies = find_copies(queries) if len(queries) > 1 else None
    if copies is not None:
        first, of_query = copies
        neighbors = find_nearest(queries[first], n_neighbors, leaves, read_leaf, metric)
        return neighbors.take(of_query)
    is_euclidean = find_kernel(metric.name).is_euclidean
    tile: Callable[..., Tile] = Tile if is_euclidean else partial(_PolynomialTile, kernel=metric)
    parts = [
        tile(queries[start : start + TILE_QUERIES], n_neighbors).search(leaves, read_leaf)
        for start in range(0, len(queries), TILE_QUERIES)
    ]
    if not parts:
        parts = [Tile(queries, n_neighbors).result()]
    return Neighbors(
        np.concatenate([part.distances for part in parts]),
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.n_leaves_read for part in parts]),
    )


def metric_of(spec: SolverSpec) -> KernelSpec:
    """Return the kernel in whose feature space neighbors are searched.

    Kernels of distances, whatever their width, and the linear kernel order neighbors as the
    Euclidean distance does. ParameterError where neighbors cannot be searched.
    """
    kernel = find_kernel(spec.kernel)
    if not (kernel.is_euclidean or kernel.is_power):
        # Of the kernels in whose space neighbors can be searched, those that the methods take.
        known = ", ".join(kernels_with("is_everywhere"))
        raise ParameterError(
            f"kernel={spec.kernel!r}, {kernel.formula}: neighbors cannot be searched in its "
            f"feature space. Pass one of {known}."
        )
    if spec.gamma is None or kernel.is_euclidean:
        return EUCLIDEAN
    return KernelSpec(spec.kernel, spec.gamma[0], spec.degree, spec.coef0)


def order_by_leaf(X: Reals, regions: Regions) -> Int64:
    """Return an order of queries that puts those near the same leaf next to each other."""
    nearest = np.empty(len(X), np.int64)
    norms = np.einsum("ij,ij->i", regions.centers, regions.centers) / 2
    for start in range(0, len(X), ORDERED_ROWS):
        part = X[start : start + ORDERED_ROWS].astype(np.float64)
        nearest[start : start + ORDERED_ROWS] = (part @ regions.centers.T - norms).argmax(axis=1)
    return np.argsort(nearest, kind="stable")


class Tile:
    """Some queries and the heaps of their nearest rows so far, by Euclidean distances."""

    def __init__(self, queries: Reals, n_neighbors: int) -> None:
        self.exact = np.ascontiguousarray(queries, dtype=np.float64)
        shape = len(queries), n_neighbors
        self.keys = np.full(shape, np.inf)
        self.numbers = np.full(shape, EMPTY)
        self.positions = np.full(shape, -1)
        self.n_read = np.zeros(len(queries), np.int64)

    def search(self, leaves: Regions, read_leaf: Callable[[int], LeafRows]) -> Neighbors:
        bounds, home = self._bounds(leaves)
        filled = np.isfinite(leaves.r_max)
        if filled.any():
            # Start where most queries are: no bound excludes a leaf before the heaps are filled.
            first = int(np.bincount(home, filled[home], len(filled)).argmax())
            self._read(read_leaf(first), np.arange(len(home)))
            filled[first] = False
            self._tighten(leaves, bounds)
        # The order changes only the time.
        order = np.lexsort((self._center_distances(leaves), bounds.min(axis=0, initial=np.inf)))
        wanted = (bounds <= self.keys[:, :1]).any(axis=0) & filled
        for leaf in order[wanted[order]].tolist():
            active = np.flatnonzero(bounds[:, leaf] <= self.keys[:, 0])
            if len(active):
                self._read(read_leaf(leaf), active)
        return self.result()

    def result(self) -> Neighbors:
        return Neighbors(*sort_heaps(self.keys, self.numbers, self.positions), self.n_read)

    def _bounds(self, regions: Regions) -> tuple[Float64, Int64]:
        """Return bounds on the squared distances to each region's rows, and the nearest region."""
        bounds = np.empty((len(self.exact), len(regions.r_max)))
        home = np.empty(len(self.exact), np.int64)
        centers = np.ascontiguousarray(regions.centers.T)
        radii, box = (regions.r_min, regions.r_max), (regions.low, regions.high)
        nearest_regions(self.exact, centers, *radii, *box, bounds, home)
        return bounds, home

    def _tighten(self, regions: Regions, bounds: Float64) -> None:
        """Raise the bounds that do not exclude a region by the nearest rows found so far."""
        raise_bounds(self.exact, regions.low, regions.high, self.keys[:, 0], bounds)

    def _center_distances(self, regions: Regions) -> Float64:
        steps = regions.centers - self.exact.mean(axis=0)
        distances: Float64 = np.einsum("ij,ij->i", steps, steps)
        return distances

    def _read(self, leaf: LeafRows, active: Int64) -> None:
        self.n_read[active] += 1
        if len(leaf.X):
            self._offer(leaf, active)

    def _offer(self, leaf: LeafRows, active: Int64) -> None:
        heaps = self.keys, self.numbers, self.positions
        blocks = packed(leaf, self.keys.shape[1])
        offer_blocks(self.exact, active, blocks, leaf.X, leaf.numbers, leaf.positions, heaps)


class _PolynomialTile(Tile):
    """The same by distances in a polynomial kernel's feature space, for which there is no bound."""

    def __init__(self, queries: Reals, n_neighbors: int, kernel: KernelSpec) -> None:
        super().__init__(queries, n_neighbors)
        self.kernel = kernel

    def _bounds(self, regions: Regions) -> tuple[Float64, Int64]:
        bounds, home = super()._bounds(regions)
        return np.where(np.isfinite(regions.r_max), 0.0, bounds), home

    def _tighten(self, regions: Regions, bounds: Float64) -> None:
        """Leave the bounds as they are."""

    def _offer(self, leaf: LeafRows, active: Int64) -> None:
        kernel = self.kernel.degree, self.kernel.gamma, self.kernel.coef0
        heaps = self.keys, self.numbers, self.positions, active
        queries, rows = self.exact[active], _within_reach(leaf, self.keys.shape[1])
        for start in range(0, len(rows), PRODUCT_ROWS):
            tile = rows[start : start + PRODUCT_ROWS]
            X, numbers, positions = leaf.X[tile], leaf.numbers[tile], leaf.positions[tile]
            offer_rows(
                queries, *self._approximate(X, queries), X, numbers, positions, kernel, heaps
            )

    def _approximate(self, X: Reals, Q: Float64) -> tuple[Float64, Float64]:
        """Return squared distances by one GEMM, (q, m), and the largest error of each query's."""
        kernel = self.kernel
        A = X.astype(np.float64, copy=False)

        def value(inner: Float64) -> Float64:
            powers: Float64 = (kernel.gamma * inner + kernel.coef0) ** kernel.degree
            return powers

        norms, query_norms = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", Q, Q)
        distances = value(Q @ A.T)
        distances *= -2.0
        distances += value(norms)
        distances += value(query_norms)[:, None]
        largest = kernel.gamma * np.maximum(norms.max(), query_norms) + abs(kernel.coef0)
        d = A.shape[1]
        return distances, 32 * (d + 8) * kernel.degree * EPS * largest**kernel.degree


# Blocks, their bounds and radii, the order of rows, center, scale and longest: see `fill_blocks`.
Packed = tuple[Float32, Float32, Float64, Int64, Float64, float, float]
_packed: "WeakKeyDictionary[LeafRows, Packed]" = WeakKeyDictionary()
_ranks: "WeakKeyDictionary[LeafRows, Int32 | None]" = WeakKeyDictionary()


def packed(leaf: LeafRows, n_neighbors: int) -> Packed:
    """Return the blocks of a leaf that has rows, for lists of k; cached as long as the leaf lives.

    Two numbers of neighbors share them, unless one row repeats more often than the smaller one.
    """
    rows = _within_reach(leaf, n_neighbors)
    blocks = _packed.get(leaf)
    if blocks is None or len(blocks[3]) != len(rows):
        # Two threads may both pack a leaf: their results are equal.
        blocks = _packed[leaf] = pack_blocks(leaf.X, rows)
    return blocks


def _within_reach(leaf: LeafRows, n_neighbors: int) -> Int64:
    """Return the rows that may be among the k nearest: of equal ones k, of the smallest numbers."""
    if len(leaf.X) <= n_neighbors:
        return np.arange(len(leaf.X))
    if leaf not in _ranks:
        _ranks[leaf] = _rank_copies(leaf)
    ranks = _ranks[leaf]
    return np.arange(len(leaf.X)) if ranks is None else np.flatnonzero(ranks < n_neighbors)


def _rank_copies(leaf: LeafRows) -> Int32 | None:
    """Return how many equal rows of smaller numbers each row has; None where no row repeats."""
    copies = _by_copies(leaf)
    if copies is None:
        return None
    order, begins = copies
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order)) - begins
    return ranks


def _by_copies(leaf: LeafRows) -> tuple[Int64, Int64] | None:
    """Return the rows, equal ones side by side by number, and where those of each row begin."""
    copies = find_copies(leaf.X)
    if copies is None:
        return None
    _, group = copies
    order = np.lexsort((leaf.numbers, group))
    begins: Int64 = np.searchsorted(group[order], group[order])
    return order, begins


def rows_beyond(leaf: LeafRows, n_neighbors: int) -> tuple[Int64, Int64]:
    """Return the rows that k equal ones keep out of every list, and the first of these."""
    copies = _by_copies(leaf)
    if copies is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order, begins = copies
    beyond = np.flatnonzero(np.arange(len(order)) - begins >= n_neighbors)
    return leaf.positions[order[beyond]], leaf.positions[order[begins[beyond]]]


def pack_blocks(X: Reals, order: Int64) -> Packed:
    """Return rows in blocks as `offer_blocks` takes them; reorders ``order``, the rows to pack."""
    m, d = len(order), X.shape[1]
    n_blocks, n_features = -(-m // BLOCK_ROWS), _padded(d, FEATURE_STEP)
    order_blocks(X, order)
    center = X.mean(axis=0, dtype=np.float64)
    scale = unit_scale(
        max(np.abs(X.min(axis=0) - center).max(), np.abs(X.max(axis=0) - center).max())
    )
    blocks = np.zeros((n_blocks, n_features, BLOCK_ROWS), np.float32)
    bounds = np.zeros((3, n_features, _padded(n_blocks, BLOCK_STEP)), np.float32)
    r_max = np.zeros(bounds.shape[2])
    longest = fill_blocks(X, order, center, scale, blocks, bounds, r_max)
    return blocks, bounds, r_max, order, center, scale, longest


def unit_scale(extent: float) -> float:
    """Return the power of two that scales an extent to between 1/2 and 1.

    >>> unit_scale(5.0), unit_scale(0.0)
    (0.125, 1.0)
    """
    exponent = math.frexp(extent)[1]
    return math.ldexp(1.0, min(max(-exponent, -1000), 1000))


def _padded(n: int, step: int) -> int:
    return -(-n // step) * step
