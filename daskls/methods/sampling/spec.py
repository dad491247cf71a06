"""The parameters of methods that train one SVM on a chosen sample."""

from dataclasses import dataclass

__all__ = ["SamplingSpec"]


@dataclass(frozen=True)
class SamplingSpec:
    """Parameters of methods that train one SVM on a chosen sample, beyond the solver's.

    Attributes
    ----------
    sample_fraction : float, in (0, 1]. Of all rows, in the first subsamples. None, as for
        n_subsamples: by the number of rows and classes.
    n_subsamples : int, or None
    radius_scale : factor of the median radius, or None for a search
    n_neighbors : int. Of each support row, that a round adds.
    """

    sample_fraction: float | None
    n_subsamples: int | None = 1
    radius_scale: float | None = None
    n_neighbors: int = 5
