"""The contract of a store's back end.

A *key* is a path inside the store, its names joined by slashes; "" is the store itself. After a
crash, every artifact is whole or absent. A part of several files is written as an *attempt*: its
files have a place of their own until its marker, written last, names them. A marker is put once: of
several writers of one part, the first one's marker stays and the others' attempts are removed.

One artifact says who writes the store. Its *owner* takes it while nobody else can, renews it while
it lives, and gives it back. Another process that finds it stale by the back end's own clock takes
it over, unless it has changed since it was examined. The back end does not judge who is alive: see
`store/lock.py`.

`tests/backend_contract.py` tests what every back end promises.
"""

import fnmatch
import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from daskls.records import AnyArray
from daskls.store.files import BAD_CHECKSUM, GO_ON, checksum, damaged

# The object by which one of several callers begins to write to a new place.
CLAIM = ".claim"
# An owner's artifact is far smaller.
MAX_OWNER_NBYTES = 4096


def draw_attempt() -> int:
    """Return a random, unique number for a new attempt; 0 denotes data without an attempt."""
    # Not from `random`, which repeats its numbers in forks. 62 bits: markers store it as int64.
    return secrets.randbits(62) | 1


def attempt_key(key: str, attempt: int) -> str:
    """Return the key of an attempt's data.

    >>> attempt_key("x/block-000000.rows", 255), attempt_key("x/block-000000.rows", 0)
    ('x/block-000000.ff.rows', 'x/block-000000.rows')
    """
    stem, _, suffix = key.rpartition(".")
    return f"{stem}.{attempt:x}.{suffix}" if attempt else key


class Writer(Protocol):
    """Takes the bytes of one artifact, piece by piece."""

    def write(self, piece: Any, /) -> object:
        """Append bytes, or a buffer."""


class Reader(ABC):
    """One opened artifact, of which ranges are read by position.

    Attributes
    ----------
    name : str. Its location, for messages.
    nbytes : int
    """

    name: str
    nbytes: int

    @abstractmethod
    def fill(self, values: AnyArray, at: int) -> None:
        """Fill an array with the bytes from position ``at`` on.

        Raises
        ------
        DamageError : when the artifact ends too early
        """

    def fill_record(self, values: AnyArray, at: int, expected: int) -> None:
        """Fill as `fill` does, and check the bytes against the ``expected`` checksum.

        Raises
        ------
        DamageError : when the checksum is another one
        """
        self.fill(values, at)
        if checksum(values) != expected:
            raise damaged(self.name, BAD_CHECKSUM)


class Attempt(Protocol):
    """One writer's files of a part, invisible until they are committed.

    Attributes
    ----------
    prefix : str. Prefix of the files' names once they are committed; the marker stores it.
    """

    prefix: str

    def write(self, name: str, *pieces: Any) -> None:
        """Write one file from bytes or buffers, one after the other."""

    def commit(self, name: str, marker: bytes) -> bool:
        """Make the files the part by writing its marker; False if the part was already there."""


@dataclass(frozen=True)
class OwnerArtifact:
    """An owner's artifact, as it was when it was examined.

    Attributes
    ----------
    stamp : Hashable. Changes when the artifact is renewed or gets another owner; a checksum of the
        content alone would not.
    """

    content: bytes
    stamp: Hashable


class Backend(ABC):
    """A store, addressed by keys; made from its location, and pickled as it.

    Attributes
    ----------
    then : str. What to do after a failed write, as for `disk_errors`.
    """

    then: str = GO_ON

    @abstractmethod
    def where(self, key: str = "") -> str:
        """Return an artifact's location, for messages; that of a store or a part can be opened."""

    def __str__(self) -> str:
        return self.where()

    def __reduce__(self) -> tuple[Any, ...]:
        # `then` as a state: a back end is made from its location alone.
        return type(self), (self.where(),), {"then": self.then}

    def local(self, key: str = "") -> str | None:
        """Return the path of an artifact in a file system that workers share; None without one."""
        return None

    @abstractmethod
    def make(self, key: str = "") -> None:
        """Create the store, or a part of it, to put artifacts in; either may already exist."""

    def unmake(self) -> None:  # noqa: B027
        """Undo `make` of a store that is still empty."""

    @abstractmethod
    def claim(self) -> AbstractContextManager[None]:
        """Claim this location, where nothing exists yet, until the body has begun to fill it.

        Zarr does not check in one step that nothing exists and create an array.

        Raises
        ------
        StoreError : when something exists, or another caller has claimed it
        """

    @abstractmethod
    def put(
        self, key: str, *pieces: Any, create: bool = False, instead_of: Hashable = None
    ) -> bool:
        """Write a whole artifact, replacing any old one.

        Parameters
        ----------
        pieces : bytes, or buffers one after the other
        create : bool. Leave an existing artifact as it is and return False; one with the same
            content may count as put by this call.
        instead_of : Hashable. The stamp of a damaged artifact, replaced despite ``create``.

        Raises
        ------
        StoreError : when the store is gone, or the disk refuses
        """

    @abstractmethod
    def stream(self, key: str) -> AbstractContextManager[Writer]:
        """Yield a writer of an artifact, which is put when the body ends without an error.

        Its folder must exist: a late task must not recreate half of a part that was dropped.
        """

    @abstractmethod
    def attempt(
        self, key: str, *, replace: bool = False, instead_of: Hashable = None
    ) -> AbstractContextManager[Attempt]:
        """Yield an attempt at a part; one that is not committed leaves nothing behind.

        Parameters
        ----------
        key : str. Of the part; its files have keys below it.
        replace : bool. Whether to replace an old part.
        instead_of : Hashable. The stamp of a damaged marker; its part is replaced in any case.
        """

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
        """Return the keys of all artifacts below a key, except where a name matches ``skip``."""

    def has_part(self, key: str, marker: str) -> bool:
        """Whether a part was committed by a marker of this name; by default, whether it exists."""
        return self.exists(key)

    def parts(self, key: str, marker: str) -> list[str]:
        """Return the names of artifacts and of committed parts directly below a key."""
        return self.names(key)

    def drop_attempts(self, key: str, marker: str) -> None:  # noqa: B027
        """Remove killed attempts at parts below a key, if they have the parts' own names."""

    @abstractmethod
    def size(self, key: str) -> int:
        """Return the number of bytes of an artifact.

        Raises
        ------
        DamageError : when it is missing, or no plain file or object
        """

    @abstractmethod
    def nbytes(self, key: str = "") -> int:
        """Return the number of bytes of an artifact, or of all artifacts below a key."""

    @abstractmethod
    def free_nbytes(self) -> int:
        """Return the number of bytes that can still be put."""

    @abstractmethod
    def stamp(self, key: str) -> Hashable:
        """Return a stamp that changes whenever an artifact is put, even with the same bytes."""

    @abstractmethod
    def reading(self, key: str) -> AbstractContextManager[Reader]:
        """Yield an artifact for reading.

        Raises
        ------
        DamageError : as `size`, at the latest when something is read
        StoreError : when it may not be read
        """

    @abstractmethod
    def drop(self, *patterns: str, strict: bool = False) -> None:
        """Remove artifacts and everything below their keys; skip what does not exist.

        Parameters
        ----------
        patterns : str. As for `find`; "" is the whole store.
        strict : bool. Whether to raise if something cannot be removed.
        """

    # The owner

    @abstractmethod
    def take(self, key: str, content: bytes) -> bool:
        """Put an owner's artifact if there is none; of two concurrent calls, one succeeds.

        Raises
        ------
        StoreError : as `put`; so do the owner's other methods
        """

    @abstractmethod
    def examine(self, key: str) -> OwnerArtifact | None:
        """Return an owner's artifact; None if there is none."""

    @abstractmethod
    def age(self, key: str, seen: OwnerArtifact) -> float:
        """Return how many seconds ago it was renewed, by the back end's own clock."""

    @abstractmethod
    def renew(self, key: str, content: bytes) -> bool:
        """Renew the artifact if it still has this content; False if not."""

    @abstractmethod
    def take_over(self, key: str, seen: OwnerArtifact, content: bytes) -> bool:
        """Replace exactly the artifact that was examined.

        Returns
        -------
        is_ours : bool. False if it was renewed, given back or replaced meanwhile; another owner's
            artifact stays intact.
        """

    @abstractmethod
    def give_back(self, key: str, content: bytes) -> None:
        """Remove the artifact if it still has this content."""

    def read(self, key: str, most: int) -> bytes:
        """Return an artifact's bytes.

        Raises
        ------
        DamageError : as `reading`, and when it has more than ``most`` bytes
        """
        with self.reading(key) as reader:
            if reader.nbytes > most:
                why = f"it has {reader.nbytes} bytes, and at most {most} are expected"
                raise damaged(reader.name, why)
            content = np.empty(reader.nbytes, np.uint8)
            reader.fill(content, 0)
        return content.tobytes()

    def copy_from(self, source: "Backend", keys: Iterable[str], last: str) -> bool:
        """Copy some artifacts of another store into this one, which must be empty.

        Parameters
        ----------
        last : str. The key that is put last: without it nobody takes the others for a store.

        Returns
        -------
        is_ours : bool. False if another store appeared meanwhile.
        """
        own: list[str] = []
        is_ours = False
        try:
            for key in (*(key for key in keys if key != last), last):
                own.append(key)
                if not self.put(key, source.read(key, source.size(key)), create=True):
                    own.pop()
                    return False
            is_ours = True
        finally:
            # Only what this call put: another store may have appeared here meanwhile.
            if not is_ours:
                self.drop(*own)
        return True
