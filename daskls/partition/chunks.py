"""Rows assigned to chunks at random, regardless of their features."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from daskls.partition.shuffle import shuffle_numbers
from daskls.partition.tree import Tree, no_cuts
from daskls.records import AnyArray, Ints, Reals, RowNumbers
from daskls.seeds import CHUNKS
from daskls.store.groups import Group
from daskls.store.guard import damaged, malformed_is_damage

__all__ = ["Chunks"]


@dataclass(frozen=True)
class Chunks:
    """Rows assigned at random to chunks of near-equal size, by their numbers alone.

    Attributes
    ----------
    n_rows : int
    n_leaves : int. Chunks.
    seed : int
    """

    n_rows: int
    n_leaves: int
    seed: int

    kind: ClassVar[str] = "Chunks"

    @property
    def n_partitions(self) -> int:
        """As of `Partition`."""
        return 1

    def partition_of(self, leaf: int) -> int:
        """As of `Partition`."""
        return 0

    def assign(self, X: Reals, numbers: RowNumbers) -> Iterator[Ints]:
        """As of `Partition`; chunk sizes differ by one row at most."""
        positions = shuffle_numbers(numbers, self.n_rows, CHUNKS(self.seed))
        yield positions * self.n_leaves // self.n_rows

    def find(self, X: Reals) -> None:
        """As of `Partition`: a chunk has no position in space."""

    def cut_leaf(self, X: Reals, leaf: int, max_rows: int, seed: int | None = None) -> Tree:
        """As of `Partition`: a chunk is one cell."""
        return no_cuts(np.zeros(X.shape[1]))

    def join(self, branches: Sequence[Tree]) -> "Chunks":
        """As of `Partition`."""
        return self

    def arrays(self) -> dict[str, AnyArray]:
        """As of `Partition`."""
        return {}

    def attributes(self) -> dict[str, Any]:
        """As of `Partition`."""
        return asdict(self)

    @classmethod
    def read(cls, group: Group) -> Self:
        """As of `Partition`."""
        with malformed_is_damage(group.where()):
            given = {field.name: group.attrs[field.name] for field in fields(cls)}
        are_numbers = all(type(value) is int for value in given.values())
        if not (are_numbers and 0 < given["n_leaves"] <= given["n_rows"]):
            raise damaged(group.where(), f"rows cannot be assigned to chunks by {given}")
        return cls(**given)
