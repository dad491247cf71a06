"""Ranges of an object in a bucket, by as few requests as possible."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from daskls.records import AnyArray
from daskls.store.backend import Reader
from daskls.store.files import damaged

# Fetched with an object's size: its beginning is read next, and most objects fit whole.
FIRST_NBYTES = 64 << 10
# Read beyond a range: the checksum behind a chunk then needs no request of its own.
AHEAD_NBYTES = 16


class BucketReader(Reader):
    """Reads ranges of an object; some bytes beyond the last range are kept.

    `obstore.open_reader` would ask for the size by a request of its own.

    Parameters
    ----------
    name : str. The object's URL.
    read_range : called with the first byte and the one after the last; returns these bytes, cut at
        the object's end, and the object's size
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
