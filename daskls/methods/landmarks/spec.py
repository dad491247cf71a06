"""The parameters of L3-SVMs."""

from dataclasses import dataclass

__all__ = ["LandmarkSpec"]


@dataclass(frozen=True)
class LandmarkSpec:
    """Parameters of L3-SVMs beyond the solver's.

    Attributes
    ----------
    n_cells : int, or None for as many as the rows can bear. Clusters of k-means, at the most.
    n_landmarks : int, or None for the number of features
    landmarks : "random" or "pca"
    projection : "linear" or "rbf"
    """

    n_cells: int | None
    n_landmarks: int | None
    landmarks: str
    projection: str
