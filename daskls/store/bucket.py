"""A store in a bucket of S3 or a compatible server, of Google's or of Azure's, through obstore.

An object appears whole, by one put. The response to a put that succeeded may get lost, and the
retry then finds its own object: before a put counts as refused, the object that is there is
compared with its content.

Correctness rests on reads by name; listings serve progress and cleaning only. Connections are kept,
and configured by the environment of each process, in the names that obstore knows; no credentials
are sent to workers.
"""

import os
import tempfile
import uuid
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from functools import cache, lru_cache
from typing import IO, Any, TypeVar, cast
from urllib.parse import quote

import numpy as np
from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError
from obstore.store import from_url

from daskls.errors import DamageError, StoreError
from daskls.records import Bytes
from daskls.store.errors import READ_AGAIN, bucket_errors, damaged, disk_errors, exists_already
from daskls.store.objects import CLAIM, BaseStore, BuildLocation, temporary_root

T = TypeVar("T")
# obstore retries on 5xx, lost connections and timeouts. A task that would wait longer should fail:
# the next call continues from what is finished.
RETRY_S, MAX_RETRIES = 60.0, 8
BACKOFF_S = (0.1, 5.0)
# Connections that a process keeps: to buckets, and to Zarr arrays in them.
MAX_OPEN_STORES = 64
SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")
# obstore's words for a response that ended too early, and how often such a request is sent.
TRUNCATED, N_REQUESTS = "response body error", 4
# Shorter streams stay in memory; longer ones are kept in a file until they are whole.
SPOOLED_NBYTES = 8 << 20
# Parts of one object that are uploaded at once, 5 MiB each.
N_PARTS = 4
ROOM_NBYTES = 1 << 60


class Bucket(BaseStore):
    """A store below a path in a bucket, ``s3://<bucket>/<path>``, ``gs://`` or ``az://``."""

    def __init__(self, url: str) -> None:
        self._base, self._prefix = split_url(url)

    def where(self, key: str = "") -> str:
        path = self._path(key)
        return f"{self._base}/{path}" if path else self._base

    def _path(self, key: str) -> str:
        return "/".join(part for part in (self._prefix, key) if part)

    @property
    def _bucket(self) -> Any:
        return connect(self._base)

    def _errors(self, key: str = "", then: str = READ_AGAIN) -> Any:
        return bucket_errors(self.where(key), then)

    # Writing

    def make(self) -> None:
        """Do nothing: a bucket has no folders."""

    @contextmanager
    def building(self, *, replaces: bool = False) -> Iterator[BuildLocation]:
        """Yield this place, after a claim that one of several callers can put.

        Who writes there puts last what makes it whole, as nothing can be renamed.
        """
        token = uuid.uuid4().hex.encode()
        if replaces:
            self.drop("", strict=True)
        elif self.names() == [CLAIM]:
            raise StoreError(
                f"Another call is about to write to {self}, or was killed before it did. In the "
                f"latter case remove the object {CLAIM} there; else give another path."
            )
        if self.exists("") or not self.put(CLAIM, token, create=True):
            raise exists_already(self)

        def check() -> None:
            if not self._has(CLAIM, token):
                raise StoreError(
                    f"{self} was removed while it was written, or replaced by another call; "
                    f"{self.then}, one call at a time."
                )

        # Another caller may have begun, and removed its claim, since this one looked.
        if self.names() != [CLAIM]:
            self.drop(CLAIM)
            raise exists_already(self)
        try:
            yield BuildLocation(self.where(), check)
            check()
            self.drop(CLAIM)
        except BaseException:
            if self._has(CLAIM, token):
                self.drop("")
            raise

    def put(self, key: str, *pieces: Any, create: bool = False, lasting: bool = False) -> bool:
        """Put an object: up to 5 MiB, and always if it must be the first, by one request."""
        content = b"".join(pieces)
        with self._errors(key, self.then):
            if not create:
                self._bucket.put(self._path(key), content, max_concurrency=N_PARTS)
                return True
            try:
                self._bucket.put(self._path(key), content, mode="create")
            except (AlreadyExistsError, PreconditionError):
                # Not enough: it may answer the retry of a put that had succeeded.
                return self._has(key, content)
        return True

    def _has(self, key: str, content: bytes) -> bool:
        try:
            return self.read(key, len(content)) == content
        except DamageError:
            return False

    @contextmanager
    def stream(self, key: str) -> Iterator[IO[bytes]]:
        """Yield a temporary file of this process, which is put at the end."""
        # `obstore.open_writer` needs no file, but refuses empty buffers, and an error of the last
        # put comes as an OSError without its kind.
        folder = str(temporary_root())
        with tempfile.SpooledTemporaryFile(SPOOLED_NBYTES, dir=folder) as file:
            with disk_errors(folder, self.then):
                yield cast(IO[bytes], file)
            file.seek(0)
            with self._errors(key, self.then):
                self._bucket.put(self._path(key), file, max_concurrency=N_PARTS)

    def drop(self, *patterns: str, strict: bool = False) -> None:
        with nullcontext() if strict else suppress(StoreError):
            for pattern in patterns:
                is_plain = not set(pattern) & set("*?[")
                for key in [pattern] if is_plain else self.find(pattern):
                    keys = [key, *self.sizes(key)] if key else self.sizes()
                    self._delete([self._path(key) for key in keys])

    def _delete(self, paths: list[str]) -> None:
        """Remove objects, some hundred per request; missing ones are skipped."""
        with self._errors(then=self.then) if paths else nullcontext():
            try:
                self._bucket.delete(paths)
            except FileNotFoundError:
                # Some drivers stop at the first missing object.
                for path in paths:
                    with suppress(FileNotFoundError):
                        self._bucket.delete(path)

    # Looking

    def exists(self, key: str) -> bool:
        """Whether an object has this key; of "", whether there is any."""
        return self._head(key) is not None if key else bool(self.names())

    def _head(self, key: str) -> dict[str, Any] | None:
        with self._errors(key):
            try:
                return dict(self._bucket.head(self._path(key)))
            except FileNotFoundError:
                return None

    def names(self, key: str = "") -> list[str]:
        with self._errors(key):
            listing = _retry_truncated(
                lambda: self._bucket.list_with_delimiter(self._path(key) or None)
            )
        paths = [*listing["common_prefixes"], *(item["path"] for item in listing["objects"])]
        # Consoles represent a folder by an object that ends in a slash; it is not a name.
        entries = {path.rstrip("/") for path in paths} - {self._path(key)}
        return sorted(path.rpartition("/")[2] for path in entries)

    def sizes(self, key: str = "") -> dict[str, int]:
        start = len(self._prefix) + 1 if self._prefix else 0
        with self._errors(key):
            # A listing may take many requests; one that was cut off starts again.
            entries = _retry_truncated(
                lambda: list(self._bucket.list(self._path(key) or None).collect())
            )
        # Consoles represent a folder by an object that ends in a slash.
        entries = [entry for entry in entries if entry["path"].rstrip("/") != self._path(key)]
        return dict(sorted((entry["path"][start:], int(entry["size"])) for entry in entries))

    def size(self, key: str) -> int:
        head = self._head(key) if key else None
        if head is None:
            raise damaged(self.where(key), "it is missing")
        return int(head["size"])

    def free_nbytes(self) -> int:
        """Return a number larger than any store: a bucket has no limit."""
        return ROOM_NBYTES

    def stamp(self, key: str) -> Hashable:
        """Return the object's tag and time: equal contents may have equal tags."""
        head = self._head(key)
        return None if head is None else (*map(head.get, ("e_tag", "version", "last_modified")),)

    def modified(self, key: str) -> float | None:
        head = self._head(key)
        return None if head is None else float(head["last_modified"].timestamp())

    # Reading

    def head(self, key: str, most: int) -> tuple[Bytes, int]:
        """Return the first bytes and the size, by one request."""
        # A range is not empty.
        content, nbytes = self._get(key, 0, max(most, 1))
        return content[:most], nbytes

    def range(self, key: str, start: int, stop: int) -> Bytes:
        content, _ = self._get(key, start, stop)
        lacking = stop - start - len(content)
        if lacking:
            raise damaged(self.where(key), f"it ends {lacking} bytes too early")
        return content

    def _get(self, key: str, start: int, stop: int) -> tuple[Bytes, int]:
        """Return a range of an object's bytes, cut at its end, and its size."""

        def request() -> tuple[Bytes, int]:
            response = self._bucket.get(self._path(key), options={"range": (start, stop)})
            # A copy, as obstore's bytes cannot be written to.
            content = np.frombuffer(response.bytes(), np.uint8).copy()
            return content, int(response.meta["size"])

        with self._errors(key):
            try:
                return _retry_truncated(request)
            except GenericError:
                # No range begins at an object's end, or behind it.
                nbytes = self.size(key)
                if nbytes > start:
                    raise
                return np.empty(0, np.uint8), nbytes


def connect(url: str) -> Any:
    """Return this process's store at a URL, configured by the current environment."""
    settings = (item for item in sorted(os.environ.items()) if item[0].startswith(SETTINGS))
    return _connected(url, os.getpid(), tuple(settings))


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


def _retry_truncated(request: Callable[[], T]) -> T:
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
