"""Groups of leaves with graphs, for approximate neighbors: built by tasks, kept, and searched.

``graphs/<first>-<last>`` holds the graph of some leaves' rows as arrays: without any where the rows
are too few for one.
"""

import threading
from collections.abc import Callable, Iterator

import numpy as np

from daskls.cluster import run_each
from daskls.methods.neighborhoods.plan import NeighborSpec
from daskls.neighbors.approximate import (
    Group,
    GroupRows,
    Groups,
    build,
    find_approximately,
    most_grouped,
    with_own,
)
from daskls.neighbors.graph import Graph, GraphSearch
from daskls.neighbors.search import Neighbors, find_nearest, order_by_leaf
from daskls.plan.bundles import group_neighbors
from daskls.records import F8, Int64, KernelSpec, Reals
from daskls.run.contract import Fit, FitState
from daskls.seeds import GRAPH
from daskls.store.artifact import open_artifact, write_artifact
from daskls.store.caches import cached, fork_safe
from daskls.store.contents import FINISH, StorePart
from daskls.store.errors import damaged, malformed_is_damage
from daskls.store.layout import check_fit
from daskls.store.leaves import CACHE_NBYTES, LeafReader, open_leaves
from daskls.store.models import (
    all_bundles,
    bundle_key,
    finished_bundles,
    has_bundle,
    missing_bundles,
)
from daskls.store.reader import ModelReader

GRAPHS = "graphs"
GRAPH_PARTS = (
    StorePart(
        f"{GRAPHS}/*",
        "methods/neighborhoods/groups.py",
        "order int32 rows; ptr int32 rows + 1; edges int32 edges; planes float32 nodes, d; "
        "offsets float32 nodes; children int32 nodes, 2; least float32 1; state int64 3",
        f"no prediction needs rows: {FINISH}",
    ),
)
# Bytes of rows and groups that a process which predicts caches.
GROUPS_NBYTES = 256 << 20
# Bytes of queries, and of their lists, that search groups together.
SEARCHED_NBYTES = 32 << 20
# One graph of a process at a time.
_building = fork_safe(threading.Lock())


def open_searched(method: NeighborSpec, reader: ModelReader) -> LeafReader:
    nbytes = CACHE_NBYTES if method.n_groups is None else GROUPS_NBYTES
    return open_leaves(reader.root.where(), reader.fingerprint, nbytes)


def nearest_rows(
    method: NeighborSpec, leaves: LeafReader, queries: Reals, n_neighbors: int, metric: KernelSpec
) -> Neighbors:
    """Return the nearest rows of queries as the method wants them, exact or approximate."""
    if method.n_groups is None:
        return find_nearest(queries, n_neighbors, leaves.regions, leaves.read_leaf, metric)
    return find_approximately(queries, n_neighbors, open_groups(leaves), method.n_groups)


def nearest_of_rows(
    method: NeighborSpec, leaves: LeafReader, positions: Int64, n_neighbors: int, metric: KernelSpec
) -> Neighbors:
    """Return the same of rows themselves, each in its own list unless equal rows fill that."""
    rows = leaves.read_positions(positions)
    neighbors = nearest_rows(method, leaves, rows.X, n_neighbors, metric)
    return neighbors if method.n_groups is None else with_own(neighbors, rows.numbers, positions)


def search_batches(
    method: NeighborSpec,
    leaves: LeafReader,
    X: Reals,
    n_neighbors: int,
    metric: KernelSpec,
    size: int,
) -> Iterator[tuple[Int64, Neighbors]]:
    """Yield batches of nearby queries, of ``size`` at most, and their nearest rows."""

    def find(queries: Int64) -> Neighbors:
        return nearest_rows(method, leaves, X[queries], n_neighbors, metric)

    n_searched = size
    if method.n_groups is not None:
        # Groups are large, and read for all of these queries once.
        n_searched = max(SEARCHED_NBYTES // (F8 * (3 * n_neighbors + X.shape[1])), size)
    return in_batches(find, order_by_leaf(X, leaves.regions), n_searched, size)


def in_batches(
    find: Callable[[Int64], Neighbors], queries: Int64, n_searched: int, size: int
) -> Iterator[tuple[Int64, Neighbors]]:
    """Yield batches of queries, ``size`` at most, of what is found for ``n_searched`` at once."""
    for start in range(0, len(queries), n_searched):
        searched = queries[start : start + n_searched]
        neighbors = find(searched)
        for first in range(0, len(searched), size):
            batch = np.arange(first, min(first + size, len(searched)))
            yield searched[batch], neighbors.take(batch)


def build_graphs(method: NeighborSpec, state: FitState) -> None:
    if method.n_groups is None:
        return
    store, bundles = state.root.store, group_leaves(state.fit.open_rows())
    wanted = missing_bundles(store, bundles, GRAPHS)
    with state.clock.stage("link", len(bundles), lambda: len(finished_bundles(store, GRAPHS))):
        run_each(build_group, wanted, state.fit, client=state.client)


def build_group(bundle: tuple[int, int], fit: Fit) -> None:
    """Write the graph of the rows of leaves first .. last, unless it is there."""
    if has_bundle(fit.root, *bundle, GRAPHS):
        return
    rows = read_rows(bundle, fit.open_rows())
    seed = int(GRAPH.generator(fit.seed, leaf=bundle[0]).integers(2**31))
    with _building:
        graph = None if rows is None else build(rows, seed)
    check_fit(fit.root, fit.fingerprint)
    arrays = {} if graph is None else graph.arrays()
    write_artifact(fit.root, bundle_key(*bundle, GRAPHS), arrays)


def group_leaves(leaves: LeafReader) -> list[tuple[int, int]]:
    """Return the groups (first leaf, last leaf), which the leaves' rows alone decide."""
    most = most_grouped(leaves.regions.centers.shape[1])
    return group_neighbors(np.diff(leaves.first_positions).tolist(), most)


def read_rows(bundle: tuple[int, int], leaves: LeafReader) -> GroupRows | None:
    first, last = bundle
    rows = [leaves.read_leaf(leaf) for leaf in range(first, last + 1)]
    return GroupRows(rows) if any(len(leaf.X) for leaf in rows) else None


@cached(1)
def open_groups(leaves: LeafReader) -> Groups:
    bundles = all_bundles(leaves.store, leaves.n_leaves, GRAPHS)

    def read_group(number: int) -> Group | None:
        entry: tuple[Group | None] | None = leaves.cache.get((number, GRAPHS))
        if entry is None:
            group, nbytes = _read_group(bundles[number], leaves)
            entry = (group,)
            leaves.cache.put((number, GRAPHS), entry, nbytes)
        return entry[0]

    counts = np.diff(leaves.first_positions)
    return Groups(leaves.regions, counts, bundles, leaves.read_leaf, read_group)


def _read_group(bundle: tuple[int, int], leaves: LeafReader) -> tuple[Group | None, int]:
    """Return a group, None for one without a graph, and its bytes."""
    part = open_artifact(leaves.store, bundle_key(*bundle, GRAPHS))
    if not part.names:
        return None, 0
    rows = read_rows(bundle, leaves)
    if rows is None:
        raise damaged(part.where(), "it has a graph of no rows")
    n, d = rows.n_distinct, rows.X.shape[1]
    with malformed_is_damage(part.where()):
        graph = Graph(
            part.read("order", shape=(n,), kind="i"),
            part.read("ptr", shape=(n + 1,), kind="i"),
            part.read("edges", shape=(None,), kind="i"),
            part.read("planes", shape=(None, d), kind="f"),
            part.read("offsets", shape=(None,), kind="f"),
            part.read("children", shape=(None, 2), kind="i"),
            part.read("least", shape=(1,), kind="f", finite=False),
            part.read("state", shape=(3,), kind="i"),
        )
        graph.check()
    return Group(rows, GraphSearch(graph, rows.distinct())), rows.nbytes
