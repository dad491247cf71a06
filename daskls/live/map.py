"""Maps of a partition, drawn from it and from the sample that it was grown on.

A tree over two features: the regions as they are. Others, and many leaves or features: rectangles,
arranged like the means of their rows in the plane of the leading components, with areas
proportional to their numbers of rows. Chunks, which have no place in space: equal squares.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from daskls.live.record import SIDE, Map
from daskls.partition.base import Partition
from daskls.partition.space import Forest
from daskls.partition.tree import Tree
from daskls.records import Float64, Int64, Ints, Reals

# The most regions; of more leaves, neighbors share a region.
MAX_DRAWN = 2000
# The most rows and the most features from which components are computed.
MAX_ROWS, MAX_FEATURES = 4096, 1024
# The share of the sample beyond each side of the map: a few outliers would shrink all the rest.
OUTSIDE = 0.002


def draw_map(partition: Partition, X: Reals, names: Sequence[str]) -> Map:
    """Return the map of a partition; of the first one, where rows are cut several times."""
    if partition.find(X[:1]) is None:
        return _draw_squares(partition.n_leaves)
    n_leaves = sum(partition.partition_of(leaf) == 0 for leaf in range(partition.n_leaves))
    if X.shape[1] == 2 and isinstance(partition, Forest) and n_leaves <= MAX_DRAWN:
        drawn = _draw_tree(partition.trees[0], X, (names[0], names[1]))
    else:
        drawn = _draw_rectangles(partition, n_leaves, X, names)
    if n_leaves == partition.n_leaves:
        return drawn
    others = [-1] * (partition.n_leaves - n_leaves)
    note = f"partition 1 of {partition.n_partitions}; {drawn.note}"
    return replace(drawn, region_of=drawn.region_of + others, note=note)


def _draw_squares(n_leaves: int) -> Map:
    """Return one square per leaf, row by row from the top; for leaves without a place in space."""
    n_regions = min(n_leaves, MAX_DRAWN)
    side = int(np.ceil(np.sqrt(n_regions)))
    edges = np.linspace(0, SIDE, side + 1).round().astype(int)
    row, column = np.divmod(np.arange(n_regions), side)
    corners = edges[column], SIDE - edges[row + 1], edges[column + 1], SIDE - edges[row]
    note = "random chunks of rows, in order; they have no place in space"
    region_of = _group_leaves(n_leaves, n_regions).tolist()
    return Map(_corners(np.stack(corners, axis=1)), region_of, None, ("", ""), note)


def _corners(boxes: Any) -> list[list[list[int]]]:
    """Return the polygons of rectangles (n, 4): left, bottom, right, top."""
    return [[[a, b], [c, b], [c, d], [a, d]] for a, b, c, d in boxes.round().astype(int).tolist()]


def _group_leaves(n_leaves: int, n_regions: int) -> Int64:
    """Return the region of each leaf; leaves of consecutive numbers share a region."""
    return np.arange(n_leaves) * n_regions // max(n_leaves, 1)


def _draw_tree(tree: Tree, X: Reals, names: tuple[str, str]) -> Map:
    low, high = np.quantile(X, [OUTSIDE, 1 - OUTSIDE], axis=0)
    flat = low >= high
    limits = np.stack([low - flat, high + flat], axis=1).astype(np.float64)
    polygons = cell_polygons(tree, limits)
    # Regions outside of the map have no polygon.
    number = np.full(tree.n_leaves, -1)
    number[list(polygons)] = np.arange(len(polygons))
    low, span = limits[:, 0], limits[:, 1] - limits[:, 0]
    shapes = [((own - low) / span * SIDE).round().astype(int).tolist() for own in polygons.values()]
    note = "groups of neighboring cells, as space is cut"
    return Map(shapes, number.tolist(), limits.tolist(), names, note)


def cell_polygons(tree: Tree, limits: Float64) -> dict[int, Float64]:
    """Cut a rectangle, limits (2, 2), by a tree; return convex polygons of the cells in it."""
    (left, right), (bottom, top) = np.asarray(limits, np.float64)
    corners = np.array([[left, bottom], [right, bottom], [right, top], [left, top]])
    if not len(tree.thresholds):
        return {0: corners}
    polygons, pending = {}, [(0, corners)]
    while pending:
        node, polygon = pending.pop()
        sides = (polygon - tree.center) @ tree.directions[node] - tree.thresholds[node]
        for child, distance in zip(tree.children[node].tolist(), (sides, -sides), strict=True):
            part = _clip(polygon, distance)
            if len(part) >= 3 and child < 0:
                polygons[~child] = part
            elif len(part) >= 3:
                pending.append((child, part))
    return dict(sorted(polygons.items()))


def _clip(polygon: Float64, distance: Float64) -> Float64:
    """Return the part of a convex polygon where the corners' signed distance is negative."""
    corners: list[Float64] = []
    for i in range(len(polygon)):
        a, b = distance[i - 1], distance[i]
        if (a < 0) != (b < 0):
            corners.append(polygon[i - 1] + (a / (a - b)) * (polygon[i] - polygon[i - 1]))
        if b < 0:
            corners.append(polygon[i])
    return np.array(corners).reshape(-1, 2)


def _draw_rectangles(partition: Partition, n_leaves: int, X: Reals, names: Sequence[str]) -> Map:
    plane, axes, how = find_plane(X, names)
    leaves = partition.find(X)
    assert leaves is not None
    n_regions = min(n_leaves, MAX_DRAWN)
    region_of = _group_leaves(n_leaves, n_regions)
    regions = region_of[leaves[0]]
    counts = np.bincount(regions, minlength=n_regions)
    seen = np.flatnonzero(counts)
    sums = np.stack([np.bincount(regions, side, n_regions)[seen] for side in plane.T], axis=1)
    number = np.full(n_regions, -1)
    number[seen] = np.arange(len(seen))
    thinned = f"; {n_leaves:,} groups in {n_regions:,} regions" if n_leaves > n_regions else ""
    note = "a map: groups of neighboring cells, with areas by their rows, arranged like their means"
    shapes = rectangles(sums / counts[seen, None], counts[seen], strips=X.shape[1] == 1)
    return Map(shapes, number[region_of].tolist(), None, axes, f"{note} {how}{thinned}")


def rectangles(means: Float64, weights: Ints, *, strips: bool = False) -> list[list[list[int]]]:
    """Tile the map with one rectangle per point, by weight, arranged like the points.

    Points are halved along the longer side of their rectangle; strips along the first side only.
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
    return _corners(corners)


def find_plane(X: Reals, names: Sequence[str]) -> tuple[Float64, tuple[str, str], str]:
    """Project rows onto the plane in which they vary most; name its axes and describe it."""
    if X.shape[1] < 3:
        plane = np.zeros((len(X), 2))
        plane[:, : X.shape[1]] = X
        return plane, (names[0], names[1] if len(names) > 1 else ""), "in its features"
    some = np.asarray(X[:: -(-len(X) // MAX_ROWS)], np.float64)
    variances = some.var(axis=0)
    if X.shape[1] > MAX_FEATURES:
        first, second = np.argsort(-variances, kind="stable")[:2].tolist()
        plane = np.asarray(X[:, [first, second]], np.float64)
        return plane, (names[first], names[second]), "in the two features of largest variance"
    # Not scikit-learn's PCA: where all rows are equal, its shares are 0 / 0.
    values, vectors = np.linalg.eigh(np.cov(some, rowvar=False))
    leading = vectors[:, :-3:-1]
    # eigh leaves the signs open: fix them, so that the map is the same on every machine.
    largest = abs(leading).argmax(axis=0)
    leading = leading * np.sign(leading[largest, [0, 1]])
    shares = values[:-3:-1] / (variances.sum() * len(some) / max(len(some) - 1, 1) or 1.0)
    first, second = (
        f"component {i + 1} ({share:.0%} of the variance; most of {names[feature]})"
        for i, (share, feature) in enumerate(zip(shares, largest, strict=True))
    )
    plane = (X - some.mean(axis=0)) @ leading
    return plane, (first, second), "in the plane of two principal components of the sample"
