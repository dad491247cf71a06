"""What of a store is damaged, and what goes with it, so that the next fit makes only that again.

A fit makes a part from its inputs with the same bits again, so a damaged part is removed, and so
is what was made from it where that would need more than the part alone.
"""

import os
import re
import shutil
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from daskls.errors import DamageError, StoreError
from daskls.store.files import disk_errors
from daskls.store.groups import (
    DESCRIPTION,
    MAX_DESCRIPTION_NBYTES,
    check_seal,
    open_group,
    parse_attributes,
)
from daskls.store.guard import read_whole
from daskls.store.layout import HOLD_ROOT_COPY, KIND, READABLE, ROOT_COPY, Root, parse_root
from daskls.store.models import finished_bundles
from daskls.store.packs import check_pack

__all__ = ["check_part", "drop_parts", "heal_root", "list_parts", "part_of"]

# Groups below the root that a fit writes.
GROUPS = ("partition", "landmarks", "leaves", "centers", "index")
# Folders of groups, one a bundle; and of packs.
BUNDLES = ("bundles", "rows")
PACKS = ("sampling/*", "joint/*")
PACK = re.compile(r"\d{6,}-\d{6,}(\.states|\.stats)?")
EVERYTHING = (*GROUPS, *BUNDLES, "exchange-*", "sampling", "joint")
# What goes with a part, as patterns of places.
FOLLOWS = {
    "partition": EVERYTHING,
    "landmarks": ("joint", "index"),
    "rows/*": ("leaves",),
    # A round begins where the one before ended, whose states may be gone.
    "joint/select-*": ("joint/select-*",),
    "joint/train-*": ("joint/train-*",),
    "exchange-*/block-*": ("exchange-*/manifest",),
}


def list_parts(root: Path) -> list[tuple[str, int]]:
    """Return place and bytes of every group and pack of a store.

    Blocks of the exchange are not among them: whoever regroups a block looks at it.
    """
    places = [name for name in GROUPS if os.path.lexists(root / name)]
    for kind in BUNDLES:
        places += [f"{kind}/{a:06d}-{b:06d}" for a, b in finished_bundles(root, kind)]
    for kind in PACKS:
        for folder in (path for path in sorted(root.glob(kind)) if path.is_dir()):
            names = filter(PACK.fullmatch, sorted(os.listdir(folder)))
            places += [f"{folder.relative_to(root).as_posix()}/{name}" for name in names]
    return [(place, _count_nbytes(root / place)) for place in places]


def _count_nbytes(path: Path) -> int:
    """Return the bytes of a file, or of a folder's files."""
    files = [Path(at, name) for at, _, names in os.walk(path) for name in names] or [path]
    return sum(file.lstat().st_size for file in files)


def check_part(root: Path, place: str) -> list[str]:
    """Read all of a part; return the files of it that are damaged."""
    try:
        if any(fnmatch(place, f"{folder}/*") for folder in PACKS):
            check_pack(root, place)
            return []
        return [str(path) for path in open_group(root, place).check()]
    except DamageError as error:
        return [error.path]


def part_of(root: Path, file: str) -> str | None:
    """Return the place of the part that a file belongs to; None outside the store, or of its root.

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


def drop_parts(root: Root, places: Iterable[str]) -> None:
    """Remove damaged parts and what goes with them; the model is complete no more.

    Parameters
    ----------
    root : Root
    places : str. What of it is damaged; none where a part is missing.
    """
    gone = {other for place in places for other in _with_followers(place)}
    attributes = root.attributes
    if root.is_complete and not os.path.lexists(root.path / "partition"):
        # The fit has removed its rows, so that nothing is left which a part could be made from.
        gone.update(EVERYTHING)
    again = {"selected": None} if gone & {"partition", "landmarks"} else {}
    # First: what is left if the removal is cut off is a model that was not finished. In any case:
    # a root that is written anew tells readers that what they keep is of yesterday.
    root.update(complete=False, **{name: None for name in again if name in attributes})
    with disk_errors(root.path):
        for pattern in gone:
            for path in root.path.glob(pattern):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)


def _with_followers(place: str) -> set[str]:
    """Return patterns of a part and of what goes with it."""
    gone = {place}
    for pattern, followers in FOLLOWS.items():
        if fnmatch(place, pattern):
            gone.update(followers)
    if fnmatch(place, "sampling/kept/*"):
        # The model is the marker of both.
        gone.add(place.replace("sampling/kept", "bundles"))
    if fnmatch(place, "exchange-*/block-*"):
        # Rows and their marker go together.
        gone.add(f"{place.rpartition('.')[0]}.*")
    return gone


def heal_root(store: Path) -> None:
    """Make sure that a store's root can be read: write it anew from its copy if it is damaged.

    Raises
    ------
    StoreError : there is no model, it has another format, or it is damaged and there is no copy
    """
    try:
        Root.open(store)
    except StoreError as error:
        if _is_of_another_format(store):
            raise
        if not _restore_root(store):
            if isinstance(error, DamageError):
                raise StoreError(
                    f"{error} But no copy of it is left, so that nobody can tell whose {store} is: "
                    "remove it, then fit again."
                ) from error
            raise


def _is_of_another_format(store: Path) -> bool:
    try:
        attributes = parse_root(store)
    except StoreError:
        return False
    return bool(
        attributes
        and attributes.get("kind") == KIND
        and attributes.get("daskls_format") not in READABLE
    )


def _restore_root(store: Path) -> bool:
    """Write the root from the copy that the index or the partition keeps; False without one."""
    for place in HOLD_ROOT_COPY:
        copy = _find_copy(store, place)
        if isinstance(copy, dict) and copy.get("kind") == KIND:
            Root.create(store, {**copy, "complete": False})
            return True
    return False


def _find_copy(store: Path, place: str) -> Any:
    """Return what a group says of the root, or the root itself where the two changed places."""
    file = store / place / DESCRIPTION
    try:
        attributes = parse_attributes(file, read_whole(file, store, MAX_DESCRIPTION_NBYTES))
        if attributes is None:
            return None
        is_root = attributes.get("kind") == KIND
        group = check_seal(store, "" if is_root else place, attributes)
    except StoreError:
        return None
    return group.attrs if is_root else group.attrs.get(ROOT_COPY)
