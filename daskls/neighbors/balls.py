"""The rows inside of balls, leaf by leaf; and the few of each ball's rows that a draw keeps."""

from collections.abc import Iterator

import numpy as np

from daskls.kernels.nearest import mark_inside
from daskls.neighbors.regions import lower_bounds
from daskls.records import Float64, Int64, Keys, LeafRows, Regions

__all__ = ["find_inside", "keep_smallest", "near_balls"]

# Pairs of a ball and a row that are looked at together.
MARKED_PAIRS = 1 << 16
# Balls whose bounds to the regions of a leaf are held at once.
TILE_BALLS = 4096


def near_balls(centers: Float64, radius: float, regions: Regions, region: int) -> Int64:
    """Return the balls that may hold a row of one region, increasing.

    Parameters
    ----------
    centers : float64 array, shape (m, d)
    radius : float. Of every ball.
    regions : Regions
    region : int
    """
    own = regions.take(slice(region, region + 1))
    parts = [
        lower_bounds(centers[start : start + TILE_BALLS], own)[:, 0] <= radius * radius
        for start in range(0, len(centers), TILE_BALLS)
    ]
    return np.flatnonzero(np.concatenate(parts))


def find_inside(
    centers: Float64, radius: float, balls: Int64, leaf: LeafRows
) -> Iterator[tuple[Int64, Int64]]:
    """Yield pairs of a ball and a row of the leaf inside of it, each pair once.

    Parameters
    ----------
    centers : float64 array, shape (m, d)
    radius : float. A row is inside if the squared distance, summed in float64 in the order of the
        features, is at most its square, regardless of leaves and regions.
    balls : int array, shape (b,). Which balls to look at.
    leaf : LeafRows

    Yields
    ------
    balls, rows : int64 arrays, shape (p,). Rows count from the leaf's first. At most about
        `MARKED_PAIRS` pairs at a time.
    """
    for start in range(0, len(balls), TILE_BALLS):
        tile = balls[start : start + TILE_BALLS]
        bounds = lower_bounds(centers[tile], leaf.regions)
        for region in range(bounds.shape[1]):
            first, last = leaf.region_ptr[region : region + 2].tolist()
            active = tile[bounds[:, region] <= radius * radius]
            step = max(MARKED_PAIRS // max(last - first, 1), 1)
            for begin in range(0, len(active) if last > first else 0, step):
                own = active[begin : begin + step]
                inside = np.empty((len(own), last - first), np.bool_)
                limits = np.full(len(own), radius * radius)
                mark_inside(centers[own], limits, leaf.X[first:last], inside)
                of_ball, row = np.nonzero(inside)
                yield own[of_ball], row + first


def keep_smallest(balls: Int64, keys: Keys, quotas: Int64) -> Int64:
    """Return which pairs to keep: of each ball, those of the smallest keys, up to its quota.

    Parameters
    ----------
    balls : int array, shape (p,)
    keys : uint64 array, shape (p,). No two pairs of a ball share one.
    quotas : int array, shape (m,). Of every ball.

    Returns
    -------
    kept : int64 array. Positions of pairs, by (ball, key).

    Examples
    --------
    >>> balls, keys = np.array([0, 1, 0, 0]), np.array([5, 1, 3, 4], np.uint64)
    >>> keep_smallest(balls, keys, np.array([2, 0])).tolist()
    [2, 3]
    """
    order = np.lexsort((keys, balls))
    ordered = balls[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered, side="left")
    return order[rank < quotas[ordered]]
