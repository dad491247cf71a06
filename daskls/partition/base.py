"""The contract of a partition: rows are assigned to leaves, leaves are cut further into cells.

A fit cuts twice. Stage 1 makes a partition from a sample, whose leaves are what rows are regrouped
by. Once all rows of a leaf lie together, `Partition.cut_leaf` cuts it into cells of bounded size,
and `Partition.join` makes the finished partition, whose leaves are the cells.

The kinds of partitions, by the names that stores know them by: one line a kind.

How much nearer the rows of a cell are to each other than to all others.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from daskls.errors import StoreError
from daskls.partition.tree import Tree
from daskls.records import AnyArray, Float64, Ints, Reals, RowNumbers
from daskls.store.files import damaged
from daskls.store.groups import Group


class Partition(Protocol):
    """An assignment of rows to leaves, once or several times over; a small record that tasks read.

    A new kind is a class in a module of its own and a line in `daskls.partition.base`. One of
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

        Call it by `daskls.partition.grow.cut_into_cells`, which checks the sizes of the cells.

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


# Loaded when first read.
KINDS = {
    "Forest": "daskls.partition.space:Forest",
    "Chunks": "daskls.partition.shuffle:Chunks",
    "VoronoiCells": "daskls.partition.space:VoronoiCells",
    "Refined": "daskls.partition.space:Refined",
    "Nested": "daskls.partition.stored:Nested",
}


def find_kind(group: Group, attribute: str = "partition") -> type[Partition]:
    """Return the class of the partition that a group says it holds.

    Raises
    ------
    DamageError : it holds none
    StoreError : it is of a kind that is not registered
    """
    name = group.attrs.get(attribute)
    if not isinstance(name, str):
        raise damaged(group.where(), f"it holds no partition, but {name!r}")
    if name not in KINDS:
        raise StoreError(
            f"{group.where()} holds a partition of kind {name!r}, which this daskls does not know; "
            f"it knows {', '.join(map(repr, KINDS))}. Upgrade daskls."
        )
    module, _, kind = KINDS[name].partition(":")
    found: type[Partition] = getattr(import_module(module), kind)
    return found


# Rows that are measured: as many as suffice for a share to 1 %.
SCATTER_ROWS = 16_384


@dataclass(frozen=True)
class Shrinkage:
    """What cells leave of the squared distances of rows to their mean.

    Attributes
    ----------
    n_cells : int
    share : float. Squared distances to the means of cells, of those to the mean of all.
    """

    n_cells: int
    share: float

    @property
    def dimensions(self) -> float:
        """The dimensions of a cube of even rows that as many equal cells would shrink as little.

        >>> Shrinkage(64, 1 / 16).dimensions
        3.0
        """
        shrunk = -math.log(self.share) if 0 < self.share < 1 else 0.0
        return 2 * math.log(self.n_cells) / shrunk if shrunk else math.inf


def measure_shrinkage(partition: Partition, X: Reals) -> Shrinkage | None:
    """Return what the cells of the first partition leave of the scatter of some rows.

    None where there are too few cells or rows to say, or cells have no place in space.

    Parameters
    ----------
    partition : Partition, whose leaves are the cells
    X : real array, shape (m, d). Sampled rows, as the partition sees them.
    """
    A = X[:: max(1, len(X) // SCATTER_ROWS)]
    found = partition.find(A)
    if found is None:
        return None
    n_cells = partition.n_leaves // partition.n_partitions
    within, left = _scatter(A, found[0])
    between, _ = _scatter(A, np.zeros(len(A), np.int64))
    # Means of few rows lie nearer to them than those of all rows of a cell do.
    if n_cells < 2 or left < len(A) / 2 or not between:
        return None
    return Shrinkage(n_cells, within / left * (len(A) - 1) / between)


def _scatter(A: Reals, groups: Ints) -> tuple[float, int]:
    """Return squared distances of rows to the means of their groups, and degrees of freedom."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    total = 0.0
    for own in np.split(order, starts[1:]):
        rows: Float64 = A[own].astype(np.float64)
        total += float(((rows - rows.mean(axis=0)) ** 2).sum())
    return total, len(A) - len(starts)
