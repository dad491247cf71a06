"""Packs: files of named arrays that a fit keeps between its tasks, each with its checksum.

A pack begins with a header that says what its arrays are, the sum of each, and its own sum, which
the pack's place in the store goes into. Arrays are read one by one, and their sizes are known
before memory is taken.
"""

import json
import math
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from daskls.records import FloatArray
from daskls.store.checksums import checksum
from daskls.store.files import make_folders, replace_file, write_file
from daskls.store.guard import (
    check_inside,
    damaged,
    find_size,
    malformed_is_damage,
    open_file,
    read_into,
)

__all__ = ["check_pack", "read_pack", "write_pack"]

MAGIC = b"daskls 2"
# Of the header: its length and its sum.
LEAD = np.dtype("<u4")
MAX_HEADER_NBYTES = 1 << 16


def write_pack(root: Path, place: str, arrays: Mapping[str, FloatArray]) -> None:
    """Write named arrays; the file appears whole.

    Parameters
    ----------
    root : Path. The store's folder.
    place : str. The file's path inside the store.
    arrays : arrays of numbers by name
    """
    path = root / place
    make_folders(root, path.parent)
    flat = {name: np.asarray(values, order="C") for name, values in arrays.items()}
    entries = {name: [own.dtype.str, list(own.shape), checksum(own)] for name, own in flat.items()}
    header = json.dumps(entries).encode()
    lead = np.array([len(header), _seal(place, header)], LEAD)
    with replace_file(path) as temporary:
        write_file(temporary, MAGIC, lead.data, header, *(_as_bytes(own) for own in flat.values()))


def _as_bytes(values: FloatArray) -> Any:
    return values.reshape(-1).view(np.uint8).data


def _seal(place: str, header: bytes) -> int:
    """Return the sum of a header at its place."""
    return checksum(header, checksum(place.encode() + b"\n"))


def read_pack(root: Path, place: str, names: Iterable[str]) -> dict[str, FloatArray]:
    """Return some of a pack's arrays.

    Raises
    ------
    DamageError : it is missing, or not what was written
    """
    path = root / place
    check_inside(path, root)
    size = find_size(path, root)
    with open_file(path, root) as file:
        places = _read_header(file, path, place, size)
        with malformed_is_damage(path):
            wanted = {name: places[name] for name in names}
        return {name: _read_array(file, path, *own) for name, own in wanted.items()}


def check_pack(root: Path, place: str) -> None:
    """Read all of a pack.

    Raises
    ------
    DamageError : it is missing, or not what was written
    """
    path = root / place
    check_inside(path, root)
    size = find_size(path, root)
    with open_file(path, root) as file:
        for own in _read_header(file, path, place, size).values():
            _read_array(file, path, *own)


def _read_header(
    file: FileIO, path: Path, place: str, size: int
) -> dict[str, tuple[np.dtype[Any], tuple[int, ...], int, int]]:
    """Return dtype, shape, position and sum of each array, which end where the file ends."""
    lead = np.empty(len(MAGIC) + 2 * LEAD.itemsize, np.uint8)
    read_into(file, path, lead)
    n_header, seal = lead[len(MAGIC) :].view(LEAD).tolist()
    if lead[: len(MAGIC)].tobytes() != MAGIC or n_header > MAX_HEADER_NBYTES:
        raise damaged(path, "it does not begin as such files do")
    content = np.empty(n_header, np.uint8)
    read_into(file, path, content)
    header = content.tobytes()
    if _seal(place, header) != seal:
        raise damaged(path, "its checksum is not that of what was written")
    at, places = len(lead) + n_header, {}
    with malformed_is_damage(path):
        for name, (text, shape, own_sum) in json.loads(header).items():
            dtype = np.dtype(text)
            if dtype.kind not in "biuf" or any(type(n) is not int or n < 0 for n in shape):
                raise ValueError(f"{name} has dtype {text} and shape {shape}")
            places[name] = dtype, tuple(shape), at, own_sum
            at += dtype.itemsize * math.prod(shape)
    if at != size:
        raise damaged(path, f"it has {size} bytes, and {at} are expected")
    return places


def _read_array(
    file: FileIO, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], at: int, own_sum: int
) -> FloatArray:
    """Return one array, whose size is within the file's."""
    values = np.empty(shape, dtype)
    file.seek(at)
    read_into(file, path, values.reshape(-1))
    if checksum(values) != own_sum:
        raise damaged(path, "its checksum is not that of what was written")
    return values
