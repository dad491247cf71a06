"""Opening Zarr data of any origin safely: plain files inside it, of sizes that are planned.

What daskls itself writes, data sets and arrays of memory, says so: such an array has every chunk,
each with its checksum, and one that is missing is damage. Of others' arrays a missing chunk is the
fill value, as Zarr has it.

The size of a packed chunk, found before it is unpacked.

A chunk of some hundred kilobytes may unpack to gigabytes, in spite of its array's metadata.

Ranges of rows of an array on disk, read without the rest of their chunks.

Zarr reads a chunk whole. Where a chunk's file is the rows themselves, one after the other, a range
of them is a range of bytes.
"""

import bz2
import lzma
import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec
from zarr.core.metadata.v2 import ArrayV2Metadata
from zarr.storage import LocalStore

from daskls.errors import DamageError, StoreError
from daskls.records import AnyArray
from daskls.store.artifacts import is_bucket
from daskls.store.connections import zarr_place
from daskls.store.files import MALFORMED
from daskls.store.folder import Folder

# Of Zstandard, https://www.rfc-editor.org/rfc/rfc8878: no block unpacks to more.
ZSTD_MAGIC = 0xFD2FB528
ZSTD_BLOCK_NBYTES = 128 << 10
SIZE_NBYTES = (0, 2, 4, 8)
PIECE_NBYTES = 1 << 20


def unpacks_beyond(name: str, data: bytes, most: int) -> bool:
    """Whether data packed by a codec unpack to more than ``most`` bytes.

    Parameters
    ----------
    name : str. The codec, as Zarr names it; of one that is not known here nothing is said.
    data : bytes
    most : int
    """
    if name == "zstd":
        return _zstd_nbytes(data) > most
    # Blosc's header has the size after four bytes of flags, LZ4's chunks of numcodecs begin with
    # it.
    if name == "blosc":
        return int.from_bytes(data[4:8], "little") > most
    if name == "lz4":
        return int.from_bytes(data[:4], "little") > most
    unpackers: dict[str, Callable[[], Any]] = {
        # 16 more stands for the header of gzip.
        "gzip": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
        "zlib": zlib.decompressobj,
        "bz2": bz2.BZ2Decompressor,
        "lzma": lzma.LZMADecompressor,
    }
    return name in unpackers and _streams_beyond(unpackers[name](), data, most)


def _zstd_nbytes(data: bytes) -> int:
    """Return the content's size as its header has it; without one, what its blocks hold at most."""
    if len(data) < 6 or int.from_bytes(data[:4], "little") != ZSTD_MAGIC:
        return 0
    descriptor = data[4]
    is_single = bool(descriptor & 0x20)
    # After the descriptor: the window unless all is one segment, and the dictionary's number.
    at = 5 + (not is_single) + (0, 1, 2, 4)[descriptor & 3]
    size = SIZE_NBYTES[descriptor >> 6] or int(is_single)
    if size:
        # Sizes of two bytes count from 256: one byte says what is below.
        return int.from_bytes(data[at : at + size], "little") + (256 if size == 2 else 0)
    total, is_last = 0, False
    while not is_last and at + 3 <= len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, held = bool(header & 1), header >> 1 & 3, header >> 3
        total += held if kind < 2 else ZSTD_BLOCK_NBYTES
        # One byte stands for all of a block of equal ones.
        at += 3 + (1 if kind == 1 else held)
    return total


def _streams_beyond(unpacker: Any, data: bytes, most: int) -> bool:
    """Unpack piece by piece, and keep nothing."""
    total = 0
    try:
        while not unpacker.eof and total <= most:
            piece = unpacker.decompress(data, PIECE_NBYTES)
            # zlib gives back what it has not used; the others keep it.
            data = getattr(unpacker, "unconsumed_tail", b"")
            total += len(piece)
            if not piece and not data:
                break
    except (zlib.error, OSError, EOFError, lzma.LZMAError):
        # Whoever unpacks it says what is wrong.
        return False
    return total > most


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


def unit_rows(array: "zarr.Array[Any]") -> int:
    """Return how many rows are read together: 1 where a range of any rows can be read alone."""
    if not array.chunks or not array.chunks[0]:
        return 1
    return 1 if _stored_dtype(array) is not None else int(array.chunks[0])


def _stored_dtype(array: "zarr.Array[Any]") -> np.dtype[Any] | None:
    """Return the type of the values in a chunk's file, if the file is these and nothing else."""
    dtype = np.dtype(array.dtype)
    if not isinstance(array.store_path.store, LocalStore) or dtype.kind not in "biuf":
        return None
    metadata = array.metadata
    if isinstance(metadata, ArrayV2Metadata):
        packed = metadata.compressor is not None or metadata.filters
        return None if packed or metadata.order != "C" else dtype
    if len(metadata.codecs) != 1 or not isinstance(metadata.codecs[0], BytesCodec):
        return None
    endian = metadata.codecs[0].endian
    # Newer Zarr gives a word, older an enumeration of words.
    word = "<" if endian is None else getattr(endian, "value", endian)
    stored: np.dtype[Any] = dtype.newbyteorder(word)
    return stored


def read_range(array: "zarr.Array[Any]", start: int, stop: int) -> AnyArray | None:
    """Return rows start .. stop - 1; None where the array does not lie in files of plain rows.

    Raises
    ------
    StoreError : a chunk's file that is not of its size, or no file
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
            # Zarr's answer for a chunk that was never written.
            rows = np.full((last - first, *array.chunks[1:]), array.fill_value or 0, dtype)
        # A chunk at an edge is stored whole, beyond the array's end too.
        inside = tuple(slice(s.stop - s.start) for s in target[1:])
        out[target] = rows[(slice(None), *inside)]
    return out


def _parts(
    array: "zarr.Array[Any]", start: int, stop: int
) -> Iterator[tuple[str, int, int, tuple[slice, ...]]]:
    """Yield each chunk of the rows: its key, its first and last row, and where these go."""
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
    """Read rows of one chunk's file; None if there is no file."""
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
