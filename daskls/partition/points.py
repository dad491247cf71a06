"""Points whose Voronoi regions are the cells: k-means on the seeded sample."""

import numpy as np

from daskls.kernels.gauge import Gauge
from daskls.partition.voronoi import VoronoiCells
from daskls.records import Reals
from daskls.seeds import CLUSTERS

__all__ = ["find_points"]

# Rows of a batch of k-means.
KMEANS_BATCH_ROWS = 8192


def find_points(X: Reals, gauge: Gauge, n_cells: int, seed: int) -> VoronoiCells:
    """Return the regions of the centers that mini-batch k-means finds.

    Parameters
    ----------
    X : real array, shape (m, d). Sampled rows.
    gauge : Gauge of them. They are clustered in its units, so that theirs do not matter.
    n_cells : int. Regions at the most: equal rows share one, and one without rows is left out.
    seed : int

    Returns
    -------
    cells : VoronoiCells. Each holds at least one row of X.
    """
    # Here, so that a process which only assigns rows never loads it.
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    kmeans = MiniBatchKMeans(
        min(n_cells, len(X)),
        batch_size=KMEANS_BATCH_ROWS,
        n_init=3,
        random_state=CLUSTERS.generator(seed),
    )
    # OpenMP's threads would add up what k-means compares in an order of theirs.
    with threadpool_limits(1, user_api="openmp"):
        points = kmeans.fit(gauge.rows(X)).cluster_centers_.astype(np.float64)
    cells = VoronoiCells(gauge.center, points * gauge.scale)
    used = np.unique(cells.nearest(X))
    return VoronoiCells(gauge.center, np.ascontiguousarray(cells.points[used]))
