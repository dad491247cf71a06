"""The kinds of partitions, by the names that stores know them by: one line a kind."""

from importlib import import_module

from daskls.errors import StoreError
from daskls.partition.base import Partition
from daskls.store.groups import Group
from daskls.store.guard import damaged

__all__ = ["KINDS", "find_kind"]

# Loaded when first read.
KINDS = {
    "Forest": "daskls.partition.forest:Forest",
    "Chunks": "daskls.partition.chunks:Chunks",
    "VoronoiCells": "daskls.partition.voronoi:VoronoiCells",
    "Refined": "daskls.partition.space:Refined",
    "Nested": "daskls.partition.nested:Nested",
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
