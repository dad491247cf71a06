"""The contract of a store's back end: a folder today; another back end is one more file.

A *key* is a path inside the store, its names joined by slashes. After a crash, every artifact is
whole or absent. A part of several files is written as an *attempt*: its files have a
place of their own until its marker, the last one, names them. A marker is put once: of several
writers of one part the first one's stays, and the others' attempts go.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from daskls.records import AnyArray
from daskls.store.checksums import checksum
from daskls.store.guard import NOT_WRITTEN, damaged

__all__ = ["Attempt", "Backend", "Reader", "Writer"]


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


class Backend(ABC):
    """A store, by keys."""

    @abstractmethod
    def where(self, key: str = "") -> str:
        """Return where an artifact is, for people and for errors."""

    @abstractmethod
    def make(self, key: str = "") -> None:
        """Make the store, or a part of it, in which artifacts are put; either may exist."""

    @abstractmethod
    def put(self, key: str, *pieces: Any, create: bool = False) -> bool:
        """Write an artifact whole, in the place of any old one.

        Parameters
        ----------
        key : str
        pieces : bytes, or buffers one after the other
        create : bool. Leave one that is there as it is, and return False.

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
    def attempt(self, key: str, *, replace: bool = False) -> AbstractContextManager[Attempt]:
        """Yield an attempt at a part; nothing is left of one that is not committed.

        Parameters
        ----------
        key : str. Of the part, which lies below it.
        replace : bool. Whether an old part gives way.
        """

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Whether something has this key; without permission to look, it counts as there."""

    @abstractmethod
    def names(self, key: str = "") -> list[str]:
        """Return the names directly below a key; none where there is nothing."""

    @abstractmethod
    def find(self, *patterns: str) -> list[str]:
        """Return the keys that match patterns, in order; a * stands for any part of a name."""

    @abstractmethod
    def below(self, key: str = "", skip: Collection[str] = ()) -> list[str]:
        """Return the keys of all artifacts below a key, but those of names that match ``skip``."""

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
        """Return a stamp that changes when an artifact is put anew."""

    @abstractmethod
    def reading(self, key: str) -> AbstractContextManager[Reader]:
        """Yield an artifact for reading.

        Raises
        ------
        DamageError : as `size`
        StoreError : it may not be read
        """

    @abstractmethod
    def drop(self, *patterns: str, strict: bool = False) -> None:
        """Remove artifacts and all below their keys; what is not there is passed over.

        Parameters
        ----------
        patterns : str. As of `find`.
        strict : bool. Whether it is an error if something cannot be removed.
        """

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
