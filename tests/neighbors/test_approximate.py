"""Approximate neighbors against all distances; their graphs as arrays; what they do without."""

import os

import numba
import numpy as np
import pytest
from searches import FIRST_NUMBER, Leaves, sort_rows, squared_distances

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
    return sort_rows(squared_distances(queries, leaves.X), leaves.numbers, k)[1]


def rows_of(leaves, numbers):
    return np.argsort(leaves.numbers)[numbers - FIRST_NUMBER]


def recalled(found, numbers):
    pairs = zip(numbers, found.numbers, strict=True)
    return np.array([np.isin(own, near).mean() for own, near in pairs])


def check_order(found):
    ordered = np.lexsort((found.numbers, found.distances), axis=1)
    assert (ordered == np.arange(ordered.shape[1])).all()


@pytest.mark.parametrize("name", SETS)
def test_nearly_all_neighbors_are_found_and_all_distances_are_exact(name):
    leaves, queries = Leaves(SETS[name], 12), SETS[name][::30]
    groups, everyone = groups_of(leaves, 5), squared_distances(queries, leaves.X)
    for k in (1, 10, 100):
        found = find_approximately(queries, k, groups, 3)
        assert recalled(found, nearest(leaves, queries, k)).mean() > 0.98
        np.testing.assert_array_equal(found.numbers, leaves.by_position[found.positions])
        exact = np.take_along_axis(everyone, rows_of(leaves, found.numbers), axis=1)
        np.testing.assert_array_equal(found.distances, exact)
        check_order(found)


@pytest.mark.parametrize("name", ["a plane", "five copies of each", "one row"])
def test_a_row_is_in_its_own_list_unless_equal_rows_fill_it(name):
    leaves = Leaves(SETS[name], 12)
    positions = np.arange(0, len(leaves.by_position), 30)
    numbers = leaves.by_position[positions]
    rows, groups = SETS[name][rows_of(leaves, numbers)], groups_of(leaves, 2)
    before = find_approximately(rows, 3, groups, 1).numbers == numbers[:, None]
    found = with_own(find_approximately(rows, 3, groups, 1), numbers, positions)
    is_own = found.positions == positions[:, None]
    np.testing.assert_array_equal(is_own, found.numbers == numbers[:, None])
    filled = (found.distances == 0).all(axis=1) & (found.numbers < numbers[:, None]).all(axis=1)
    np.testing.assert_array_equal(is_own.sum(axis=1), ~filled)
    assert (found.distances[is_own] == 0).all()
    check_order(found)
    # What is tested happens: one group alone does not have them all.
    assert before.any(axis=1).mean() < 1


def test_so_many_groups_are_asked_as_hold_the_neighbors():
    leaves = Leaves(PLANE, 12, n_empty=2)
    groups = groups_of(leaves, 2)
    assert near_groups(PLANE[:50], 10, groups, 1).sum(axis=1).tolist() == [1] * 50
    found = find_approximately(PLANE[:50], 2900, groups, 1)
    assert (found.positions >= 0).all()
    np.testing.assert_array_equal(found.numbers, nearest(leaves, PLANE[:50], 2900))


def test_a_graph_has_the_same_bits_whatever_numbas_threads():
    rows = np.random.default_rng(3).normal(size=(2000, 6)).astype(np.float32)
    n_threads, graphs = numba.get_num_threads(), []
    try:
        for n in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(n)
            graphs.append(build_graph(rows, 7).arrays())
    finally:
        numba.set_num_threads(n_threads)
    for name, array in graphs[0].items():
        np.testing.assert_array_equal(graphs[1][name], array)


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
    assert (recalled(found, nearest(leaves, X[:300], 10)) == 0).mean() < 0.01
