"""Paths, the errors of disks and of damaged files, and checksums.

Checksums are crc32c. Two swapped files of one kind are each intact, so the checksum of a
description is seeded with the key that it belongs to.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from daskls.errors import DamageError, StoreError
from daskls.records import AnyArray

BAD_CHECKSUM = "its checksum is not that of what was written"
# What Python raises if values have another type or number than was written.
MALFORMED = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError),
    # From JSON that is nested too deep, and from absurd lengths.
    *(RecursionError, MemoryError),
)


def exists_already(where: object) -> StoreError:
    return StoreError(f"{where} exists already; give another path or remove it first.")


def damaged(where: str | os.PathLike[str], why: str) -> DamageError:
    return DamageError(
        f"The store's file {where} is damaged: {why}. Copy the model again; or call fit again with "
        "the same data, parameters and store: what is damaged is removed, and only that is "
        "trained again.",
        str(where),
    )


@contextmanager
def malformed_is_damage(where: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of parsing a file's values into an error that names the file."""
    try:
        yield
    except MALFORMED as error:
        raise damaged(
            where, f"its values are malformed ({type(error).__name__}: {error})"
        ) from error


def expand_path(location: str | os.PathLike[str]) -> str:
    """Return a path with its ~ expanded and ``file://`` removed; another URL unchanged.

    A shell expands ~ only at the start of a word, Python nowhere.
    """
    text = os.fspath(location).removeprefix("file://")
    return text if "://" in text else os.path.expanduser(text)


def local_path(location: str | os.PathLike[str], *, what: str = "store") -> Path:
    """Return the absolute local path of a path or ``file://`` URL.

    StoreError for another URL (`store_at` takes those of stores); for an empty text, and for the
    home folder of an unknown user: both would mean the working directory, or a folder in it.
    """
    text = expand_path(location)
    if not text:
        raise StoreError(f"The {what} is an empty string. Give the path of a folder.")
    if text.startswith("~"):
        user = text.split(os.sep)[0]
        raise StoreError(
            f"The {what} {text!r} begins with {user!r}, but no home folder of that user is known. "
            f"Correct the name; to use a folder of that name, write './{text}'."
        )
    if "://" in text:
        raise StoreError(
            f"The {what} {text!r} is a URL; daskls writes to a local or shared file system, and to "
            "s3://, gs:// and az://. Give one of these that the client and all workers share."
        )
    return Path(text).absolute()


# For each error of the system, what is wrong and the remedy.
FULL = (
    "No space left on the disk of {path}",
    "Free some space, or give a path (for temporary stores: Dask's temporary-directory) on a "
    "larger disk",
)
READ_ONLY = ("{path} is on a read-only disk", "Give a path that can be written")
FORBIDDEN = (
    "This user may not write {path}",
    "Give it the right to write there, or give another path",
)
IN_THE_WAY = ("A file is in the way of {path}", "Give another path, or remove that file")
REMOVED = (
    "{path} is gone, or a folder above it is, or this machine does not see it",
    "Keep it in place while it is in use",
)
FAILED = ("The disk of {path} failed", "Check the disk, or the connection to it")
TOO_LARGE = (
    "{path} would hold a file larger than is allowed here",
    "Raise the limit (ulimit -f), or give a path on another disk",
)
TOO_MANY = (
    "Too many files are open to write {path}",
    "Raise the limit (ulimit -n), or let fewer tasks run at once",
)
OTHER = ("{path} cannot be written", "Fix that, or give another path")
REASONS = {
    **dict.fromkeys(("ENOSPC", "EDQUOT"), FULL),
    "EROFS": READ_ONLY,
    **dict.fromkeys(("EACCES", "EPERM"), FORBIDDEN),
    **dict.fromkeys(("ENOTDIR", "EISDIR", "EEXIST"), IN_THE_WAY),
    "ENOENT": REMOVED,
    **dict.fromkeys(("EIO", "ESTALE", "ENXIO", "ENODEV", "ENOTCONN", "ETIMEDOUT"), FAILED),
    "EFBIG": TOO_LARGE,
    **dict.fromkeys(("EMFILE", "ENFILE"), TOO_MANY),
}
GO_ON = "call fit again on the same store: what is finished is kept, and only the rest runs"
# The same of what only reads.
READ_AGAIN = "call again"


@contextmanager
def disk_errors(path: str | Path, then: str = GO_ON) -> Iterator[None]:
    """Turn the operating system's errors on writing into a `StoreError` with its remedy.

    `then` is what to do once the remedy is applied.
    """
    try:
        yield
    except OSError as error:
        # Zarr raises FileNotFoundError without an error number.
        number = errno.ENOENT if isinstance(error, FileNotFoundError) else error.errno
        what, remedy = REASONS.get(errno.errorcode.get(number or 0, ""), OTHER)
        reason = error.strerror or str(error)[:200]
        if error.filename not in (None, str(path)):
            reason += f": {error.filename}"
        raise StoreError(f"{what.format(path=path)} ({reason}). {remedy}, then {then}.") from error


# Bytes of a checksum behind raw bytes, as Zarr's codec ``crc32c`` writes it.
SUM_NBYTES = 4


def checksum(data: AnyArray | bytes, start: int = 0) -> int:
    """Return the crc32c of bytes, or of an array's values in C order.

    `start` is the checksum of what comes before.

    >>> checksum(b"23456789", checksum(b"1")) == checksum(b"123456789") == 0xE3069283
    True
    """
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return int(google_crc32c.extend(start, data))


def sum_as_bytes(value: int) -> bytes:
    """Return a checksum in the form written behind raw bytes."""
    return value.to_bytes(SUM_NBYTES, "little")


def json_checksum(key: str, values: Any) -> int:
    """Return the checksum of JSON values at a key, whatever their order of keys and white space."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return checksum(text.encode(), checksum(key.encode() + b"\n"))
