"""Artifacts inside a store, on any back end: how they are opened and marked.

The data of an attempt has a name of its own, by a number that is drawn; the marker, which is put
last and once, holds the number, the lengths and the sums. So a reader sees one writer's data or
another's, never a mixture, and files of a killed writer are never read. A marker that does not
verify counts as absent: the next one takes its place.
"""

import os
import secrets
from collections.abc import Callable

from daskls.errors import DamageError
from daskls.store.backend import Backend
from daskls.store.folder import Folder

__all__ = ["Location", "attempt_key", "draw_attempt", "open_store", "put_once"]

Location = str | os.PathLike[str] | Backend
# What a store may lie in, by the scheme of its URL; a path is a folder's.
BACKENDS: dict[str, Callable[[str], Backend]] = {}


def open_store(location: Location) -> Backend:
    """Return the store at a path or a URL; nothing is touched."""
    if isinstance(location, Backend):
        return location
    path = os.fspath(location)
    scheme, sign, _ = path.partition("://")
    return BACKENDS[scheme](path) if sign and scheme in BACKENDS else Folder(path)


def draw_attempt() -> int:
    """Return the number of a new attempt, which no other has; 0 is that of data without one."""
    # Not by `random`: forked processes draw the same from it. 62 bits, as markers keep an int64.
    return secrets.randbits(62) | 1


def attempt_key(key: str, attempt: int) -> str:
    """Return the key of an attempt's data.

    >>> attempt_key("x/block-000000.rows", 255), attempt_key("x/block-000000.rows", 0)
    ('x/block-000000.ff.rows', 'x/block-000000.rows')
    """
    stem, _, suffix = key.rpartition(".")
    return f"{stem}.{attempt:x}.{suffix}" if attempt else key


def put_once(
    put: Callable[[], bool], verify: Callable[[], object], drop: Callable[[], None]
) -> bool:
    """Put a marker, unless one that verifies is there.

    Parameters
    ----------
    put : returns False where a marker is there
    verify : raises DamageError where that one is not what was written
    drop : removes it

    Returns
    -------
    is_ours : bool. Whether the marker is the one that was put.
    """
    while not put():
        try:
            verify()
        except DamageError:
            drop()
        else:
            return False
    return True
