"""The contract of a store's back end: a folder today; another back end is one more file.

A *key* is a path inside the store, its names joined by slashes; "" is the store itself. After a
crash, every artifact is whole or absent. A part of several files is written as an *attempt*: its
files have a place of their own until its marker, the last one, names them. A marker is put once: of
several writers of one part the first one's stays, and the others' attempts go.

One artifact says who writes the store. Its *owner* took it while nobody else could, renews it while
it lives, and gives it back; who finds it old by the back end's own clock takes it over, unless it
is another one by then. Who is alive is not for the back end to judge: see `store/lock.py`.

`tests/backend_contract.py` holds what every back end promises.
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
from daskls.store.files import GO_ON, NOT_WRITTEN, checksum, damaged


def draw_attempt() -> int:
    """Return the number of a new attempt, which no other has; 0 is that of data without one."""
    # Not by `random`: forked processes draw the same from it. 62 bits, as markers keep an int64.
    return secrets.randbits(62) | 1


def attempt_key(key: str, attempt: int) -> str:
    """Return the key of an attempt's data.

    >>> attempt_key("x/block-000000.rows", 255), attempt_key("x/block-000000.rows", 0)
    ('x/block-000000.ff.rows', 'x/block-000000.rows')
    """
    stem, _, suffix = key.rpartition(".")
    return f"{stem}.{attempt:x}.{suffix}" if attempt else key


class Writer(Protocol):
    """Takes the bytes of one artifact, piece after piece."""

    def write(self, piece: Any, /) -> object:
        """Append bytes, or a buffer."""


class Reader(ABC):
    """One artifact, opened; its ranges are read by position.

    Attributes
    ----------
    name : str. Where it is, for people.
    nbytes : int
    """

    name: str
    nbytes: int

    @abstractmethod
    def fill(self, values: AnyArray, at: int) -> None:
        """Fill an array with the bytes from position ``at`` on.

        Raises
        ------
        DamageError : the artifact ends before
        """

    def fill_record(self, values: AnyArray, at: int, expected: int, start: int = 0) -> None:
        """As `fill`, of a record whose sum is known.

        Raises
        ------
        DamageError : the sum, begun with ``start``, is another one
        """
        self.fill(values, at)
        if checksum(values, start) != expected:
            raise damaged(self.name, NOT_WRITTEN)


class Attempt(Protocol):
    """One writer's files of a part, which are not visible before they are committed.

    Attributes
    ----------
    prefix : str. What goes before the files' names once they are committed; the marker keeps it.
    """

    prefix: str

    def write(self, name: str, *pieces: Any) -> None:
        """Write one file, of bytes or buffers one after the other."""

    def commit(self, name: str, marker: bytes) -> bool:
        """Make all of it the part by its marker; False if the part was there already."""


@dataclass(frozen=True)
class Held:
    """An owner's artifact, as it was when somebody looked.

    Attributes
    ----------
    content : bytes
    stamp : Hashable. Another one once it is renewed, or another owner's; a sum of the content
        alone is none.
    """

    content: bytes
    stamp: Hashable


class Backend(ABC):
    """A store, by keys; made from its location, and sent to workers as that.

    Attributes
    ----------
    then : str. What to do after a mishap in writing, as for `disk_errors`.
    """

    then: str = GO_ON

    @abstractmethod
    def where(self, key: str = "") -> str:
        """Return the location of an artifact, for people; that of a store or a part opens it."""

    def __str__(self) -> str:
        return self.where()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.where(),)

    def local(self, key: str = "") -> str | None:
        """Return the path of an artifact in a file system that workers share; None without one."""
        return None

    @abstractmethod
    def make(self, key: str = "") -> None:
        """Make the store, or a part of it, in which artifacts are put; either may exist."""

    def unmake(self) -> None:  # noqa: B027
        """Undo `make` of a store in which nothing is."""

    @abstractmethod
    def put(
        self, key: str, *pieces: Any, create: bool = False, instead_of: Hashable = None
    ) -> bool:
        """Write an artifact whole, in the place of any old one.

        Parameters
        ----------
        key : str
        pieces : bytes, or buffers one after the other
        create : bool. Leave one that is there as it is, and return False; one that holds just this
            may count as the one that was put.
        instead_of : Hashable. The stamp of one that gives way all the same: a damaged one.

        Raises
        ------
        StoreError : when the store is gone, or the disk refuses
        """

    @abstractmethod
    def stream(self, key: str) -> AbstractContextManager[Writer]:
        """Yield a writer of an artifact, which is put when the body ends without error.

        What it lies in was made: a task that comes late must not make half of a part anew that was
        dropped.
        """

    @abstractmethod
    def attempt(
        self, key: str, *, replace: bool = False, instead_of: Hashable = None
    ) -> AbstractContextManager[Attempt]:
        """Yield an attempt at a part; nothing is left of one that is not committed.

        Parameters
        ----------
        key : str. Of the part, which lies below it.
        replace : bool. Whether an old part gives way.
        instead_of : Hashable. The stamp of a marker whose part gives way all the same.
        """

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Whether something has this key; without permission to look, it counts as there."""

    @abstractmethod
    def names(self, key: str = "") -> list[str]:
        """Return the names directly below a key; none where there is nothing."""

    def find(self, *patterns: str) -> list[str]:
        """Return the keys that match patterns, in order; a * stands for any part of a name."""
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
        # A name without a pattern was taken without a look.
        return [key for key in keys if self.exists(key)] if is_plain else keys

    @abstractmethod
    def below(self, key: str = "", skip: Collection[str] = ()) -> list[str]:
        """Return the keys of all artifacts below a key, but those of names that match ``skip``."""

    def has_part(self, key: str, marker: str) -> bool:
        """Whether a part was committed by a marker of this name; a folder has its name then."""
        return self.exists(key)

    def parts(self, key: str, marker: str) -> list[str]:
        """Return the names directly below a key of artifacts and of committed parts."""
        return self.names(key)

    def drop_attempts(self, key: str, marker: str) -> None:  # noqa: B027
        """Remove what killed attempts at parts below a key left, where such has their names."""

    @abstractmethod
    def size(self, key: str) -> int:
        """Return the bytes of an artifact.

        Raises
        ------
        DamageError : it is missing, or nothing that a store holds
        """

    @abstractmethod
    def nbytes(self, key: str = "") -> int:
        """Return the bytes of an artifact, or of all below a key."""

    @abstractmethod
    def room(self) -> int:
        """Return how many bytes more may be put."""

    @abstractmethod
    def stamp(self, key: str) -> Hashable:
        """Return a stamp that changes when an artifact is put anew, be it with the same bytes."""

    @abstractmethod
    def reading(self, key: str) -> AbstractContextManager[Reader]:
        """Yield an artifact for reading.

        Raises
        ------
        DamageError : as `size`; at the latest when something of it is read
        StoreError : it may not be read
        """

    @abstractmethod
    def drop(self, *patterns: str, strict: bool = False) -> None:
        """Remove artifacts and all below their keys; what is not there is passed over.

        Parameters
        ----------
        patterns : str. As of `find`; "" is the whole store.
        strict : bool. Whether it is an error if something cannot be removed.
        """

    # The owner

    @abstractmethod
    def take(self, key: str, content: bytes) -> bool:
        """Put an owner's artifact, which nobody may have; of two at a time one gets it.

        Raises
        ------
        StoreError : as `put`; also of the other methods of an owner
        """

    @abstractmethod
    def examine(self, key: str) -> Held | None:
        """Return an owner's artifact; None where there is none."""

    @abstractmethod
    def age(self, key: str, held: Held) -> float:
        """Return how many seconds ago it was renewed, by the back end's own clock."""

    @abstractmethod
    def renew(self, key: str, content: bytes) -> bool:
        """Make it new, if it still has this content; False if not."""

    @abstractmethod
    def take_over(self, key: str, held: Held, content: bytes) -> bool:
        """Put one's own in the place of exactly the one that was examined.

        Returns
        -------
        is_ours : bool. False if it was renewed, given back or another's by then; at another's no
            harm is done.
        """

    @abstractmethod
    def give_back(self, key: str, content: bytes) -> None:
        """Remove it, if it still has this content."""

    def read(self, key: str, most: int) -> bytes:
        """Return an artifact's bytes.

        Raises
        ------
        DamageError : as `reading`, and where it has more bytes than any such artifact
        """
        with self.reading(key) as reader:
            if reader.nbytes > most:
                why = f"it has {reader.nbytes} bytes, and at most {most} are expected"
                raise damaged(reader.name, why)
            content = np.empty(reader.nbytes, np.uint8)
            reader.fill(content, 0)
        return content.tobytes()

    def copy_from(self, source: "Backend", keys: Iterable[str], last: str) -> bool:
        """Put some artifacts of another store here, where there is nothing yet.

        Parameters
        ----------
        source : Backend
        keys : str
        last : str. The one without which nobody takes the others for a store: it is put last.

        Returns
        -------
        is_ours : bool. False where another store came in between.
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
            # Nothing of another store, which may have come to be here meanwhile.
            if not is_ours:
                self.drop(*own)
        return True
