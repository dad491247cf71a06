"""Repair of a store: its damaged parts are removed, for the fit to make them again.

A fit remakes a part from its inputs with the same bits. So a damaged part is removed, together with
what was made from it where remaking the part alone is not enough.
"""

from collections.abc import Iterable

from daskls.errors import DamageError
from daskls.store.artifact import open_artifact
from daskls.store.contents import ROOT, SHARED_PARTS, StorePart
from daskls.store.layout import Root

Parts = tuple[StorePart, ...]


def list_parts(root: Root, own: Parts) -> list[tuple[str, int]]:
    """Return the key of each artifact of a finished model but its root, and its bytes.

    `own` are the parts of the store's method.
    """
    table = [part for part in (*SHARED_PARTS, *own) if part.is_artifact and not part.is_leftover]
    keys = [key for key in root.store.find(*(part.key for part in table)) if key != ROOT]
    return [(key, root.store.nbytes(key)) for key in keys]


def check_part(root: str, key: str) -> list[str]:
    """Read a whole part; return its location if it is damaged."""
    try:
        open_artifact(root, key).check()
    except DamageError as error:
        return [error.where]
    return []


def part_of(root: str, file: str, own: Parts = ()) -> str | None:
    """Return the key of the part that a file belongs to; None outside the store, or of its root.

    >>> part_of("/m", "/m/bundles/000000-000003")
    'bundles/000000-000003'
    >>> part_of("/m", "/m/root")
    """
    if not file.startswith(f"{root}/"):
        return None
    names = file.removeprefix(f"{root}/").split("/")
    if names[0] == ROOT:
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
    if root.is_complete and not root.store.exists("partition"):
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
