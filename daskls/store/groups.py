"""Sealed groups: a Zarr group whose description holds a checksum of itself and of every chunk.

A group's ``zarr.json`` keeps, among its attributes, what its arrays are and the sum of each of
their chunks, and at last its own sum, which the group's place in the store goes into. It is
written last and by a rename, so it is the marker of the whole. Chunks end in the same sum, as
Zarr's codec ``crc32c`` wants it: any Zarr library reads them. They are read here by position, so
that a size is known before memory is taken, a missing chunk is no fill value, and nothing is
followed out of the store.

Small arrays may be packed into one array of bytes, ``packed``: each file costs more than what is
in it. The attribute of that name says where each of them is, by dtype, shape and first byte.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import DamageError
from daskls.records import FloatArray
from daskls.store.checksums import SUM_NBYTES, checksum, json_checksum, sum_as_bytes
from daskls.store.files import replace_file, write_file
from daskls.store.flat import (
    DESCRIPTION,
    MAX_CHUNK_ROWS,
    MAX_PACKED_NBYTES,
    ArraySpec,
    Place,
    pack_arrays,
    write_array,
)
from daskls.store.guard import (
    check_inside,
    damaged,
    find_size,
    malformed_is_damage,
    open_file,
    read_into,
    read_whole,
)

__all__ = [
    "DESCRIPTION",
    "MAX_CHUNK_ROWS",
    "MAX_DESCRIPTION_NBYTES",
    "Group",
    "check_seal",
    "describe_group",
    "open_group",
    "parse_attributes",
    "write_description",
    "write_group",
]

ARRAYS, PACKED, SUM = "arrays", "packed", "crc32c"
# A description is far smaller: some hundred bytes a cell of a bundle.
MAX_DESCRIPTION_NBYTES = 64 << 20


def describe_group(place: str, attributes: Mapping[str, Any]) -> bytes:
    """Return the description of a group at a place, sealed.

    Parameters
    ----------
    place : str. The group's path inside the store; "" of the root.
    attributes : JSON values
    """
    # As it is read back: keys are texts, tuples lists.
    own = json.loads(json.dumps(dict(attributes)))
    sealed = {**own, SUM: f"{json_checksum(place, own):08x}"}
    content = {"zarr_format": 3, "node_type": "group", "attributes": sealed}
    return json.dumps(content).encode()


def write_group(
    folder: Path,
    place: str,
    arrays: Mapping[str, FloatArray],
    attributes: Mapping[str, Any] | None = None,
    chunk_rows: int = MAX_CHUNK_ROWS,
    loose: Collection[str] | None = None,
) -> None:
    """Write a group whole; its description comes last.

    Parameters
    ----------
    folder : Path. Where it is written; a temporary one, maybe, that is renamed to ``place``.
    place : str. The group's path inside the store.
    arrays : arrays by name. Uncompressed, in chunks of at most ``chunk_rows`` rows.
    attributes : JSON values
    loose : names of arrays that stay by themselves, while all others are packed into one if they
        are small; None to pack none
    """
    # Not the folders above it: those of a store that was removed must not come back.
    folder.mkdir(exist_ok=True)
    small = {} if loose is None else {n: a for n, a in arrays.items() if n not in loose}
    own = dict(attributes or {})
    if small and sum(values.nbytes for values in small.values()) <= MAX_PACKED_NBYTES // 2:
        packed, places = pack_arrays(small)
        arrays = {**{name: arrays[name] for name in arrays if name not in small}, PACKED: packed}
        own[PACKED] = {name: vars(at) for name, at in places.items()}
    rows = {PACKED: MAX_PACKED_NBYTES}
    own[ARRAYS] = {
        name: vars(write_array(folder / name, values, rows.get(name, chunk_rows)))
        for name, values in arrays.items()
    }
    write_description(folder, place, own)


def write_description(folder: Path, place: str, attributes: Mapping[str, Any]) -> None:
    """Write a group's description, sealed, in the place of any old one."""
    content = describe_group(place, attributes)
    with replace_file(folder / DESCRIPTION) as temporary:
        write_file(temporary, content)


@dataclass(frozen=True, eq=False)
class Group:
    """A sealed group, opened: its description is read and checked, its arrays are read on demand.

    Attributes
    ----------
    root : Path. The store's folder.
    place : str. The group's path inside the store.
    attrs : dict. Its attributes.
    """

    root: Path
    place: str
    attrs: dict[str, Any]
    _specs: dict[str, ArraySpec] = field(default_factory=dict)
    _described: set[str] = field(default_factory=set)
    _places: dict[str, Place] = field(default_factory=dict)

    @cached_property
    def path(self) -> Path:
        """The group's folder."""
        return self.root / self.place

    @cached_property
    def description(self) -> Path:
        """The file that says what the group is."""
        return self.path / DESCRIPTION

    def __contains__(self, name: object) -> bool:
        return name in self._specs or name in self._places

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return [*(name for name in self._specs if name != PACKED), *self._places]

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return an array's shape."""
        return (self._places.get(name) or self._spec(name)).shape

    def _spec(self, name: str) -> ArraySpec:
        if name not in self._specs:
            raise damaged(self.description, f"it names no array {name!r}")
        return self._specs[name]

    def read(
        self,
        name: str,
        rows: slice = slice(None),
        *,
        shape: tuple[int | None, ...] | None = None,
        kind: str = "",
        finite: bool = True,
    ) -> FloatArray:
        """Return (a slice of rows of) an array.

        Parameters
        ----------
        name : str
        rows : slice without a step
        shape : of the whole array, as its reader expects it; None for any number
        kind : the kinds of dtype that its reader expects; none for any
        finite : whether infinity is damage; NaN always is

        Raises
        ------
        DamageError : something is missing, or is not what was written or expected
        """
        spec = self._places.get(name) or self._spec(name)
        if kind and np.dtype(spec.dtype).kind not in kind:
            raise damaged(self.description, f"the array {name!r} has dtype {spec.dtype}")
        if shape is not None and not _fits(spec.shape, shape):
            raise damaged(
                self.description,
                f"the array {name!r} has shape {spec.shape}, and {_shown(shape)} is expected",
            )
        if isinstance(spec, Place):
            values = spec.take(self._packed)[rows]
        else:
            self._check_description(name, spec)
            start, stop, _ = rows.indices(spec.shape[0])
            values = self._read_rows(name, spec, start, max(start, stop))
        if values.dtype.kind == "f" and not _is_sound(values, finite):
            raise damaged(self.path / name, "it holds values that are not finite")
        return values

    @cached_property
    def _packed(self) -> FloatArray:
        """The bytes of small arrays; they are few."""
        spec = self._spec(PACKED)
        self._check_description(PACKED, spec)
        return self._read_rows(PACKED, spec, 0, spec.shape[0])

    def _check_description(self, name: str, spec: ArraySpec) -> None:
        """Compare an array's own description with what the group says of it, once."""
        if name in self._described:
            return
        path, expected = self.path / name / DESCRIPTION, spec.describe()
        check_inside(path, self.root)
        # Other programs may write it in another order or with other white space.
        found = parse_json(path, read_whole(path, self.root, MAX_DESCRIPTION_NBYTES))
        if found != expected:
            raise damaged(path, "it is not as the group's description says")
        self._described.add(name)

    def _read_rows(self, name: str, spec: ArraySpec, start: int, stop: int) -> FloatArray:
        """Return rows start .. stop - 1, read by chunks."""
        size = spec.chunk_rows
        numbers = range(start // size, -(-stop // size)) if stop > start and spec.sums else ()
        folder = self.path / name
        paths = [spec.chunk_path(folder, number) for number in numbers]
        for path in paths:
            self._check_size(path, spec)
        values = np.empty((stop - start, *spec.shape[1:]), spec.dtype)
        for number, path in zip(numbers, paths, strict=True):
            first = number * size
            inside = slice(max(start, first), min(stop, first + size))
            out = values[inside.start - start : inside.stop - start]
            # What is wanted whole is read to its place; anything else by a copy of the chunk.
            chunk = out if len(out) == size else np.empty((size, *spec.shape[1:]), spec.dtype)
            self._read_chunk(path, chunk, spec.sums[number])
            if chunk is not out:
                out[...] = chunk[inside.start - first : inside.stop - first]
        return values

    def _check_size(self, path: Path, spec: ArraySpec) -> None:
        """Refuse a chunk of another size than its description says, before memory is taken."""
        check_inside(path, self.root)
        expected = spec.chunk_rows * spec.row_nbytes + SUM_NBYTES
        size = find_size(path, self.root)
        if size != expected:
            raise damaged(path, f"it has {size} bytes, and {expected} are expected")

    def _read_chunk(self, path: Path, chunk: FloatArray, expected: int) -> None:
        """Fill an array with a chunk, and check its sum."""
        with open_file(path, self.root) as file:
            read_into(file, path, chunk)
            behind = np.empty(SUM_NBYTES, np.uint8)
            read_into(file, path, behind)
        if checksum(chunk) != expected or behind.tobytes() != sum_as_bytes(expected):
            raise damaged(path, "its checksum is not that of what was written")

    def check(self) -> list[Path]:
        """Read all of the group; return the files that are damaged."""
        found: list[Path] = []
        for name, spec in self._specs.items():
            try:
                self._check_description(name, spec)
            except DamageError as error:
                found.append(Path(error.path))
            for number in range(spec.n_chunks):
                first = number * spec.chunk_rows
                try:
                    self._read_rows(name, spec, first, min(first + spec.chunk_rows, spec.shape[0]))
                except DamageError as error:
                    found.append(Path(error.path))
        return found


def _fits(shape: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    """Whether a shape is the expected one, in which None is any number."""
    return len(shape) == len(expected) and all(
        want is None or have == want for have, want in zip(shape, expected, strict=True)
    )


def _shown(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('any' if n is None else str(n) for n in shape)})"


def _is_sound(values: FloatArray, finite: bool) -> bool:
    """Whether an array holds no NaN, and no infinity where it may not."""
    return bool(np.isfinite(values).all() if finite else not np.isnan(values).any())


def parse_json(path: Path, content: bytes) -> Any:
    """Return the JSON of a file.

    Raises
    ------
    DamageError : it is none
    """
    with malformed_is_damage(path):
        return json.loads(content)


def parse_attributes(path: Path, content: bytes) -> dict[str, Any] | None:
    """Return the attributes of a description, its sum among them; None if it is of no group.

    Raises
    ------
    DamageError : it is no JSON
    """
    found = parse_json(path, content)
    is_group = isinstance(found, dict) and found.get("node_type") == "group"
    attributes = found.get("attributes") if is_group else None
    return attributes if isinstance(attributes, dict) and found.get("zarr_format") == 3 else None


def open_group(root: Path, place: str) -> Group:
    """Return a group of a store.

    Raises
    ------
    DamageError : its description is missing, or not what was written
    """
    path = root / place / DESCRIPTION
    check_inside(path, root)
    attributes = parse_attributes(path, read_whole(path, root, MAX_DESCRIPTION_NBYTES))
    if attributes is None:
        raise damaged(path, "it describes no group")
    return check_seal(root, place, attributes)


def check_seal(root: Path, place: str, attributes: dict[str, Any]) -> Group:
    """Return the group of attributes whose sum is right.

    Raises
    ------
    DamageError : it is not
    """
    path = root / place / DESCRIPTION
    own = {name: value for name, value in attributes.items() if name != SUM}
    with malformed_is_damage(path):
        expected = f"{json_checksum(place, own):08x}"
    if attributes.get(SUM) != expected:
        raise damaged(path, "its checksum is not that of what was written")
    with malformed_is_damage(path):
        specs = {str(k): ArraySpec.from_json(v) for k, v in own.pop(ARRAYS, {}).items()}
        places = _parse_places(own.pop(PACKED, {}), specs.get(PACKED))
    return Group(root, place, own, specs, _places=places)


def _parse_places(values: Any, packed: ArraySpec | None) -> dict[str, Place]:
    """Return where packed arrays are.

    Raises
    ------
    ValueError, TypeError, KeyError, AttributeError : not inside a packed array of bytes
    """
    if not values and packed is None:
        return {}
    if packed is None or packed.dtype != "|u1" or len(packed.shape) != 1:
        raise ValueError("packed arrays without an array of bytes")
    if packed.shape[0] > MAX_PACKED_NBYTES or packed.chunk_rows > MAX_PACKED_NBYTES:
        raise ValueError(f"{packed.shape[0]} bytes of packed arrays")
    return {str(k): Place.from_json(v, packed.shape[0]) for k, v in values.items()}
