"""Space cut into the regions nearest to each of some points."""

from dataclasses import dataclass
from typing import ClassVar, Self

from daskls.kernels.route import nearest_point
from daskls.partition.space import Space
from daskls.records import AnyArray, Float64, Int32, Ints, Reals
from daskls.store.groups import Group

__all__ = ["VoronoiCells"]


@dataclass(frozen=True, eq=False)
class VoronoiCells(Space):
    """Space cut into the regions nearest to each of some points.

    Attributes
    ----------
    center : float64 array, shape (d,). Subtracted from every row first.
    points : float64 array, shape (n_leaves, d). Minus ``center``.
    """

    center: Float64
    points: Float64

    kind: ClassVar[str] = "VoronoiCells"

    @property
    def n_leaves(self) -> int:
        """The number of regions."""
        return len(self.points)

    def nearest(self, X: Reals) -> Int32:
        """Return the region of each row, int32 (m,)."""
        return nearest_point(X, self.center, self.points)

    def find(self, X: Reals) -> list[Ints]:
        """As of `Partition`."""
        return [self.nearest(X)]

    def arrays(self) -> dict[str, AnyArray]:
        """As of `Partition`."""
        return {"center": self.center, "points": self.points}

    @classmethod
    def read(cls, group: Group) -> Self:
        """As of `Partition`."""
        center = group.read("center", shape=(None,), kind="f")
        return cls(center, group.read("points", shape=(None, len(center)), kind="f"))
