"""The errors of a store: what is wrong, and the remedy; of values, of disks and of buckets.

A checksum says that a file is what was written: damage is found by it. The checks of values here,
and those of dtypes, shapes and finite numbers in `Artifact.read`, are for what daskls did not
write, a model from a stranger: before compiled code indexes by it or memory is taken for it. What
such values mean for answers is as little checked as in a model that was trained on wrong data.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from daskls.errors import DamageError, StoreError
from daskls.records import Int64, Ints

T = TypeVar("T")
BAD_CHECKSUM = "its checksum does not match"
# The errors of Python if values have another type or number than was written.
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


def check_counts(where: str, name: str, counts: Int64, total: int | None = None) -> Int64:
    """Return where each of parts of these sizes begins, and the last one ends.

    DamageError if a count is negative, or they do not add up to a given ``total``.
    """
    if len(counts) and int(counts.min()) < 0:
        raise damaged(where, f"{name} holds {int(counts.min())}, which is not a count")
    # Python integers do not overflow.
    actual = sum(counts.tolist())
    if total is not None and actual != total:
        raise damaged(where, f"{name} adds up to {actual}, and {total} is expected")
    starts: Int64 = np.r_[0, np.cumsum(counts, dtype=np.int64)]
    return starts


def check_codes(where: str, name: str, codes: Ints, n_codes: int) -> None:
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < n_codes:
        raise damaged(where, f"{name} ranges from {codes.min()} to {codes.max()} of {n_codes}")


def from_json(kind: type[T], values: dict[str, Any]) -> T:
    """Return the record whose fields JSON values are.

    Raises
    ------
    ValueError, TypeError, KeyError : when the values are not of the fields' types
    """
    arguments = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    types = get_type_hints(kind)
    for name, value in arguments.items():
        expect(is_of(value, types[name]), name)
    return kind(**arguments)


def is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a type; numbers must be finite, and tuples not empty."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(is_of(value, arg) for arg in args)
    if origin is Literal:
        return value in args
    if origin is tuple:
        if type(value) is not tuple:
            return False
        kinds = args[:1] * len(value) if args[-1] is Ellipsis else args
        return 0 < len(value) == len(kinds) and all(map(is_of, value, kinds))
    if kind is float:
        # Whole numbers come without a point.
        return type(value) in (int, float) and bool(np.isfinite(value))
    # Exact types: to isinstance, JSON's true is an int.
    return type(value) is (NoneType if kind is None else kind)


def expect(is_so: bool, what: str) -> None:
    if not is_so:
        raise ValueError(f"{what} is not as expected")


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


# The same of buckets, by words of an error; the first that occurs counts.
REGION = (
    "The bucket of {where} lies in another region",
    "Set AWS_REGION to its own, on every worker and the client",
)
DENIED = (
    "The credentials for {where} do not allow this",
    "Allow them to get, put, delete and list there",
)
NO_KEYS = (
    "There are no credentials for {where}",
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role, on every worker "
    "and the client",
)
CAUSES = {
    "RequestTimeTooSkewed": (
        "{where} was refused, as the clock of this machine is wrong",
        "Set it (NTP) on every worker and the client",
    ),
    "NoSuchBucket": (
        "There is no bucket for {where}",
        "Correct its name, or the endpoint (AWS_ENDPOINT_URL), or make the bucket",
    ),
    "PermanentRedirect": REGION,
    "AuthorizationHeaderMalformed": REGION,
    "Received redirect": REGION,
    "InvalidAccessKeyId": (
        "The credentials for {where} are not known there",
        "Correct AWS_ACCESS_KEY_ID, on every worker and the client",
    ),
    "SignatureDoesNotMatch": (
        "The credentials for {where} are not accepted there",
        "Correct AWS_SECRET_ACCESS_KEY, on every worker and the client",
    ),
    "ExpiredToken": (
        "The credentials for {where} have expired",
        "Renew them, on every worker and the client",
    ),
    "Missing AccessKeyId": NO_KEYS,
    "169.254.169.254": NO_KEYS,
    "AccessDenied": DENIED,
    # A response without a body, as to HEAD, does not give the reason.
    "lacked the necessary privileges": (
        DENIED[0],
        f"{DENIED[1]}; a wrong clock gives the same error",
    ),
    "401 Unauthorized": (
        "There are no credentials for {where}, or wrong ones",
        "Set them in the environment of every worker and of the client",
    ),
    "builder error": (
        "The endpoint of {where} is plain http",
        "Set AWS_ALLOW_HTTP=true if that is meant, or give an endpoint with https",
    ),
    "error sending request": (
        "{where} cannot be reached",
        "Check the network and the endpoint (AWS_ENDPOINT_URL)",
    ),
}
UNKNOWN = ("The request for {where} failed", "Read the server's message")
MAX_MESSAGE_CHARS = 300


@contextmanager
def bucket_errors(where: str, then: str = GO_ON) -> Iterator[None]:
    """Turn obstore's errors, raised after its own retries, into one `StoreError`.

    `then` is what to do once the remedy is applied. DamageError when there is no such object.
    """
    # Loaded by buckets alone.
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" not in str(error):
            raise damaged(where, "it is missing") from error
        raise as_store_error(where, error, then) from error
    except ValueError as error:
        # obstore refuses a path with "..", for example.
        if "parse path" not in str(error):
            raise
        raise damaged(where, f"no object has this name ({_message(error)})") from error
    except BaseError as error:
        raise as_store_error(where, error, then) from error


def as_store_error(where: str, error: Exception, then: str) -> StoreError:
    text = str(error)
    what, remedy = next((cause for word, cause in CAUSES.items() if word in text), UNKNOWN)
    return StoreError(f"{what.format(where=where)} ({_message(error)}). {remedy}, then {then}.")


def _message(error: Exception) -> str:
    """Return the server's message, or the first line: obstore's own state follows it."""
    text = str(error)
    match = re.search(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", text, re.DOTALL)
    words = ": ".join(match.groups()) if match else text.partition("\n")[0]
    return words[:MAX_MESSAGE_CHARS].rstrip(".")
