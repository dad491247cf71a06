"""A partition that daskls does not have: leaves are the regions nearest to k-means centers.

This and a line in `daskls.partition.registry` are all that a kind of partition needs; an estimator
offers it by a method's `cut`.
"""

from dataclasses import dataclass
from typing import ClassVar

from daskls.kernels.gauge import find_gauge
from daskls.kernels.route import nearest_point
from daskls.partition.points import find_points
from daskls.partition.space import Space
from daskls.partition.tree import no_cuts


@dataclass(frozen=True, eq=False)
class ClusterCells(Space):
    """Regions nearest to centers; one of too many rows is cut by a tree, as all of space are."""

    center: object
    centers: object

    kind: ClassVar[str] = "ClusterCells"

    @classmethod
    def grow(cls, begun):
        """Cluster the sample into as many regions as would hold equal shares of it."""
        X = begun.sample.X
        n = -(-len(X) // begun.sampling.max_sampled_rows)
        found = find_points(X, find_gauge(X), n, begun.seed)
        return cls(found.center, found.points)

    @property
    def n_leaves(self):
        return len(self.centers)

    def find(self, X):
        return [nearest_point(X, self.center, self.centers)]

    def arrays(self):
        return {"center": self.center, "centers": self.centers}

    @classmethod
    def read(cls, group):
        center = group.read("center", shape=(None,), kind="f")
        return cls(center, group.read("centers", shape=(None, len(center)), kind="f"))


class UncutCells(ClusterCells):
    """The same, but its leaves stay whole, however many rows they have."""

    kind = "UncutCells"

    def cut_leaf(self, X, leaf, max_rows, seed=None):
        return no_cuts(self.center)
