"""Space cut by trees of half-spaces, one a partition."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, Self

from daskls.partition.space import Space
from daskls.partition.tree import Tree, graft, read_trees, route_rows, tree_arrays
from daskls.records import AnyArray, Float64, Ints, Reals, RowNumbers
from daskls.seeds import BRANCH, TRUNK
from daskls.store.groups import Group

__all__ = ["Forest", "grow_forest"]

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
