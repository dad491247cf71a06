"""`open_source` determines once what X, y or weights are; all later stages read its answer.

`FORMATS` names the readers' modules without importing them.
"""

import glob
import itertools
import math
import os
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import dask
import dask.array as da

from daskls.errors import DataError, StoreError
from daskls.registry import load_object
from daskls.sources.base import TableSource, check_unique
from daskls.sources.encoding import TableEncoding
from daskls.sources.folders import held_by_folders, with_folders
from daskls.sources.frames import column_names, find_frame, open_frame
from daskls.sources.header import TableHints
from daskls.store.arrays import ArrayHandle
from daskls.store.dataset import Dataset, find_zarr
from daskls.store.objects import TemporaryFolder, expand_path, is_bucket

# Files that mark a folder as a Zarr array or group.
ZARR_MARKERS = ("zarr.json", ".zgroup", ".zarray")


@dataclass(frozen=True)
class Format:
    """A format of files, by the suffixes of their names.

    `open` is the reader, ``module:function``: of tables it takes (paths, `TableHints`, where) and
    returns a `TableSource`, whose batches are each `of_part` their file; of features it takes
    (path, `ReadOptions`) and yields `Features`. `packings` may follow a suffix; files of
    `in_folders` are one table if they are in one folder. `takes` are parameters of
    `daskls.datasets.convert` of its own.
    """

    suffixes: tuple[str, ...]
    open: str
    holds: Literal["table", "features"] = "table"
    packings: tuple[str, ...] = ()
    in_folders: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()

    def matches(self, name: str) -> bool:
        return self._bare(name).endswith(self.suffixes)

    def is_part(self, name: str) -> bool:
        return name[0] not in "._" and self._bare(name.lower()).endswith(self.in_folders)

    def _bare(self, name: str) -> str:
        return name.removesuffix(next((end for end in self.packings if name.endswith(end)), ""))


FORMATS = (
    Format(
        (".csv", ".tsv", ".txt"),
        "sources.files:open_text",
        packings=(".gz", ".bz2", ".zst"),
        # Text in a folder may be any, as README.txt.
        in_folders=(".csv", ".tsv"),
    ),
    Format((".parquet", ".pq"), "sources.files:open_typed", in_folders=(".parquet", ".pq")),
    Format(
        (".feather", ".arrow", ".ipc", ".orc", ".jsonl", ".ndjson"),
        "sources.files:open_typed",
        in_folders=(".feather", ".arrow", ".orc", ".jsonl", ".ndjson"),
    ),
    Format((".npz",), "sources.arrays:open_npz", "features", takes=("split",)),
    Format((".npy",), "sources.arrays:open_npy", "features"),
    Format(
        (".libsvm", ".svmlight", ".svm"),
        "sources.files:open_svmlight",
        "features",
        takes=("n_features",),
    ),
)


Kind = Literal["memory", "frame", "table", "dask table", "features", "dask", "zarr"]


@dataclass(frozen=True, eq=False)
class Source:
    """A handle on rows, as they were given; it holds none of what is not in memory."""

    value: Any
    kind: Kind
    where: str = "X"
    files: tuple[Path, ...] = ()
    # The folder below which the names of folders are of the table, and what keeps copied files.
    below: Path = Path()
    keep: TemporaryFolder | None = None
    format: Format | None = None
    handle: ArrayHandle | None = None
    dataset: Dataset | None = None

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in memory, so scikit-learn's checks apply."""
        return self.kind in ("memory", "frame")

    @property
    def has_columns(self) -> bool:
        """Whether columns are encoded as features before use; for a frame in memory they may be."""
        return self.kind in ("frame", "table", "dask table", "features")

    def is_table(self, y: Any) -> bool:
        """Whether one of the columns is the target; of a frame with labels apart none is."""
        return self.has_columns and not (
            self.kind == "frame" and y is not None and not isinstance(y, str)
        )

    @cached_property
    def names(self) -> list[str] | None:
        """Names of columns or features; None if they are not text, a DataError for a mix."""
        if self.dataset is not None or self.kind == "zarr":
            return None if self.dataset is None else self.dataset.feature_names
        return column_names(self.value)

    @property
    def array(self) -> Any:
        return self.value if self.dataset is None else self.dataset.X

    @property
    def local_path(self) -> str | None:
        """The path that workers must see; None for rows in memory, lazy ones or a URL."""
        if self.kind != "zarr" or self.handle is None or "://" in self.handle.path:
            return None
        return self.handle.path

    @cached_property
    def nbytes(self) -> int | None:
        """Bytes of the files, or of the array once it is read; None if unknown before."""
        if self.files:
            return sum(file.stat().st_size for file in self.files)
        if self.handle is not None:
            return math.prod(self.handle.shape) * self.handle.itemsize
        nbytes = getattr(self.array, "nbytes", None)
        # Not of pandas, which has one value per column; NaN if Dask does not know the rows.
        return int(nbytes) if isinstance(nbytes, int | float) and nbytes == nbytes else None

    def open(
        self, label: str | None, scratch: Path, encoding: TableEncoding | None = None
    ) -> TableSource:
        """Open a table; the first line of a text file is a header if it has the known names."""
        if self.format is None:
            table = open_frame(self.value, scratch)
        else:
            held = held_by_folders(self.files, self.below)
            known = TableHints(None if label in held[0] else label)
            if encoding is not None:
                names = [name for name in encoding.column_names if name not in held[0]]
                known = known._replace(columns=names, has_header=encoding.has_header)
            table = load_object(self.format.open)(list(self.files), known, self.where)
            table = replace(with_folders(table, self.files, held), keep=self.keep)
        check_unique(table.names, table.where)
        return table


def open_source(value: Any) -> Source:
    """Return a handle on arrays or frames, a path, a pattern or a URL; a handle as it is."""
    if isinstance(value, Source):
        return value
    if isinstance(value, str | os.PathLike):
        return _at_path(value)
    if hasattr(value, "store_path"):
        return Source(value, "zarr", handle=find_zarr(value)[0])
    # An xarray DataArray over Dask.
    if hasattr(value, "dims") and isinstance(getattr(value, "data", None), da.Array):
        return Source(value.data, "dask")
    frame = find_frame(value)
    if frame is not None:
        return Source(value, frame.kind, frame.where)
    return Source(value, "dask" if dask.is_dask_collection(value) else "memory")


def _at_path(path: str | os.PathLike[str]) -> Source:
    where = os.fspath(path)
    # Zarr data is looked up by name first, as not every bucket may be listed.
    is_late = is_bucket(where) and format_of(where) is None and not glob.has_magic(where)
    source = None if is_late else open_files_at(path)
    if source is not None:
        return source
    try:
        handle, dataset = find_zarr(path)
    except StoreError:
        source = open_files_at(path) if is_late else None
        if source is None:
            raise
        return source
    return Source(path, "zarr", where, handle=handle, dataset=dataset)


def open_files_at(path: str | os.PathLike[str]) -> Source | None:
    """Return a handle on the files at a path, a pattern or a URL; None if there are none."""
    text, keep = expand_path(path), None
    if "://" in text:
        # Loaded for URLs alone.
        from daskls.sources.urls import copied

        copy = copied(text, lambda name: format_of(name) is not None)
        if copy is None:
            return None
        keep, text = copy
    files = find_files(text)
    known = shared_format(files)
    if known is None:
        return None
    kind: Kind = "table" if known.holds == "table" else "features"
    below = _fixed_part(text)
    return Source(path, kind, os.fspath(path), tuple(files), below, keep, format=known)


def check_label(label: Any) -> None:
    """Refuse labels beside a table: a table's labels are one of its columns."""
    if label is not None and not isinstance(label, str):
        raise DataError(
            f"X is a table, but y is of type {type(label).__name__}; name the column of the table "
            "that holds the labels, as in fit(X, NAME) or --label NAME."
        )


# Formats and files.


def format_of(path: str | os.PathLike[str]) -> Format | None:
    """Return the format of a file, by its suffix; None if it has no known one.

    >>> format_of("rows.csv.gz").suffixes[0], format_of("rows.pq").suffixes[0]
    ('.csv', '.parquet')
    >>> format_of("rows.zarr")
    """
    name = Path(path).name.lower()
    return next((known for known in FORMATS if known.matches(name)), None)


def all_suffixes() -> str:
    ends = ", ".join(end for known in FORMATS for end in known.suffixes)
    packed = ", ".join(end for known in FORMATS for end in known.packings)
    return f"{ends}; text may be compressed ({packed})"


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files at a path, in natural order; none if Zarr data are there."""
    text = expand_path(path)
    if os.path.isdir(text):
        files = _files_in(Path(text))
        if not files and format_of(text) is not None:
            raise DataError(f"{text} is a folder without files of tables. Check the path.")
        return files
    if os.path.lexists(text):
        return [Path(text)]
    if not glob.has_magic(text):
        return []
    matches = map(Path, glob.glob(text))
    files = [file for item in matches for file in (_files_in(item) if item.is_dir() else [item])]
    if not files:
        raise DataError(f"No file matches {text!r}; check the pattern.")
    return sorted(files, key=_natural_order)


def _fixed_part(text: str) -> Path:
    """Return the part of a path above the first one that is a pattern."""
    if os.path.lexists(text):
        return Path(text)
    return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), Path(text).parts))


def _files_in(folder: Path) -> list[Path]:
    if any((folder / name).is_file() for name in ZARR_MARKERS):
        return []
    known = [kind for kind in FORMATS if kind.in_folders]
    files = [
        file
        for file in folder.rglob("*")
        if any(kind.is_part(file.name) for kind in known) and file.is_file()
    ]
    return sorted(files, key=_natural_order)


def shared_format(files: list[Path]) -> Format | None:
    """Return the format of files that are one table; None for no file."""
    if not files:
        return None
    formats = [format_of(file) for file in files]
    known = formats[0]
    odd = next((f for f, kind in zip(files, formats, strict=True) if kind is None), files[0])
    if known is None or any(kind is not known for kind in formats):
        raise DataError(
            f"Cannot read {odd}: files of one table have one suffix, of {all_suffixes()}. If there "
            "are several kinds, name those of one by a pattern, as in 'folder/*.csv'."
        )
    return known


def _natural_order(path: Path) -> list[str | int]:
    """Return a sorting key by which part 10 comes after part 9."""
    # `dask.utils.natural_sort_key` fails on a superscript between digits, which it takes for one.
    parts = re.split(r"(\d+)", str(path))
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]
