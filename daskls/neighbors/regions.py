"""Regions that hold the rows of a leaf or of a part of it, and bounds of distances to them."""

import numpy as np

from daskls.kernels.nearest import bound_distances
from daskls.records import Float64, Int64, Reals, Regions

__all__ = ["lower_bounds", "measure_regions"]


def measure_regions(X: Reals, ptr: Int64) -> Regions:
    """Return the region of each run of rows.

    Parameters
    ----------
    X : real array, shape (m, d)
    ptr : int array, shape (n + 1,). Region i holds rows ptr[i] to ptr[i + 1] - 1. One without rows
        is infinitely far from every query.
    """
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
    """Return what each query's squared distance to any row of each region is at least.

    Parameters
    ----------
    queries : float64 array, shape (q, d)
    regions : Regions, n

    Returns
    -------
    bounds : float64 array, shape (q, n). Never above a true distance, in spite of rounding.
    """
    bounds = np.empty((len(queries), len(regions.r_max)))
    bound_distances(
        queries,
        regions.centers,
        regions.r_min,
        regions.r_max,
        regions.low,
        regions.high,
        bounds,
    )
    # A region without rows has infinite sides, of which differences may be NaN.
    bounds[:, np.isinf(regions.r_max)] = np.inf
    return bounds
