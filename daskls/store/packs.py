"""Packs: files of named arrays that a fit keeps between its tasks, each with its checksum.

A pack begins with a header: the dtype, shape and checksum of each array, after the header's own
checksum, which starts from the pack's key in the store. Arrays are read one by one, and their sizes
are known before memory is allocated.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from daskls.records import AnyArray
from daskls.store.artifacts import Location, open_store, put_once
from daskls.store.backend import Reader
from daskls.store.files import BAD_CHECKSUM, checksum, damaged, malformed_is_damage

MAGIC = b"daskls 2"
# The header's length and its checksum, each of this dtype.
LEAD = np.dtype("<u4")
# The header is read before its checksum can be compared: a damaged length must not take memory.
MAX_HEADER_NBYTES = 1 << 16
# Smaller packs are read as a whole.
WHOLE_NBYTES = 1 << 20


def write_pack(
    root: Location,
    key: str,
    arrays: Mapping[str, AnyArray],
    verify: Callable[[], object] | None = None,
) -> bool:
    """Write named arrays; the pack appears whole, and is the marker of all that it names.

    False if another task wrote it first; that one stays. `verify` raises DamageError if an existing
    pack, or what it names, is not what was written; None checks the pack alone.
    """
    store = open_store(root)
    flat = {name: np.asarray(values, order="C") for name, values in arrays.items()}
    entries = {name: [own.dtype.str, list(own.shape), checksum(own)] for name, own in flat.items()}
    header = json.dumps(entries).encode()
    lead = np.array([len(header), _seal(key, header)], LEAD)
    pieces = (MAGIC, lead.data, header, *(_as_bytes(own) for own in flat.values()))
    return put_once(
        lambda seen: store.put(key, *pieces, create=True, instead_of=seen),
        verify or (lambda: read_pack(store, key)),
        lambda: store.stamp(key),
    )


def _as_bytes(values: AnyArray) -> Any:
    return values.reshape(-1).view(np.uint8).data


def _seal(key: str, header: bytes) -> int:
    return checksum(header, checksum(key.encode() + b"\n"))


def read_pack(root: Location, key: str, names: Iterable[str] | None = None) -> dict[str, AnyArray]:
    """Return some of a pack's arrays, or all."""
    with open_store(root).reading(key) as opened:
        # A small pack by one read: each read may be a request.
        reader = opened if opened.nbytes > WHOLE_NBYTES else _WholeReader(opened)
        slots = _read_header(reader, key)
        with malformed_is_damage(reader.name):
            wanted = slots if names is None else {name: slots[name] for name in names}
        return {name: _read_array(reader, *own) for name, own in wanted.items()}


class _WholeReader(Reader):
    def __init__(self, reader: Reader) -> None:
        self.name, self.nbytes = reader.name, reader.nbytes
        self._content = np.empty(reader.nbytes, np.uint8)
        reader.fill(self._content, 0)

    def fill(self, values: AnyArray, at: int) -> None:
        own = self._content[at : at + values.nbytes]
        if len(own) < values.nbytes:
            raise damaged(self.name, f"it ends {values.nbytes - len(own)} bytes too early")
        values.view(np.uint8).reshape(-1)[:] = own


def _read_header(
    reader: Reader, key: str
) -> dict[str, tuple[np.dtype[Any], tuple[int, ...], int, int]]:
    """Return dtype, shape, position and checksum of each array; they end where the pack ends."""
    lead = np.empty(len(MAGIC) + 2 * LEAD.itemsize, np.uint8)
    reader.fill(lead, 0)
    n_header, seal = lead[len(MAGIC) :].view(LEAD).tolist()
    if lead[: len(MAGIC)].tobytes() != MAGIC or n_header > MAX_HEADER_NBYTES:
        raise damaged(reader.name, "it does not begin with the header of a pack")
    content = np.empty(n_header, np.uint8)
    reader.fill(content, len(lead))
    header = content.tobytes()
    if _seal(key, header) != seal:
        raise damaged(reader.name, BAD_CHECKSUM)
    at, slots = len(lead) + n_header, {}
    with malformed_is_damage(reader.name):
        for name, (text, shape, own_sum) in json.loads(header).items():
            dtype = np.dtype(text)
            if dtype.kind not in "biuf" or any(type(n) is not int or n < 0 for n in shape):
                raise ValueError(f"{name} has dtype {text} and shape {shape}")
            slots[name] = dtype, tuple(shape), at, own_sum
            at += dtype.itemsize * math.prod(shape)
    if at != reader.nbytes:
        raise damaged(reader.name, f"it has {reader.nbytes} bytes, and {at} are expected")
    return slots


def _read_array(
    reader: Reader, dtype: np.dtype[Any], shape: tuple[int, ...], at: int, own_sum: int
) -> AnyArray:
    """Return one array; its size was checked against the pack's."""
    values = np.empty(shape, dtype)
    reader.fill_record(values.reshape(-1), at, own_sum)
    return values
