"""Opening Zarr data of any origin safely: plain files inside it, of sizes that are planned.

What daskls itself writes, data sets and arrays of memory, says so: such an array has every chunk,
each with its checksum, and one that is missing is damage. Of others' arrays a missing chunk is the
fill value, as Zarr has it.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.metadata.v2 import ArrayV2Metadata
from zarr.storage import LocalStore

from daskls.errors import DamageError, StoreError
from daskls.store.artifacts import is_bucket
from daskls.store.connections import zarr_place
from daskls.store.folder import Folder
from daskls.store.guard import MALFORMED
from daskls.store.packed import unpacks_beyond

__all__ = [
    "OWN_ARRAY",
    "open_array",
    "open_zarr_group",
    "own_codecs",
    "plain_size",
    "read_errors",
    "writable",
]

METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
MAX_METADATA_NBYTES = 64 << 20
# Keywords of `zarr.create_array`: what makes an array one of ours.
WHOLE = "every_chunk_is_written"
OWN_ARRAY: dict[str, Any] = {
    "attributes": {WHOLE: True},
    # So also one that holds only the fill value is there.
    "config": {"write_empty_chunks": True},
}
# A packed file may be larger than what is in it, but not by much.
SLACK_NBYTES = 1 << 20
# Of a label that is text of no fixed width.
TEXT_NBYTES = 256


def own_codecs(dtype: "np.dtype[Any]") -> tuple[Any, ...]:
    """Return how our arrays are packed: float features hardly shrink, and take twice the time."""
    return (Crc32cCodec(),) if dtype.kind == "f" else (ZstdCodec(level=0), Crc32cCodec())


class GuardedStore(LocalStore):  # type: ignore[misc]
    """A folder of Zarr data whose files are looked at before they are read.

    Attributes
    ----------
    most : int, or None before an array is open. Bytes of a chunk's file.
    packing : tuple (codec, bytes), or None. What a chunk is packed by, and may unpack to.
    is_whole : bool. Whether a missing chunk is damage.
    """

    most: int | None = None
    packing: tuple[str, int] | None = None
    is_whole = False

    def watch(self, array: "zarr.Array[Any]") -> None:
        """Take the bounds of an array's files from what it says of itself."""
        itemsize = TEXT_NBYTES if array.dtype.kind == "T" else array.dtype.itemsize
        nbytes = itemsize * math.prod(array.chunks)
        outer = itemsize * math.prod(array.shards or array.chunks)
        self.most = 2 * outer + SLACK_NBYTES
        name = _packer(array)
        # A shard is read whole or in parts, and is no packed chunk itself.
        self.packing = (name, 2 * nbytes + SLACK_NBYTES) if name and not array.shards else None
        self.is_whole = array.attrs.get(WHOLE) is True

    def _check(self, key: str) -> None:
        """Refuse a file before it is opened.

        Raises
        ------
        StoreError
        """
        is_metadata = key.rpartition("/")[2] in METADATA
        most = MAX_METADATA_NBYTES if is_metadata else self.most
        folder = Folder(str(self.root))
        size, where = plain_size(folder, key), folder.where(key)
        if size is None and self.is_whole and not is_metadata:
            raise _refused(where, "the chunk is missing")
        if size is not None and most is not None and size > most:
            raise _refused(where, f"it has {size} bytes, and at most {most} are expected")

    def _check_packed(self, key: str, found: Any) -> Any:
        """Refuse a chunk that would unpack to more than its array says."""
        is_metadata = key.rpartition("/")[2] in METADATA
        if found is not None and self.packing is not None and not is_metadata:
            name, most = self.packing
            if unpacks_beyond(name, found.to_bytes(), most):
                why = f"it unpacks to more than the {most >> 1} bytes of a chunk"
                raise _refused(f"{self.root}/{key}", why)
        return found

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return a file's bytes, or None."""
        self._check(key)
        return self._check_packed(key, await super().get(key, *args, **kwargs))

    def get_sync(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return a file's bytes, or None."""
        self._check(key)
        return self._check_packed(key, super().get_sync(key, *args, **kwargs))


def plain_size(folder: Folder, key: str) -> int | None:
    """Return the size of a file of somebody's data, or None if there is none.

    Raises
    ------
    StoreError : it is no plain file, or a link out of the data
    """
    try:
        return folder.size(key)
    except DamageError as error:
        if folder.exists(key):
            raise _refused(folder.where(key), error.why) from error
        return None


def _refused(path: str, why: str) -> StoreError:
    return StoreError(f"The data's file {path} is not read: {why}. Copy or write the data again.")


def _packer(array: "zarr.Array[Any]") -> str | None:
    """Return the name of the codec that is undone first, if an array has one that packs."""
    metadata = array.metadata
    if isinstance(metadata, ArrayV2Metadata):
        return getattr(metadata.compressor, "codec_id", None)
    names = [str(codec.to_dict()["name"]).removeprefix("numcodecs.") for codec in metadata.codecs]
    packers = [name for name in names if name not in ("bytes", "crc32c", "transpose")]
    return packers[-1] if packers else None


def _guarded(path: str) -> Any:
    """Return a path or a URL as Zarr opens it for reading."""
    if is_bucket(path):
        return zarr_place(path)
    return path if "://" in path else GuardedStore(Path(path), read_only=True)


def writable(path: str) -> Any:
    """Return a path or a URL as Zarr opens it for writing."""
    return zarr_place(path, read_only=False) if is_bucket(path) else path


@contextmanager
def read_errors(path: str) -> Iterator[None]:
    """Turn what Zarr raises where chunks are damaged into a `StoreError`.

    Raises
    ------
    StoreError
    """
    try:
        yield
    except (*MALFORMED, OSError) as error:
        if isinstance(error, MemoryError):
            raise
        raise StoreError(
            f"{path} cannot be read ({type(error).__name__}: {str(error)[:200]}): it is "
            "damaged, or the disk failed. Copy or write the data again."
        ) from error


def open_array(path: str) -> "zarr.Array[Any]":
    """Return an array for reading; Zarr's own error propagates where there is none."""
    array = zarr.open_array(store=_guarded(path), mode="r")
    store = array.store_path.store
    if isinstance(store, GuardedStore):
        store.watch(array)
    return array


def open_zarr_group(path: str) -> zarr.Group:
    """Return a group for reading; Zarr's own error propagates where there is none."""
    return zarr.open_group(store=_guarded(path), mode="r")
