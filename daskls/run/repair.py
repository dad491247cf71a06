"""Damage in the store of a resumed fit: searched for at its beginning, removed where found."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask

from daskls.errors import DamageError, StoreError
from daskls.plan import group_open
from daskls.run.compute import compute
from daskls.store.layout import Root
from daskls.store.repair import check_part, drop_parts, list_parts, part_of

__all__ = ["dropping_damage", "repair"]

# What one task reads: so much that its own overhead is small beside it.
TASK_NBYTES = 64 << 20

log = logging.getLogger("daskls")


def check_parts(root: Path, keys: list[str]) -> list[str]:
    """Read all of some parts; return the files that are damaged."""
    return [file for key in keys for file in check_part(root, key)]


def repair(root: Root, check_complete: Callable[[Root], None], client: Any = None) -> None:
    """Read every file that is there, once; remove what is damaged, so that it is made again.

    Parameters
    ----------
    root : Root. Of the store that this fit resumes, finished or not.
    check_complete : raises StoreError where a finished model lacks a part
    client : distributed client, or None for the current scheduler
    """
    parts = list_parts(root.path)
    groups = group_open([nbytes for _, nbytes in parts], [False] * len(parts), TASK_NBYTES)
    check = dask.delayed(check_parts, pure=False)
    tasks = [check(root.path, [key for key, _ in parts[a : b + 1]]) for a, b in groups]
    files = [file for found in compute(tasks, client) for file in found] if tasks else []
    # Where a file is damaged the model is unfinished anyway, and the check may stop at that file.
    lack = _find_lack(root, check_complete) if root.is_complete and not files else None
    for what in [*files, *([lack] if lack else [])]:
        log.warning("The store %s is damaged and is being repaired: %s.", root.path, what)
    if files or lack:
        drop_parts(root, _damaged_keys(root.path, files))


def _find_lack(root: Root, check_complete: Callable[[Root], None]) -> str | None:
    """Say what a model that is marked as complete lacks; None if it lacks nothing."""
    try:
        check_complete(root)
    except StoreError as error:
        return str(error)
    return None


def _damaged_keys(root: Path, files: list[str]) -> set[str]:
    """Return the parts that files belong to."""
    return {key for key in (part_of(root, file) for file in files) if key}


@contextmanager
def dropping_damage(store: Path) -> Iterator[None]:
    """Remove the part that a fit finds damaged; the error propagates, the next fit makes it again.

    Raises
    ------
    DamageError
    """
    try:
        yield
    except DamageError as error:
        try:
            drop_parts(Root.open(store), _damaged_keys(store, [error.path]))
        except StoreError as other:
            error.add_note(f"It could not be removed: {other}")
        raise
