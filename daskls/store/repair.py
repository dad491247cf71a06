"""Damaged parts of a store, and the parts that go with them, to be made again by the next fit.

A fit makes a part from its inputs with the same bits again, so a damaged part is removed, and so
is what was made from it where that would need more than the part alone.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from daskls.errors import DamageError, StoreError
from daskls.store.artifacts import Location, open_store
from daskls.store.backend import Backend
from daskls.store.groups import DESCRIPTION, check_seal, open_group, read_attributes
from daskls.store.layout import HOLD_ROOT_COPY, MODEL_KIND, READABLE, ROOT_COPY, Root
from daskls.store.models import bundle_key, finished_bundles
from daskls.store.packs import check_pack

__all__ = ["check_part", "drop_parts", "heal_root", "list_parts", "part_of"]

# Groups below the root that a fit writes.
GROUPS = ("scale", "calibration", "partition", "landmarks", "leaves", "centers", "index")
# Folders of groups, one a bundle; and of packs.
BUNDLES = ("bundles", "rows")
PACKS = ("sampling/*", "joint/*", "regions/*")
PACK = re.compile(r"\d{6,}-\d{6,}((\.[0-9a-f]+)?\.states|\.stats)?")
EVERYTHING = (*GROUPS, *BUNDLES, "exchange-*", "sampling", "joint")
# What goes with a part, as patterns of keys.
FOLLOWS = {
    "partition": EVERYTHING,
    "landmarks": ("joint", "index"),
    "rows/*": ("leaves",),
    # A round begins where the one before ended, whose states may be gone.
    "joint/select-*": ("joint/select-*",),
    "joint/train-*": ("joint/train-*",),
    "exchange-*/block-*": ("exchange-*/manifest",),
}


def list_parts(root: Location) -> list[tuple[str, int]]:
    """Return key and bytes of every group and pack of a store.

    Blocks of the exchange are not among them: the task that regroups a block checks it.
    """
    store = open_store(root)
    keys = [name for name in GROUPS if store.exists(name)]
    for kind in BUNDLES:
        keys += [bundle_key(*bundle, kind) for bundle in finished_bundles(store, kind)]
    for folder in store.find(*PACKS):
        names = filter(PACK.fullmatch, sorted(store.names(folder)))
        keys += [f"{folder}/{name}" for name in names]
    return [(key, store.nbytes(key)) for key in keys]


def check_part(root: Location, key: str) -> list[str]:
    """Read all of a part; return the files of it that are damaged."""
    try:
        if any(fnmatch(key, f"{folder}/*") for folder in PACKS):
            check_pack(root, key)
            return []
        return open_group(root, key).check()
    except DamageError as error:
        return [error.path]


def part_of(root: Path, file: str) -> str | None:
    """Return the key of the part that a file belongs to; None outside the store, or of its root.

    >>> part_of(Path("/m"), "/m/bundles/000000-000003/rows/c.0.0")
    'bundles/000000-000003'
    >>> part_of(Path("/m"), "/m/zarr.json")
    """
    try:
        names = Path(file).relative_to(root).parts
    except ValueError:
        return None
    if not names or names[0] == DESCRIPTION:
        return None
    depth = {"sampling": 3, "joint": 3, **dict.fromkeys(GROUPS, 1)}.get(names[0], 2)
    return "/".join(names[:depth])


def drop_parts(root: Root, keys: Iterable[str]) -> None:
    """Remove damaged parts and what goes with them; the model is complete no more.

    Parameters
    ----------
    root : Root
    keys : str. What of it is damaged; none where a part is missing.
    """
    gone = {other for key in keys for other in _with_followers(key)}
    attributes = root.attributes
    if root.is_complete and not root.store.exists("partition"):
        # The fit has removed its rows, so that nothing is left which a part could be made from.
        gone.update(EVERYTHING)
    again = {"selected": None} if gone & {"partition", "landmarks"} else {}
    # First: what is left if the removal is cut off is a model that was not finished. In any case:
    # a root that is written anew tells readers that what they keep is of yesterday.
    root.update(complete=False, **{name: None for name in again if name in attributes})
    root.store.drop(*gone, strict=True)


def _with_followers(key: str) -> set[str]:
    """Return patterns of a part and of what goes with it."""
    gone = {key}
    for pattern, followers in FOLLOWS.items():
        if fnmatch(key, pattern):
            gone.update(followers)
    if fnmatch(key, "sampling/kept/*"):
        # The model is the marker of both.
        gone.add(key.replace("sampling/kept", "bundles"))
    if fnmatch(key, "exchange-*/block-*"):
        # Rows, of any attempt, and their marker go together.
        gone.add(f"{key.partition('.')[0]}.*")
    return gone


def heal_root(location: Location) -> None:
    """Make sure that a store's root can be read: write it anew from its copy if it is damaged.

    Raises
    ------
    StoreError : there is no model, it has another format, or it is damaged and there is no copy
    """
    store = open_store(location)
    try:
        Root.open(store)
    except StoreError as error:
        if _is_of_another_format(store):
            raise
        if not _restore_root(store):
            if isinstance(error, DamageError):
                raise StoreError(
                    f"{error} But no copy of it is left, so that nobody can tell whose "
                    f"{store.where()} is: remove it, then fit again."
                ) from error
            raise


def _is_of_another_format(store: Backend) -> bool:
    try:
        attributes = read_attributes(store, "")
    except StoreError:
        return False
    return bool(
        attributes
        and attributes.get("kind") == MODEL_KIND
        and attributes.get("daskls_format") not in READABLE
    )


def _restore_root(store: Backend) -> bool:
    """Write the root from the copy that the index or the partition keeps; False without one."""
    for key in HOLD_ROOT_COPY:
        copy = _find_copy(store, key)
        if isinstance(copy, dict) and copy.get("kind") == MODEL_KIND:
            Root.create(store, {**copy, "complete": False})
            return True
    return False


def _find_copy(store: Backend, key: str) -> Any:
    """Return what a group says of the root, or the root itself where the two changed places."""
    try:
        attributes = read_attributes(store, key)
        if attributes is None:
            return None
        is_root = attributes.get("kind") == MODEL_KIND
        group = check_seal(store, "" if is_root else key, attributes)
    except StoreError:
        return None
    return group.attrs if is_root else group.attrs.get(ROOT_COPY)
