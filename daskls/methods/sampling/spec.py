"""The parameters of methods that train one SVM on a chosen sample."""

from dataclasses import dataclass

from daskls.partition.subsamples import Draws
from daskls.plan import n_selecting

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
    selects : bool. Whether C and gamma are selected from candidates, on a few rows.
    percentiles : candidate widths as percentiles of these rows' distances, decreasing; None where
        gamma is given
    """

    sample_fraction: float | None
    n_subsamples: int | None = 1
    radius_scale: float | None = None
    n_neighbors: int = 5
    selects: bool = False
    percentiles: tuple[float, ...] | None = None

    def n_selecting(self, draws: Draws) -> int:
        """Return how many rows C and gamma are selected on; none of them validates."""
        if not self.selects:
            return 0
        return min(n_selecting(draws.n_rows), draws.n_sampled + draws.n_others)
