"""The parameters of L3-SVMs."""

from dataclasses import dataclass

__all__ = ["LandmarkSpec"]


@dataclass(frozen=True)
class LandmarkSpec:
    """Parameters of L3-SVMs beyond the solver's.

    Attributes
    ----------
    n_cells : int, or None to derive it from the number of rows. Maximum number of clusters.
    n_landmarks : int, or None for the number of features
    landmarks : "random" or "pca"
    projection : "linear" or "rbf"
    """

    n_cells: int | None
    n_landmarks: int | None
    landmarks: str
    projection: str
