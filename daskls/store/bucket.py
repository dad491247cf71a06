"""A store in a bucket of S3 or a compatible server, of Google's or of Azure's, through obstore.

An object appears whole, by one put; a part of several objects has a prefix of its own until a
marker names it. A marker is put if there is none, or in place of one that was seen. The response to
a put that succeeded may get lost, and the retry then finds its own object: before a put counts as
refused, the object that is there is compared with its content.

Correctness rests on reads by name; listings serve progress and cleaning only. Settings and
credentials come from each process's environment, by the names that obstore knows; none are sent to
workers.
"""

import secrets
import tempfile
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import IO, Any, cast

import dask
from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

from daskls.errors import DamageError, StoreError
from daskls.store.backend import CLAIM, MAX_OWNER_NBYTES, Backend, OwnerArtifact, draw_attempt
from daskls.store.connections import (
    BucketReader,
    bucket_errors,
    connect,
    retry_truncated,
    split_url,
)
from daskls.store.files import READ_AGAIN, damaged, disk_errors, exists_already, expand_path

# Shorter streams stay in memory; longer ones are kept in a file until they are whole.
SPOOLED_NBYTES = 8 << 20
# Parts of one object that are uploaded at once, 5 MiB each.
N_PARTS = 4
ROOM_NBYTES = 1 << 60
# How often a step is tried that another process may disturb.
N_OWNER_TRIES = 5


class Bucket(Backend):
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

    def make(self, key: str = "") -> None:
        """Do nothing: a bucket has no folders."""

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Put an object that one of several callers can put, and remove it at the end."""
        if self.names() == [CLAIM]:
            raise StoreError(
                f"Another call is about to write to {self}, or was killed before it did. In the "
                f"latter case remove the object {CLAIM} there; else give another path."
            )
        if self.exists("") or not self.put(CLAIM, uuid.uuid4().bytes, create=True):
            raise exists_already(self)
        try:
            # Another caller may have begun, and removed its claim, since this one looked.
            if self.names() != [CLAIM]:
                raise exists_already(self)
            yield
        finally:
            self.drop(CLAIM)

    def put(self, key: str, *pieces: Any, create: bool = False, instead_of: Any = None) -> bool:
        """Put an object: up to 5 MiB, and always if conditional, by one request."""
        content = b"".join(pieces)
        if not create:
            with self._errors(key, self.then):
                self._bucket.put(self._path(key), content, max_concurrency=N_PARTS)
            return True
        # The response is not enough: it may answer the retry of a put that had succeeded.
        return self._swap(key, content, instead_of) or self.has(key, content)

    def _swap(self, key: str, content: bytes, seen: Any) -> bool:
        """Put an object if there is none, or in place of the one seen; False if that changed."""
        token = dict(seen[0]) if seen else "create"
        with self._errors(key, self.then):
            try:
                self._bucket.put(self._path(key), content, mode=token)
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    def has(self, key: str, content: bytes) -> bool:
        try:
            return self.read(key, len(content)) == content
        except DamageError:
            return False

    @contextmanager
    def stream(self, key: str) -> Iterator[IO[bytes]]:
        """Yield a temporary file of this process, which is put at the end."""
        # `obstore.open_writer` needs no file, but refuses empty buffers, and an error of the last
        # put comes as an OSError without its kind.
        folder = expand_path(dask.config.get("temporary-directory", None) or tempfile.gettempdir())
        with tempfile.SpooledTemporaryFile(SPOOLED_NBYTES, dir=folder) as file:
            with disk_errors(folder, self.then):
                yield cast(IO[bytes], file)
            file.seek(0)
            with self._errors(key, self.then):
                self._bucket.put(self._path(key), file, max_concurrency=N_PARTS)

    @contextmanager
    def attempt(
        self, key: str, *, replace: bool = False, instead_of: Any = None
    ) -> Iterator["BucketAttempt"]:
        """Yield an attempt under a prefix of its own."""
        attempt = BucketAttempt(self, key, replace, instead_of)
        try:
            yield attempt
        finally:
            # None: the marker may have arrived, and these are the objects that it names.
            if attempt.is_ours is False:
                self.delete(attempt.written)

    def drop(self, *patterns: str, strict: bool = False) -> None:
        with nullcontext() if strict else suppress(StoreError):
            for pattern in patterns:
                is_plain = not set(pattern) & set("*?[")
                for key in [pattern] if is_plain else self.find(pattern):
                    self.delete([*([key] if key else []), *self.below(key)])

    def delete(self, keys: Collection[str]) -> None:
        """Remove objects, some hundred per request; missing ones are skipped."""
        if keys:
            paths = [self._path(key) for key in keys]
            with self._errors(then=self.then):
                try:
                    self._bucket.delete(paths)
                except FileNotFoundError:
                    # Some drivers stop at the first missing object.
                    for path in paths:
                        with suppress(FileNotFoundError):
                            self._bucket.delete(path)

    # Listing and reading

    def exists(self, key: str) -> bool:
        return bool(key and self._head(key)) or bool(self.names(key))

    def _head(self, key: str) -> dict[str, Any] | None:
        with self._errors(key):
            try:
                return dict(self._bucket.head(self._path(key)))
            except FileNotFoundError:
                return None

    def names(self, key: str = "") -> list[str]:
        with self._errors(key):
            found = retry_truncated(
                lambda: self._bucket.list_with_delimiter(self._path(key) or None)
            )
        paths = [*found["common_prefixes"], *(own["path"] for own in found["objects"])]
        # Consoles represent a folder by an object that ends in a slash; it is not a name.
        own = {path.rstrip("/") for path in paths} - {self._path(key)}
        return sorted(path.rpartition("/")[2] for path in own)

    def _match(self, pattern: str) -> list[str]:
        """Return the keys that match a pattern, by one listing below its first plain names."""
        plain, _, rest = pattern.partition("*")
        start, depth = plain.rpartition("/")[0], pattern.count("/")
        if not rest.count("/") or not start:
            # One level is a short listing; one of the whole store would be mostly other keys.
            return super()._match(pattern)
        names = (own.split("/") for own in self.below(start))
        keys = {"/".join(own[: depth + 1]) for own in names if len(own) > depth}
        patterns = pattern.split("/")
        return [key for key in keys if all(map(fnmatchcase, key.split("/"), patterns))]

    def has_part(self, key: str, marker: str) -> bool:
        """Whether the marker is there: other objects may belong to an attempt."""
        return self._head(f"{key}/{marker}") is not None

    def parts(self, key: str, marker: str) -> list[str]:
        """Return the names of objects, and of parts with a marker, by one listing."""
        return sorted(self._parts_among(self.below(key), key, marker))

    @staticmethod
    def _parts_among(keys: list[str], key: str, marker: str) -> set[str]:
        """Return the names of the parts below a key, given all keys below it."""
        below = (own[len(key) + 1 :].split("/") for own in keys)
        return {names[0] for names in below if names[1:] in ([], [marker])}

    def drop_attempts(self, key: str, marker: str) -> None:
        """Remove all objects of parts without a marker."""
        keys = self.below(key)
        whole = self._parts_among(keys, key, marker)
        self.delete([own for own in keys if own[len(key) + 1 :].split("/")[0] not in whole])

    def below(self, key: str = "", skip: Collection[str] = ()) -> list[str]:
        at = len(key) + 1 if key else 0
        keys = (path for path, _ in self.listing(key))
        return sorted(
            own
            for own in keys
            if not any(fnmatchcase(name, p) for name in own[at:].split("/") for p in skip)
        )

    def listing(self, key: str) -> list[tuple[str, Any]]:
        start = len(self._prefix) + 1 if self._prefix else 0
        with self._errors(key):
            # A listing may take many requests; one that was cut off starts again.
            found = retry_truncated(
                lambda: list(self._bucket.list(self._path(key) or None).collect())
            )
        return [(o["path"][start:], o) for o in found if o["path"].rstrip("/") != self._path(key)]

    def size(self, key: str) -> int:
        found = self._head(key) if key else None
        if found is None:
            raise damaged(self.where(key), "it is missing")
        return int(found["size"])

    def nbytes(self, key: str = "") -> int:
        own = self._head(key) if key else None
        return sum(int(meta["size"]) for _, meta in ([(key, own)] if own else self.listing(key)))

    def free_nbytes(self) -> int:
        """Return a number larger than any store: a bucket has no limit."""
        return ROOM_NBYTES

    def stamp(self, key: str) -> Any:
        """Return the object's tags and time: equal contents may have equal tags."""
        found = self._head(key)
        return found and _stamp_of(found)

    @contextmanager
    def reading(self, key: str) -> Iterator[BucketReader]:
        """Yield a reader of an object; it sends no request before something is read."""
        yield BucketReader(self.where(key), partial(self._read_range, key))

    def _get(self, key: str, **options: Any) -> tuple[memoryview, Any]:
        found = self._bucket.get(self._path(key), options=options)
        return memoryview(found.bytes()), found.meta

    def _read_range(self, key: str, start: int, stop: int) -> tuple[memoryview, int]:
        """Return a range of an object's bytes, cut at the object's end, and the object's size."""
        with self._errors(key):
            try:
                content, meta = retry_truncated(lambda: self._get(key, range=(start, stop)))
                return content, int(meta["size"])
            except GenericError:
                # The range may begin at or behind the end, as does any range of an empty object.
                size = self.size(key)
                if start < size:
                    raise
                return memoryview(b""), size

    # The owner

    def take(self, key: str, content: bytes) -> bool:
        """Put the owner's object if there is none; StoreError if the bucket ignores conditions."""
        if not self.put(key, _make_unique(content), create=True):
            return False
        if self._swap(key, _make_unique(content), None):
            raise StoreError(
                f"The bucket of {self} replaces existing objects although it was asked not to "
                "(If-None-Match), so two fits would write one store. Use a bucket of a server "
                "that supports conditional puts."
            )
        return True

    def examine(self, key: str) -> OwnerArtifact | None:
        """Return the owner's object, with its tags and time as the stamp."""
        with self._errors(key):
            try:
                content, meta = retry_truncated(lambda: self._get(key, range=(0, MAX_OWNER_NBYTES)))
            except FileNotFoundError:
                return None
        return OwnerArtifact(content.tobytes().rpartition(b"\n")[0], _stamp_of(meta))

    def age(self, key: str, seen: OwnerArtifact) -> float:
        """Compare its time with that of an object that is put now."""
        for _ in range(N_OWNER_TRIES):
            # Named like a killed task's attempt: if it is left behind, an owner removes it.
            probe = f"{key}.{uuid.uuid4().hex}"
            self.put(probe)
            now = self.stamp(probe)
            self.delete([probe])
            if now is not None:
                return float(now[1] - cast(Any, seen.stamp)[1])
        raise StoreError(
            f"{self.where(key)}.* is removed as soon as it is written. Call fit again."
        )

    def renew(self, key: str, content: bytes) -> bool:
        """Put the same content again with another ending: equal objects have equal tags."""
        seen = self.examine(key)
        if seen is None or seen.content != content:
            return False
        return self.take_over(key, seen, content)

    def take_over(self, key: str, seen: OwnerArtifact, content: bytes) -> bool:
        """Put this owner's object in place of the one with the examined tags."""
        return self.put(key, _make_unique(content), create=True, instead_of=seen.stamp)

    def give_back(self, key: str, content: bytes) -> None:
        """Remove the object; nobody takes it over right after it was renewed."""
        # A concurrent renewal may change the object between the two steps.
        for _ in range(N_OWNER_TRIES):
            if self.renew(key, content):
                self.delete([key])
                return


def _make_unique(content: bytes) -> bytes:
    """Return an owner's content with a random ending, so that no two puts are equal."""
    return content + b"\n" + secrets.token_hex(8).encode()


def _stamp_of(meta: Any) -> tuple[tuple[tuple[str, str], ...], float]:
    """Return what distinguishes an object from any other under its key: its tags and its time.

    Puts are conditional on the tags. Not every bucket has both, and one that is None must not
    become a condition.
    """
    tags = ((name, meta[name]) for name in ("e_tag", "version"))
    return tuple(own for own in tags if own[1] is not None), meta["last_modified"].timestamp()


class BucketAttempt:
    """Objects under a prefix of their own, which nobody reads before the marker names it."""

    def __init__(self, bucket: Bucket, key: str, replace: bool, instead_of: Any) -> None:
        self._bucket, self._key, self._instead_of = bucket, key, instead_of
        # Only the old part that was there when this attempt began is replaced.
        self._replaced = (
            {own: _stamp_of(meta) for own, meta in bucket.listing(key)} if replace else {}
        )
        self.prefix = f"{draw_attempt():x}."
        # None while it is unknown.
        self.is_ours: bool | None = False
        self.written: list[str] = []

    def write(self, name: str, *pieces: Any) -> None:
        self.written.append(f"{self._key}/{self.prefix}{name}")
        self._bucket.put(self.written[-1], *pieces)

    def commit(self, name: str, marker: bytes) -> bool:
        """Put the marker, then remove the objects of killed or replaced writers."""
        key, bucket = f"{self._key}/{name}", self._bucket
        seen = self._instead_of or self._replaced.get(key)
        self.is_ours = None
        self.is_ours = is_ours = bucket.put(key, marker, create=True, instead_of=seen)
        if is_ours:
            others = [own for own in bucket.below(self._key) if own not in {key, *self.written}]
            # Unless another marker has replaced it since: they may belong to that one.
            if others and bucket.has(key, marker):
                bucket.delete(others)
        return is_ours
