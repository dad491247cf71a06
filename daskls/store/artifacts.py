"""Artifacts inside a store, on any back end: how they are opened and marked.

The data of an attempt has a name of its own, by a number that is drawn; the marker, which is put
last and once, holds the number, the lengths and the sums. So a reader sees one writer's data or
another's, never a mixture, and files of a killed writer are never read. A marker that does not
verify counts as absent: the next one takes its place.

Errors of drivers for URLs, as one error.

Stores that are removed while in use, and folders that go because their writing failed.
"""

import os
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress

import zarr

from daskls.errors import DamageError, StoreError
from daskls.store.backend import Backend
from daskls.store.files import GO_ON, disk_errors, local_path
from daskls.store.folder import Folder

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
    from daskls.store.connections import bucket_errors

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


# What Zarr raises where there is nothing, or something else.
ABSENT = (FileNotFoundError, ValueError, KeyError, zarr.errors.ContainsGroupError)


@contextmanager
def remote_errors(path: str) -> Iterator[None]:
    """Turn what a driver raises into one `StoreError`; that nothing is there passes as it is.

    Each driver has its own kinds of errors for missing credentials, a network that is away, or a
    bucket that is denied; a local path has those of the system.

    Raises
    ------
    StoreError
    """
    try:
        yield
    except (StoreError, *ABSENT):
        if is_bucket(path):
            # Zarr takes a bucket that is not there for an empty one: whoever asks it is told.
            open_store(path).exists("")
        raise
    except ImportError as error:
        raise StoreError(f"The driver for {path!r} is not installed: {error}.") from error
    except OSError as error:
        raise StoreError(f"Cannot open {path!r}: {_said(error)}. {_remedy(path)}") from error
    except Exception as error:
        if "://" not in path:
            raise
        if is_bucket(path):
            from daskls.store.connections import as_store_error

            raise as_store_error(path, error, "call again") from error
        raise StoreError(f"Cannot open {path!r}: {_said(error)}. {_remedy(path)}") from error


def _said(error: Exception) -> str:
    """Return an error's kind and words."""
    return f"{type(error).__name__}: {str(error).rstrip('.')}"


def _remedy(path: str) -> str:
    """Say what to look at."""
    if "://" not in path:
        return "Check the path and who may read it."
    return (
        "Check the address, the network, and the credentials, which the driver takes from its own "
        "environment variables and files, on every worker."
    )


# Looks whether a folder that was removed has come back.
N_REMOVALS, REMOVAL_S = 4, 0.05
# How often, and after what pause, one looks whether a file goes that is there.
MANY_LOOKS, FEW_LOOKS = 40, 6
LOOK_PAUSE_S = 0.05


def is_being_removed(store: Backend, key: str, error: Exception) -> bool:
    """Return whether an error is due to an artifact that is gone, or to its store being removed.

    Removing a store takes a while: the first artifact found missing may not be this one.
    """
    for number in range(_n_looks(error)):
        if number:
            time.sleep(LOOK_PAUSE_S)
        if not store.exists(key):
            return True
    return False


def _n_looks(error: BaseException | None) -> int:
    """Return how often to look: longest where a file was missed, not at all for other reasons."""
    if not isinstance(error, OSError | StoreError):
        return 1
    while error is not None:
        if isinstance(error, FileNotFoundError):
            return MANY_LOOKS
        error = error.__cause__
    # The cause does not travel with an error from a worker.
    return FEW_LOOKS


def remove_begun(location: str) -> None:
    """Remove Zarr data whose writing failed, for good.

    Of several files that Zarr writes at once the first failure comes back; the others continue for
    a moment, and would make the folder again.
    """
    store = open_store(location)
    for _ in range(N_REMOVALS):
        store.drop("")
        time.sleep(REMOVAL_S)
