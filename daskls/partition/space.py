"""The base of partitions of space, and such a partition with its leaves cut further."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from daskls.partition.base import Partition
from daskls.partition.registry import find_kind
from daskls.partition.tree import Tree, read_trees, route_rows, tree_arrays
from daskls.records import AnyArray, Float64, Int64, Ints, Reals, RowNumbers
from daskls.store.groups import Group
from daskls.store.guard import damaged

__all__ = ["BRANCH_SIZES", "Refined", "Space", "find_base"]

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
