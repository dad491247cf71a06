"""Approximate neighbors against all distances; their graphs as arrays; what they do without."""

import os
import subprocess
import sys

import numpy as np
import pytest
from searches import Leaves, squared_distances
from support import python_env

from daskls.neighbors.approximate import (
    Group,
    GroupRows,
    Groups,
    build,
    find_approximately,
    near_groups,
    with_own,
)
from daskls.neighbors.graph import Graph, GraphSearch, build_graph

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="pynndescent takes minutes uncompiled"
    ),
]

RNG = np.random.default_rng(5)
PLANE = RNG.normal(size=(3000, 3)) @ RNG.normal(size=(3, 20)) + RNG.normal(size=(3000, 20)) / 50
SETS = {
    "a plane": PLANE,
    "float32": PLANE.astype(np.float32),
    "far from the origin": PLANE + 1e9,
    "one feature": PLANE[:, :1],
    "constant features": np.hstack([PLANE[:, :1], np.ones((3000, 3))]),
    "integers": np.round(PLANE[:, :4] * 3),
    "five copies of each": np.repeat(PLANE[:600, :4], 5, axis=0),
    "one row": np.ones((3000, 2)),
}


def groups_of(leaves, size, seed=1):
    n = len(leaves.leaves)
    bundles = [(first, min(first + size, n) - 1) for first in range(0, n, size)]
    found = []
    for first, last in bundles:
        rows = GroupRows(leaves.leaves[first : last + 1])
        graph = build(rows, seed)
        found.append(graph and Group(rows, GraphSearch(graph, rows.distinct())))
    counts = np.array([len(leaf.X) for leaf in leaves.leaves])
    return Groups(leaves.regions, counts, bundles, leaves.read_leaf, found.__getitem__)


def nearest(leaves, queries, k):
    distances = squared_distances(queries, leaves.X)
    order = np.lexsort((np.broadcast_to(leaves.numbers, distances.shape), distances), axis=1)
    order = order[:, :k]
    return leaves.numbers[order], np.take_along_axis(distances, order, axis=1)


def recall(found, numbers):
    shares = [np.isin(own, near).mean() for own, near in zip(numbers, found.numbers, strict=True)]
    return np.mean(shares)


@pytest.mark.parametrize("k", [1, 10, 100])
@pytest.mark.parametrize("name", SETS)
def test_nearly_all_neighbors_are_found_and_all_distances_are_exact(name, k):
    leaves = Leaves(SETS[name], 12)
    queries = SETS[name][::30]
    found = find_approximately(queries, k, groups_of(leaves, 5), 3)
    numbers, _ = nearest(leaves, queries, k)
    assert recall(found, numbers) > 0.98
    np.testing.assert_array_equal(found.numbers, leaves.by_position[found.positions])
    everyone = squared_distances(queries, leaves.X)
    place = np.argsort(leaves.numbers)[np.searchsorted(np.sort(leaves.numbers), found.numbers)]
    np.testing.assert_array_equal(found.distances, np.take_along_axis(everyone, place, axis=1))
    ordered = np.lexsort((found.numbers, found.distances), axis=1)
    np.testing.assert_array_equal(ordered, np.broadcast_to(np.arange(k), ordered.shape))


@pytest.mark.parametrize("name", ["a plane", "five copies of each", "one row"])
def test_a_row_is_in_its_own_list_unless_equal_rows_fill_it(name):
    leaves = Leaves(SETS[name], 12)
    positions = np.arange(0, len(leaves.by_position), 30)
    numbers = leaves.by_position[positions]
    rows = SETS[name][np.argsort(leaves.numbers)[np.searchsorted(np.sort(leaves.numbers), numbers)]]
    groups = groups_of(leaves, 2)
    before = find_approximately(rows, 3, groups, 1).numbers == numbers[:, None]
    found = with_own(find_approximately(rows, 3, groups, 1), numbers, positions)
    is_own = found.positions == positions[:, None]
    np.testing.assert_array_equal(is_own, found.numbers == numbers[:, None])
    filled = (found.distances == 0).all(axis=1) & (found.numbers < numbers[:, None]).all(axis=1)
    np.testing.assert_array_equal(is_own.sum(axis=1), ~filled)
    assert (found.distances[is_own] == 0).all()
    ordered = np.lexsort((found.numbers, found.distances), axis=1)
    np.testing.assert_array_equal(ordered, np.broadcast_to(np.arange(3), ordered.shape))
    # What is tested happens: one group alone does not have them all.
    assert before.any(axis=1).mean() < 1


def test_so_many_groups_are_asked_as_hold_the_neighbors():
    leaves = Leaves(PLANE, 12, n_empty=2)
    groups = groups_of(leaves, 2)
    assert near_groups(PLANE[:50], 10, groups, 1).sum(axis=1).tolist() == [1] * 50
    found = find_approximately(PLANE[:50], 2900, groups, 1)
    assert (found.positions >= 0).all()
    np.testing.assert_array_equal(found.numbers, nearest(leaves, PLANE[:50], 2900)[0])


BUILD = """
import hashlib, numpy as np
from daskls.neighbors.graph import build_graph
rows = np.random.default_rng(3).normal(size=(2000, 6)).astype(np.float32)
graph = build_graph(rows, 7)
print(hashlib.sha256(b"".join(a.tobytes() for a in graph.arrays().values())).hexdigest())
"""


def test_a_graph_has_the_same_bits_whatever_numbas_threads():
    def digest(n_threads):
        env = {**python_env(), "NUMBA_NUM_THREADS": str(n_threads)}
        own = [sys.executable, "-c", BUILD]
        return subprocess.run(own, env=env, check=True, capture_output=True, text=True).stdout

    here = os.cpu_count() or 1
    assert digest(1) == digest(max(2, here))


@pytest.fixture(scope="module")
def arrays():
    return build_graph(PLANE.astype(np.float32), 2).arrays()


def test_pynndescent_keeps_what_a_graph_is_made_of(arrays):
    """If this fails, a release of pynndescent has changed what `daskls.neighbors.graph` reads."""
    n, d = PLANE.shape
    shapes = {name: (array.dtype.str[1:], array.shape) for name, array in arrays.items()}
    n_edges, n_nodes = len(arrays["edges"]), len(arrays["children"])
    assert shapes == {
        "order": ("i4", (n,)),
        "ptr": ("i4", (n + 1,)),
        "edges": ("i4", (n_edges,)),
        "planes": ("f4", (n_nodes, d)),
        "offsets": ("f4", (n_nodes,)),
        "children": ("i4", (n_nodes, 2)),
        "least": ("f4", (1,)),
        "state": ("i8", (3,)),
    }
    Graph(**arrays).check()
    assert n_edges > 2 * n
    # Leaves are runs of the graph's own order: the search takes row i of it for vertex i.
    ends = -arrays["children"][arrays["children"][:, 0] <= 0]
    np.testing.assert_array_equal(np.sort(ends, axis=0)[1:, 0], np.sort(ends, axis=0)[:-1, 1])
    # Edges join near rows.
    rows = PLANE[arrays["order"]]
    of_edge = np.repeat(np.arange(n), np.diff(arrays["ptr"]))
    lengths = np.linalg.norm(rows[of_edge] - rows[arrays["edges"]], axis=1)
    drawn = np.linalg.norm(PLANE - PLANE[RNG.permutation(n)], axis=1)
    assert np.median(lengths) < np.median(drawn) / 5


@pytest.mark.parametrize(
    ("name", "value"), [("order", 3000), ("ptr", 10**6), ("edges", -1), ("children", 10**6)]
)
def test_a_graph_that_names_what_there_is_not_is_refused(arrays, name, value):
    bad = arrays[name].copy()
    bad.flat[bad.size // 2] = value
    with pytest.raises(ValueError, match="that there are not"):
        Graph(**{**arrays, name: bad}).check()
    with pytest.raises(ValueError, match="one plane a node"):
        Graph(**{**arrays, "planes": arrays["planes"][1:]}).check()


def test_the_search_does_not_stop_at_a_cluster():
    """Rows of far clusters are not joined by edges; the tree has to lead to the right one."""
    centers = RNG.normal(size=(10, 20)) * 50
    X = centers[RNG.integers(0, 10, 5000)] + RNG.normal(size=(5000, 20))
    leaves = Leaves(X, 8)
    found = find_approximately(X[:300], 10, groups_of(leaves, 8), 1)
    numbers, _ = nearest(leaves, X[:300], 10)
    missed = [
        not np.isin(own, near).any() for own, near in zip(numbers, found.numbers, strict=True)
    ]
    assert np.mean(missed) < 0.01
