"""Damage in the store of a resumed fit: searched for at its beginning, removed where found."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask

from daskls.errors import DamageError, StoreError
from daskls.plan import group_open
from daskls.run.compute import compute
from daskls.run.contract import Method
from daskls.store.artifacts import Location
from daskls.store.contents import StorePart
from daskls.store.layout import Root
from daskls.store.repair import check_part, drop_parts, list_parts, part_of

__all__ = ["dropping_damage", "repair"]

# What one task reads: so much that its own overhead is small beside it.
TASK_NBYTES = 64 << 20

log = logging.getLogger("daskls")


def check_parts(root: str, parts: list[tuple[str, bool]]) -> list[str]:
    """Read all of some parts; return the files that are damaged."""
    return [file for key, is_pack in parts for file in check_part(root, key, is_pack)]


def repair(root: Root, method: Method, client: Any = None) -> None:
    """Read every file that is there, once; remove what is damaged, so that it is made again.

    Parameters
    ----------
    root : Root. Of the store that this fit resumes, finished or not.
    method : Method. Of the model.
    client : distributed client, or None for the current scheduler
    """
    own = method.parts()
    parts = list_parts(root.store, own)
    groups = group_open([nbytes for *_, nbytes in parts], [False] * len(parts), TASK_NBYTES)
    check = dask.delayed(check_parts, pure=False)
    tasks = [check(root.where(), [part[:2] for part in parts[a : b + 1]]) for a, b in groups]
    files = [file for found in compute(tasks, client) for file in found] if tasks else []
    # Where a file is damaged the model is unfinished anyway, and the check may stop at that file.
    lack = _find_lack(root, method) if root.is_complete and not files else None
    for what in [*files, *([lack] if lack else [])]:
        log.warning("The store %s is damaged and is being repaired: %s.", root.where(), what)
    if files or lack:
        drop_parts(root, _damaged_keys(root, files, own), own)


def _find_lack(root: Root, method: Method) -> str | None:
    """Say what a model that is marked as complete lacks; None if it lacks nothing."""
    try:
        method.check_complete(root)
    except StoreError as error:
        return str(error)
    return None


def _damaged_keys(root: Root, files: list[str], own: tuple[StorePart, ...]) -> set[str]:
    """Return the parts that files belong to."""
    return {key for key in (part_of(root.where(), file, own) for file in files) if key}


@contextmanager
def dropping_damage(store: Location, method: Method) -> Iterator[None]:
    """Remove the part that a fit finds damaged; the error propagates, the next fit makes it again.

    Raises
    ------
    DamageError
    """
    try:
        yield
    except DamageError as error:
        try:
            root, own = Root.open(store), method.parts()
            drop_parts(root, _damaged_keys(root, [error.where], own), own)
        except StoreError as other:
            error.add_note(f"It could not be removed: {other}")
        raise
