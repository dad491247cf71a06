"""Where a store, a data set or an output lies: paths and URLs, how they are opened and removed."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import zarr

from daskls.errors import StoreError
from daskls.store.errors import GO_ON, READ_AGAIN, as_store_error, bucket_errors, disk_errors
from daskls.store.folder import Folder
from daskls.store.objects import Objects

Location = str | os.PathLike[str] | Objects


def expand_path(location: str | os.PathLike[str]) -> str:
    """Return a path with its ~ expanded and ``file://`` removed; another URL unchanged.

    A shell expands ~ only at the start of a word, Python nowhere.
    """
    text = os.fspath(location).removeprefix("file://")
    return text if "://" in text else os.path.expanduser(text)


def local_path(location: str | os.PathLike[str], *, what: str = "store") -> Path:
    """Return the absolute local path of a path or ``file://`` URL.

    StoreError for another URL (`store_at` takes those of stores); for an empty text, and for the
    home folder of an unknown user: both would mean the working directory, or a folder in it.
    """
    text = expand_path(location)
    if not text:
        raise StoreError(f"The {what} is an empty string. Give the path of a folder.")
    if text.startswith("~"):
        user = text.split(os.sep)[0]
        raise StoreError(
            f"The {what} {text!r} begins with {user!r}, but no home folder of that user is known. "
            f"Correct the name; to use a folder of that name, write './{text}'."
        )
    if "://" in text:
        raise StoreError(
            f"The {what} {text!r} is a URL; daskls writes to a local or shared file system, and to "
            "s3://, gs:// and az://. Give one of these that the client and all workers share."
        )
    return Path(text).absolute()


def _bucket(url: str) -> Objects:
    from daskls.store.bucket import Bucket

    return Bucket(url)


# Back ends by the scheme of a store's URL; a path is a folder.
BACKENDS: dict[str, Callable[[str], Objects]] = dict.fromkeys(("s3", "gs", "az"), _bucket)


def open_store(location: Location) -> Objects:
    """Return the store at a path or a URL; no file is touched and no request is sent."""
    if isinstance(location, Objects):
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
    with bucket_errors(where, then):
        yield


def store_at(location: str | os.PathLike[str], *, what: str = "store") -> Objects:
    """Return the store that a user names by a path, or by a URL of a known scheme."""
    return open_store(location if is_bucket(location) else local_path(location, what=what))


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


# How often to check whether a file disappears, and the pause between two checks.
MANY_CHECKS, FEW_CHECKS = 40, 6
CHECK_PAUSE_S = 0.05


def is_being_removed(store: Objects, key: str, error: Exception) -> bool:
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


def is_artifact(store: Objects) -> bool:
    """Whether a single file or object is where a store would be."""
    try:
        store.size("")
    except StoreError:
        return False
    return True
