"""A process's connections to buckets, through obstore; reads of ranges; obstore's errors as one.

Connections are kept, and configured by the environment of each process.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, cached_property, lru_cache
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
from obstore.exceptions import BaseError, GenericError
from obstore.store import from_url

from daskls.errors import StoreError
from daskls.records import AnyArray
from daskls.store.backend import Reader
from daskls.store.files import GO_ON, damaged

T = TypeVar("T")
# obstore retries on 5xx, lost connections and timeouts. A task that would wait longer should fail:
# the next call continues from what is finished.
RETRY_S, MAX_RETRIES = 60.0, 8
BACKOFF_S = (0.1, 5.0)
# Connections that a process keeps: to buckets, and to Zarr arrays in them.
MAX_OPEN_STORES = 64
SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")
# Fetched with an object's size: its beginning is read next, and most objects fit whole.
FIRST_NBYTES = 64 << 10
# Read beyond a range: the checksum behind a chunk then needs no request of its own.
AHEAD_NBYTES = 16


def connect(url: str) -> Any:
    """Return this process's store at a URL, configured by the current environment."""
    return _connected(url, os.getpid(), _settings())


def _settings() -> tuple[tuple[str, str], ...]:
    """Return the environment variables that configure drivers of buckets."""
    return tuple(item for item in sorted(os.environ.items()) if item[0].startswith(SETTINGS))


@lru_cache(MAX_OPEN_STORES)
def _connected(base: str, pid: int, _: tuple[tuple[str, str], ...]) -> Any:
    """Return a process's own store at a URL.

    StoreError in a fork of a process that has used a bucket: the fork lacks obstore's threads and
    would wait for them forever.
    """
    if _first_pid() != pid:
        raise StoreError(
            f"{base} cannot be used here: this process was forked from one that has used a bucket "
            "before. Start it by 'spawn', as Dask's workers are."
        )
    first, most = (timedelta(seconds=s) for s in BACKOFF_S)
    with bucket_errors(base):
        # No client options: with any, obstore ignores those of the environment.
        return from_url(
            base,
            retry_config={
                "max_retries": MAX_RETRIES,
                "retry_timeout": timedelta(seconds=RETRY_S),
                "backoff": {"init_backoff": first, "max_backoff": most, "base": 2},
            },
        )


@cache
def _first_pid() -> int:
    """Return the process that used a bucket first: this one, or the one it was forked from."""
    return os.getpid()


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


def connect_below(url: str) -> Any:
    """Return this process's store whose root is a URL.

    In a larger one Zarr would create groups for all parents of the path.
    """
    base, prefix = split_url(url)
    return connect(f"{base}/{quote(prefix)}" if prefix else base)


# obstore's words for a response that ended too early, and how often such a request is sent.
TRUNCATED, N_REQUESTS = "response body error", 4


def retry_truncated(request: Callable[[], T]) -> T:
    """Return a response, sending the request again while it ends too early.

    Of some requests obstore does so by itself.
    """
    for _ in range(N_REQUESTS - 1):
        try:
            return request()
        except GenericError as error:
            if TRUNCATED not in str(error):
                raise
    return request()


class BucketReader(Reader):
    """Reads ranges of an object; some bytes beyond the last range are kept.

    `obstore.open_reader` would ask for the size by a request of its own. `read_range` takes the
    first byte and the one after the last; returns these bytes, cut at the object's end, and the
    object's size.
    """

    def __init__(self, name: str, read_range: Callable[[int, int], tuple[memoryview, int]]) -> None:
        self.name, self._read_range = name, read_range
        # The position of the kept bytes, and the bytes.
        self._at, self._kept = 0, memoryview(b"")

    @cached_property
    def nbytes(self) -> int:  # type: ignore[override]
        """The size, fetched together with the first bytes."""
        self._kept, nbytes = self._read_range(0, FIRST_NBYTES)
        self._at = 0
        return nbytes

    def fill(self, values: AnyArray, at: int) -> None:
        """Fill an array, by one request for the bytes that are not kept."""
        view = values.view(np.uint8).reshape(-1)
        n_kept = self._copy_kept(view, at)
        if n_kept == len(view):
            return
        start, stop = at + n_kept, at + len(view)
        found, _ = self._read_range(start, stop + AHEAD_NBYTES)
        content = found[: stop - start]
        view[n_kept : n_kept + len(content)] = np.frombuffer(content, np.uint8)
        if len(content) < stop - start:
            lacking = stop - start - len(content)
            raise damaged(self.name, f"it ends {lacking} bytes too early")
        # A copy: a view would keep all bytes of the request alive.
        self._at, self._kept = stop, memoryview(bytes(found[len(content) :]))

    def _copy_kept(self, view: AnyArray, at: int) -> int:
        """Copy the kept beginning of a range; return its number of bytes."""
        skip = at - self._at
        if not 0 <= skip < len(self._kept):
            return 0
        piece = self._kept[skip : skip + len(view)]
        view[: len(piece)] = np.frombuffer(piece, np.uint8)
        return len(piece)


# What is wrong, and the remedy.
REGION = (
    "The bucket of {where} lies in another region",
    "Set AWS_REGION to its own, on every worker and the client",
)
DENIED = (
    "The credentials for {where} do not allow this",
    "Allow them to get, put, delete and list there",
)
NO_KEYS = (
    "There are no credentials for {where}",
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role, on every worker "
    "and the client",
)
# The same by words of an error; the first that occurs counts.
CAUSES = {
    "RequestTimeTooSkewed": (
        "{where} was refused, as the clock of this machine is wrong",
        "Set it (NTP) on every worker and the client",
    ),
    "NoSuchBucket": (
        "There is no bucket for {where}",
        "Correct its name, or the endpoint (AWS_ENDPOINT_URL), or make the bucket",
    ),
    "PermanentRedirect": REGION,
    "AuthorizationHeaderMalformed": REGION,
    "Received redirect": REGION,
    "InvalidAccessKeyId": (
        "The credentials for {where} are not known there",
        "Correct AWS_ACCESS_KEY_ID, on every worker and the client",
    ),
    "SignatureDoesNotMatch": (
        "The credentials for {where} are not accepted there",
        "Correct AWS_SECRET_ACCESS_KEY, on every worker and the client",
    ),
    "ExpiredToken": (
        "The credentials for {where} have expired",
        "Renew them, on every worker and the client",
    ),
    "Missing AccessKeyId": NO_KEYS,
    "169.254.169.254": NO_KEYS,
    "AccessDenied": DENIED,
    # A response without a body, as to HEAD, does not give the reason.
    "lacked the necessary privileges": (
        DENIED[0],
        f"{DENIED[1]}; a wrong clock is refused in the same way",
    ),
    "401 Unauthorized": (
        "There are no credentials for {where}, or wrong ones",
        "Set them in the environment of every worker and of the client",
    ),
    "builder error": (
        "The endpoint of {where} is plain http",
        "Set AWS_ALLOW_HTTP=true if that is meant, or give an endpoint with https",
    ),
    "error sending request": (
        "{where} cannot be reached",
        "Check the network and the endpoint (AWS_ENDPOINT_URL)",
    ),
}
UNKNOWN = ("The request for {where} failed", "Read the server's message")
MAX_MESSAGE_CHARS = 300


@contextmanager
def bucket_errors(where: str, then: str = GO_ON) -> Iterator[None]:
    """Turn obstore's errors, raised after its own retries, into one `StoreError`.

    `then` is what to do once the remedy is applied. DamageError when there is no such object.
    """
    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" not in str(error):
            raise damaged(where, "it is missing") from error
        raise as_store_error(where, error, then) from error
    except ValueError as error:
        # obstore refuses a path with "..", for example.
        if "parse path" not in str(error):
            raise
        raise damaged(where, f"no object has this name ({_message(error)})") from error
    except BaseError as error:
        raise as_store_error(where, error, then) from error


def as_store_error(where: str, error: Exception, then: str) -> StoreError:
    text = str(error)
    what, remedy = next((own for word, own in CAUSES.items() if word in text), UNKNOWN)
    return StoreError(f"{what.format(where=where)} ({_message(error)}). {remedy}, then {then}.")


def _message(error: Exception) -> str:
    """Return the server's message, or the first line: obstore's own state follows it."""
    text = str(error)
    found = re.search(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", text, re.DOTALL)
    words = ": ".join(found.groups()) if found else text.partition("\n")[0]
    return words[:MAX_MESSAGE_CHARS].rstrip(".")
