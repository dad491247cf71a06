"""A graph of near rows, by PyNNDescent: built once, kept as arrays, searched query by query.

The one module that knows pynndescent, and so its private attributes: `build_graph` reads them once,
and `GraphSearch` gives the arrays to the function that pynndescent's own queries call. Importing it
takes seconds, and so it is imported where a graph is built or searched.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any

import numpy as np

from daskls.records import AnyArray, Float32, Int32, Int64

# Neighbors of each row in the graph.
DEGREE = 15
# The search goes on below this much more than the largest distance of its list.
EPSILON = 0.1
# Leaves of the tree where a search begins: from one alone, rows of another cluster are not reached.
N_STARTS = 4
# The shortest list of candidates; of a shorter one the search ends too early.
LEAST_CANDIDATES = 30


@dataclass(frozen=True, eq=False)
class Graph:
    """The graph of some rows, as arrays.

    `order` (n,) are the rows in the graph's own order, that of the search tree's leaves. Those near
    row i are edges[ptr[i]] to edges[ptr[i + 1] - 1]. Node j of the tree has a hyperplane and two
    `children`: nodes of larger numbers, or of a leaf its first row and its end, below 1. `least`
    (1,) is the smallest distance, and `state` (3,) that of the generator.
    """

    order: Int32
    ptr: Int32
    edges: Int32
    planes: Float32
    offsets: Float32
    children: Int32
    least: Float32
    state: Int64

    def arrays(self) -> dict[str, AnyArray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        """Raise ValueError for arrays that a search would leave."""
        n, n_nodes, inner = len(self.order), len(self.children), self.children[:, 0] > 0
        if not 0 < n_nodes == len(self.planes) == len(self.offsets):
            raise ValueError("its tree has not one plane a node")
        ends = -self.children[~inner]
        nodes = np.arange(n_nodes)[inner, None]
        sound = (
            np.array_equal(np.sort(self.order), np.arange(n))
            and self.ptr[0] == 0
            and self.ptr[-1] == len(self.edges)
            and (np.diff(self.ptr) >= 0).all()
            and (self.edges >= 0).all()
            and (self.edges < n).all()
            and ((self.children[inner] > nodes) & (self.children[inner] < n_nodes)).all()
            and ((ends >= 0) & (ends <= n)).all()
        )
        if not sound:
            raise ValueError("its graph names rows or nodes that there are not")


def build_graph(rows: Float32, seed: int) -> Graph:
    """Return the graph of distinct rows; one thread, and bits that depend on nothing else.

    One call at a time: numba's threads, even if it is told to use one, serve one caller.
    """
    import numba
    from pynndescent import NNDescent

    with _fork_safe_threads(numba.config):
        index = NNDescent(rows, n_neighbors=DEGREE, random_state=seed, n_jobs=1, compressed=True)
        index.prepare()
    (tree,), edges = index._search_forest, index._search_graph
    return Graph(
        np.asarray(index._vertex_order, np.int32),
        np.asarray(edges.indptr, np.int32),
        np.asarray(edges.indices, np.int32),
        np.asarray(tree.hyperplanes, np.float32),
        np.asarray(tree.offsets, np.float32),
        np.asarray(tree.children, np.int32),
        np.array([index._min_distance], np.float32),
        np.asarray(index.search_rng_state, np.int64),
    )


@contextmanager
def _fork_safe_threads(config: Any) -> Iterator[None]:
    """Let numba start threads, where it has none yet, that a forked process can do without."""
    layer, config.THREADING_LAYER = config.THREADING_LAYER, "workqueue"
    try:
        yield
    finally:
        config.THREADING_LAYER = layer


class GraphSearch:
    """Searches the graph of some rows, (n, d) float32, contiguous; threads may share it."""

    def __init__(self, graph: Graph, rows: Float32) -> None:
        from pynndescent.kernels import KERNEL_SQEUCLIDEAN
        from pynndescent.search import make_cached_search_function
        from pynndescent.utils import make_heap

        self._graph, self._make_heap = graph, make_heap
        tree = SimpleNamespace(
            hyperplanes=graph.planes,
            offsets=graph.offsets,
            children=graph.children,
            indices=np.arange(len(rows), dtype=np.int32),
        )
        self._search = make_cached_search_function(
            np.ascontiguousarray(rows[graph.order]),
            graph.ptr,
            graph.edges,
            [tree],
            tree_leaf_budget=N_STARTS,
            n_neighbors=DEGREE,
            min_distance=graph.least[0],
            normalize_query=False,
            tree_normalize_query=False,
            kernel=KERNEL_SQEUCLIDEAN,
            parallel=False,
        )
        self._ones = np.ones(1, np.float32)

    def find(self, queries: Float32, n_candidates: int) -> Int64:
        """Return rows near each query, (q, n_candidates) in no order; -1 where fewer were found.

        Each query is searched alone, with the generator as it was: its list does not depend on
        the others.
        """
        n = len(self._graph.order)
        rows = np.empty((len(queries), n_candidates), np.int64)
        for i in range(len(queries)):
            # Contiguous float32: pynndescent calls machine code made for that alone.
            query, heap = queries[i : i + 1], self._make_heap(1, n_candidates)
            visited = np.zeros(n // 8 + 1, np.uint8)
            args = query, query, self._ones, heap, n_candidates, EPSILON
            self._search(*args, visited, False, self._graph.state)
            rows[i] = heap[0][0]
        return np.where(rows >= 0, self._graph.order[rows], -1)
