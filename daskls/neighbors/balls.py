"""Rows inside balls, found leaf by leaf and thinned by a draw; bounds of distances to regions."""

from collections.abc import Iterator

import numpy as np

from daskls.kernels.nearest import bound_distances, mark_inside
from daskls.records import Float64, Int64, Keys, LeafRows, Reals, Regions

# Pairs of a ball and a row that are tested together.
MARKED_PAIRS = 1 << 16
# Balls whose bounds to the regions of a leaf are held at once.
TILE_BALLS = 4096


def near_balls(centers: Float64, radius: float, regions: Regions, region: int) -> Int64:
    """Return the balls that may hold a row of one region, increasing."""
    box = regions.take(slice(region, region + 1))
    parts = [
        lower_bounds(centers[start : start + TILE_BALLS], box)[:, 0] <= radius * radius
        for start in range(0, len(centers), TILE_BALLS)
    ]
    return np.flatnonzero(np.concatenate(parts))


def find_inside(
    centers: Float64, radius: float, balls: Int64, leaf: LeafRows
) -> Iterator[tuple[Int64, Int64]]:
    """Yield pairs of a ball and a row of the leaf inside it, each pair once.

    A row is inside if its squared distance, summed in float64 in the order of the features, is at
    most the squared radius, regardless of leaves and regions. Rows count from the leaf's first. At
    most about `MARKED_PAIRS` pairs come at a time.
    """
    for start in range(0, len(balls), TILE_BALLS):
        tile = balls[start : start + TILE_BALLS]
        bounds = lower_bounds(centers[tile], leaf.regions)
        for region in range(bounds.shape[1]):
            first, last = leaf.region_ptr[region : region + 2].tolist()
            active = tile[bounds[:, region] <= radius * radius]
            step = max(MARKED_PAIRS // max(last - first, 1), 1)
            for begin in range(0, len(active) if last > first else 0, step):
                batch = active[begin : begin + step]
                inside = np.empty((len(batch), last - first), np.bool_)
                limits = np.full(len(batch), radius * radius)
                mark_inside(centers[batch], limits, leaf.X[first:last], inside)
                of_ball, row = np.nonzero(inside)
                yield batch[of_ball], row + first


def keep_smallest(balls: Int64, keys: Keys, quotas: Int64) -> Int64:
    """Return which pairs to keep: of each ball those of the smallest keys, up to its quota.

    >>> balls, keys = np.array([0, 1, 0, 0]), np.array([5, 1, 3, 4], np.uint64)
    >>> keep_smallest(balls, keys, np.array([2, 0])).tolist()
    [2, 3]
    """
    order = np.lexsort((keys, balls))
    ordered = balls[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered, side="left")
    return order[rank < quotas[ordered]]


def measure_regions(X: Reals, ptr: Int64) -> Regions:
    """Return the region of each run of rows, ptr[i] to ptr[i + 1] - 1."""
    n, d = len(ptr) - 1, X.shape[1]
    regions = Regions(
        np.zeros((n, d)),
        np.full(n, np.inf),
        np.full(n, np.inf),
        np.full((n, d), np.inf),
        np.full((n, d), np.inf),
    )
    for i in range(n):
        rows = X[ptr[i] : ptr[i + 1]].astype(np.float64)
        if not len(rows):
            continue
        regions.low[i], regions.high[i] = rows.min(axis=0), rows.max(axis=0)
        regions.centers[i] = rows.mean(axis=0)
        distances = np.sqrt(((rows - regions.centers[i]) ** 2).sum(axis=1))
        regions.r_min[i], regions.r_max[i] = distances.min(), distances.max()
    return regions


def lower_bounds(queries: Float64, regions: Regions) -> Float64:
    """Return bounds of the squared distances of queries and regions, also of rounded ones."""
    bounds = np.empty((len(queries), len(regions.r_max)))
    bound_distances(
        queries, regions.centers, regions.r_min, regions.r_max, regions.low, regions.high, bounds
    )
    # Differences of the infinite sides of an empty region may be NaN.
    bounds[:, np.isinf(regions.r_max)] = np.inf
    return bounds
