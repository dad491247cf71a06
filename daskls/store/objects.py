"""Objects under keys, in a folder or in a bucket: where a fit keeps everything that it makes.

A *key* is a path inside the store, its names joined by slashes; "" is the store itself. An object
is there whole or not at all, whatever is killed. Who writes one twice writes the same bytes.

`tests/objects_contract.py` tests what a folder and a bucket promise.
"""

import fnmatch
import json
import os
import tempfile
import time
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import dask

from daskls.errors import StoreError
from daskls.records import Bytes
from daskls.registry import load_object
from daskls.store.errors import GO_ON, bucket_errors, damaged, disk_errors

# The root of a model.
ROOT = "root"
# The object that names who writes Zarr data to a place in a bucket.
CLAIM = ".claim"
# The description that Zarr keeps beside its data, and the most bytes of it that are read.
DESCRIPTION, MAX_DESCRIPTION_NBYTES = "zarr.json", 64 << 20


@dataclass(frozen=True)
class BuildLocation:
    """Where something is built: its location, and a check that it is still this caller's.

    The check raises StoreError once the place was removed, or taken over.
    """

    where: str
    check: Callable[[], None]


class BaseStore(ABC):
    """A store, addressed by keys; made from its location, and pickled as it.

    Attributes
    ----------
    then : str. What to do after a failed write, as for `disk_errors`.
    """

    then: str = GO_ON

    @abstractmethod
    def where(self, key: str = "") -> str:
        """Return an object's location, for messages; that of a store or a folder can be opened."""

    def __str__(self) -> str:
        return self.where()

    def __reduce__(self) -> tuple[Any, ...]:
        # `then` as a state: a store is made from its location alone.
        return type(self), (self.where(),), {"then": self.then}

    def local(self, key: str = "") -> str | None:
        """Return the path of an object in a file system that workers share; None without one."""
        return None

    # Writing

    @abstractmethod
    def make(self) -> None:
        """Create the store, which may already exist, to put objects in."""

    def unmake(self) -> None:  # noqa: B027
        """Undo `make` of a store that is still empty."""

    @abstractmethod
    def building(self, *, replaces: bool = False) -> AbstractContextManager[BuildLocation]:
        """Yield a place for what takes many writes, as Zarr data does; it is here when they end.

        Nothing is left if the body fails. StoreError when something exists here and is not to be
        replaced, or appears meanwhile.
        """

    @abstractmethod
    def put(self, key: str, *pieces: Any, create: bool = False, lasting: bool = False) -> bool:
        """Write a whole object from bytes or buffers, replacing any old one.

        With ``create`` an existing object stays, and the call returns False; one with the same
        content may count as put by this call. ``lasting`` waits until it would survive a loss of
        power. StoreError when the store is gone, or refuses.
        """

    @abstractmethod
    def stream(self, key: str) -> AbstractContextManager[IO[bytes]]:
        """Yield a writer of an object, which is put when the body ends without an error."""

    @abstractmethod
    def drop(self, *patterns: str, strict: bool = False) -> None:
        """Remove objects and everything below their keys; skip what does not exist.

        Patterns are as for `find`; "" is the whole store. ``strict`` raises if something cannot be
        removed.
        """

    def sweep(self) -> None:  # noqa: B027
        """Remove what killed writers left; a writer that still runs fails."""

    # Looking

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Whether something has this key; if that may not be looked up, it counts as existing."""

    @abstractmethod
    def names(self, key: str = "") -> list[str]:
        """Return the names directly below a key; none if nothing is there."""

    def find(self, *patterns: str) -> list[str]:
        """Return the keys that match any pattern, sorted; a * stands for any part of a name."""
        return sorted({key for pattern in patterns for key in self._match(pattern)})

    def _match(self, pattern: str) -> list[str]:
        """Return the keys that match a pattern, level by level."""
        keys, is_plain = [""], False
        for part in pattern.split("/"):
            is_plain = not set(part) & set("*?[")
            pairs = (
                (key, name)
                for key in keys
                for name in ([part] if is_plain else fnmatch.filter(self.names(key), part))
            )
            keys = [f"{key}/{name}" if key else name for key, name in pairs]
        # A last name without a wildcard was not looked up yet.
        return [key for key in keys if self.exists(key)] if is_plain else keys

    @abstractmethod
    def sizes(self, key: str = "") -> dict[str, int]:
        """Return the number of bytes of each object below a key, by their keys, sorted."""

    def below(self, key: str = "", skip: Collection[str] = ()) -> list[str]:
        """Return the keys of all objects below a key, except where a name matches ``skip``."""
        at = len(key) + 1 if key else 0
        return [
            path
            for path in self.sizes(key)
            if not any(fnmatch.fnmatchcase(n, p) for n in path[at:].split("/") for p in skip)
        ]

    def nbytes(self, key: str = "") -> int:
        """Return the number of bytes of all objects below a key."""
        return sum(self.sizes(key).values())

    @abstractmethod
    def size(self, key: str) -> int:
        """Return an object's number of bytes; DamageError when there is none."""

    def is_object(self) -> bool:
        """Whether a single file or object is where the store would be."""
        try:
            self.size("")
        except StoreError:
            return False
        return True

    @abstractmethod
    def free_nbytes(self) -> int:
        """Return the number of bytes that can still be put."""

    @abstractmethod
    def stamp(self, key: str) -> Hashable:
        """Return a stamp that changes whenever an object is put, even with the same bytes."""

    @abstractmethod
    def modified(self, key: str) -> float | None:
        """Return when an object was put, in seconds by the store's own clock; None without one."""

    # Reading

    @abstractmethod
    def head(self, key: str, most: int) -> tuple[Bytes, int]:
        """Return the first bytes of an object, at most so many, and its number of bytes.

        DamageError when there is no such object, StoreError when it may not be read.
        """

    @abstractmethod
    def range(self, key: str, start: int, stop: int) -> Bytes:
        """Return a range of an object's bytes, which is not empty; raises as `head`.

        DamageError when the object ends too early.
        """

    def read(self, key: str, most: int) -> bytes:
        """Return an object's bytes; raises as `head`, and when there are more than ``most``."""
        content, nbytes = self.head(key, most)
        if nbytes > most:
            raise damaged(
                self.where(key), f"it has {nbytes} bytes, and at most {most} are expected"
            )
        return content.tobytes()


# Opening

Location = str | os.PathLike[str] | BaseStore
# Back ends by the scheme of a store's URL; a path is a folder.
BACKENDS = dict.fromkeys(("s3", "gs", "az"), "store.bucket:Bucket")


def open_store(location: Location) -> BaseStore:
    """Return the store at a path or a URL; no file is touched and no request is sent."""
    if isinstance(location, BaseStore):
        return location
    path = os.fspath(location)
    kind = BACKENDS[path.partition("://")[0]] if is_bucket(path) else "store.folder:Folder"
    opened: BaseStore = load_object(kind)(path)
    return opened


def is_bucket(location: str | os.PathLike[str]) -> bool:
    """Whether a location is a URL of a known scheme.

    >>> is_bucket("s3://data/model"), is_bucket("ftp://data/model"), is_bucket("s3")
    (True, False, False)
    """
    scheme, sign, _ = os.fspath(location).partition("://")
    return bool(sign) and scheme in BACKENDS


def store_at(location: str | os.PathLike[str], *, what: str = "store") -> BaseStore:
    """Return the store that a user names by a path, or by a URL of a known scheme."""
    return open_store(location if is_bucket(location) else local_path(location, what=what))


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


@contextmanager
def write_errors(location: str | os.PathLike[str], then: str = GO_ON) -> Iterator[None]:
    """Turn errors of writing to a path or a URL into a `StoreError` that says the remedy.

    `then` is what to do once the remedy is applied.
    """
    where = os.fspath(location)
    with bucket_errors(where, then) if is_bucket(where) else disk_errors(where, then):
        yield


def group_at(store: BaseStore) -> dict[str, Any] | None:
    """Return the attributes of the Zarr group at a store's place; None without one."""
    try:
        group = json.loads(store.read(DESCRIPTION, MAX_DESCRIPTION_NBYTES))
        return dict(group.get("attributes") or {}) if group["node_type"] == "group" else None
    except (StoreError, ValueError, KeyError, TypeError, AttributeError):
        return None


# How often to check whether a file disappears, and the pause between two checks.
MANY_CHECKS, FEW_CHECKS = 40, 6
CHECK_PAUSE_S = 0.05


def is_being_removed(store: BaseStore, key: str, error: Exception) -> bool:
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


# Temporary places, and handles that keep them


class TemporaryFolder:
    """A folder that is removed with the last reference to this object.

    It is not sent to workers. Only the process that created the folder removes it: that of a
    `tempfile.TemporaryDirectory` may be removed by a fork.
    """

    def __init__(self) -> None:
        where = temporary_root()
        with disk_errors(where, "set it as Dask's temporary-directory, or fit with store="):
            where.mkdir(parents=True, exist_ok=True)
            self.where = Path(tempfile.mkdtemp(prefix="daskls-", dir=where)).absolute()
        # Also runs at the interpreter's exit, where __del__ may not.
        self._finalizer = weakref.finalize(self, _remove, self.where, os.getpid())


def temporary_root() -> Path:
    return Path(dask.config.get("temporary-directory", None) or tempfile.gettempdir()).expanduser()


def temporary_path() -> Path:
    """Return an unused path where Dask keeps temporary data; the caller removes it."""
    return temporary_root().absolute() / f"daskls-{uuid.uuid4().hex}"


@dataclass(frozen=True)
class Scratch:
    """Files of one call, for this process or shared with workers; removed with its context.

    `shared` is a path or a URL.
    """

    folder: Path
    shared: str

    @classmethod
    def temporary(cls) -> "Scratch":
        """Return one where Dask keeps temporary data, which workers must see."""
        return cls.at(temporary_path())

    @classmethod
    def at(cls, folder: Path) -> "Scratch":
        return cls(folder, str(folder))

    @classmethod
    def inside(cls, store: BaseStore, name: str) -> "Scratch":
        """Return one in an unfinished store; in a bucket, this process gets a folder of its own."""
        local = store.local(name)
        return cls(temporary_path() if local is None else Path(local), store.where(name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for place in {str(self.folder), self.shared}:
            open_store(place).drop("")


def _remove(path: Path, owner: int) -> None:
    """Remove a folder, unless this process is a fork of its owner."""
    if os.getpid() == owner:
        open_store(path).drop("")


class ModelHandle:
    """A handle on a model: a location and a fingerprint.

    ``keep`` ties a temporary folder to the handle's holder, an estimator or the graph of a lazy
    prediction; it is dropped when the handle is sent to a worker.
    """

    def __init__(
        self, location: str, fingerprint: str, keep: TemporaryFolder | None = None
    ) -> None:
        self.location = location
        self.fingerprint = fingerprint
        self.keep = keep

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.location, self.fingerprint)

    def __dask_tokenize__(self) -> tuple[str, str, str]:
        return ("daskls.ModelHandle", self.location, self.fingerprint)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Raise StoreError that the model is gone if that caused an error in the body."""
        try:
            yield
        except Exception as error:
            if not is_being_removed(open_store(self.location), ROOT, error):
                raise
            raise StoreError(
                f"The model at {self.location} was removed while it was in use, or this machine "
                "does not see it. Put it back, or train it again, then call predict again."
            ) from error

    @property
    def is_temporary(self) -> bool:
        return self.keep is not None
