"""The cells of a model in a plane or on a line: their polygons, and the cell of each pixel."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from daskls.errors import ParameterError
from daskls.kernels.frame import scaled
from daskls.methods.base import method_of
from daskls.partition.polygons import cell_polygons, plane_tree, power_polygons
from daskls.partition.space import VoronoiCells
from daskls.partition.stored import whole
from daskls.partition.tree import Tree, route_rows
from daskls.records import FeatureScale, Float64, Int32, Reals

Features = tuple[int, int]
# Bisections of a pixel, after which a border along one feature is exact on any screen.
N_HALVINGS = 40


class Cut(Protocol):
    """The cells of one partition of space."""

    def polygons(self, features: Features, point: Float64, limits: Float64) -> dict[int, Float64]:
        """Return the polygon (corners, 2) of each cell in a plane.

        Parameters
        ----------
        features : the two features that span the plane
        point : float64 array, shape (d,). A point of the plane.
        limits : float64 array, shape (2, 2). The rectangle that clips the polygons.
        """

    def find(self, X: Reals) -> Int32:
        """Return the cell of each row."""

    def reach(self, features: tuple[int, ...], report: Any) -> tuple[Float64, Float64]:
        """Return the least and the greatest value of each drawn feature that a picture needs."""


class TreeCut:
    """The cells of a tree of half-spaces."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def polygons(self, features: Features, point: Float64, limits: Float64) -> dict[int, Float64]:
        """Implement `Cut.polygons`."""
        return cell_polygons(plane_tree(self.tree, features, point), limits)

    def find(self, X: Reals) -> Int32:
        """Implement `Cut.find`."""
        return route_rows(self.tree, X)

    def reach(self, features: tuple[int, ...], report: Any) -> tuple[Float64, Float64]:
        """Implement `Cut.reach`.

        The report has the cells' radii, not their positions. Of two features: a square around the
        center with the area of all cells, each taken as a square of 2 r^2. Of one feature: an
        interval as long as all cells.
        """
        radius = report.radius
        half = float(np.sqrt((radius**2).sum() / 2)) if len(features) == 2 else radius.sum()
        center = self.tree.center[list(features)]
        return center - half, center + half


class VoronoiCut:
    """The Voronoi cells of some points."""

    def __init__(self, cells: VoronoiCells) -> None:
        self.cells = cells
        self.points = cells.points + cells.center

    def polygons(self, features: Features, point: Float64, limits: Float64) -> dict[int, Float64]:
        """Implement `Cut.polygons`: a plane cuts Voronoi cells into cells of a power diagram."""
        off = np.delete(self.points - point, features, axis=1)
        return power_polygons(self.points[:, features], (off**2).sum(axis=1), limits)

    def find(self, X: Reals) -> Int32:
        """Implement `Cut.find`."""
        return self.cells.nearest(X)

    def reach(self, features: tuple[int, ...], report: Any) -> tuple[Float64, Float64]:
        """Implement `Cut.reach`: the range of the points, and a tenth of it on each side."""
        own = self.points[:, features]
        low, high = own.min(axis=0), own.max(axis=0)
        pad = 0.1 * (high - low) + (high == low)
        return low - pad, high + pad


class ScaledCut:
    """Cells of scaled rows, drawn in the features' own units."""

    def __init__(self, cut: Cut, scale: FeatureScale) -> None:
        self.cut, self.scale = cut, scale

    def polygons(self, features: Features, point: Float64, limits: Float64) -> dict[int, Float64]:
        """Implement `Cut.polygons`."""
        (across, up), center, factors = self._scaled_features(features)
        inner = (limits - center[:, None]) * factors[:, None]
        place = scaled(point[None], self.scale)[0].astype(np.float64)
        found = self.cut.polygons((across, up), place, inner)
        return {cell: corners / factors + center for cell, corners in found.items()}

    def find(self, X: Reals) -> Int32:
        """Implement `Cut.find`."""
        return self.cut.find(scaled(X, self.scale))

    def reach(self, features: tuple[int, ...], report: Any) -> tuple[Float64, Float64]:
        """Implement `Cut.reach`; of one feature that is coded, the range of its knots or values."""
        knots = self._knots(features[0])
        if len(features) == 1 and len(knots):
            return knots[:1], knots[-1:]
        own, center, factors = self._scaled_features(features)
        low, high = self.cut.reach(own, report)
        return low / factors + center, high / factors + center

    def _scaled_features(
        self, features: tuple[int, ...]
    ) -> tuple[tuple[int, ...], Float64, Float64]:
        """Return the features' indices among the scaled ones, their centers and their factors.

        Raises
        ------
        ParameterError : a feature that is left out of the scale, or coded
        """
        columns, sources = self.scale.columns.tolist(), self.scale.sources
        places = [int(np.flatnonzero(sources == feature)[0]) for feature in features]
        for feature, place in zip(features, places, strict=True):
            self._check_is_number(feature)
            if place not in columns:
                raise ParameterError(
                    f"features={features}, but the model leaves feature {feature} out "
                    "(feature_scale_ is 0), so no cell is cut along it. Draw two of "
                    f"{np.unique(sources[columns]).tolist()}."
                )
        own = tuple(columns.index(place) for place in places)
        return own, self.scale.center[places], self.scale.factors[places]

    def _knots(self, feature: int) -> Float64:
        """Return the knots of a feature's ranks, or the values that have indicators; else none."""
        coding = self.scale.coding
        if coding is None:
            return np.empty(0)
        knots: Float64 = coding.points[coding.ptr[feature] : coding.ptr[feature + 1]]
        return knots

    def _check_is_number(self, feature: int) -> None:
        """Raise a `ParameterError` if a feature is coded: along it cells have no straight edges."""
        coding = self.scale.coding
        if coding is not None and len(self._knots(feature)):
            plain = np.flatnonzero(np.diff(coding.ptr) == 0).tolist()
            what = "indicators" if coding.is_indicated[feature] else "ranks"
            raise ParameterError(
                f"Cells are cut along the {what} of feature {feature}, not along its values. Draw "
                f'two of {plain}, or fit with feature_coding="none".'
            )


# How to draw the cells of each kind of partition.
CUTS: dict[str, Callable[[Any, int], Cut]] = {
    "Forest": lambda forest, partition: TreeCut(forest.trees[partition]),
    "VoronoiCells": lambda cells, _: VoronoiCut(cells),
}


def find_cut(estimator: Any, partition: int) -> Cut:
    """Return the cells of one of an estimator's partitions.

    Raises
    ------
    ParameterError : a partition that the estimator does not have, or one without outlines
    """
    reader = estimator._reader
    space = whole(method_of(reader.method).space(reader))
    n_partitions = space.n_partitions
    if partition not in range(n_partitions):
        raise ParameterError(
            f"partition is {partition}; it must be a number from 0 to {n_partitions - 1}: the "
            f"model has {n_partitions} partition(s)."
        )
    if space.kind not in CUTS:
        raise ParameterError(
            f"The cells of a {reader.meta['estimator']} cut by {space.kind!r} have no outlines to "
            f"draw; those cut by {' or '.join(map(repr, CUTS))} have."
        )
    cut, scale = CUTS[space.kind](space, partition), reader.resolved.scale
    return cut if scale is None else ScaledCut(cut, scale)


def line_intervals(
    cut: Cut, point: Float64, feature: int, limits: Float64, cells: Int32
) -> dict[int, Float64]:
    """Return the ends (2, 1) of each cell along one feature; of a cell in pieces, of the first.

    Parameters
    ----------
    cut : Cut
    point : float64 array, shape (d,). The values of the other features.
    feature : int
    limits : float64 array, shape (2,)
    cells : int array, shape (p,). The cell at each of p evenly spaced values between the limits.
    """
    places = np.linspace(limits[0], limits[1], len(cells))
    after = np.flatnonzero(cells[1:] != cells[:-1])
    low, high, first = places[after], places[after + 1], cells[after]
    # Bisect all borders at once.
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        rows = np.tile(point, (len(middle), 1))
        rows[:, feature] = middle
        is_before = cut.find(rows) == first if len(rows) else np.empty(0, bool)
        low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
    ends = np.concatenate([limits[:1], high, limits[1:]])
    own = cells[np.append(after, len(cells) - 1)].tolist()
    found: dict[int, Float64] = {}
    for cell, pair in zip(own, pairwise(ends.tolist()), strict=True):
        found.setdefault(cell, np.array(pair)[:, None])
    return found
