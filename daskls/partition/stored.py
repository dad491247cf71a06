"""Partitions in stores: written as arrays and attributes, read as the kind that these name.

A finished partition of two levels (`Nested`) leaves the trees inside its leaves in the bundles: the
trees of many cells are as large as a model's centers, 0.13 GB for a billion rows x 28.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from daskls.errors import StoreError
from daskls.partition.base import Partition, find_kind
from daskls.partition.space import BRANCH_SIZES, Refined, Space, find_base
from daskls.partition.tree import Tree, read_trees
from daskls.records import AnyArray, Float64, Int64
from daskls.store.artifact import Artifact, open_artifact
from daskls.store.caches import SizedCache, cached
from daskls.store.errors import damaged
from daskls.store.layout import Root
from daskls.store.models import bundle_key
from daskls.store.objects import BaseStore
from daskls.store.reader import ModelReader

P = TypeVar("P", bound=Partition)


def stored(partition: Partition) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    return partition.arrays(), {"partition": partition.kind, **partition.attributes()}


def write_partition(root: Root, partition: Partition) -> None:
    root.write("partition", *stored(partition))


def read_partition(part: Artifact) -> Partition:
    return find_kind(part).read(part)


def read_as(kind: type[P], part: Artifact) -> P:
    actual = find_kind(part)
    if actual is not kind:
        raise damaged(part.where(), f"its partition is of kind {actual.kind!r}")
    return kind.read(part)


@cached(maxsize=8)
def model_partition(reader: ModelReader) -> Partition:
    """Return a model's partition, whose leaves are its cells; StoreError where it has none."""
    index = reader.index
    if "partition" not in index.attrs:
        raise StoreError(
            f"The model at {reader.root.where()} is a {reader.meta['estimator']}, which does not "
            "cut space into cells and has no partition tree."
        )
    partition, where = read_partition(index), index.where()
    if partition.n_leaves != reader.n_cells:
        raise damaged(where, f"its partition has {partition.n_leaves} cells, not {reader.n_cells}")
    if isinstance(partition, Space) and len(partition.center) != reader.width:
        raise damaged(where, f"its partition has {len(partition.center)} features")
    return partition


# Stored in an index: the first cell of each leaf, followed by the number of cells.
LEAF_CELLS = "leaf_cells"
# The bytes of trees that a process keeps per model.
TREES_NBYTES = 32 << 20


@dataclass(frozen=True, eq=False)
class StoredTrees(Sequence[Tree]):
    """The trees in the leaves of a model, read bundle by bundle; the last ones read are kept."""

    store: BaseStore
    bundles: tuple[tuple[int, int], ...]
    first_cells: Int64
    center: Float64
    _cache: SizedCache = field(default_factory=lambda: SizedCache(TREES_NBYTES))

    def __len__(self) -> int:
        return len(self.first_cells) - 1

    def __getitem__(self, leaf: Any) -> Any:
        number = int(np.searchsorted(self._first_leaves, leaf, side="right")) - 1
        return self._read(number)[leaf - self.bundles[number][0]]

    def __iter__(self) -> Iterator[Tree]:
        for number in range(len(self.bundles)):
            yield from self._read(number)

    @cached_property
    def _first_leaves(self) -> Int64:
        return np.array([first for first, _ in self.bundles], np.int64)

    def _read(self, number: int) -> tuple[Tree, ...]:
        trees: tuple[Tree, ...] | None = self._cache.get(number)
        if trees is None:
            first, last = self.bundles[number]
            part, n_leaves = open_artifact(self.store, bundle_key(first, last)), last - first + 1
            n_nodes = int(self.first_cells[last + 1] - self.first_cells[first]) - n_leaves
            trees = read_trees(part, self.center, BRANCH_SIZES, n_leaves, n_nodes)
            counts = np.diff(self.first_cells[first : last + 2]).tolist()
            if [tree.n_leaves for tree in trees] != counts:
                raise damaged(part.where(), "its leaves hold other cells than the index says")
            self._cache.put(number, trees, sum(tree.directions.nbytes for tree in trees))
        return trees


@dataclass(frozen=True, eq=False)
class Nested(Refined):
    """A partition of space with a tree in each leaf, of which it holds some at a time."""

    branches: StoredTrees

    kind: ClassVar[str] = "Nested"

    @property
    def first_cells(self) -> Int64:
        return self.branches.first_cells

    def arrays(self) -> dict[str, AnyArray]:
        return {**self.base.arrays(), LEAF_CELLS: self.first_cells}

    @classmethod
    def read(cls, part: Artifact) -> Self:
        """``part`` is a model's index."""
        base = find_base(part)
        first_cells = part.read(LEAF_CELLS, shape=(base.n_leaves + 1,), kind="i")
        if first_cells[0] != 0 or (np.diff(first_cells) < 1).any():
            raise damaged(part.where(), "cells of leaves do not increase from 0")
        listed = part.read("bundles", shape=(None, 2), kind="i")
        bundles = tuple((int(first), int(last)) for first, last in listed)
        return cls(base, StoredTrees(part.store, bundles, first_cells, base.center))
