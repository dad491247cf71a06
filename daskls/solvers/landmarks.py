"""Landmarks that the rows of all cells are projected on."""

import numpy as np

from daskls.kernels.gauge import Gauge
from daskls.records import Float64, Reals

__all__ = ["draw_landmarks", "find_components"]

# Rows of a batch of the principal component analysis.
PCA_BATCH_ROWS = 8192


def draw_landmarks(X: Reals, gauge: Gauge, n_landmarks: int, seed: tuple[int, ...]) -> Float64:
    """Return rows drawn at random, minus the gauge's center, float64 (l, d)."""
    drawn = np.random.default_rng(seed).choice(len(X), n_landmarks, replace=False)
    return np.subtract(X[np.sort(drawn)], gauge.center, dtype=np.float64)


def find_components(X: Reals, gauge: Gauge, n_landmarks: int) -> tuple[Float64, Float64]:
    """Return the first principal components.

    Parameters
    ----------
    X : real array, shape (m, d). Sampled rows.
    gauge : Gauge of them
    n_landmarks : int

    Returns
    -------
    components : float64 array, shape (l, d). Unit vectors.
    deviations : float64 array, shape (l,). The rows' standard deviation along each.
    """
    # Here, so that a process which only predicts never loads it.
    from sklearn.decomposition import IncrementalPCA

    batch_rows = max(PCA_BATCH_ROWS, n_landmarks)
    # The last batch must have as many rows as there are components: it takes in a short one.
    n_batches = max(len(X) // batch_rows, 1)
    pca = IncrementalPCA(n_landmarks)
    # Of equal rows no component has a share of the variance, which is 0.
    with np.errstate(invalid="ignore", divide="ignore"):
        for rows in np.array_split(np.arange(len(X)), n_batches):
            pca.partial_fit(gauge.rows(X[rows]))
    components: Float64 = np.ascontiguousarray(pca.components_, np.float64)
    return components, np.sqrt(pca.explained_variance_) * gauge.scale
