"""Objects under keys, in a folder or in a bucket: where a fit keeps everything that it makes.

A *key* is a path inside the store, its names joined by slashes; "" is the store itself. An object
is there whole or not at all, whatever is killed. Who writes one twice writes the same bytes.

`tests/objects_contract.py` tests what a folder and a bucket promise.
"""

import fnmatch
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from daskls.records import Bytes
from daskls.store.errors import GO_ON, damaged

# The object that names who writes Zarr data to a place in a bucket.
CLAIM = ".claim"


@dataclass(frozen=True)
class Place:
    """Where something is built: its location, and a check that it is still this caller's.

    The check raises StoreError once the place was removed, or taken over.
    """

    where: str
    check: Callable[[], None]


class Writer(Protocol):
    """Takes the bytes of one object, piece by piece."""

    def write(self, piece: Any, /) -> object:
        """Append bytes, or a buffer."""


class Objects(ABC):
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
    def building(self, *, replaces: bool = False) -> AbstractContextManager[Place]:
        """Yield a place for what takes many writes, as Zarr data does; it is here when they end.

        Nothing is left if the body fails. StoreError when something exists here and is not to be
        replaced, or appears meanwhile.
        """

    @abstractmethod
    def put(self, key: str, *pieces: Any, create: bool = False) -> bool:
        """Write a whole object from bytes or buffers, replacing any old one.

        With ``create`` an existing object stays, and the call returns False; one with the same
        content may count as put by this call. StoreError when the store is gone, or refuses.
        """

    @abstractmethod
    def stream(self, key: str) -> AbstractContextManager[Writer]:
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
            found = (
                (key, name)
                for key in keys
                for name in ([part] if is_plain else fnmatch.filter(self.names(key), part))
            )
            keys = [f"{key}/{name}" if key else name for key, name in found]
        # A last name without a wildcard was not looked up yet.
        return [key for key in keys if self.exists(key)] if is_plain else keys

    @abstractmethod
    def below(self, key: str = "", skip: Collection[str] = ()) -> list[str]:
        """Return the keys of all objects below a key, except where a name matches ``skip``."""

    @abstractmethod
    def size(self, key: str) -> int:
        """Return an object's number of bytes; DamageError when there is none."""

    @abstractmethod
    def nbytes(self, key: str = "") -> int:
        """Return the number of bytes of an object, or of all objects below a key."""

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
