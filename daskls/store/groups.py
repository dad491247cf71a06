"""Sealed groups: a Zarr group whose description holds a checksum of itself and of every chunk.

The attributes in a group's ``zarr.json`` describe its arrays, with the checksum of each chunk, and
end in the description's own checksum, which starts from the group's key in the store. The
description is written last, so it is the marker of the whole group. Each chunk ends in its
checksum, as Zarr's codec ``crc32c`` expects: any Zarr library reads them. Here, they are read by
position, so that a size is known before memory is allocated, a missing chunk is not taken for the
fill value, and no link leads out of the store.

Small arrays may be packed into one array of bytes, ``packed``, as each file costs more than its
content. The attribute of that name holds the dtype, shape and first byte of each.
"""

import json
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from daskls.errors import DamageError
from daskls.records import AnyArray, Bytes, Floats
from daskls.store.artifacts import Location, open_store, put_once
from daskls.store.backend import Attempt, Backend
from daskls.store.files import (
    BAD_CHECKSUM,
    SUM_NBYTES,
    damaged,
    json_checksum,
    malformed_is_damage,
    sum_as_bytes,
)
from daskls.store.flat import (
    DESCRIPTION,
    MAX_CHUNK_ROWS,
    MAX_PACKED_NBYTES,
    ArraySpec,
    Slot,
    pack_arrays,
    write_array,
)

ARRAYS, PACKED, PREFIX, SUM = "arrays", "packed", "prefix", "crc32c"
# A description is far smaller: some hundred bytes per cell of a bundle.
MAX_DESCRIPTION_NBYTES = 64 << 20


def _description_of(key: str) -> str:
    return f"{key}/{DESCRIPTION}" if key else DESCRIPTION


def describe_group(key: str, attributes: Mapping[str, Any]) -> bytes:
    """Return the sealed description of the group at a key; "" is the root's."""
    # The checksum is of what is read back, where keys are strings and tuples are lists.
    own = json.loads(json.dumps(dict(attributes)))
    sealed = {**own, SUM: f"{json_checksum(key, own):08x}"}
    content = {"zarr_format": 3, "node_type": "group", "attributes": sealed}
    return json.dumps(content).encode()


def write_group(
    root: Location,
    key: str,
    arrays: Mapping[str, AnyArray],
    attributes: Mapping[str, Any] | None = None,
    chunk_rows: int = MAX_CHUNK_ROWS,
    separate: Collection[str] | None = None,
    *,
    replace: bool = False,
) -> bool:
    """Write a whole group; its description comes last.

    False if another task wrote the group first; that one stays. Arrays are uncompressed, in chunks
    of at most ``chunk_rows`` rows. Small ones are packed into one, but for those in ``separate``;
    None packs none.
    """
    store = open_store(root)

    def put(seen: Hashable) -> bool:
        with store.attempt(key, replace=replace, instead_of=seen) as attempt:
            own = _write_arrays(attempt, arrays, dict(attributes or {}), chunk_rows, separate)
            return attempt.commit(DESCRIPTION, describe_group(key, own))

    marker = _description_of(key)
    return put_once(put, lambda: open_group(store, key), lambda: store.stamp(marker))


def _write_arrays(
    attempt: Attempt,
    arrays: Mapping[str, AnyArray],
    own: dict[str, Any],
    chunk_rows: int,
    separate: Collection[str] | None,
) -> dict[str, Any]:
    """Write a group's arrays; return its attributes, extended by the description of the arrays."""
    small = {} if separate is None else {n: a for n, a in arrays.items() if n not in separate}
    if small and sum(values.nbytes for values in small.values()) <= MAX_PACKED_NBYTES // 2:
        packed, slots = pack_arrays(small)
        arrays = {**{name: arrays[name] for name in arrays if name not in small}, PACKED: packed}
        own[PACKED] = {name: vars(at) for name, at in slots.items()}
    rows = {PACKED: MAX_PACKED_NBYTES}
    own[ARRAYS] = {
        name: vars(write_array(attempt, name, values, rows.get(name, chunk_rows)))
        for name, values in arrays.items()
    }
    if attempt.prefix:
        own[PREFIX] = attempt.prefix
    return own


def write_description(root: Location, key: str, attributes: Mapping[str, Any]) -> None:
    open_store(root).put(_description_of(key), describe_group(key, attributes))


@dataclass(frozen=True, eq=False)
class Group:
    """An opened sealed group: its description is checked, its arrays are read on demand.

    `attrs` are without the description of the arrays.
    """

    store: Backend
    key: str
    attrs: dict[str, Any]
    _specs: dict[str, ArraySpec] = field(default_factory=dict)
    _described: set[str] = field(default_factory=set)
    _slots: dict[str, Slot] = field(default_factory=dict)
    _prefix: str = ""

    def where(self, name: str = DESCRIPTION) -> str:
        return self.store.where(self._key(name))

    def _key(self, name: str) -> str:
        below = name if name == DESCRIPTION else f"{self._prefix}{name}"
        return f"{self.key}/{below}" if self.key else below

    def __contains__(self, name: object) -> bool:
        return name in self._specs or name in self._slots

    @property
    def names(self) -> list[str]:
        return [*(name for name in self._specs if name != PACKED), *self._slots]

    def shape_of(self, name: str) -> tuple[int, ...]:
        return (self._slots.get(name) or self._spec(name)).shape

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
        finite: bool = True,
    ) -> AnyArray:
        """Return an array, or a slice of its rows.

        None in the expected shape of the whole array stands for any number; kinds of dtype are ""
        for any; NaN is always damage, infinity if ``finite``. DamageError when something is
        missing, or not what was written or expected.
        """
        spec = self._slots.get(name) or self._spec(name)
        if kind and np.dtype(spec.dtype).kind not in kind:
            raise damaged(self.where(), f"the array {name!r} has dtype {spec.dtype}")
        if shape is not None and not _fits(spec.shape, shape):
            raise damaged(
                self.where(),
                f"the array {name!r} has shape {spec.shape}, and {_shape_text(shape)} is expected",
            )
        if isinstance(spec, Slot):
            values = spec.take(self._packed)[rows]
        else:
            self._check_description(name, spec)
            start, stop, _ = rows.indices(spec.shape[0])
            values = self._read_rows(name, spec, start, max(start, stop))
        if values.dtype.kind == "f" and not _is_sound(values, finite):
            raise damaged(self.where(name), "it holds values that are not finite")
        return values

    @cached_property
    def _packed(self) -> Bytes:
        """The bytes of the packed arrays, which are few."""
        spec = self._spec(PACKED)
        self._check_description(PACKED, spec)
        return self._read_rows(PACKED, spec, 0, spec.shape[0])

    def _check_description(self, name: str, spec: ArraySpec) -> None:
        """Compare an array's own description with the group's, once."""
        if name in self._described:
            return
        key = f"{self._key(name)}/{DESCRIPTION}"
        where = self.store.where(key)
        # Compared as JSON: other programs may change the order of keys or the white space.
        found = parse_json(where, self.store.read(key, MAX_DESCRIPTION_NBYTES))
        if found != spec.describe():
            raise damaged(where, "it differs from the group's description")
        self._described.add(name)

    def _read_rows(self, name: str, spec: ArraySpec, start: int, stop: int) -> AnyArray:
        """Return rows start .. stop - 1, read chunk by chunk."""
        size = spec.chunk_rows
        numbers = range(start // size, -(-stop // size)) if stop > start and spec.sums else ()
        keys = [f"{self._key(name)}/{spec.chunk_key(number)}" for number in numbers]
        for key in keys:
            self._check_size(key, spec)
        values = np.empty((stop - start, *spec.shape[1:]), spec.dtype)
        for number, key in zip(numbers, keys, strict=True):
            first = number * size
            inside = slice(max(start, first), min(stop, first + size))
            out = values[inside.start - start : inside.stop - start]
            # A whole chunk is read directly into the result, any other through a copy.
            chunk = out if len(out) == size else np.empty((size, *spec.shape[1:]), spec.dtype)
            self._read_chunk(key, chunk, spec.sums[number])
            if chunk is not out:
                out[...] = chunk[inside.start - first : inside.stop - first]
        return values

    def _check_size(self, key: str, spec: ArraySpec) -> None:
        """Refuse a chunk whose size differs from its description, before memory is allocated."""
        size, expected = self.store.size(key), spec.chunk_rows * spec.row_nbytes + SUM_NBYTES
        if size != expected:
            why = f"it has {size} bytes, and {expected} are expected"
            raise damaged(self.store.where(key), why)

    def _read_chunk(self, key: str, chunk: AnyArray, expected: int) -> None:
        """Fill an array with a chunk, and check its checksum."""
        stored_sum = np.empty(SUM_NBYTES, np.uint8)
        with self.store.reading(key) as reader:
            reader.fill_record(chunk, 0, expected)
            reader.fill(stored_sum, chunk.nbytes)
            if stored_sum.tobytes() != sum_as_bytes(expected):
                raise damaged(reader.name, BAD_CHECKSUM)

    def check(self) -> list[str]:
        found: list[str] = []
        for name, spec in self._specs.items():
            try:
                self._check_description(name, spec)
            except DamageError as error:
                found.append(error.where)
            for number in range(spec.n_chunks):
                first = number * spec.chunk_rows
                try:
                    self._read_rows(name, spec, first, min(first + spec.chunk_rows, spec.shape[0]))
                except DamageError as error:
                    found.append(error.where)
        return found


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


def parse_json(where: str, content: bytes) -> Any:
    """Return the JSON of a file; DamageError when it is none."""
    with malformed_is_damage(where):
        return json.loads(content)


def read_attributes(root: Location, key: str) -> dict[str, Any] | None:
    """Return the unchecked attributes of a group's description; None if it describes no group."""
    store, own = open_store(root), _description_of(key)
    found = parse_json(store.where(own), store.read(own, MAX_DESCRIPTION_NBYTES))
    is_group = isinstance(found, dict) and found.get("node_type") == "group"
    attributes = found.get("attributes") if is_group else None
    return attributes if isinstance(attributes, dict) and found.get("zarr_format") == 3 else None


def has_group(root: Location, key: str) -> bool:
    """Whether a group was written; its description may be damaged."""
    return open_store(root).has_part(key, DESCRIPTION)


def open_group(root: Location, key: str) -> Group:
    """Return a group of a store; DamageError when its description is damaged."""
    store = open_store(root)
    attributes = read_attributes(store, key)
    if attributes is None:
        raise damaged(store.where(_description_of(key)), "it describes no group")
    return check_seal(store, key, attributes)


def check_seal(root: Location, key: str, attributes: dict[str, Any]) -> Group:
    """Return the group with these attributes; DamageError when their checksum differs."""
    store = open_store(root)
    where = store.where(_description_of(key))
    own = {name: value for name, value in attributes.items() if name != SUM}
    with malformed_is_damage(where):
        expected = f"{json_checksum(key, own):08x}"
    if attributes.get(SUM) != expected:
        raise damaged(where, BAD_CHECKSUM)
    with malformed_is_damage(where):
        specs = {str(k): ArraySpec.from_json(v) for k, v in own.pop(ARRAYS, {}).items()}
        slots = _parse_slots(own.pop(PACKED, {}), specs.get(PACKED))
        prefix = str(own.pop(PREFIX, ""))
    return Group(store, key, own, specs, _slots=slots, _prefix=prefix)


def _parse_slots(values: Any, packed: ArraySpec | None) -> dict[str, Slot]:
    """Return the slots of packed arrays.

    Some of ValueError, TypeError, KeyError, AttributeError when they do not lie inside an array of
    bytes.
    """
    if not values and packed is None:
        return {}
    if packed is None or packed.dtype != "|u1" or len(packed.shape) != 1:
        raise ValueError("packed arrays without an array of bytes")
    if packed.shape[0] > MAX_PACKED_NBYTES or packed.chunk_rows > MAX_PACKED_NBYTES:
        raise ValueError(f"{packed.shape[0]} bytes of packed arrays")
    return {str(k): Slot.from_json(v, packed.shape[0]) for k, v in values.items()}
