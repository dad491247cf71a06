"""Partitions in stores: written as arrays and attributes, read as the kind that these name."""

from typing import Any, TypeVar

from daskls.errors import StoreError
from daskls.partition.base import Partition
from daskls.partition.registry import find_kind
from daskls.partition.space import Space
from daskls.records import AnyArray
from daskls.store.caches import kept
from daskls.store.checks import check_tiles
from daskls.store.groups import Group
from daskls.store.guard import damaged
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

__all__ = ["model_partition", "read_as", "read_partition", "stored", "write_partition"]

P = TypeVar("P", bound=Partition)


def stored(partition: Partition) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return the arrays and attributes of a group that holds a partition."""
    return partition.arrays(), {"partition": partition.kind, **partition.attributes()}


def write_partition(root: Root, partition: Partition) -> None:
    """Write the partition by which rows are regrouped."""
    root.write_group("partition", *stored(partition))


def read_partition(group: Group) -> Partition:
    """Return the partition that a group holds.

    Raises
    ------
    DamageError
    """
    return find_kind(group).read(group)


def read_as(kind: type[P], group: Group) -> P:
    """Return the partition that a group holds, which is of one kind.

    Raises
    ------
    DamageError : it is damaged, or of another kind
    """
    found = find_kind(group)
    if found is not kind:
        raise damaged(group.where(), f"its partition is of kind {found.kind!r}")
    return kind.read(group)


@kept(maxsize=8)
def model_partition(reader: ModelReader) -> Partition:
    """Return the finished partition of a model, whose leaves are its cells.

    Raises
    ------
    StoreError : when the model is one without a partition
    DamageError : when it is one of other cells or features
    """
    index = reader.index
    if "partition" not in index.attrs:
        raise StoreError(
            f"The model at {reader.root.where()} is a {reader.meta['estimator']}, which does not "
            "cut space into cells and has no partition tree."
        )
    partition, where = read_partition(index), index.where()
    check_tiles(where, [(own.first_leaf, own.last_leaf) for own in reader.bundles], None)
    if partition.n_leaves != reader.n_cells:
        raise damaged(where, f"its partition has {partition.n_leaves} cells, not {reader.n_cells}")
    if isinstance(partition, Space) and len(partition.center) != reader.width:
        raise damaged(where, f"its partition is of {len(partition.center)} features")
    return partition
