"""Leaves in memory, grown and sorted as a fit does, and the search by looking at every row."""

import numpy as np

from daskls.neighbors.balls import measure_regions
from daskls.neighbors.search import find_nearest
from daskls.partition.grow import grow_tree
from daskls.partition.tree import route_rows
from daskls.records import LeafRows, Regions

FIRST_NUMBER = 2**40


class Leaves:
    """Rows regrouped by leaf and by region, and a log of the leaves that were read.

    Row i of X has the number ``numbers[i]``; they are neither in order nor small. With ``drawn``,
    leaves and regions are drawn, wherever their rows are: equal rows then lie apart.
    """

    def __init__(self, X, n_leaves, *, region_rows=8, n_empty=0, seed=0, drawn=False):
        self.X = X
        self.rng = np.random.default_rng(seed)
        self.numbers = FIRST_NUMBER + self.rng.permutation(len(X))
        self.center = X.mean(axis=0, dtype=np.float64)
        self.drawn = drawn
        of_leaf, n_leaves = self._part(X, -(-len(X) // n_leaves))
        groups = [np.flatnonzero(of_leaf == leaf) for leaf in range(n_leaves)]
        for i in range(n_empty):
            groups.insert(2 * i, np.empty(0, int))
        self.leaves, self.by_position = [], np.empty(0, np.int64)
        for own in groups:
            rows = own[np.argsort(self.numbers[own])]
            self.leaves.append(self._leaf(rows, region_rows))
            self.by_position = np.r_[self.by_position, self.leaves[-1].numbers]
        self.regions = join_regions([leaf.X for leaf in self.leaves])
        self.read = []

    def _part(self, X, max_rows):
        if self.drawn:
            n_parts = -(-len(X) // max_rows)
            return self.rng.integers(0, n_parts, len(X)), n_parts
        tree = grow_tree(X, max_rows, self.center)
        return route_rows(tree, X), tree.n_leaves

    def _leaf(self, rows, region_rows):
        of_region, n_regions = self._part(self.X[rows], region_rows)
        rows = rows[np.argsort(of_region, kind="stable")]
        X = np.ascontiguousarray(self.X[rows])
        ptr = np.r_[0, np.cumsum(np.bincount(of_region, minlength=n_regions))]
        place = len(self.by_position)
        return LeafRows(X, self.numbers[rows], ptr, measure_regions(X, ptr), place)

    def read_leaf(self, leaf):
        self.read.append(leaf)
        return self.leaves[leaf]

    def search(self, queries, k, *metric):
        self.read = []
        return find_nearest(queries, k, self.regions, self.read_leaf, *metric)


def join_regions(parts):
    own = [measure_regions(X, np.array([0, len(X)])) for X in parts]
    names = ("centers", "r_min", "r_max", "low", "high")
    return Regions(*(np.concatenate([getattr(region, name) for region in own]) for name in names))


def squared_distances(queries, X):
    total = np.zeros((len(queries), len(X)))
    for a, b in zip(queries.T.astype(np.float64), X.T.astype(np.float64), strict=True):
        total += (a[:, None] - b) ** 2
    return total


def inner_products(A, B):
    total = np.zeros((len(A), len(B)))
    for a, b in zip(A.T.astype(np.float64), B.T.astype(np.float64), strict=True):
        total += a[:, None] * b
    return total


def polynomial_distances(queries, X, kernel):
    """Return k(q, q) + k(x, x) - 2 k(q, x), powers by repeated products, and no less than 0."""

    def value(products):
        base, power = kernel.gamma * products + kernel.coef0, 1.0
        for _ in range(kernel.degree):
            power = power * base
        return power

    own = np.array([inner_products(q[None], q[None])[0, 0] for q in queries])
    norms = np.array([inner_products(x[None], x[None])[0, 0] for x in X])
    cross = value(inner_products(queries, X))
    return np.maximum(value(own)[:, None] + value(norms) - 2.0 * cross, 0.0)


def sort_rows(distances, numbers, k):
    """Return the k smallest distances of each query and their numbers, by (distance, number)."""
    order = np.stack([np.lexsort((numbers, row)) for row in distances])[:, :k]
    return np.take_along_axis(distances, order, axis=1), numbers[order]


def check_search(leaves, queries, k, distances, *metric):
    """Rows, order, distances and positions of a search are those of all distances, sorted."""
    found = leaves.search(queries, k, *metric)
    expected, numbers = sort_rows(distances, leaves.numbers, k)
    np.testing.assert_array_equal(found.numbers, numbers)
    np.testing.assert_array_equal(found.distances, expected)
    np.testing.assert_array_equal(leaves.by_position[found.positions], numbers)
    return found
