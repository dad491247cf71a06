"""Checksums of what is on disk: crc32c, which a file's key may go into.

Two files of a kind that change places are each whole, so a sum of a description begins with the
key that it belongs to.
"""

import json
from typing import Any

import google_crc32c
import numpy as np

from daskls.records import AnyArray

__all__ = ["SUM_NBYTES", "checksum", "json_checksum", "sum_as_bytes"]

# Bytes of a sum where it stands beside raw bytes, as Zarr's codec of that name writes it.
SUM_NBYTES = 4


def checksum(data: AnyArray | bytes, start: int = 0) -> int:
    """Return the crc32c of bytes, or of an array's values in C order.

    Parameters
    ----------
    data : array or bytes
    start : int. The sum of what comes before.

    >>> checksum(b"23456789", checksum(b"1")) == checksum(b"123456789") == 0xE3069283
    True
    """
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return int(google_crc32c.extend(start, data))


def sum_as_bytes(value: int) -> bytes:
    """Return a sum as it is written behind raw bytes."""
    return value.to_bytes(SUM_NBYTES, "little")


def json_checksum(key: str, values: Any) -> int:
    """Return the sum of JSON values at a key, regardless of the order of keys and white space."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return checksum(text.encode(), checksum(key.encode() + b"\n"))
