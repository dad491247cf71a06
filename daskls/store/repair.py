"""Repair of a store: its damaged parts are removed, for the next fit to make them again.

A fit remakes a part from its inputs with the same bits. So a damaged part is removed, together with
what was made from it where remaking the part alone is not enough.
"""

import re
from collections.abc import Iterable
from typing import Any

from daskls.errors import DamageError, StoreError
from daskls.store.artifacts import Location, open_store
from daskls.store.backend import Backend
from daskls.store.contents import SHARED_PARTS, StorePart
from daskls.store.flat import DESCRIPTION
from daskls.store.groups import check_seal, has_group, open_group, read_attributes
from daskls.store.layout import HOLD_ROOT_COPY, MODEL_FORMAT, MODEL_KIND, ROOT_COPY, Root
from daskls.store.models import bundle_key, finished_bundles
from daskls.store.packs import read_pack

Parts = tuple[StorePart, ...]

# Names of packs, and of the data that they name by an attempt.
PACK = re.compile(r"\d{6,}-\d{6,}(\.\w+)*")


def list_parts(root: Location, own: Parts) -> list[tuple[str, bool, int]]:
    """Return the key of each group and pack of a store, whether it is a pack, and its bytes.

    Blocks of the exchange are not among them: the task that regroups a block checks it. `own` are
    the parts of the store's method.
    """
    store, table = open_store(root), (*SHARED_PARTS, *own)
    keys = [key for key in _keys(table, "group") if has_group(store, key)]
    for key in _keys(table, "bundles"):
        kind = key.removesuffix("/*")
        keys += [bundle_key(*bundle, kind) for bundle in finished_bundles(store, kind)]
    packs = []
    for folder in store.find(*(key.rpartition("/")[0] for key in _keys(table, "packs"))):
        names = filter(PACK.fullmatch, sorted(store.names(folder)))
        packs += [f"{folder}/{name}" for name in names]
    found = [*((key, False) for key in keys), *((key, True) for key in packs)]
    return [(key, is_pack, store.nbytes(key)) for key, is_pack in found]


def _keys(table: Parts, kind: str) -> list[str]:
    return list(dict.fromkeys(part.key for part in table if part.kind == kind))


def check_part(root: Location, key: str, is_pack: bool) -> list[str]:
    """Read a whole part; return its damaged files."""
    try:
        if is_pack:
            read_pack(root, key)
            return []
        return open_group(root, key).check()
    except DamageError as error:
        return [error.where]


def part_of(root: str, file: str, own: Parts = ()) -> str | None:
    """Return the key of the part that a file belongs to; None outside the store, or of its root.

    >>> part_of("/m", "/m/bundles/000000-000003/rows/c.0.0")
    'bundles/000000-000003'
    >>> part_of("/m", "/m/zarr.json")
    """
    if not file.startswith(f"{root}/"):
        return None
    names = file.removeprefix(f"{root}/").split("/")
    if names[0] == DESCRIPTION:
        return None
    for part in (*SHARED_PARTS, *own):
        key = "/".join(names[: part.key.count("/") + 1])
        if part.matches(key):
            return key
    return "/".join(names[:2])


def drop_parts(root: Root, keys: Iterable[str], own: Parts) -> None:
    """Remove damaged parts and what goes with them; the model is no longer complete.

    There are no keys if a part is missing; `own` are the parts of the store's method.
    """
    damaged, attributes = set(keys), root.attributes
    if root.is_complete and not has_group(root.store, "partition"):
        # The fit has removed its rows, so no part can be remade: start from the partition.
        damaged.add("partition")
    gone = {other for key in damaged for other in _with_followers(key, own)}
    reset = {name for part in (*SHARED_PARTS, *own) if part.key in gone for name in part.forgets}
    # First, so that an interrupted removal leaves an unfinished model. Unconditional, as the root's
    # new stamp tells readers that their caches are stale.
    root.update(complete=False, **{name: None for name in reset if name in attributes})
    root.store.drop(*gone, strict=True)


def _with_followers(key: str, own: Parts) -> set[str]:
    """Return patterns of a part and of all that is removed with it."""
    gone = {key}
    for part in (*SHARED_PARTS, *own):
        if part.matches(key):
            gone |= part.followers(key)
    # All parts of a method are made from the partition's leaves.
    return gone | {part.top for part in own} if key == "partition" else gone


def restore_root(location: Location) -> None:
    """Restore a store's root from its copy if it is damaged.

    StoreError when there is no model, it has another format, or it is damaged without a copy.
    """
    store = open_store(location)
    try:
        Root.open(store)
    except StoreError as error:
        found = _root_attributes(store)
        kind, version = ((found or {}).get(name) for name in ("kind", "daskls_format"))
        if kind == MODEL_KIND and version != MODEL_FORMAT:
            raise
        if _restore_root(store):
            return
        if isinstance(error, DamageError):
            raise StoreError(
                f"{error} But no copy of it is left, so the data and parameters of "
                f"{store.where()} are unknown: remove it, then fit again."
            ) from error
        if found is None:
            raise
        raise StoreError(
            f"The store {store.where()} exists but holds no model. Give a path that does not exist "
            "yet; if a fit wrote it, it is damaged: remove it, then fit again."
        ) from error


def _root_attributes(store: Backend) -> dict[str, Any] | None:
    """Return what describes a root; {} where there is no group, None where it cannot be read."""
    if not store.exists(DESCRIPTION):
        return {}
    try:
        return read_attributes(store, "") or {}
    except StoreError:
        return None


def _restore_root(store: Backend) -> bool:
    """Write the root from the copy in another group; False if there is none."""
    for key in HOLD_ROOT_COPY:
        copy = _find_copy(store, key)
        if isinstance(copy, dict) and copy.get("kind") == MODEL_KIND:
            Root.create(store, {**copy, "complete": False})
            return True
    return False


def _find_copy(store: Backend, key: str) -> Any:
    """Return a group's copy of the root, or the root itself if the two files were swapped."""
    try:
        attributes = read_attributes(store, key)
        if attributes is None:
            return None
        is_root = attributes.get("kind") == MODEL_KIND
        group = check_seal(store, "" if is_root else key, attributes)
    except StoreError:
        return None
    return group.attrs if is_root else group.attrs.get(ROOT_COPY)
