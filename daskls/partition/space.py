"""Partitions of space: Voronoi regions, forests of trees, and partitions whose leaves are cut."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np

from daskls.kernels.landmarks import find_normalization
from daskls.kernels.route import nearest_point
from daskls.partition.base import Partition, find_kind
from daskls.partition.tree import Tree, graft, read_trees, route_rows, tree_arrays
from daskls.records import AnyArray, Float64, Int32, Int64, Ints, Reals, RowNumbers
from daskls.seeds import BRANCH, CLUSTERS, TRUNK
from daskls.store.artifact import Artifact
from daskls.store.errors import damaged

# The stored array of node counts of the trees in the leaves of a refined partition or a bundle.
BRANCH_SIZES = "branch_nodes"


class Space:
    """The base of partitions of space; a subclass adds ``center``, ``n_leaves``, `find`, `arrays`.

    Large leaves are cut by trees; the finished partition is the first one with a tree in each leaf.
    """

    kind: ClassVar[str]
    center: Float64

    @property
    def n_partitions(self) -> int:
        return 1

    def partition_of(self, leaf: int) -> int:
        return 0

    def find(self, X: Reals) -> list[Ints]:
        raise NotImplementedError

    def assign(self, X: Reals, numbers: RowNumbers) -> Iterator[Ints]:
        """Training rows are found as queries are."""
        yield from self.find(X)

    def cut_leaf(self, X: Reals, leaf: int, max_rows: int, seed: int | None = None) -> Tree:
        # Imported here so that a process that only predicts never loads it.
        from daskls.partition.grow import grow_tree

        return grow_tree(X, max_rows, self.center)

    def join(self, branches: Sequence[Tree]) -> Partition:
        return refine(self, branches)  # type: ignore[arg-type]

    def attributes(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, eq=False)
class Refined(Space):
    """A partition of space with a tree in each leaf of ``base``; cells come leaf by leaf."""

    base: Any
    branches: Sequence[Tree]

    kind: ClassVar[str] = "Refined"

    @property
    def center(self) -> Float64:  # type: ignore[override]
        center: Float64 = self.base.center
        return center

    @cached_property
    def first_cells(self) -> Int64:
        return np.cumsum([0, *(branch.n_leaves for branch in self.branches)])

    @property
    def n_leaves(self) -> int:
        return int(self.first_cells[-1])

    @property
    def n_partitions(self) -> int:
        return int(self.base.n_partitions)

    def partition_of(self, leaf: int) -> int:
        cut = int(np.searchsorted(self.first_cells, leaf, side="right")) - 1
        return int(self.base.partition_of(cut))

    def find(self, X: Reals) -> list[Ints]:
        return [self._find_in(X, leaves) for leaves in self.base.find(X)]

    def _find_in(self, X: Reals, leaves: Ints) -> Ints:
        cells = self.first_cells[leaves]
        order = np.argsort(leaves, kind="stable")
        touched, starts = np.unique(leaves[order], return_index=True)
        # Leaf by leaf, in order: trees that are read from a store come bundle by bundle.
        for leaf, rows in zip(touched.tolist(), np.split(order, starts[1:]), strict=True):
            if self.first_cells[leaf + 1] - self.first_cells[leaf] > 1:
                cells[rows] += route_rows(self.branches[leaf], X[rows])
        return cells

    def arrays(self) -> dict[str, AnyArray]:
        return {**self.base.arrays(), **tree_arrays(self.branches, BRANCH_SIZES)}

    def attributes(self) -> dict[str, Any]:
        return {"base": self.base.kind, **self.base.attributes()}

    @classmethod
    def read(cls, part: Artifact) -> Self:
        base = find_base(part)
        return cls(base, read_trees(part, base.center, BRANCH_SIZES, base.n_leaves))


def find_base(part: Artifact) -> Any:
    """Return the partition of space whose leaves the trees of a part cut.

    DamageError where the base is not a partition of space.
    """
    base = find_kind(part, "base").read(part)
    if not isinstance(base, Space):
        raise damaged(part.where(), "the base of its trees is not a partition of space")
    return base


def refine(base: Partition, branches: Sequence[Tree]) -> Partition:
    """Return a partition of space with a tree in each leaf; ``base`` itself if no tree cuts."""
    if all(branch.n_leaves == 1 for branch in branches):
        return base
    assert isinstance(base, Space)
    return Refined(base, tuple(replace(branch, center=base.center) for branch in branches))


@dataclass(frozen=True, eq=False)
class VoronoiCells(Space):
    """Space cut into the regions nearest to each of some points, around a center."""

    center: Float64
    points: Float64

    kind: ClassVar[str] = "VoronoiCells"

    @property
    def n_leaves(self) -> int:
        return len(self.points)

    def nearest(self, X: Reals) -> Int32:
        return nearest_point(X, self.center, self.points)

    def find(self, X: Reals) -> list[Ints]:
        return [self.nearest(X)]

    def arrays(self) -> dict[str, AnyArray]:
        return {"center": self.center, "points": self.points}

    @classmethod
    def read(cls, part: Artifact) -> Self:
        center = part.read("center", shape=(None,), kind="f")
        return cls(center, part.read("points", shape=(None, len(center)), kind="f"))


# Rows per batch of k-means.
KMEANS_BATCH_ROWS = 8192


def cluster_cells(X: Reals, n_cells: int, seed: int) -> VoronoiCells:
    """Return the Voronoi regions of the centers that mini-batch k-means finds.

    Rows are normalized first, so that units do not matter. Regions without rows are dropped.
    """
    # Imported here so that a process that only assigns rows never loads it.
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    normalization = find_normalization(X)
    kmeans = MiniBatchKMeans(
        min(n_cells, len(X)),
        batch_size=KMEANS_BATCH_ROWS,
        n_init=3,
        random_state=CLUSTERS.generator(seed),
    )
    # Threads of OpenMP would sum in an order of their own, which changes bits.
    with threadpool_limits(1, user_api="openmp"):
        points = kmeans.fit(normalization.rows(X)).cluster_centers_.astype(np.float64)
    cells = VoronoiCells(normalization.center, points * normalization.scale)
    used = np.unique(cells.nearest(X))
    return VoronoiCells(normalization.center, np.ascontiguousarray(cells.points[used]))


# The stored array of node counts of a forest's trees.
TREE_SIZES = "n_nodes"


@dataclass(frozen=True, eq=False)
class Forest(Space):
    """Independent trees over the same space, one partition each; leaves come tree by tree."""

    trees: tuple[Tree, ...]

    kind: ClassVar[str] = "Forest"

    @property
    def center(self) -> Float64:  # type: ignore[override]
        return self.trees[0].center

    @property
    def n_partitions(self) -> int:
        return len(self.trees)

    @property
    def first_leaves(self) -> list[int]:
        return [0, *accumulate(tree.n_leaves for tree in self.trees)]

    @property
    def n_leaves(self) -> int:
        return self.first_leaves[-1]

    def partition_of(self, leaf: int) -> int:
        return bisect_right(self.first_leaves, leaf) - 1

    def assign(self, X: Reals, numbers: RowNumbers) -> Iterator[Ints]:
        """The leaves of one partition are in memory at a time."""
        for tree, first in zip(self.trees, self.first_leaves, strict=False):
            yield route_rows(tree, X) + first

    def find(self, X: Reals) -> list[Ints]:
        trees = zip(self.trees, self.first_leaves, strict=False)
        return [first + route_rows(tree, X) for tree, first in trees]

    def cut_leaf(self, X: Reals, leaf: int, max_rows: int, seed: int | None = None) -> Tree:
        """All partitions but the first draw their cuts, as their trunks did."""
        # Imported here so that a process that only predicts never loads it.
        from daskls.partition.grow import grow_tree

        if seed is None or not self.partition_of(leaf):
            return grow_tree(X, max_rows, self.center)
        return grow_tree(X, max_rows, self.center, BRANCH(seed, leaf=leaf))

    def join(self, branches: Sequence[Tree]) -> "Forest":
        trunks = zip(self.trees, self.first_leaves, strict=False)
        return Forest(tuple(graft(t, branches[first : first + t.n_leaves]) for t, first in trunks))

    def arrays(self) -> dict[str, AnyArray]:
        return {"center": self.center, **tree_arrays(self.trees, TREE_SIZES)}

    @classmethod
    def read(cls, part: Artifact) -> Self:
        center = part.read("center", shape=(None,), kind="f")
        return cls(read_trees(part, center, TREE_SIZES))


def grow_forest(X: Reals, max_rows: int, center: Float64, n_partitions: int, seed: int) -> Forest:
    """Grow one tree per partition; all but the first draw their cuts."""
    from daskls.partition.grow import grow_tree

    further = range(1, n_partitions)
    seeds = [None, *(TRUNK(seed, partition=number) for number in further)]
    return Forest(tuple(grow_tree(X, max_rows, center, tree_seed) for tree_seed in seeds))
