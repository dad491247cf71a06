"""Artifacts inside a store, on any back end: how they are opened and marked.

The data of an attempt has a name of its own, by a number that is drawn; the marker, which is put
last and once, holds the number, the lengths and the sums. So a reader sees one writer's data or
another's, never a mixture, and files of a killed writer are never read. A marker that does not
verify counts as absent: the next one takes its place.
"""

import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress

from daskls.errors import DamageError, StoreError
from daskls.store.backend import Backend
from daskls.store.files import GO_ON, disk_errors, local_path
from daskls.store.folder import Folder

__all__ = [
    "Location",
    "is_bucket",
    "open_store",
    "put_once",
    "store_at",
    "write_errors",
]

Location = str | os.PathLike[str] | Backend


# Others that come between a look and a put; they put whole markers.
MOST_PUTS = 20


def _bucket(url: str) -> Backend:
    """Return the store in a bucket; its driver is loaded with the first one."""
    from daskls.store.bucket import Bucket

    return Bucket(url)


# What a store may lie in, by the scheme of its URL; a path is a folder's.
BACKENDS: dict[str, Callable[[str], Backend]] = dict.fromkeys(("s3", "gs", "az"), _bucket)


def open_store(location: Location) -> Backend:
    """Return the store at a path or a URL; nothing is touched."""
    if isinstance(location, Backend):
        return location
    path = os.fspath(location)
    return BACKENDS[path.partition("://")[0]](path) if is_bucket(path) else Folder(path)


def is_bucket(location: str | os.PathLike[str]) -> bool:
    """Whether a location is a URL of a known scheme.

    >>> is_bucket("s3://data/model"), is_bucket("ftp://data/model"), is_bucket("s3")
    (True, False, False)
    """
    scheme, sign, _ = os.fspath(location).partition("://")
    return bool(sign) and scheme in BACKENDS


@contextmanager
def write_errors(location: str | os.PathLike[str], then: str = GO_ON) -> Iterator[None]:
    """Turn what goes wrong in writing to a path or a URL into a `StoreError` with its remedy."""
    where = os.fspath(location)
    if not is_bucket(where):
        with disk_errors(where, then):
            yield
        return
    from daskls.store.bucket_errors import bucket_errors

    with bucket_errors(where, then):
        yield


def store_at(location: str | os.PathLike[str], *, what: str = "store") -> Backend:
    """Return the store that a user names by a path, or by a URL of a known scheme.

    Raises
    ------
    StoreError : as `local_path`
    """
    return open_store(location if is_bucket(location) else local_path(location, what=what))


def put_once(
    put: Callable[[Hashable], bool],
    verify: Callable[[], object],
    stamp: Callable[[], Hashable],
) -> bool:
    """Put a marker, unless one that verifies is there.

    Parameters
    ----------
    put : of a stamp: puts where no marker is, or the one with this stamp; returns False where
        another one is
    verify : raises DamageError where the one that is there is not what was written
    stamp : returns the stamp of the one that is there

    Returns
    -------
    is_ours : bool. Whether the marker is the one that was put.
    """
    seen: Hashable = None
    for _ in range(MOST_PUTS):
        if put(seen):
            return True
        # Before it is looked at: what gives way is the one that was damaged, no later one.
        seen = stamp()
        with suppress(DamageError):
            verify()
            return False
    raise StoreError(
        f"A damaged marker ({seen}) does not give way, though nothing else was put there in "
        f"{MOST_PUTS} tries. Remove it, or use another store."
    )
