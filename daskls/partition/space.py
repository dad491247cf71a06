"""The base of partitions of space, and such a partition with its leaves cut further.

Space cut into the regions nearest to each of some points.

Points whose Voronoi regions are the cells: k-means on the seeded sample.

Space cut by trees of half-spaces, one a partition.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np

from daskls.kernels.landmarks import Gauge
from daskls.kernels.route import nearest_point
from daskls.partition.base import Partition, find_kind
from daskls.partition.tree import Tree, graft, read_trees, route_rows, tree_arrays
from daskls.records import AnyArray, Float64, Int32, Int64, Ints, Reals, RowNumbers
from daskls.seeds import BRANCH, CLUSTERS, TRUNK
from daskls.store.files import damaged
from daskls.store.groups import Group

# Of the trees in the leaves of a refined partition, or of a bundle: their numbers of nodes.
BRANCH_SIZES = "branch_nodes"


class Space:
    """The base of partitions of space: one defines ``center``, ``n_leaves``, `find` and its arrays.

    A leaf that is too large is cut by a tree of half-spaces; the finished partition is the first
    one with a tree in each leaf.
    """

    kind: ClassVar[str]
    center: Float64

    @property
    def n_partitions(self) -> int:
        """As of `Partition`."""
        return 1

    def partition_of(self, leaf: int) -> int:
        """As of `Partition`."""
        return 0

    def find(self, X: Reals) -> list[Ints]:
        """As of `Partition`."""
        raise NotImplementedError

    def assign(self, X: Reals, numbers: RowNumbers) -> Iterator[Ints]:
        """As of `Partition`: training rows lie where queries do."""
        yield from self.find(X)

    def cut_leaf(self, X: Reals, leaf: int, max_rows: int, seed: int | None = None) -> Tree:
        """As of `Partition`."""
        # Here, so that a process which only predicts never loads it.
        from daskls.partition.grow import grow_tree

        return grow_tree(X, max_rows, self.center)

    def join(self, branches: Sequence[Tree]) -> Partition:
        """As of `Partition`."""
        return refine(self, branches)  # type: ignore[arg-type]

    def attributes(self) -> dict[str, Any]:
        """As of `Partition`."""
        return {}


@dataclass(frozen=True, eq=False)
class Refined(Space):
    """A partition of space with a tree in each leaf; cells are numbered leaf by leaf.

    Attributes
    ----------
    base : Partition, of space
    branches : sequence of Tree, one a leaf of ``base``, around its center
    """

    base: Any
    branches: Sequence[Tree]

    kind: ClassVar[str] = "Refined"

    @property
    def center(self) -> Float64:  # type: ignore[override]
        """The center of the first cut, float64 (d,)."""
        center: Float64 = self.base.center
        return center

    @cached_property
    def first_cells(self) -> Int64:
        """The first cell of each leaf, and the number of cells last."""
        return np.cumsum([0, *(branch.n_leaves for branch in self.branches)])

    @property
    def n_leaves(self) -> int:
        """The number of cells."""
        return int(self.first_cells[-1])

    @property
    def n_partitions(self) -> int:
        """As of `Partition`."""
        return int(self.base.n_partitions)

    def partition_of(self, leaf: int) -> int:
        """As of `Partition`."""
        cut = int(np.searchsorted(self.first_cells, leaf, side="right")) - 1
        return int(self.base.partition_of(cut))

    def find(self, X: Reals) -> list[Ints]:
        """As of `Partition`."""
        return [self._find_in(X, leaves) for leaves in self.base.find(X)]

    def _find_in(self, X: Reals, leaves: Ints) -> Ints:
        """Return the cell of each row, given its leaf."""
        cells = self.first_cells[leaves]
        order = np.argsort(leaves, kind="stable")
        touched, starts = np.unique(leaves[order], return_index=True)
        # By increasing leaves: where trees are read, those of neighbors come together.
        for leaf, own in zip(touched.tolist(), np.split(order, starts[1:]), strict=True):
            if self.first_cells[leaf + 1] - self.first_cells[leaf] > 1:
                cells[own] += route_rows(self.branches[leaf], X[own])
        return cells

    def arrays(self) -> dict[str, AnyArray]:
        """As of `Partition`: those of the first cut, and the trees."""
        return {**self.base.arrays(), **tree_arrays(self.branches, BRANCH_SIZES)}

    def attributes(self) -> dict[str, Any]:
        """As of `Partition`."""
        return {"base": self.base.kind, **self.base.attributes()}

    @classmethod
    def read(cls, group: Group) -> Self:
        """As of `Partition`."""
        base = find_base(group)
        return cls(base, read_trees(group, base.center, BRANCH_SIZES, base.n_leaves))


def find_base(group: Group) -> Any:
    """Return the partition of space whose leaves a group's trees cut.

    Raises
    ------
    DamageError : it is none
    """
    base = find_kind(group, "base").read(group)
    if not isinstance(base, Space):
        raise damaged(group.where(), "what its trees cut is no partition of space")
    return base


def refine(base: Partition, branches: Sequence[Tree]) -> Partition:
    """Return a partition of space with a tree in each leaf; itself where no tree cuts."""
    if all(branch.n_leaves == 1 for branch in branches):
        return base
    assert isinstance(base, Space)
    return Refined(base, tuple(replace(branch, center=base.center) for branch in branches))


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


TREE_SIZES = "n_nodes"


@dataclass(frozen=True, eq=False)
class Forest(Space):
    """Independent partitions of the same space, around one center.

    Leaves are numbered through all of them: those of a partition follow the last one's.

    Attributes
    ----------
    trees : tuple of Tree, one a partition
    """

    trees: tuple[Tree, ...]

    kind: ClassVar[str] = "Forest"

    @property
    def center(self) -> Float64:  # type: ignore[override]
        """The center of every tree, float64 (d,)."""
        return self.trees[0].center

    @property
    def n_partitions(self) -> int:
        """The number of trees."""
        return len(self.trees)

    @property
    def first_leaves(self) -> list[int]:
        """The number of each partition's first leaf; the number of all leaves last."""
        return [0, *accumulate(tree.n_leaves for tree in self.trees)]

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all partitions."""
        return self.first_leaves[-1]

    def partition_of(self, leaf: int) -> int:
        """As of `Partition`."""
        return bisect_right(self.first_leaves, leaf) - 1

    def assign(self, X: Reals, numbers: RowNumbers) -> Iterator[Ints]:
        """As of `Partition`; one partition's leaves at a time."""
        for tree, first in zip(self.trees, self.first_leaves, strict=False):
            yield route_rows(tree, X) + first

    def find(self, X: Reals) -> list[Ints]:
        """As of `Partition`."""
        trees = zip(self.trees, self.first_leaves, strict=False)
        return [first + route_rows(tree, X) for tree, first in trees]

    def cut_leaf(self, X: Reals, leaf: int, max_rows: int, seed: int | None = None) -> Tree:
        """As of `Partition`; further partitions draw their cuts here as in their trunks."""
        # Here, so that a process which only predicts never loads it.
        from daskls.partition.grow import grow_tree

        if seed is None or not self.partition_of(leaf):
            return grow_tree(X, max_rows, self.center)
        return grow_tree(X, max_rows, self.center, BRANCH(seed, leaf=leaf))

    def join(self, branches: Sequence[Tree]) -> "Forest":
        """As of `Partition`: trees down to the cells."""
        trunks = zip(self.trees, self.first_leaves, strict=False)
        return Forest(tuple(graft(t, branches[first : first + t.n_leaves]) for t, first in trunks))

    def arrays(self) -> dict[str, AnyArray]:
        """As of `Partition`."""
        return {"center": self.center, **tree_arrays(self.trees, TREE_SIZES)}

    @classmethod
    def read(cls, group: Group) -> Self:
        """As of `Partition`."""
        center = group.read("center", shape=(None,), kind="f")
        return cls(read_trees(group, center, TREE_SIZES))


def grow_forest(X: Reals, max_rows: int, center: Float64, n_partitions: int, seed: int) -> Forest:
    """Grow a tree a partition; the first draws nothing.

    Parameters
    ----------
    X, max_rows, center : as of `grow_tree`
    n_partitions : int
    seed : int. The fit's.
    """
    from daskls.partition.grow import grow_tree

    further = range(1, n_partitions)
    seeds = [None, *(TRUNK(seed, partition=number) for number in further)]
    return Forest(tuple(grow_tree(X, max_rows, center, own) for own in seeds))
