"""Points whose Voronoi regions are the cells: k-means on the seeded sample."""

import numpy as np

from daskls.partition.assign import find_cells
from daskls.records import FloatArray, VoronoiCells

__all__ = ["find_points"]

# Rows of a batch of k-means.
BATCH_ROWS = 8192


def find_points(X: FloatArray, n_cells: int, seed: int) -> VoronoiCells:
    """Return the regions of the centers that mini-batch k-means finds.

    Parameters
    ----------
    X : real array, shape (m, d). Sampled rows.
    n_cells : int. Regions at the most: equal rows share one, and one without rows is left out.
    seed : int

    Returns
    -------
    cells : VoronoiCells. Each holds at least one row of X.
    """
    # Here, so that a process which only assigns rows never loads it.
    from sklearn.cluster import MiniBatchKMeans

    center = X.mean(axis=0, dtype=np.float64)
    A = X - center
    kmeans = MiniBatchKMeans(
        min(n_cells, len(X)),
        batch_size=BATCH_ROWS,
        n_init=3,
        random_state=np.random.RandomState(seed % 2**32),
    )
    cells = VoronoiCells(center, kmeans.fit(A).cluster_centers_.astype(np.float64))
    used = np.unique(find_cells(cells, X))
    return VoronoiCells(center, np.ascontiguousarray(cells.points[used]))
