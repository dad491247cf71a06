"""The parameters of methods on neighborhoods."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

__all__ = ["NeighborSpec"]


@dataclass(frozen=True)
class NeighborSpec:
    """Parameters of methods on neighborhoods beyond the solver's.

    Attributes
    ----------
    n_neighbors : tuple of int. Candidates of k.
    n_assigned : k', or None for k // 2
    assign : the center whose model predicts a query: that of its nearest row ("point"), the nearest
        one ("center"), or the nearest ``n_centers`` together ("k_centers")
    selection : "local", "grid", "each"; of queries that train, "left_out"; or None
    percentiles : widths as percentiles of a neighborhood's distances, decreasing; None where gamma
        is given
    n_selected : int. Neighborhoods that local selection evaluates.
    """

    n_neighbors: tuple[int, ...]
    n_assigned: int | None = None
    assign: str = "point"
    n_centers: int = 3
    selection: str | None = None
    percentiles: tuple[float, ...] | None = None
    n_selected: int = 10

    # Whether neighbors vote, or are averaged, rather than train a model.
    votes: ClassVar[bool] = False

    def inner(self, n_neighbors: int) -> int:
        """Return k' for a candidate of k."""
        return self.n_assigned or max(n_neighbors // 2, 1)

    def capped(self, n_rows: int) -> Self:
        """Return the method with at most all rows as neighbors."""
        candidates = tuple(sorted({min(k, n_rows) for k in self.n_neighbors}))
        n_assigned = self.n_assigned and min(self.n_assigned, n_rows)
        return replace(self, n_neighbors=candidates, n_assigned=n_assigned)
