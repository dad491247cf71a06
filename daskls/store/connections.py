"""Connections of a process to buckets, through obstore: kept, and opened by the environment.

What a bucket's driver raises, as one error with its remedy.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, lru_cache
from typing import Any, TypeVar
from urllib.parse import quote

from daskls.errors import StoreError
from daskls.store.files import GO_ON, damaged

# What an answer says, what is wrong, and what to do about it: the first that is found.
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
ANSWERS = {
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
    # An answer without a body, as to HEAD, does not say why.
    "lacked the necessary privileges": (
        DENIED[0],
        f"{DENIED[1]}; a clock that is wrong is refused so, too",
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
UNKNOWN = ("The request for {where} failed", "Look at what the server says")
MAX_WORDS = 300
# What obstore says of an answer that ended too early, and how often it is asked for.
CUT_OFF, N_ANSWERS = "response body error", 4
T = TypeVar("T")


def import_obstore(where: str) -> None:
    """Make sure that the driver is installed.

    Raises
    ------
    StoreError
    """
    try:
        import obstore  # noqa: F401
    except ImportError as error:
        raise StoreError(
            f"{where} needs the package obstore, which is not installed ({error}). Install it on "
            "every worker and the client: pip install 'daskls[cloud]'."
        ) from error


def patiently(ask: Callable[[], T]) -> T:
    """Return an answer, asking again where it ended too early: obstore does so of some alone."""
    from obstore.exceptions import GenericError

    for _ in range(N_ANSWERS - 1):
        try:
            return ask()
        except GenericError as error:
            if CUT_OFF not in str(error):
                raise
    return ask()


@contextmanager
def bucket_errors(where: str, then: str = GO_ON) -> Iterator[None]:
    """Turn what obstore raises, after its retries, into one `StoreError`.

    Parameters
    ----------
    where : str. The URL of what is read or written.
    then : str. What to do once the remedy is applied.

    Raises
    ------
    DamageError : there is no such object
    StoreError : anything else
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" not in str(error):
            raise damaged(where, "it is missing") from error
        raise as_store_error(where, error, then) from error
    except ValueError as error:
        # As of one with two dots in it.
        if "parse path" not in str(error):
            raise
        raise damaged(where, f"no object has this name ({_said(error)})") from error
    except BaseError as error:
        raise as_store_error(where, error, then) from error


def as_store_error(where: str, error: Exception, then: str) -> StoreError:
    """Return the error of what obstore raised."""
    text = str(error)
    what, remedy = next((own for word, own in ANSWERS.items() if word in text), UNKNOWN)
    return StoreError(f"{what.format(where=where)} ({_said(error)}). {remedy}, then {then}.")


def _said(error: Exception) -> str:
    """Return what the server answered; else the first line, as obstore goes on with its state."""
    text = str(error)
    found = re.search(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", text, re.DOTALL)
    words = ": ".join(found.groups()) if found else text.partition("\n")[0]
    return words[:MAX_WORDS].rstrip(".")


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
