"""The size of a packed chunk, found before it is unpacked.

A chunk of some hundred kilobytes may unpack to gigabytes, in spite of its array's metadata.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any

__all__ = ["unpacks_beyond"]

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
