"""What a model on disk looks like, and how its root is read and checked.

::

    model.zarr/            group; attributes: format, kind, fingerprint, meta, complete (the marker)
      partition/           what rows are regrouped by: sampled trees, chunks, or points (stage 1)
      bundles/<name>/      flat arrays of one bundle's cells; the folder appears whole (stage 3)
      index/               the finished trees, and the bundle of each cell (last)
      sampling/<kind>/     what a fit on samples keeps between its tasks; deleted too
      exchange-<name>/     rows regrouped by leaf; deleted after the last marker (stage 2)
      input-<name>/        NumPy input, written so that all workers can read it; deleted too
"""

import json
import math
import shutil
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.errors import ContainsArrayError, GroupNotFoundError

from daskls.errors import StoreError
from daskls.records import CellReport, Chunks, FloatArray, Forest, Partition, Tree, VoronoiCells
from daskls.store.files import disk_errors

__all__ = [
    "FORMAT",
    "MAX_CHUNK_ROWS",
    "Root",
    "open_member",
    "read_array",
    "read_forest",
    "read_partition",
    "read_values",
    "report_from_json",
    "report_to_json",
    "root_stamp",
    "write_array",
    "write_forest",
    "write_partition",
]

FORMAT = 1
KIND = "model"
# Rows of a chunk of support rows: a cell's slice then touches few chunks, and little beside it.
MAX_CHUNK_ROWS = 4096
MAX_CHUNK_NBYTES = 4 << 20
# What only an unfinished fit needs, relative to the store.
LEFTOVERS = ("exchange-*", "bundles/.*", "rows/.*", "input-*", ".probe-*", "joint")
NODE_ARRAYS = ("directions", "thresholds", "children")


def _fill_value(dtype: np.dtype[Any]) -> Any:
    """Return the value that a missing chunk reads as: one that no model holds."""
    return np.nan if dtype.kind == "f" else np.iinfo(dtype).min


def write_array(
    group: zarr.Group, name: str, values: FloatArray, chunk_rows: int = MAX_CHUNK_ROWS
) -> None:
    """Write an array uncompressed, in chunks of at most ``chunk_rows`` rows."""
    row_nbytes = max(values.itemsize * math.prod(values.shape[1:]), 1)
    rows = min(len(values), chunk_rows, MAX_CHUNK_NBYTES // row_nbytes)
    chunks = (max(rows, 1), *(max(n, 1) for n in values.shape[1:]))
    array = group.create_array(
        name,
        shape=values.shape,
        dtype=values.dtype,
        chunks=chunks,
        compressors=None,
        fill_value=_fill_value(values.dtype),
    )
    if values.size:
        array[...] = np.ascontiguousarray(values)


def read_array(group: zarr.Group, name: str, rows: slice = slice(None)) -> FloatArray:
    """Read (a slice of rows of) an array.

    Raises
    ------
    StoreError : when the array, or a chunk of it, is missing or truncated
    """
    return read_values(open_member(group, name), rows)


def open_member(group: zarr.Group, name: str) -> "zarr.Array[Any]":
    """Return an array of a group, to be read several times.

    Raises
    ------
    StoreError : when it is missing or its description is damaged
    """
    where = f"{group.store_path}/{name}"
    try:
        array = group[name]
    except KeyError as error:
        raise StoreError(
            f"The model's array {where} is missing. Copy or train the model again."
        ) from error
    except ValueError as error:
        raise StoreError(
            f"The model's array {where} cannot be read ({error}): it is truncated or damaged. "
            "Copy or train the model again."
        ) from error
    assert isinstance(array, zarr.Array)
    return array


def read_values(array: "zarr.Array[Any]", rows: slice = slice(None)) -> FloatArray:
    """Read (a slice of rows of) an opened array; as `read_array`."""
    where = array.store_path
    try:
        values = np.asarray(array[rows])
    except (ValueError, RuntimeError, OSError) as error:
        raise StoreError(
            f"The model's array {where} cannot be read ({error}): it is truncated or damaged. "
            "Copy or train the model again."
        ) from error
    missing = np.isnan(values) if values.dtype.kind == "f" else values == _fill_value(values.dtype)
    if missing.any():
        raise StoreError(
            f"The model's array {where} lacks a chunk: it was copied incompletely. "
            "Copy or train the model again."
        )
    return values


def write_forest(group: zarr.Group, forest: Forest) -> None:
    """Write the trees' arrays into a group, one tree after the other, and their shared center."""
    write_array(group, "center", forest.center)
    write_array(group, "n_nodes", np.array([len(tree.thresholds) for tree in forest.trees]))
    for name in NODE_ARRAYS:
        write_array(group, name, np.concatenate([getattr(tree, name) for tree in forest.trees]))


def read_forest(group: zarr.Group) -> Forest:
    """Read what `write_forest` wrote."""
    center = read_array(group, "center")
    stops = np.cumsum(read_array(group, "n_nodes"))[:-1]
    parts = (np.split(read_array(group, name), stops) for name in NODE_ARRAYS)
    return Forest(tuple(Tree(center, *arrays) for arrays in zip(*parts, strict=True)))


def write_partition(group: zarr.Group, partition: Partition) -> None:
    """Write what rows are regrouped by."""
    group.attrs["partition"] = type(partition).__name__
    if isinstance(partition, Chunks):
        group.attrs.update(asdict(partition))
    elif isinstance(partition, VoronoiCells):
        write_array(group, "center", partition.center)
        write_array(group, "points", partition.points)
    else:
        write_forest(group, partition)


def read_partition(group: zarr.Group) -> Partition:
    """Read what `write_partition` wrote."""
    kind = group.attrs["partition"]
    if kind == Chunks.__name__:
        return Chunks(**{f.name: int(str(group.attrs[f.name])) for f in fields(Chunks)})
    if kind == VoronoiCells.__name__:
        return VoronoiCells(read_array(group, "center"), read_array(group, "points"))
    return read_forest(group)


def report_to_json(report: FloatArray) -> list[list[Any]]:
    """Return a table of cells as JSON values; NaN, which JSON lacks, becomes None."""
    return [[None if value != value else value for value in row.item()] for row in report]


def report_from_json(rows: Any) -> FloatArray:
    """Return the table that `report_to_json` took apart."""
    table = np.empty(len(rows), CellReport.dtype())
    for i, row in enumerate(rows):
        table[i] = tuple(np.nan if value is None else value for value in row)
    return table


def root_stamp(path: str) -> tuple[int, int]:
    """Return what changes when a model's root is written anew: its file's number and time."""
    try:
        status = (Path(path) / "zarr.json").stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns


class Root:
    """The root group of a model: its folder and its attributes."""

    def __init__(self, path: Path, group: zarr.Group) -> None:
        self.path = path
        self.group = group

    @classmethod
    def open(cls, path: Path, *, mode: str = "r") -> "Root":
        """Open an existing model.

        Raises
        ------
        StoreError : when there is none, it is something else, or its format is newer
        """
        try:
            group = zarr.open_group(path, mode=mode, zarr_format=3)
        except (FileNotFoundError, GroupNotFoundError, ContainsArrayError) as error:
            raise StoreError(
                f"There is no model at {path}. Give a path that save() or `daskls fit` wrote."
            ) from error
        except (ValueError, json.JSONDecodeError) as error:
            raise StoreError(
                f"The model at {path} has damaged attributes ({error}). Copy or train it again."
            ) from error
        attributes = dict(group.attrs)
        if attributes.get("kind") != KIND:
            raise StoreError(
                f"{path} is a Zarr group of kind {attributes.get('kind')!r}, not a daskls model. "
                "Give a path that save() or `daskls fit` wrote."
            )
        found = attributes.get("daskls_format")
        if not isinstance(found, int) or found > FORMAT:
            raise StoreError(
                f"The model at {path} has format {found}; this daskls reads up to {FORMAT}. "
                "Upgrade daskls to open it."
            )
        return cls(path, group)

    @classmethod
    def create(cls, path: Path, attributes: dict[str, Any]) -> "Root":
        """Create the group with its identity; the marker is not set."""
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            group = zarr.create_group(
                path,
                zarr_format=3,
                attributes={"daskls_format": FORMAT, "kind": KIND, "complete": False, **attributes},
            )
        return cls(path, group)

    @property
    def attributes(self) -> dict[str, Any]:
        """The JSON attributes."""
        return dict(self.group.attrs)

    @property
    def is_complete(self) -> bool:
        """Whether the marker is set: all bundles and the index are there."""
        return bool(self.group.attrs.get("complete", False))

    def replace_group(self, name: str) -> zarr.Group:
        """Return a new, empty subgroup in the place of any old one."""
        with disk_errors(self.path):
            shutil.rmtree(self.path / name, ignore_errors=True)
            return self.group.create_group(name)

    def find_group(self, name: str) -> zarr.Group | None:
        """Return a subgroup, or None."""
        try:
            found = self.group.get(name)
        except ValueError as error:
            raise StoreError(
                f"The model's part {self.path / name} has damaged attributes ({error}). "
                "Copy or train the model again."
            ) from error
        return found if isinstance(found, zarr.Group) else None

    def remove_leftovers(self) -> None:
        """Remove exchanges, of earlier tries too, and what killed tasks and clients left."""
        for kind in LEFTOVERS:
            for path in self.path.glob(kind):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
