"""Flat arrays in Zarr's format: their description, and how they are written chunk by chunk.

A chunk holds whole rows, uncompressed, and ends in its crc32c, as Zarr's codec of that name
expects, so that any Zarr library reads it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskls.records import AnyArray, Bytes
from daskls.store.backend import Attempt
from daskls.store.files import checksum, sum_as_bytes

DESCRIPTION = "zarr.json"
# Rows of a chunk of support rows: few enough that reading a cell reads little else, and enough that
# it touches few chunks.
MAX_CHUNK_ROWS = 4096
MAX_CHUNK_NBYTES = 4 << 20
# Separates the parts of a chunk's name. A slash would make each part a folder, and creating folders
# was half the cost of a small array.
SEPARATOR = "."
# Packed arrays stay in memory while their group is open.
MAX_PACKED_NBYTES = 64 << 10
# The size of the widest dtype below: packed arrays start at its multiples, so that a reader may
# view them in place.
ALIGNMENT = 8
PACKED_DTYPES = frozenset(
    np.dtype(name).str for name in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
)


@dataclass(frozen=True)
class ArraySpec:
    """An array's dtype, shape, chunks and checksums, stored in its group's description."""

    dtype: str
    shape: tuple[int, ...]
    chunk_rows: int
    sums: tuple[int, ...]

    @classmethod
    def of(cls, values: AnyArray, chunk_rows: int) -> "ArraySpec":
        """Return the spec of an array to be written, without its checksums."""
        row_nbytes = max(values.itemsize * math.prod(values.shape[1:]), 1)
        rows = min(len(values), chunk_rows, MAX_CHUNK_NBYTES // row_nbytes)
        dtype = values.dtype.newbyteorder("<").str
        return cls(dtype, tuple(values.shape), max(rows, 1), ())

    @classmethod
    def from_json(cls, values: Any) -> "ArraySpec":
        """Return a stored spec; ValueError, TypeError or KeyError when it is none."""
        dtype, shape, chunk_rows = values["dtype"], values["shape"], values["chunk_rows"]
        spec = cls(dtype, tuple(shape), chunk_rows, tuple(values["sums"]))
        numbers = (*spec.shape, spec.chunk_rows, *spec.sums)
        if dtype not in PACKED_DTYPES or not all(type(n) is int and n >= 0 for n in numbers):
            raise ValueError("an array with an unknown dtype, or an invalid shape or sums")
        if not spec.shape or chunk_rows < 1:
            raise ValueError("an array without rows or chunks")
        if len(spec.sums) != spec.n_chunks:
            raise ValueError(f"{len(spec.sums)} sums for {spec.n_chunks} chunks")
        return spec

    @property
    def row_nbytes(self) -> int:
        return np.dtype(self.dtype).itemsize * math.prod(self.shape[1:])

    @property
    def n_chunks(self) -> int:
        """The number of chunks; 0 if the array has no values."""
        return -(-self.shape[0] // self.chunk_rows) if math.prod(self.shape) else 0

    def chunk_key(self, number: int) -> str:
        return SEPARATOR.join(("c", str(number), *("0" for _ in self.shape[1:])))

    def describe(self) -> dict[str, Any]:
        """Return the content of the array's own ``zarr.json``, for other Zarr libraries."""
        dtype = np.dtype(self.dtype)
        chunk_shape = [self.chunk_rows, *(max(n, 1) for n in self.shape[1:])]
        keys = {"name": "default", "configuration": {"separator": SEPARATOR}}
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}},
            "chunk_key_encoding": keys,
            "fill_value": "NaN" if dtype.kind == "f" else int(np.iinfo(dtype).min),
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "crc32c"},
            ],
            "attributes": {},
        }


@dataclass(frozen=True)
class Slot:
    """The place of an array inside a packed one, stored in its group's description."""

    dtype: str
    shape: tuple[int, ...]
    at: int

    @classmethod
    def from_json(cls, values: Any, n_packed: int) -> "Slot":
        """Return a stored slot inside ``n_packed`` bytes; some parsing error when it is none."""
        slot = cls(values["dtype"], tuple(values["shape"]), values["at"])
        numbers = (*slot.shape, slot.at)
        if slot.dtype not in PACKED_DTYPES or not all(type(n) is int and n >= 0 for n in numbers):
            raise ValueError("an array with an unknown dtype, or an invalid shape or offset")
        if not slot.shape or slot.at % ALIGNMENT or slot.at + slot.nbytes > n_packed:
            raise ValueError(f"an array at byte {slot.at} of {n_packed}")
        return slot

    @property
    def nbytes(self) -> int:
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)

    def take(self, packed: Bytes) -> AnyArray:
        own = packed[self.at : self.at + self.nbytes].copy()
        return own.view(self.dtype).reshape(self.shape)


def pack_arrays(arrays: Mapping[str, AnyArray]) -> tuple[Bytes, dict[str, Slot]]:
    """Return arrays packed into one of bytes, uint8 (n,), and the place of each in it."""
    pieces, slots, at = [], {}, 0
    for name, values in arrays.items():
        dtype = values.dtype.newbyteorder("<").str
        slots[name] = Slot(dtype, tuple(values.shape), at)
        content = np.ascontiguousarray(values, dtype).tobytes()
        pieces.append(content + bytes(-len(content) % ALIGNMENT))
        at += len(pieces[-1])
    return np.frombuffer(b"".join(pieces), np.uint8), slots


def write_array(attempt: Attempt, name: str, values: AnyArray, chunk_rows: int) -> ArraySpec:
    spec = ArraySpec.of(values, chunk_rows)
    sums = []
    for number in range(spec.n_chunks):
        first = number * spec.chunk_rows
        chunk = _chunk(values[first : first + spec.chunk_rows], spec)
        sums.append(checksum(chunk))
        attempt.write(f"{name}/{spec.chunk_key(number)}", chunk.data, sum_as_bytes(sums[-1]))
    # Without indentation, which would use Python's encoder in place of the compiled one.
    attempt.write(f"{name}/{DESCRIPTION}", json.dumps(spec.describe()).encode())
    return replace(spec, sums=tuple(sums))


def _chunk(part: AnyArray, spec: ArraySpec) -> AnyArray:
    """Return a chunk in its stored form: the last one is padded with zeros."""
    if len(part) == spec.chunk_rows:
        return np.ascontiguousarray(part, spec.dtype)
    chunk = np.zeros((spec.chunk_rows, *spec.shape[1:]), spec.dtype)
    chunk[: len(part)] = part
    return chunk
