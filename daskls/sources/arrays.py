"""NumPy files, read a block at a time: members of an .npz archive are unpacked to disk first."""

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.records import AnyArray, Labels, TargetKind
from daskls.sources.base import (
    BLOCK_FIELDS,
    SCAN_ROWS,
    Block,
    Features,
    LabelCoder,
    NumberCoder,
    ReadOptions,
    batch_rows,
    feature_dtype,
    pick_label,
    scan_of,
)
from daskls.store.dataset import WRITE_AGAIN
from daskls.store.errors import disk_errors


@contextmanager
def open_npz(path: Path, options: ReadOptions) -> Iterator[Features]:
    """Open the arrays X and y, or one split of X_train, y_train, X_test, y_test."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise DataError(f"{path} is not an .npz archive: {error}.") from error
    with archive, _scratch(options.scratch) as folder:
        members = {name.removesuffix(".npy") for name in archive.namelist()}
        X_name, y_name = _pick_members(members, path, options)
        X_file = _extract(archive, X_name, folder)
        y_file = None if y_name is None else _extract(archive, y_name, folder)
        yield _matrix_table(path, X_file, y_file, options.kind)


@contextmanager
def open_npy(path: Path, options: ReadOptions) -> Iterator[Features]:
    """Open one 2-d array, one of whose columns may be the label."""
    n_rows, n_columns, dtype = _matrix_header(path, path)
    names = [str(column) for column in range(n_columns)]
    column = pick_label(names, options.label, str(path))
    if column is None:
        yield _matrix_table(path, path, None)
        return
    if n_columns < 2:
        raise DataError(f"{path} has one column, the label, and no features; pass label='none'.")
    scan = scan_of(options.kind)
    for first in range(0, n_rows, SCAN_ROWS):
        scan.add(np.array(_map(path, path)[first : first + SCAN_ROWS, column]), first)

    def blocks() -> Iterator[Block]:
        for first, stop in _ranges(n_rows, n_columns):
            block = _read_rows(path, first, stop)
            yield np.delete(block, column, axis=1), block[:, column], None

    dtype, labels = feature_dtype(dtype, path), scan.finish()
    yield Features(str(path), n_rows, n_columns - 1, dtype, None, labels, blocks)


def _ranges(n_rows: int, n_columns: int) -> Iterator[tuple[int, int]]:
    step = batch_rows(n_columns, BLOCK_FIELDS)
    return ((first, first + step) for first in range(0, n_rows, step))


def _pick_members(members: set[str], path: Path, options: ReadOptions) -> tuple[str, str | None]:
    """Return the names of the arrays of features and of labels; None if labels are not wanted."""
    split = options.split
    if split is None and "X" not in members and "X_train" in members:
        split = "train"
    suffix = "" if split is None else f"_{split}"
    X_name = f"X{suffix}"
    y_name = f"y{suffix}" if options.label is None else str(options.label)
    for name in (X_name, y_name):
        if name not in members and name != "none":
            raise DataError(
                f"{path} has no array {name!r}; it has {', '.join(sorted(members))}. "
                "Wanted: X and y, or X_train, y_train, X_test, y_test; see `split` and `label`."
            )
    return X_name, None if y_name == "none" else y_name


@contextmanager
def _scratch(beside: Path) -> Iterator[Path]:
    with disk_errors(beside, WRITE_AGAIN):
        folder = tempfile.TemporaryDirectory(prefix=".daskls-", dir=beside)
    with folder as path:
        yield Path(path)


def _extract(archive: zipfile.ZipFile, name: str, folder: Path) -> Path:
    """Unpack one member, a buffer at a time; return its file."""
    target = folder / f"{'X' if name.startswith('X') else 'y'}.npy"
    try:
        with (
            disk_errors(target, WRITE_AGAIN),
            archive.open(f"{name}.npy") as packed,
            target.open("wb") as unpacked,
        ):
            shutil.copyfileobj(packed, unpacked, 2**20)
    except (zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"The array {name!r} of {archive.filename} is damaged: {error}.") from error
    return target


def _matrix_table(
    path: Path, X_file: Path, y_file: Path | None, kind: TargetKind = "classes"
) -> Features:
    n_rows, n_features, dtype = _matrix_header(X_file, path)
    labels = None if y_file is None else _scan_vector(y_file, n_rows, path, kind)

    def blocks() -> Iterator[Block]:
        for first, stop in _ranges(n_rows, n_features):
            X = _read_rows(X_file, first, stop)
            yield X, None if y_file is None else _read_labels(y_file, first, stop, path), None

    dtype = feature_dtype(dtype, path)
    return Features(str(path), n_rows, n_features, dtype, None, labels, blocks)


def _scan_vector(
    y_file: Path, n_rows: int, path: Path, kind: TargetKind
) -> LabelCoder | NumberCoder:
    shape = _map(y_file, path).shape
    if shape not in ((n_rows,), (n_rows, 1)):
        raise DataError(
            f"The labels in {path} must have shape ({n_rows},), one per row of X, got {shape}."
        )
    scan = scan_of(kind)
    for first in range(0, n_rows, SCAN_ROWS):
        scan.add(_read_labels(y_file, first, first + SCAN_ROWS, path), first)
    return scan.finish()


def _matrix_header(file: Path, path: Path) -> tuple[int, int, np.dtype[Any]]:
    mapped = _map(file, path)
    if mapped.ndim != 2:
        raise DataError(f"The features in {path} must be a 2-d array, got shape {mapped.shape}.")
    return mapped.shape[0], mapped.shape[1], mapped.dtype


def _map(file: Path, path: Path) -> AnyArray:
    """Map an array file; errors name ``path``, which the caller gave."""
    try:
        mapped: AnyArray = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read as an array of numbers: {error}.") from error
    return mapped


def _read_rows(file: Path, first: int, stop: int) -> AnyArray:
    """Return a copy of some rows, in C order whatever the order in the file."""
    # Mapped anew for each block, so that pages of earlier blocks do not count as memory in use.
    return np.array(np.load(file, mmap_mode="r", allow_pickle=False)[first:stop], order="C")


def _read_labels(file: Path, first: int, stop: int, path: Path) -> Labels:
    """Return a copy of some labels; bytes become text."""
    labels = _read_rows(file, first, stop).reshape(-1)
    try:
        return np.char.decode(labels, "utf-8") if labels.dtype.kind == "S" else labels
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: labels of bytes are not UTF-8 ({error.reason}). Decode them first, as with "
            'np.char.decode(y, "latin-1").'
        ) from error
