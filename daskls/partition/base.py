"""The contract of a partition: rows are assigned to leaves, leaves are cut further into cells.

A fit cuts twice. Stage 1 makes a partition from a sample, whose leaves are what rows are regrouped
by. Once all rows of a leaf lie together, `Partition.cut_leaf` cuts it into cells of bounded size,
and `Partition.join` makes the finished partition, whose leaves are the cells.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol, Self

from daskls.partition.tree import Tree
from daskls.records import AnyArray, Ints, Reals, RowNumbers
from daskls.store.groups import Group

__all__ = ["Partition"]


class Partition(Protocol):
    """An assignment of rows to leaves, once or several times over; a small record that tasks read.

    A new kind is a class in a module of its own and a line in `daskls.partition.registry`. One of
    space is best made from `daskls.partition.space.Space`.

    Attributes
    ----------
    kind : str. Its name in stores and in the registry.
    """

    kind: ClassVar[str]

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all partitions; those of one follow those of the one before."""

    @property
    def n_partitions(self) -> int:
        """The number of partitions of the same rows."""

    def partition_of(self, leaf: int) -> int:
        """Return the partition of a leaf."""

    def assign(self, X: Reals, numbers: RowNumbers) -> Iterator[Ints]:
        """Yield the leaf of each training row, int array (m,), once a partition.

        Parameters
        ----------
        X : real array, shape (m, d)
        numbers : int array, shape (m,). Global row numbers.
        """

    def find(self, X: Reals) -> list[Ints] | None:
        """Return the leaf of each query, int array (m,), once a partition.

        None where leaves have no place in space: then all of them predict every query.
        """

    def cut_leaf(self, X: Reals, leaf: int, max_rows: int, seed: int | None = None) -> Tree:
        """Return the tree that cuts a leaf into cells of at most ``max_rows`` rows.

        Call it by `daskls.partition.cells.cut_into_cells`, which checks the sizes of the cells.

        Parameters
        ----------
        X : real array, shape (m, d). All rows of the leaf.
        leaf : int
        max_rows : int. Equal rows stay together, however many they are.
        seed : int, or None. The fit's, for kinds that draw their cuts.
        """

    def join(self, branches: Sequence[Tree]) -> "Partition":
        """Return the finished partition, whose leaves are the cells.

        Parameters
        ----------
        branches : sequence of Tree. What `cut_leaf` gave, leaf by leaf; the center, which is not
            stored with them, may be any.
        """

    def arrays(self) -> dict[str, AnyArray]:
        """Return the arrays to store."""

    def attributes(self) -> dict[str, Any]:
        """Return the JSON attributes to store beside them."""

    @classmethod
    def read(cls, group: Group) -> Self:
        """Return the partition that `arrays` and `attributes` took apart.

        Raises
        ------
        DamageError : they are no partition
        """
