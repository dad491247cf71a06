"""Cells of a partition as exact polygons in a plane through space, and their colors on a map."""

import numpy as np

from daskls.partition.tree import Tree
from daskls.records import Float64, Int64, Ints


def plane_tree(tree: Tree, features: tuple[int, int], point: Float64) -> Tree:
    """Return the tree as it cuts the plane of two features through a point.

    Parameters
    ----------
    tree : Tree of d features
    features : the plane's two features
    point : float64 array, shape (d,). Gives the values of the other features.
    """
    fixed = np.asarray(point, np.float64) - tree.center
    fixed[list(features)] = 0.0
    return Tree(
        tree.center[list(features)],
        tree.directions[:, features],
        tree.thresholds - tree.directions @ fixed,
        tree.children,
    )


def cell_polygons(tree: Tree, limits: Float64) -> dict[int, Float64]:
    """Cut a rectangle by the half-planes of a tree.

    Parameters
    ----------
    tree : Tree of 2 features
    limits : float64 array, shape (2, 2). The least and the greatest value of each feature.

    Returns
    -------
    polygons : dict cell -> float64 array (n_corners, 2), convex; only cells that reach into the
        rectangle
    """
    corners = _rectangle(limits)
    if not len(tree.thresholds):
        return {0: corners}
    polygons = {}
    pending = [(0, corners)]
    while pending:
        node, polygon = pending.pop()
        sides = (polygon - tree.center) @ tree.directions[node] - tree.thresholds[node]
        for child, distance in zip(tree.children[node], (sides, -sides), strict=True):
            part = _clip(polygon, distance)
            if len(part) < 3:
                continue
            if child < 0:
                polygons[int(~child)] = part
            else:
                pending.append((int(child), part))
    return dict(sorted(polygons.items()))


def power_polygons(points: Float64, offsets: Float64, limits: Float64) -> dict[int, Float64]:
    """Cut a rectangle into the regions where squared distance plus offset is least.

    Parameters
    ----------
    points : float64 array, shape (k, 2)
    offsets : float64 array, shape (k,). Squared distances from the plane.
    limits : float64 array, shape (2, 2). The least and the greatest value of each feature.

    Returns
    -------
    polygons : dict point -> float64 array (n_corners, 2), convex; only regions that reach into the
        rectangle
    """
    polygons = {}
    for i in range(len(points)):
        polygon = _rectangle(limits)
        gaps = 2 * (points - points[i])
        bounds = (points**2).sum(axis=1) + offsets
        # Nearest points first: they cut the most.
        for j in np.argsort((gaps**2).sum(axis=1), kind="stable").tolist():
            if j != i and len(polygon) >= 3:
                polygon = _clip(polygon, polygon @ gaps[j] - (bounds[j] - bounds[i]))
        if len(polygon) >= 3:
            polygons[i] = polygon
    return polygons


def _rectangle(limits: Float64) -> Float64:
    """Return the corners of a rectangle, float64 (4, 2)."""
    (left, right), (bottom, top) = np.asarray(limits, np.float64)
    return np.array([[left, bottom], [right, bottom], [right, top], [left, top]])


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


def color_cells(labels: Ints, n_cells: int, n_colors: int) -> Int64:
    """Number colors so that neighbors differ, as far as ``n_colors`` allows.

    Parameters
    ----------
    labels : int array, shape (h, w). The cell of each pixel.
    n_cells, n_colors : int

    Returns
    -------
    colors : int array, shape (n_cells,)
    """
    pairs = np.concatenate(
        [
            np.stack([labels[:, 1:].ravel(), labels[:, :-1].ravel()], axis=1),
            np.stack([labels[1:].ravel(), labels[:-1].ravel()], axis=1),
        ]
    )
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    earlier: list[list[int]] = [[] for _ in range(n_cells)]
    for a, b in pairs.tolist():
        earlier[b].append(a)
    colors = np.zeros(n_cells, int)
    for cell in range(n_cells):
        used = np.bincount(colors[earlier[cell]], minlength=n_colors)
        # Ties start from a different color for each cell, which spreads the colors evenly.
        order = (np.arange(n_colors) + cell) % n_colors
        colors[cell] = order[used[order].argmin()]
    return colors
