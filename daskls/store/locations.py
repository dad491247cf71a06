"""Artifacts in a store, on any back end: how a store is opened, written once and removed.

An attempt's data has a name of its own, made from a random number; the marker, which is put last
and once, holds that number, the lengths and the checksums. A reader therefore sees the data of one
writer or of another, never a mixture, and never the files of a killed writer. A marker that does
not verify counts as absent: the next one replaces it.
"""

import os
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress

import zarr

from daskls.errors import DamageError, StoreError
from daskls.store.backend import Backend
from daskls.store.files import GO_ON, READ_AGAIN, disk_errors, local_path
from daskls.store.folder import Folder

Location = str | os.PathLike[str] | Backend
# Attempts at replacing a damaged marker: others may put one in between, but only whole ones.
MAX_PUTS = 20


def _bucket(url: str) -> Backend:
    from daskls.store.bucket import Bucket

    return Bucket(url)


# Back ends by the scheme of a store's URL; a path is a folder.
BACKENDS: dict[str, Callable[[str], Backend]] = dict.fromkeys(("s3", "gs", "az"), _bucket)


def open_store(location: Location) -> Backend:
    """Return the store at a path or a URL; no file is touched and no request is sent."""
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
    """Turn errors of writing to a path or a URL into a `StoreError` that says the remedy.

    `then` is what to do once the remedy is applied.
    """
    where = os.fspath(location)
    if not is_bucket(where):
        with disk_errors(where, then):
            yield
        return
    from daskls.store.connections import bucket_errors

    with bucket_errors(where, then):
        yield


def store_at(location: str | os.PathLike[str], *, what: str = "store") -> Backend:
    """Return the store that a user names by a path, or by a URL of a known scheme."""
    return open_store(location if is_bucket(location) else local_path(location, what=what))


def put_once(
    put: Callable[[Hashable], bool],
    verify: Callable[[], object],
    stamp: Callable[[], Hashable],
) -> bool:
    """Put a marker, unless one that verifies is there; True if it is this call's.

    `put` takes a stamp; it puts the marker if there is none, or if the present one has this stamp;
    returns False if another one is present. `verify` raises DamageError if the present marker is
    not what was written.
    """
    seen: Hashable = None
    for _ in range(MAX_PUTS):
        if put(seen):
            return True
        # Taken before the check, so that only the marker found damaged is replaced, no later one.
        seen = stamp()
        with suppress(DamageError):
            verify()
            return False
    raise StoreError(
        f"A damaged marker ({seen}) could not be replaced in {MAX_PUTS} tries. Remove it, or use "
        "another store."
    )


# What Zarr raises where there is nothing, or something of another kind.
ABSENT = (FileNotFoundError, ValueError, KeyError, zarr.errors.ContainsGroupError)


@contextmanager
def remote_errors(path: str) -> Iterator[None]:
    """Turn a driver's errors into one `StoreError`; an error of absence is raised unchanged.

    Each driver has its own errors for missing credentials, an unreachable network or a forbidden
    bucket; a local path has the system's.
    """
    try:
        yield
    except (StoreError, *ABSENT):
        if is_bucket(path):
            # Zarr takes a missing bucket for an empty one; this request fails with the real reason.
            open_store(path).exists("")
        raise
    except ImportError as error:
        raise StoreError(f"The driver for {path!r} is not installed: {error}.") from error
    except OSError as error:
        raise _cannot_open(path, error) from error
    except Exception as error:
        if "://" not in path:
            raise
        if is_bucket(path):
            from daskls.store.connections import as_store_error

            raise as_store_error(path, error, READ_AGAIN) from error
        raise _cannot_open(path, error) from error


def _cannot_open(path: str, error: Exception) -> StoreError:
    message = f"{type(error).__name__}: {str(error).rstrip('.')}"
    return StoreError(f"Cannot open {path!r}: {message}. {_remedy(path)}")


def _remedy(path: str) -> str:
    if "://" not in path:
        return "Check the path and who may read it."
    return (
        "Check the address, the network, and the credentials, which the driver takes from its own "
        "environment variables and files, on every worker."
    )


# Removals in a row, and the pause after each: late writers may recreate the folder.
N_REMOVALS, REMOVAL_S = 4, 0.05
# How often to check whether a file disappears, and the pause between two checks.
MANY_CHECKS, FEW_CHECKS = 40, 6
CHECK_PAUSE_S = 0.05


def is_being_removed(store: Backend, key: str, error: Exception) -> bool:
    """Whether an error occurred because an artifact is gone, or because its store is being removed.

    Removing a store takes a while: the first artifact found missing may not be this one.
    """
    for number in range(_n_checks(error)):
        if number:
            time.sleep(CHECK_PAUSE_S)
        if not store.exists(key):
            return True
    return False


def _n_checks(error: BaseException | None) -> int:
    """Return how often to check: most after a missing file, once after an unrelated error."""
    if not isinstance(error, OSError | StoreError):
        return 1
    while error is not None:
        if isinstance(error, FileNotFoundError):
            return MANY_CHECKS
        error = error.__cause__
    # An error from a worker arrives without its cause.
    return FEW_CHECKS


def is_artifact(store: Backend) -> bool:
    """Whether a single file or object is where a store would be."""
    try:
        store.size("")
    except StoreError:
        return False
    return True


def remove_unfinished(location: str) -> None:
    """Remove Zarr data whose writing failed, for good.

    Of several files that Zarr writes at once, the first failure is raised; the other writes
    continue for a moment and would recreate the folder.
    """
    store = open_store(location)
    for _ in range(N_REMOVALS):
        store.drop("")
        time.sleep(REMOVAL_S)
