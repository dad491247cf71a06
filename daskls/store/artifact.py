"""An artifact: named arrays and attributes in one object, which is there whole or not at all.

The layout is that of safetensors, so any reader of that format opens an artifact: the length of a
header, the header as JSON, the arrays one after the other. The header's ``__metadata__`` holds the
attributes and the header's own checksum, which starts from the key: a file in another's place is
damage. The array ``crc32c`` holds the checksum of each `SUMMED_NBYTES` bytes of the other arrays,
and of itself. It comes first, or last where an artifact is streamed. So every size is known before
memory is allocated, and a range of rows is checked by reading little else.

Records are arrays of bytes, whose dtype is part of the metadata.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr

from daskls.records import AnyArray, Bytes, Floats
from daskls.store.errors import BAD_CHECKSUM, damaged, malformed_is_damage
from daskls.store.objects import BaseStore, Location, open_store

# Few enough that a leaf's rows in one block of the exchange, some 70 KB, are read with little else.
SUMMED_NBYTES = 32 << 10
# Read when an artifact is opened: of a bucket, so that a small one needs no second request.
OPENED_NBYTES, LOCAL_OPENED_NBYTES = 64 << 10, 4 << 10
# The header is read before its checksum can be compared: a damaged length must not take memory.
MAX_HEADER_NBYTES = 64 << 20
SUMS, ATTRIBUTES, RECORD_COLUMNS, SEAL, METADATA = (
    *("crc32c", "attributes", "records", "header", "__metadata__"),
)
UNSEALED = "00000000"
LENGTH, SUM = np.dtype("<u8"), np.dtype("<u4")
ALIGNMENT = 8
SIZES = {"u": (1, 2, 4, 8), "i": (1, 2, 4, 8), "f": (2, 4, 8)}
DTYPES = {
    f"{kind.upper()}{8 * n}": np.dtype(f"<{kind}{n}")
    for kind, sizes in SIZES.items()
    for n in sizes
} | {"BOOL": np.dtype(bool)}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
# The dtype and the shape of each array.
Shapes = Mapping[str, tuple[Any, tuple[int, ...]]]


@dataclass(frozen=True)
class ArraySpec:
    """An array's dtype, its shape, and its first byte behind the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    at: int

    @property
    def row_nbytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape[1:])

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)


def checksum(data: AnyArray | bytes, start: int = 0) -> int:
    """Return the crc32c of bytes, or of an array's values in C order.

    `start` is the checksum of what comes before.

    >>> checksum(b"23456789", checksum(b"1")) == checksum(b"123456789") == 0xE3069283
    True
    """
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return int(google_crc32c.extend(start, data))


class ArtifactStream:
    """Takes the arrays of an artifact in their order, in pieces of any size, and sums them."""

    def __init__(self, write: Callable[[Any], object]) -> None:
        self._write = write
        self._done: list[int] = []
        self._open, self._n_open = 0, 0
        self.n_bytes = 0

    def write(self, piece: AnyArray) -> None:
        content = _plain(piece).reshape(-1).view(np.uint8)
        self._write(content.data)
        self.n_bytes += len(content)
        while len(content):
            head = content[: SUMMED_NBYTES - self._n_open]
            self._open, self._n_open = checksum(head, self._open), self._n_open + len(head)
            content = content[len(head) :]
            if self._n_open == SUMMED_NBYTES:
                self._done.append(self._open)
                self._open, self._n_open = 0, 0

    def sums(self) -> AnyArray:
        """Return all sums, the last one of the others; `n_sums` in number."""
        values = np.zeros(n_sums(self.n_bytes), SUM)
        sums = [*self._done, self._open] if self._n_open else self._done
        values[: len(sums)] = sums
        values[-1] = checksum(values[:-1])
        return values


def n_sums(nbytes: int) -> int:
    """Return the length of the array of sums: even, so that the arrays behind it are aligned."""
    n = -(-nbytes // SUMMED_NBYTES) + 1
    return n + n % 2


def write_artifact(
    root: Location,
    key: str,
    arrays: Mapping[str, AnyArray],
    attributes: Mapping[str, Any] | None = None,
    *,
    replace: bool = False,
    lasting: bool = False,
) -> bool:
    """Write an artifact; False if there is one, which stays unless it is to be replaced.

    ``lasting`` is as for `BaseStore.put`.
    """
    # The widest values first, so that all are aligned.
    flat = sorted(arrays.items(), key=lambda item: -_width(item[1].dtype))
    pieces: list[Any] = []
    stream = ArtifactStream(pieces.append)
    for _, values in flat:
        stream.write(values)
    sums = stream.sums()
    shapes = {name: (_stored(values.dtype), values.shape) for name, values in flat}
    header = _header(key, {SUMS: (SUM, sums.shape), **shapes}, attributes or {})
    whole = (header, sums.data, *pieces)
    return open_store(root).put(key, *whole, create=not replace, lasting=lasting)


@contextmanager
def streamed_artifact(
    root: Location, key: str, shapes: Shapes, attributes: Mapping[str, Any] | None = None
) -> Iterator[ArtifactStream]:
    """Yield a writer of an artifact of known shapes; it is put, or replaced, when the body ends."""
    specs = {name: (np.dtype(dtype), shape) for name, (dtype, shape) in shapes.items()}
    nbytes = sum(dtype.itemsize * math.prod(shape) for dtype, shape in specs.values())
    with open_store(root).stream(key) as file:
        file.write(_header(key, {**specs, SUMS: (SUM, (n_sums(nbytes),))}, attributes or {}))
        stream = ArtifactStream(file.write)
        yield stream
        if stream.n_bytes != nbytes:
            raise AssertionError(f"{key}: {stream.n_bytes} bytes written of {nbytes}")
        file.write(stream.sums().data)


def _plain(values: AnyArray) -> AnyArray:
    """Return values in C order, and in the byte order that is stored."""
    return np.asarray(values, _stored(values.dtype), order="C")


def _stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.names else dtype.newbyteorder("<")


def _width(dtype: np.dtype[Any]) -> int:
    return 1 if dtype.names else dtype.itemsize


def _header(key: str, shapes: Shapes, attributes: Mapping[str, Any]) -> bytes:
    """Return the header of an artifact, with its length before it."""
    entries, records, at = {}, {}, 0
    for name, (dtype, shape) in shapes.items():
        nbytes = dtype.itemsize * math.prod(shape)
        stored, dims = DTYPE_NAMES.get(dtype, ""), list(shape)
        if dtype.names:
            records[name] = dtype_to_descr(dtype)
            stored, dims = "U8", [*shape, dtype.itemsize]
        if not stored:
            raise TypeError(f"an array of dtype {dtype} cannot be stored")
        entries[name] = {"dtype": stored, "shape": dims, "data_offsets": [at, at + nbytes]}
        at += nbytes
    metadata = {ATTRIBUTES: json.dumps(dict(attributes)), RECORD_COLUMNS: json.dumps(records)}
    text = json.dumps({METADATA: {**metadata, SEAL: UNSEALED}, **entries}).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    seal = f"{_seal(key, text):08x}"
    # Of the same length, so that the sum of the unsealed text can be taken again.
    text = text.replace(_seal_text(UNSEALED), _seal_text(seal), 1)
    return np.array(len(text), LENGTH).tobytes() + text


def _seal(key: str, text: bytes) -> int:
    return checksum(text, checksum(key.encode() + b"\n"))


def _seal_text(seal: str) -> bytes:
    return f'"{SEAL}": "{seal}"}}'.encode()


@dataclass(frozen=True, eq=False)
class Artifact:
    """An opened artifact: its header is checked, its arrays are read on demand."""

    store: BaseStore
    key: str
    attrs: dict[str, Any]
    _specs: dict[str, ArraySpec]
    # Where the summed bytes lie in the object, and what begins it, where that is kept.
    _begin: int
    _end: int
    _sums: AnyArray
    _head: Bytes

    def where(self) -> str:
        return self.store.where(self.key)

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    @property
    def names(self) -> list[str]:
        return list(self._specs)

    def shape_of(self, name: str) -> tuple[int, ...]:
        return self._spec(name).shape

    def dtype_of(self, name: str) -> np.dtype[Any]:
        return self._spec(name).dtype

    def _spec(self, name: str) -> ArraySpec:
        if name not in self._specs:
            raise damaged(self.where(), f"it names no array {name!r}")
        return self._specs[name]

    def read(
        self,
        name: str,
        rows: slice = slice(None),
        *,
        shape: tuple[int | None, ...] | None = None,
        kind: str = "",
        finite: bool | None = True,
    ) -> AnyArray:
        """Return an array, or a slice of its rows.

        None in the expected shape of the whole array stands for any number; kinds of dtype are ""
        for any; NaN is damage, and infinity if ``finite``; None allows both. DamageError when
        something is missing, or not what was written or expected.
        """
        spec = self._spec(name)
        if kind and spec.dtype.kind not in kind:
            raise damaged(self.where(), f"the array {name!r} has dtype {spec.dtype}")
        if shape is not None and not _fits(spec.shape, shape):
            raise damaged(
                self.where(),
                f"the array {name!r} has shape {spec.shape}, and {_shape_text(shape)} is expected",
            )
        if not spec.shape:
            return self._read(spec, spec.at, spec.nbytes, ())
        start, stop, _ = rows.indices(spec.shape[0])
        n = max(stop - start, 0)
        at, nbytes = spec.at + start * spec.row_nbytes, n * spec.row_nbytes
        values = self._read(spec, at, nbytes, (n, *spec.shape[1:]))
        if values.dtype.kind == "f" and finite is not None and not _is_sound(values, finite):
            raise damaged(self.where(), f"the array {name!r} holds values that are not finite")
        return values

    def _read(self, spec: ArraySpec, at: int, nbytes: int, shape: tuple[int, ...]) -> AnyArray:
        if not nbytes:
            return np.empty(shape, spec.dtype)
        content = self._read_bytes(at, at + nbytes)
        values = content.view(spec.dtype).reshape(shape)
        # A small part of what was read would keep all of it alive.
        is_small = content.base is not None and 2 * nbytes < content.base.nbytes
        return values.copy() if is_small or not values.flags.aligned else values

    def _read_bytes(self, start: int, stop: int) -> Bytes:
        """Return bytes behind the header, whose sums are compared."""
        first, last = ((at - self._begin) // SUMMED_NBYTES for at in (start, stop - 1))
        low = self._begin + first * SUMMED_NBYTES
        high = min(self._begin + (last + 1) * SUMMED_NBYTES, self._end)
        # A copy: who changes what it read does not change what is read next.
        content = self._head[low:high].copy()
        # A part that was damaged when it was opened may have been made again since.
        if high > len(self._head) or not self._is_whole(content, first):
            content = self.store.range(self.key, low, high)
            if not self._is_whole(content, first):
                raise damaged(self.where(), BAD_CHECKSUM)
        return content[start - low : stop - low]

    def _is_whole(self, content: Bytes, first: int) -> bool:
        """Whether bytes that begin with a summed range, of this number, have their sums."""
        pieces = (content[i : i + SUMMED_NBYTES] for i in range(0, len(content), SUMMED_NBYTES))
        return all(checksum(piece) == self._sums[first + i] for i, piece in enumerate(pieces))

    def check(self) -> None:
        """Compare all sums, some MiB at a time."""
        step = 64 * OPENED_NBYTES
        for at in range(self._begin, self._end, step):
            self._read_bytes(at, min(at + step, self._end))


def _fits(shape: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    """Whether a shape is the expected one, where None stands for any number."""
    return len(shape) == len(expected) and all(
        want is None or have == want for have, want in zip(shape, expected, strict=True)
    )


def _shape_text(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('any' if n is None else str(n) for n in shape)})"


def _is_sound(values: Floats, finite: bool) -> bool:
    """Whether an array has no NaN, and no infinity if ``finite``."""
    return bool(np.isfinite(values).all() if finite else not np.isnan(values).any())


def open_artifact(root: Location, key: str, opened: int | None = None) -> Artifact:
    """Return an artifact; DamageError when it is missing, or its header is damaged.

    `opened` are the bytes that are read first, by one read, and kept of an object in a bucket.
    """
    store = open_store(root)
    is_local, where = store.local() is not None, store.where(key)
    head, nbytes = store.head(key, opened or (LOCAL_OPENED_NBYTES if is_local else OPENED_NBYTES))

    def read(start: int, stop: int) -> Bytes:
        return head[start:stop] if stop <= len(head) else store.range(key, start, stop)

    begin = LENGTH.itemsize
    if nbytes < begin:
        raise damaged(where, f"it has {nbytes} bytes")
    length = int(head[:begin].view(LENGTH)[0])
    if length > min(MAX_HEADER_NBYTES, nbytes - begin):
        raise damaged(where, f"its header would have {length} bytes")
    text, begin, end = read(begin, begin + length).tobytes(), begin + length, nbytes
    with malformed_is_damage(where):
        attributes, specs = _parse(key, text, begin, end)
        spec = specs.pop(SUMS)
        begin, end = (begin + spec.nbytes, end) if spec.at == begin else (begin, spec.at)
        if spec.dtype != SUM or spec.shape != (n_sums(end - begin),):
            raise ValueError(f"{spec.shape} sums of {end - begin} bytes")
    sums = read(spec.at, spec.at + spec.nbytes).copy().view(SUM)
    if checksum(sums[:-1]) != sums[-1]:
        raise damaged(where, BAD_CHECKSUM)
    # A folder is read again by position; in a bucket each read is a request.
    cached = head[:0].copy() if is_local else head
    return Artifact(store, key, attributes, specs, begin, end, sums, cached)


def _parse(
    key: str, text: bytes, start: int, nbytes: int
) -> tuple[dict[str, Any], dict[str, ArraySpec]]:
    """Return the attributes and the arrays of a header; some parsing error when it is malformed.

    The arrays follow each other from ``start`` to the object's end.
    """
    entries = json.loads(text)
    metadata = entries.pop(METADATA)
    seal = str(metadata[SEAL])
    if f"{_seal(key, text.replace(_seal_text(seal), _seal_text(UNSEALED), 1)):08x}" != seal:
        raise ValueError("the header's checksum is not that of what was written")
    attributes, records = (dict(json.loads(metadata[n])) for n in (ATTRIBUTES, RECORD_COLUMNS))
    specs = {}
    for name, entry in entries.items():
        dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
        if any(type(n) is not int or n < 0 for n in (*shape, *entry["data_offsets"])):
            raise ValueError(f"{name} has shape {shape}")
        first, stop = entry["data_offsets"]
        if stop - first != dtype.itemsize * math.prod(shape):
            raise ValueError(f"{name} has {stop - first} bytes")
        if name in records:
            record = descr_to_dtype([tuple(column) for column in records[name]])
            if record.hasobject or shape[-1:] != (record.itemsize,):
                raise ValueError(f"{name} has records of {record}")
            dtype, shape = record, shape[:-1]
        specs[name] = ArraySpec(dtype, shape, start + first)
    ends = [start, *(spec.at + spec.nbytes for spec in specs.values())]
    if any(spec.at != end for spec, end in zip(specs.values(), ends, strict=False)):
        raise ValueError("the arrays do not follow each other")
    if ends[-1] != nbytes:
        raise ValueError(f"the object has {nbytes} bytes, and {ends[-1]} are expected")
    return attributes, specs


def read_arrays(
    root: Location, key: str, names: Iterable[str] | None = None
) -> dict[str, AnyArray]:
    """Return some of an artifact's arrays, or all."""
    opened = open_artifact(root, key)
    return {name: opened.read(name, finite=None) for name in names or opened.names}
