"""Pictures of how rows are cut, drawn from the partition and the sample that it was grown on.

Two features: the regions as they are. More: a map, on which regions lie to each other as the means
of their rows do in the plane of the leading components, and are as large as they have rows; no
plane through a space of many dimensions meets all of its cells, and every cell should be seen. No
place in space: squares.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from daskls.live.record import Map
from daskls.partition.base import Partition
from daskls.partition.polygons import cell_polygons, power_polygons
from daskls.partition.space import Forest, VoronoiCells
from daskls.partition.tree import Tree
from daskls.records import Float64, Int64, Ints, Reals

# Leaves beyond these share regions with their neighbors.
MAX_DRAWN = 2000
# Points whose regions are drawn as they are: that takes the square of their number.
MAX_POINTS = 300
# Rows that the components are found from, and the most features that they are found of.
MAX_ROWS, MAX_FEATURES = 4096, 1024
# Shares of the sample that lie outside of the picture on each side.
OUTSIDE = 0.002
COLORS = "White: not trained yet; pale blue: trained, where no error is measured."
# Units of a picture's sides.
SIDE = 1000


def draw_map(partition: Partition, X: Reals, names: Sequence[str]) -> Map:
    """Return the picture of a partition: of its first one, where rows are cut several times.

    Parameters
    ----------
    partition : Partition
    X : real array, shape (m, d). Sampled rows, as the partition sees them.
    names : sequence of str, shape (d,)
    """
    drawn = _draw(partition, X, names)
    return replace(drawn, note=f"{drawn.note}. {COLORS}")


def _draw(partition: Partition, X: Reals, names: Sequence[str]) -> Map:
    """Return the picture of what is cut."""
    if partition.find(X[:1]) is None:
        return _squares(partition.n_leaves)
    note = f"partition 1 of {partition.n_partitions}; " if partition.n_partitions > 1 else ""
    if X.shape[1] == 2 and isinstance(partition, Forest):
        return _cuts(partition, X, (names[0], names[1]), note)
    if X.shape[1] == 2 and isinstance(partition, VoronoiCells) and partition.n_leaves <= MAX_POINTS:
        return _nearest(partition, X, (names[0], names[1]))
    return _by_place(partition, X, names, note)


def _squares(n_leaves: int) -> Map:
    """Return squares, row by row from the top, of leaves without a place in space."""
    n_regions = min(n_leaves, MAX_DRAWN)
    side = int(np.ceil(np.sqrt(n_regions)))
    edges = np.linspace(0, SIDE, side + 1).round().astype(int).tolist()
    polygons = []
    for region in range(n_regions):
        row, column = divmod(region, side)
        left, right = edges[column : column + 2]
        top, bottom = SIDE - edges[row], SIDE - edges[row + 1]
        polygons.append([[left, bottom], [right, bottom], [right, top], [left, top]])
    note = "chunks of rows drawn by chance, in order; they have no place in space"
    return Map(polygons, _shared(n_leaves, n_regions).tolist(), None, ("", ""), note)


def _shared(n_leaves: int, n_regions: int) -> Int64:
    """Return the region of each leaf, where neighbors in number share regions."""
    return np.arange(n_leaves) * n_regions // max(n_leaves, 1)


def _cuts(forest: Forest, X: Reals, names: tuple[str, str], note: str) -> Map:
    """Return the half-planes of the first tree, cut off where they make too many regions."""
    tree, region_of = thin_tree(forest.trees[0], MAX_DRAWN)
    limits = _limits(X)
    found = cell_polygons(tree, limits)
    # Regions outside of the picture have no polygon.
    number = np.full(tree.n_leaves, -1)
    number[list(found)] = np.arange(len(found))
    regions = number[region_of]
    others = np.full(forest.n_leaves - len(regions), -1)
    thinned = _thinned(len(regions), tree.n_leaves)
    return Map(
        _in_units(found.values(), limits),
        np.concatenate([regions, others]).tolist(),
        _as_tuples(limits),
        names,
        f"{note}groups of neighboring cells, as space is cut{thinned}",
    )


def thin_tree(tree: Tree, max_leaves: int) -> tuple[Tree, Int64]:
    """Return the top of a tree, and which of its leaves holds each leaf of the whole.

    Parameters
    ----------
    tree : Tree
    max_leaves : int, >= 1. The subtrees of most leaves are cut first.

    Returns
    -------
    top : Tree. Of at most ``max_leaves`` leaves.
    leaf_of : int64 array, shape (tree.n_leaves,)
    """
    if tree.n_leaves <= max_leaves:
        return tree, np.arange(tree.n_leaves)
    inner = _nodes_of_most_leaves(tree, max_leaves - 1)
    place = {node: i for i, node in enumerate(inner)}
    children = np.empty((len(inner), 2), np.int32)
    leaf_of = np.empty(tree.n_leaves, np.int64)
    n_leaves = 0
    for i, node in enumerate(inner):
        for side, child in enumerate(tree.children[node].tolist()):
            if child in place:
                children[i, side] = place[child]
                continue
            children[i, side] = ~n_leaves
            leaf_of[_leaves_below(tree, child)] = n_leaves
            n_leaves += 1
    top = Tree(tree.center, tree.directions[inner], tree.thresholds[inner], children)
    return top, leaf_of


def _nodes_of_most_leaves(tree: Tree, n_nodes: int) -> list[int]:
    """Return nodes from the root down, those of most leaves first, in increasing order."""
    children = tree.children.tolist()
    n_below = np.ones(len(children), np.int64)
    # Children come after their parents.
    for node in range(len(children) - 1, -1, -1):
        n_below[node] = sum(n_below[c] if c >= 0 else 1 for c in children[node])
    heap = [(-int(n_below[0]), 0)]
    taken: list[int] = []
    while heap and len(taken) < n_nodes:
        _, node = heapq.heappop(heap)
        taken.append(node)
        for child in children[node]:
            if child >= 0:
                heapq.heappush(heap, (-int(n_below[child]), child))
    return sorted(taken)


def _leaves_below(tree: Tree, child: int) -> list[int]:
    """Return the leaves of a subtree."""
    pending, leaves = [child], []
    while pending:
        node = pending.pop()
        if node < 0:
            leaves.append(~node)
        else:
            pending += tree.children[node].tolist()
    return leaves


def _nearest(cells: VoronoiCells, X: Reals, names: tuple[str, str]) -> Map:
    """Return the regions nearest to points."""
    limits = _limits(X)
    points = cells.points + cells.center
    found = power_polygons(points, np.zeros(len(points)), limits)
    number = np.full(len(points), -1)
    number[list(found)] = np.arange(len(found))
    note = "cells of space as they are"
    shapes = _in_units(found.values(), limits)
    return Map(shapes, number.tolist(), _as_tuples(limits), names, note)


def _by_place(partition: Partition, X: Reals, names: Sequence[str], note: str) -> Map:
    """Return regions that lie to each other as the means of their rows do."""
    plane, axes, how = find_plane(X, names)
    found = partition.find(X)
    assert found is not None
    n_leaves = sum(partition.partition_of(leaf) == 0 for leaf in range(partition.n_leaves))
    n_regions = min(n_leaves, MAX_DRAWN)
    region_of = _shared(n_leaves, n_regions)
    own = region_of[found[0]]
    counts = np.bincount(own, minlength=n_regions)
    seen = np.flatnonzero(counts)
    sums = np.stack([np.bincount(own, side, n_regions)[seen] for side in plane.T], axis=1)
    means: Float64 = sums / counts[seen, None]
    number = np.full(n_regions, -1)
    number[seen] = np.arange(len(seen))
    others = np.full(partition.n_leaves - n_leaves, -1)
    return Map(
        rectangles(means, counts[seen], strips=X.shape[1] == 1),
        np.concatenate([number[region_of], others]).tolist(),
        None,
        axes,
        f"{note}a map: groups of neighboring cells, as large as they have rows, by the places of "
        f"their means {how}{_thinned(n_leaves, n_regions)}",
    )


def rectangles(means: Float64, weights: Ints, *, strips: bool = False) -> list[list[list[int]]]:
    """Fill the picture with a rectangle a point, that lie to each other as the points do.

    Points are halved by weight across the longer side of their rectangle, until each has its own.

    Parameters
    ----------
    means : array (k, 2)
    weights : int array (k,), > 0. A rectangle's area is its share of their sum.
    strips : bool. Whether to halve across one side only.

    Returns
    -------
    polygons : list of lists of [x, y], in the points' order
    """
    corners = np.empty((len(means), 4))
    pending = [(np.arange(len(means)), np.array([0.0, 0.0, SIDE, SIDE]))]
    while pending:
        points, box = pending.pop()
        if len(points) == 1:
            corners[points[0]] = box
            continue
        side = 0 if strips or box[2] - box[0] >= box[3] - box[1] else 1
        points = points[np.argsort(means[points, side], kind="stable")]
        reached = np.cumsum(weights[points])
        half = int(np.clip(np.searchsorted(reached, reached[-1] / 2) + 1, 1, len(points) - 1))
        first, second = box.copy(), box.copy()
        cut = box[side] + (box[side + 2] - box[side]) * reached[half - 1] / reached[-1]
        first[side + 2] = second[side] = cut
        pending += [(points[:half], first), (points[half:], second)]
    whole = corners.round().astype(int).tolist()
    return [[[a, b], [c, b], [c, d], [a, d]] for a, b, c, d in whole]


def find_plane(X: Reals, names: Sequence[str]) -> tuple[Float64, tuple[str, str], str]:
    """Return rows in the plane where they spread most, the names of its axes, and its description.

    Returns
    -------
    plane : float64 array, shape (m, 2)
    axes : (str, str)
    how : str
    """
    if X.shape[1] < 3:
        sides = [np.asarray(X[:, i], np.float64) for i in range(X.shape[1])]
        plane = np.stack([*sides, np.zeros(len(X))][:2], axis=1)
        return plane, (names[0], names[1] if len(names) > 1 else ""), "in its features"
    some = np.asarray(X[:: -(-len(X) // MAX_ROWS)], np.float64)
    center = some.mean(axis=0)
    variances = some.var(axis=0)
    if X.shape[1] > MAX_FEATURES:
        first, second = np.argsort(-variances, kind="stable")[:2].tolist()
        plane = np.asarray(X[:, [first, second]], np.float64)
        return plane, (names[first], names[second]), "in the two features of largest variance"
    values, vectors = np.linalg.eigh(np.cov(some, rowvar=False))
    leading = vectors[:, :-3:-1]
    # A sign of its own, the same on every machine.
    largest = abs(leading).argmax(axis=0)
    leading = leading * np.sign(leading[largest, [0, 1]])
    shares = values[:-3:-1] / (variances.sum() * len(some) / max(len(some) - 1, 1) or 1.0)
    axes = [
        f"component {i + 1} ({share:.0%} of the variance; most of {names[feature]})"
        for i, (share, feature) in enumerate(zip(shares, largest, strict=True))
    ]
    plane = (X - center) @ leading
    return plane, (axes[0], axes[1]), "in the plane of two principal components of the sample"


def _limits(X: Reals) -> Float64:
    """Return the ranges of two features that are worth showing, (2, 2)."""
    low, high = np.quantile(X, [OUTSIDE, 1 - OUTSIDE], axis=0)
    flat = low >= high
    return np.stack([low - flat, high + flat], axis=1).astype(np.float64)


def _in_units(polygons: Iterable[Float64], limits: Float64) -> list[list[list[int]]]:
    """Return polygons in whole units of the picture's sides."""
    low, span = limits[:, 0], limits[:, 1] - limits[:, 0]
    return [((own - low) / span * SIDE).round().astype(int).tolist() for own in polygons]


def _as_tuples(limits: Float64) -> tuple[tuple[float, float], tuple[float, float]]:
    (left, right), (bottom, top) = limits.tolist()
    return (left, right), (bottom, top)


def _thinned(n_leaves: int, n_regions: int) -> str:
    """Say that regions stand for several leaves."""
    return f"; {n_leaves:,} groups in {n_regions:,} regions" if n_leaves > n_regions else ""
