"""Zarr data of any origin, opened safely: plain files inside it, of bounded size.

An array that daskls wrote, in a data set or from memory, says so: every chunk of it exists and ends
in its checksum, and a missing one is damage. In other arrays a missing chunk is the fill value, as
Zarr defines it.

A packed chunk of some hundred kilobytes may unpack to gigabytes, whatever its array's metadata say,
so its size is determined before it is unpacked.

Zarr reads whole chunks. If a chunk's file consists of its rows alone, unpacked, a range of rows is
read as a range of bytes.
"""

import bz2
import lzma
import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec
from zarr.storage import LocalStore, ObjectStore

from daskls.errors import DamageError, StoreError
from daskls.records import AnyArray
from daskls.store.artifacts import is_bucket
from daskls.store.connections import bucket_errors, connect_below
from daskls.store.files import MALFORMED, READ_AGAIN
from daskls.store.folder import Folder

METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
MAX_METADATA_NBYTES = 64 << 20
# Keywords of `zarr.create_array` for the arrays that daskls writes; the attribute identifies them.
WHOLE = "every_chunk_is_written"
OWN_ARRAY: dict[str, Any] = {
    "attributes": {WHOLE: True},
    # Writes a chunk even if it holds only the fill value.
    "config": {"write_empty_chunks": True},
}
# A packed file may be slightly larger than its content.
SLACK_NBYTES = 1 << 20
# Assumed bytes of a string of variable width.
TEXT_NBYTES = 256


def open_array(path: str) -> "zarr.Array[Any]":
    """Return an array for reading; Zarr's own error is raised if there is none."""
    array = zarr.open_array(store=_guarded(path), mode="r")
    store = array.store_path.store
    if isinstance(store, ChunkLimits):
        store.set_limits(array)
    return array


def open_zarr_group(path: str) -> zarr.Group:
    """Return a group for reading; Zarr's own error is raised if there is none."""
    return zarr.open_group(store=_guarded(path), mode="r")


def writable(path: str) -> Any:
    """Return a path or a URL in the form that Zarr opens for writing."""
    return GuardedBucket(path, read_only=False) if is_bucket(path) else path


@contextmanager
def read_errors(path: str) -> Iterator[None]:
    """Turn Zarr's errors about damaged chunks into a `StoreError`."""
    try:
        yield
    except (*MALFORMED, OSError) as error:
        if isinstance(error, MemoryError):
            raise
        raise StoreError(
            f"{path} cannot be read ({type(error).__name__}: {str(error)[:200]}): it is "
            "damaged, or the disk failed. Copy or write the data again."
        ) from error


def own_codecs(dtype: "np.dtype[Any]") -> tuple[Any, ...]:
    """Return the codecs of daskls' arrays: compressing floats saves little and doubles the time."""
    return (Crc32cCodec(),) if dtype.kind == "f" else (ZstdCodec(level=0), Crc32cCodec())


class ChunkLimits:
    """Zarr data whose files are checked before their content is used.

    Attributes
    ----------
    max_nbytes : int, or None before an array is open. The largest allowed size of a chunk's file.
    packing : tuple (codec, bytes), or None. The codec that packs a chunk, and the most bytes that
        it may unpack to.
    is_whole : bool. Whether a missing chunk is damage.
    """

    max_nbytes: int | None = None
    packing: tuple[str, int] | None = None
    is_whole = False

    def set_limits(self, array: "zarr.Array[Any]") -> None:
        """Set the limits on an array's files from its metadata."""
        itemsize = TEXT_NBYTES if array.dtype.kind == "T" else array.dtype.itemsize
        nbytes = itemsize * math.prod(array.chunks)
        outer = itemsize * math.prod(array.shards or array.chunks)
        self.max_nbytes = 2 * outer + SLACK_NBYTES
        name = _packer(array)
        # A shard is read in whole or in part, and is not itself a packed chunk.
        self.packing = (name, 2 * nbytes + SLACK_NBYTES) if name and not array.shards else None
        self.is_whole = array.attrs.get(WHOLE) is True

    def check_size(self, where: str, size: int | None) -> None:
        """Raise a `StoreError` if a file is missing (None) or too large."""
        is_metadata = where.rpartition("/")[2] in METADATA
        max_nbytes = MAX_METADATA_NBYTES if is_metadata else self.max_nbytes
        if size is None and self.is_whole and not is_metadata:
            raise _refused(where, "the chunk is missing")
        if size is not None and max_nbytes is not None and size > max_nbytes:
            raise _refused(where, f"it has {size} bytes, and at most {max_nbytes} are expected")

    def check_packed(self, where: str, found: Any) -> Any:
        """Return a file's bytes; refuse a chunk that unpacks to more than its metadata say."""
        is_metadata = where.rpartition("/")[2] in METADATA
        if found is not None and self.packing is not None and not is_metadata:
            name, max_nbytes = self.packing
            if unpacks_beyond(name, found.to_bytes(), max_nbytes):
                raise _refused(
                    where, f"it unpacks to more than the {max_nbytes >> 1} bytes of a chunk"
                )
        return found


class GuardedFolder(ChunkLimits, LocalStore):  # type: ignore[misc]
    """A folder of Zarr data; files are checked before they are opened."""

    def _check(self, key: str) -> str:
        """Check a file and return its path."""
        where = self._folder.where(key)
        self.check_size(where, plain_size(self._folder, key))
        return where

    @cached_property
    def _folder(self) -> Folder:
        # Kept, as it remembers which folders were checked.
        return Folder(str(self.root))

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return a file's bytes, or None."""
        return self.check_packed(self._check(key), await super().get(key, *args, **kwargs))

    def get_sync(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return a file's bytes, or None."""
        return self.check_packed(self._check(key), super().get_sync(key, *args, **kwargs))


class GuardedBucket(ChunkLimits, ObjectStore):  # type: ignore[misc]
    """Zarr data in a bucket, configured by the environment of each process that opens them.

    Obstore's errors are raised as `StoreError`.

    Parameters
    ----------
    url : str
    """

    def __init__(self, url: str, *, read_only: bool = True) -> None:
        self.url = url.rstrip("/")
        super().__init__(connect_below(url), read_only=read_only)

    def with_read_only(self, read_only: bool = False) -> "GuardedBucket":
        """Return the same data, read-only or not."""
        return type(self)(self.url, read_only=read_only)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "store": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, store=connect_below(state["url"]))

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Return an object's bytes, or a range of them; None if there is none."""
        where = f"{self.url}/{key}"
        with bucket_errors(where, READ_AGAIN):
            if byte_range is not None:
                found = await super().get(key, prototype, byte_range)
                self.check_size(where, None if found is None else 0)
                return found
            try:
                answer = await self.store.get_async(key)
            except FileNotFoundError:
                self.check_size(where, None)
                return None
            # Before the content arrives.
            self.check_size(where, answer.meta["size"])
            found = prototype.buffer.from_bytes(await answer.bytes_async())
        return self.check_packed(where, found)


def _guarded(path: str) -> Any:
    """Return a path or a URL in the form that Zarr opens for reading."""
    if is_bucket(path):
        return GuardedBucket(path)
    return path if "://" in path else GuardedFolder(Path(path), read_only=True)


def plain_size(folder: Folder, key: str) -> int | None:
    """Return the size of a file of a user's data, or None if there is none.

    Raises
    ------
    StoreError : when it is no plain file, or a link out of the data
    """
    try:
        return folder.size(key)
    except DamageError as error:
        if folder.exists(key):
            raise _refused(folder.where(key), error.why) from error
        return None


def _refused(path: str, why: str) -> StoreError:
    return StoreError(f"The data file {path} is not read: {why}. Copy or write the data again.")


def _packer(array: "zarr.Array[Any]") -> str | None:
    """Return the name of the compressor that is undone first; None if there is none."""
    metadata: Any = array.metadata
    if metadata.zarr_format == 2:
        return getattr(metadata.compressor, "codec_id", None)
    names = [str(codec.to_dict()["name"]).removeprefix("numcodecs.") for codec in metadata.codecs]
    packers = [name for name in names if name not in ("bytes", "crc32c", "transpose")]
    return packers[-1] if packers else None


def unit_rows(array: "zarr.Array[Any]") -> int:
    """Return how many rows are read together; 1 if any range of rows can be read alone."""
    if not array.chunks or not array.chunks[0]:
        return 1
    return 1 if _stored_dtype(array) is not None else int(array.chunks[0])


def read_range(array: "zarr.Array[Any]", start: int, stop: int) -> AnyArray | None:
    """Return rows start .. stop - 1; None if the chunks' files hold more than plain rows.

    Raises
    ------
    StoreError : when a chunk's file has the wrong size, or is no plain file
    """
    dtype = _stored_dtype(array)
    if dtype is None or start == stop:
        return None
    out = np.empty((stop - start, *array.shape[1:]), np.dtype(array.dtype))
    folder, inside_of = Folder(str(array.store_path.store.root)), array.store_path.path
    for name, first, last, target in _parts(array, start, stop):
        key = f"{inside_of}/{name}" if inside_of else name
        rows = _read_part(folder, key, array.chunks, dtype, first, last)
        if rows is None:
            # As Zarr reads a chunk that was never written.
            rows = np.full((last - first, *array.chunks[1:]), array.fill_value or 0, dtype)
        # A chunk at the array's edge is stored whole and extends beyond it.
        inside = tuple(slice(s.stop - s.start) for s in target[1:])
        out[target] = rows[(slice(None), *inside)]
    return out


def _parts(
    array: "zarr.Array[Any]", start: int, stop: int
) -> Iterator[tuple[str, int, int, tuple[slice, ...]]]:
    """Yield each chunk of the rows: its key, its range of rows, and the slices that these fill."""
    height = array.chunks[0]
    sizes = list(zip(array.chunks[1:], array.shape[1:], strict=True))
    across = [range(math.ceil(n / c)) for c, n in sizes]
    for down in range(start // height, math.ceil(stop / height)):
        low, high = max(start, down * height), min(stop, (down + 1) * height)
        for indices in product(*across):
            beside = [
                slice(i * c, min((i + 1) * c, n)) for i, (c, n) in zip(indices, sizes, strict=True)
            ]
            key = array.metadata.encode_chunk_key((down, *indices))
            target = (slice(low - start, high - start), *beside)
            yield key, low - down * height, high - down * height, target


def _read_part(
    folder: Folder, key: str, chunks: tuple[int, ...], dtype: np.dtype[Any], first: int, last: int
) -> AnyArray | None:
    """Return rows of one chunk's file; None if there is no file."""
    row_nbytes = dtype.itemsize * math.prod(chunks[1:])
    path, size, nbytes = folder.where(key), plain_size(folder, key), row_nbytes * chunks[0]
    if size is None:
        return None
    if size != nbytes:
        raise StoreError(
            f"{path} has {size} bytes and its chunk {nbytes}: it is truncated or damaged. Write "
            "the array again."
        )
    rows = np.empty((last - first, *chunks[1:]), dtype)
    try:
        with folder.reading(key) as reader:
            reader.fill(rows, first * row_nbytes)
    except DamageError as error:
        raise StoreError(f"Cannot read {path}: {error.why}. Write it again.") from error
    return rows


def _stored_dtype(array: "zarr.Array[Any]") -> np.dtype[Any] | None:
    """Return the dtype of the values in a chunk's file if it holds nothing else, otherwise None."""
    dtype = np.dtype(array.dtype)
    if not isinstance(array.store_path.store, LocalStore) or dtype.kind not in "biuf":
        return None
    metadata: Any = array.metadata
    if metadata.zarr_format == 2:
        packed = metadata.compressor is not None or metadata.filters
        return None if packed or metadata.order != "C" else dtype
    if len(metadata.codecs) != 1 or not isinstance(metadata.codecs[0], BytesCodec):
        return None
    endian = metadata.codecs[0].endian
    # Newer Zarr gives a string, older an enumeration member.
    byte_order = "<" if endian is None else getattr(endian, "value", endian)
    stored: np.dtype[Any] = dtype.newbyteorder(byte_order)
    return stored


# Zstandard, https://www.rfc-editor.org/rfc/rfc8878: its magic number, the most that a block unpacks
# to, and the bytes of the content's size by its flag. Parsed here, as numcodecs does not give the
# size before it unpacks, and Python's standard library reads the format from 3.14 on only.
ZSTD_MAGIC = 0xFD2FB528
ZSTD_BLOCK_NBYTES = 128 << 10
SIZE_NBYTES = (0, 2, 4, 8)
# Bytes that are unpacked at a time to find the size of a stream without a header.
PIECE_NBYTES = 1 << 20


def unpacks_beyond(name: str, data: bytes, max_nbytes: int) -> bool:
    """Whether data packed by a codec unpack to more than ``max_nbytes``.

    Parameters
    ----------
    name : str. The codec, as Zarr names it; False for an unknown one.
    """
    if name == "zstd":
        return _zstd_nbytes(data) > max_nbytes
    # Blosc's header has the size after four bytes of flags; LZ4 data of numcodecs begin with it.
    if name == "blosc":
        return int.from_bytes(data[4:8], "little") > max_nbytes
    if name == "lz4":
        return int.from_bytes(data[:4], "little") > max_nbytes
    unpackers: dict[str, Callable[[], Any]] = {
        # Adding 16 selects the header of gzip.
        "gzip": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
        "zlib": zlib.decompressobj,
        "bz2": bz2.BZ2Decompressor,
        "lzma": lzma.LZMADecompressor,
    }
    return name in unpackers and _streams_beyond(unpackers[name](), data, max_nbytes)


def _zstd_nbytes(data: bytes) -> int:
    """Return the content's size from the header, or without one an upper bound from its blocks."""
    if len(data) < 6 or int.from_bytes(data[:4], "little") != ZSTD_MAGIC:
        return 0
    descriptor = data[4]
    is_single = bool(descriptor & 0x20)
    # After the descriptor: the window, unless there is a single segment, and the dictionary's id.
    at = 5 + (not is_single) + (0, 1, 2, 4)[descriptor & 3]
    size = SIZE_NBYTES[descriptor >> 6] or int(is_single)
    if size:
        # Sizes of two bytes count from 256, as one byte holds the smaller ones.
        return int.from_bytes(data[at : at + size], "little") + (256 if size == 2 else 0)
    total, is_last = 0, False
    while not is_last and at + 3 <= len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        total += size if kind < 2 else ZSTD_BLOCK_NBYTES
        # A block of equal bytes (kind 1) stores one of them.
        at += 3 + (1 if kind == 1 else size)
    return total


def _streams_beyond(unpacker: Any, data: bytes, max_nbytes: int) -> bool:
    """Whether data unpack to more than ``max_nbytes``, by unpacking piece by piece.

    Nothing is kept.
    """
    total = 0
    try:
        while not unpacker.eof and total <= max_nbytes:
            piece = unpacker.decompress(data, PIECE_NBYTES)
            # zlib returns the input that it has not used; the others keep it.
            data = getattr(unpacker, "unconsumed_tail", b"")
            total += len(piece)
            if not piece and not data:
                break
    except (zlib.error, OSError, EOFError, lzma.LZMAError):
        # Zarr will raise the error when it unpacks the data.
        return False
    return total > max_nbytes
