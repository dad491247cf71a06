"""Approximate nearest rows of queries: each asks the groups of leaves whose centers are nearest.

A group of leaves with enough rows has a graph (`daskls/neighbors/graph.py`), which proposes
candidates; these are ranked exactly. Of a smaller group, or where the graph finds too few, all rows
are candidates. Which leaves form a group follows from their rows alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from daskls.kernels.candidates import center_distances, offer_candidates
from daskls.kernels.copies import find_copies
from daskls.neighbors.graph import LEAST_CANDIDATES, Graph, GraphSearch, build_graph
from daskls.neighbors.search import TILE_QUERIES, Neighbors, Tile, unit_scale
from daskls.records import (
    F4,
    F8,
    Float32,
    Float64,
    Int64,
    LeafRows,
    Mask,
    Reals,
    Regions,
    RowNumbers,
)

# Rows of a group, and its bytes as float32. More rows make a better list of one query, and more of
# them are held at once.
GRAPH_ROWS = 60_000
GRAPH_NBYTES = 32 << 20
# Distinct rows below which a graph does not pay.
LEAST_LINKED = 500
# A graph that is asked for more than this share of its rows visits nearly all.
MOST_VISITED = 0.25


def most_grouped(n_features: int) -> int:
    """Return the most rows of a group, unless it is one leaf."""
    return max(min(GRAPH_ROWS, GRAPH_NBYTES // (F4 * n_features)), 1)


def building_nbytes(n_rows: int, n_features: int) -> int:
    """Return the peak bytes of building a graph: copies of the rows, the graph and its updates.

    Updates are of 16,384 rows at once, at most 330 of 12 bytes each.
    """
    return n_rows * (n_features * (F8 + 3 * F4) + 1000) + min(n_rows, 1 << 14) * 330 * 12


def group_nbytes(n_rows: int, n_features: int) -> int:
    """Return the peak bytes of reading a group: its rows twice, and what the graph's search has."""
    return n_rows * (n_features * (F8 + 2 * F4) + 400)


def graph_nbytes(n_rows: int, n_features: int) -> int:
    """Return the most bytes of graphs: some ten edges a row, and a node for eight rows or more."""
    return n_rows * (15 * F4 + F4 * n_features // 8)


class GroupRows:
    """The rows of a group: as they are stored, and one of each as its graph sees them."""

    def __init__(self, leaves: list[LeafRows]) -> None:
        self.X: Reals = np.concatenate([leaf.X for leaf in leaves])
        self.numbers = np.concatenate([leaf.numbers for leaf in leaves])
        self.positions = np.concatenate([leaf.positions for leaf in leaves])
        copies = find_copies(self.X) if len(self.X) > 1 else None
        _, group = copies or (None, np.arange(len(self.X)))
        # Equal rows side by side, by number.
        self.rows: Int64 = np.lexsort((self.numbers, group))
        starts = np.flatnonzero(np.diff(group[self.rows], prepend=-1))
        self.ptr: Int64 = np.r_[starts, len(self.rows)]
        # Within the range of float32, whatever the unit.
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        self._center: Float64 = low / 2 + high.astype(np.float64) / 2
        self._scale = unit_scale(float(np.abs(high - self._center).max()))

    @property
    def n_distinct(self) -> int:
        return len(self.ptr) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, and of what searches the graph of them."""
        n, d = self.X.shape
        nbytes: int = n * (d * (self.X.itemsize + F4) + 400)
        return nbytes

    def framed(self, X: Reals) -> Float32:
        with np.errstate(over="ignore"):
            framed: Float32 = ((X - self._center) * self._scale).astype(np.float32)
        return framed

    def distinct(self) -> Float32:
        first = self.rows[self.ptr[:-1]]
        distinct = np.empty((len(first), self.X.shape[1]), np.float32)
        for start in range(0, len(first), TILE_QUERIES):
            rows = slice(start, start + TILE_QUERIES)
            distinct[rows] = self.framed(self.X[first[rows]])
        return distinct


def build(rows: GroupRows, seed: int) -> Graph | None:
    """Return the graph of a group's rows, None for fewer than `LEAST_LINKED`."""
    return build_graph(rows.distinct(), seed) if rows.n_distinct >= LEAST_LINKED else None


@dataclass(frozen=True, eq=False)
class Group:
    """The rows of some leaves with a graph."""

    rows: GroupRows
    search: GraphSearch

    def find(self, queries: Float64, n_neighbors: int) -> Int64 | None:
        """Return distinct rows near each query; None where their graph is asked for too many."""
        n = max(n_neighbors, LEAST_CANDIDATES)
        if n > MOST_VISITED * self.rows.n_distinct:
            return None
        starts = range(0, len(queries), TILE_QUERIES)
        tiles = (self.rows.framed(queries[start : start + TILE_QUERIES]) for start in starts)
        return np.concatenate([self.search.find(tile, n) for tile in tiles])


@dataclass(frozen=True, eq=False)
class Groups:
    """All rows: their leaves, and the groups (first leaf, last leaf).

    `read_group` returns a group with a graph, None for one without.
    """

    leaves: Regions
    leaf_rows: Int64
    bundles: list[tuple[int, int]]
    read_leaf: Callable[[int], LeafRows]
    read_group: Callable[[int], Group | None]


def find_approximately(
    queries: Reals, n_neighbors: int, groups: Groups, n_groups: int
) -> Neighbors:
    """Return near rows of each query, found in `n_groups` groups, or in more if these hold fewer.

    Each group is read once. The answer for a query does not depend on the others.
    """
    return _GroupTile(queries, n_neighbors).ask(groups, n_groups)


def with_own(neighbors: Neighbors, numbers: RowNumbers, positions: Int64) -> Neighbors:
    """Put queries that are rows into their own lists, unless rows as near fill these."""
    is_nearer = (neighbors.distances[:, -1] > 0.0) | (numbers < neighbors.numbers[:, -1])
    out = np.flatnonzero((neighbors.positions != positions[:, None]).all(axis=1) & is_nearer)
    neighbors.distances[out, -1] = 0.0
    neighbors.numbers[out, -1], neighbors.positions[out, -1] = numbers[out], positions[out]
    order = np.lexsort((neighbors.numbers, neighbors.distances), axis=1)
    return Neighbors(
        np.take_along_axis(neighbors.distances, order, axis=1),
        np.take_along_axis(neighbors.numbers, order, axis=1),
        np.take_along_axis(neighbors.positions, order, axis=1),
        neighbors.n_leaves_read,
    )


class _GroupTile(Tile):
    def ask(self, groups: Groups, n_groups: int) -> Neighbors:
        # The distances to all leaves are held of one tile at once.
        tiles = range(0, max(len(self.exact), 1), TILE_QUERIES)
        queries = (self.exact[start : start + TILE_QUERIES] for start in tiles)
        k = self.keys.shape[1]
        asks = np.concatenate([near_groups(tile, k, groups, n_groups) for tile in queries])
        for number in np.flatnonzero(asks.any(axis=0)).tolist():
            active = np.flatnonzero(asks[:, number])
            group = groups.read_group(number)
            rest = active if group is None else self._offer_candidates(group, active)
            first, last = groups.bundles[number]
            for leaf in range(first, last + 1) if len(rest) else ():
                self._read(groups.read_leaf(leaf), rest)
        return self.result()

    def _offer_candidates(self, group: Group, active: Int64) -> Int64:
        """Offer a group's candidates; return the queries for which it has too few."""
        candidates = group.find(self.exact[active], self.keys.shape[1])
        if candidates is None:
            return active
        whole = (candidates >= 0).all(axis=1)
        which, rows = active[whole], group.rows
        arrays = rows.X, rows.rows, rows.ptr, rows.numbers, rows.positions
        heaps = self.keys, self.numbers, self.positions
        offer_candidates(self.exact, which, candidates[whole], *arrays, heaps)
        self.n_read[which] += 1
        return active[~whole]


def near_groups(queries: Float64, n_neighbors: int, groups: Groups, n_groups: int) -> Mask:
    """Return which groups each query asks, (q, groups): the nearest, by their nearest leaf."""
    distances = center_distances(queries, groups.leaves.centers)
    distances[:, groups.leaf_rows == 0] = np.inf
    starts = [first for first, _ in groups.bundles]
    order = np.argsort(np.minimum.reduceat(distances, starts, axis=1), axis=1, kind="stable")
    held = np.add.reduceat(groups.leaf_rows, starts)[order].cumsum(axis=1)
    # So many groups hold as many rows as are wanted.
    needed = (held < n_neighbors).sum(axis=1) + 1
    asks = np.empty(order.shape, np.bool_)
    is_near = np.arange(order.shape[1]) < np.maximum(needed, n_groups)[:, None]
    np.put_along_axis(asks, order, is_near, axis=1)
    return asks
