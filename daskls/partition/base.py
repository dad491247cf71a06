"""The contract of a partition: it assigns rows to leaves, and its leaves are cut into cells.

Stage 1 grows a partition on a sample; rows are regrouped by its leaves. Once all rows of a leaf lie
together, `Partition.cut_leaf` cuts it into cells of bounded size. `Partition.join` then returns the
finished partition, whose leaves are the cells.
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
from daskls.store.artifact import Artifact
from daskls.store.errors import damaged


class Partition(Protocol):
    """Assigns rows to leaves, in one or several partitions; a small record that every task reads.

    A partition of space is best based on `daskls.partition.space.Space`.
    """

    kind: ClassVar[str]

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all partitions; leaves are numbered partition by partition."""

    @property
    def n_partitions(self) -> int:
        """The number of partitions of the same rows."""

    def partition_of(self, leaf: int) -> int:
        """Return the partition that a leaf belongs to."""

    def assign(self, X: Reals, numbers: RowNumbers) -> Iterator[Ints]:
        """Yield the leaf of each training row, (m,), of global numbers, once per partition."""

    def find(self, X: Reals) -> list[Ints] | None:
        """Yield the leaf of each query, (m,), once per partition; None if leaves are no regions."""

    def cut_leaf(self, X: Reals, leaf: int, max_rows: int, seed: int | None = None) -> Tree:
        """Return the tree that cuts all rows of a leaf into cells of at most ``max_rows`` rows.

        Equal rows stay together. Call it through `daskls.partition.grow.cut_into_cells`, which
        checks the cell sizes. The fit's seed is for kinds that draw their cuts.
        """

    def join(self, branches: Sequence[Tree]) -> "Partition":
        """Return the finished partition, whose leaves are the cells that these trees cut."""

    def arrays(self) -> dict[str, AnyArray]:
        """Return the arrays to store."""

    def attributes(self) -> dict[str, Any]:
        """Return the JSON attributes to store beside the arrays."""

    @classmethod
    def read(cls, part: Artifact) -> Self:
        """Return the partition whose `arrays` and `attributes` a part holds.

        Raises
        ------
        DamageError : they are not a valid partition
        """


# The class of each kind, imported when a partition of that kind is first read.
KINDS = {
    "Forest": "daskls.partition.space:Forest",
    "Chunks": "daskls.partition.shuffle:Chunks",
    "VoronoiCells": "daskls.partition.space:VoronoiCells",
    "Refined": "daskls.partition.space:Refined",
    "Nested": "daskls.partition.stored:Nested",
}


def find_kind(part: Artifact, attribute: str = "partition") -> type[Partition]:
    """Return the class of the partition that a part holds; StoreError for an unknown kind."""
    name = part.attrs.get(attribute)
    if not isinstance(name, str):
        raise damaged(part.where(), f"it holds no partition, but {name!r}")
    if name not in KINDS:
        raise StoreError(
            f"{part.where()} holds a partition of kind {name!r}, which this daskls does not know; "
            f"it knows {', '.join(map(repr, KINDS))}. Upgrade daskls."
        )
    module, _, kind = KINDS[name].partition(":")
    cls: type[Partition] = getattr(import_module(module), kind)
    return cls


# Rows to measure: enough to know the share to about 1 %.
SCATTER_ROWS = 16_384


@dataclass(frozen=True)
class Shrinkage:
    """The share of the rows' scatter around their mean that remains within the cells."""

    n_cells: int
    share: float

    @property
    def dimensions(self) -> float:
        """The dimension of a uniform cube whose scatter as many equal cells would reduce as little.

        >>> Shrinkage(64, 1 / 16).dimensions
        3.0
        """
        shrunk = -math.log(self.share) if 0 < self.share < 1 else 0.0
        return 2 * math.log(self.n_cells) / shrunk if shrunk else math.inf


def measure_shrinkage(partition: Partition, X: Reals) -> Shrinkage | None:
    """Return the shrinkage by the first partition's cells; None if too few rows can tell."""
    A = X[:: max(1, len(X) // SCATTER_ROWS)]
    cells = partition.find(A)
    if cells is None:
        return None
    n_cells = partition.n_leaves // partition.n_partitions
    within, n_free = _scatter(A, cells[0])
    between, _ = _scatter(A, np.zeros(len(A), np.int64))
    # The mean of few rows lies nearer to them than the mean of all rows of the cell does: the
    # degrees of freedom correct for that, unless too few are left.
    if n_cells < 2 or n_free < len(A) / 2 or not between:
        return None
    return Shrinkage(n_cells, within / n_free * (len(A) - 1) / between)


def _scatter(A: Reals, groups: Ints) -> tuple[float, int]:
    """Return the summed squared distances of rows to their group means, and degrees of freedom."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    total = 0.0
    for members in np.split(order, starts[1:]):
        rows: Float64 = A[members].astype(np.float64)
        total += float(((rows - rows.mean(axis=0)) ** 2).sum())
    return total, len(A) - len(starts)
