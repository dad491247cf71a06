"""Connections of a process to buckets, through obstore: kept, and opened by the environment."""

import os
from datetime import timedelta
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote

from daskls.errors import StoreError
from daskls.store.bucket_errors import bucket_errors, import_obstore

__all__ = ["connect", "split_url", "zarr_place"]

# Retries are the library's: 5xx, lost connections, timeouts. A task that waits longer had better
# fail, as the same call goes on from what is there.
RETRY_S, MAX_RETRIES = 60.0, 8
BACKOFF_S = (0.1, 5.0)
# Stores that a process keeps: buckets, and places of Zarr's arrays in them.
MOST_OPEN = 64
SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")


@cache
def _first_user() -> int:
    """Return the number of the process in which a bucket was used first."""
    return os.getpid()


def _settings() -> tuple[tuple[str, str], ...]:
    """Return what the environment says of buckets, by any driver's names."""
    return tuple(item for item in sorted(os.environ.items()) if item[0].startswith(SETTINGS))


def connect(url: str) -> Any:
    """Return this process's store at a URL, by the settings that hold now."""
    return _connected(url, os.getpid(), _settings())


@lru_cache(MOST_OPEN)
def _connected(base: str, pid: int, _: tuple[tuple[str, str], ...]) -> Any:
    """Return a process's own store at a URL.

    Raises
    ------
    StoreError : in a fork of a process that has used one: obstore's threads are not in it, and it
        would wait for them without end
    """
    import_obstore(base)
    if _first_user() != pid:
        raise StoreError(
            f"{base} cannot be used here: this process was forked from one that has used a bucket "
            "before. Start it by 'spawn', as Dask's workers are."
        )
    from obstore.store import from_url

    first, most = (timedelta(seconds=s) for s in BACKOFF_S)
    with bucket_errors(base):
        # Without options of the HTTP client: with any, those of the environment count for nothing.
        return from_url(
            base,
            retry_config={
                "max_retries": MAX_RETRIES,
                "retry_timeout": timedelta(seconds=RETRY_S),
                "backoff": {"init_backoff": first, "max_backoff": most, "base": 2},
            },
        )


def split_url(url: str) -> tuple[str, str]:
    """Return a URL's bucket, and the path in it.

    >>> split_url("s3://data/models/a/")
    ('s3://data', 'models/a')
    """
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    if not bucket:
        raise StoreError(
            f"The URL {url!r} names no bucket. Give it as {scheme}://<bucket>/<path of the store>."
        )
    return f"{scheme}://{bucket}", prefix.strip("/")


def zarr_place(url: str, *, read_only: bool = True) -> Any:
    """Return a URL as Zarr opens it, by the same settings as models.

    Raises
    ------
    StoreError : obstore is not installed, or the URL names no bucket
    """
    from zarr.storage import ObjectStore

    base, prefix = split_url(url)
    # One that begins there: in a path of a larger one Zarr makes groups of all that lies above.
    own = connect(f"{base}/{quote(prefix)}" if prefix else base)
    return ObjectStore(own, read_only=read_only)
