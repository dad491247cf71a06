"""`open_source` determines once what X, y or weights are; all later stages read its answer.

`FORMATS` names the readers' modules without importing them.
"""

import glob
import itertools
import math
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import dask
import dask.array as da

from daskls.errors import DataError
from daskls.registry import load_object
from daskls.sources.base import TableSource, check_unique
from daskls.sources.encoding import TableEncoding
from daskls.sources.frames import column_names, find_frame, open_frame
from daskls.sources.header import Known
from daskls.store.arrays import ArrayHandle
from daskls.store.dataset import Dataset, find_zarr
from daskls.store.objects import expand_path

# Files that mark a folder as a Zarr array or group.
ZARR_MARKERS = ("zarr.json", ".zgroup", ".zarray")


@dataclass(frozen=True)
class Format:
    """A format of files, by the suffixes of their names.

    `open` is the reader, ``module:function``: of tables it takes (paths, `Known`, where) and
    returns a `TableSource`; of features it takes (path, `ReadOptions`) and yields `Features`.
    `packings` may follow a suffix; files of `in_folders` are one table if they are in one folder.
    `takes` are parameters of `daskls.datasets.convert` of its own, `lazily` the function of
    dask.dataframe that reads it.
    """

    suffixes: tuple[str, ...]
    open: str
    holds: Literal["table", "features"] = "table"
    packings: tuple[str, ...] = ()
    in_folders: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    lazily: str = ""

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
        lazily="read_csv",
    ),
    Format(
        (".parquet", ".pq"),
        "sources.files:open_typed",
        in_folders=(".parquet", ".pq"),
        lazily="read_parquet",
    ),
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

    given: Any
    kind: Kind
    where: str = "X"
    files: tuple[Path, ...] = ()
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
        return column_names(self.given)

    @property
    def array(self) -> Any:
        return self.given if self.dataset is None else self.dataset.X

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
        found = getattr(self.array, "nbytes", None)
        # Not of pandas, which has one value per column; NaN if Dask does not know the rows.
        return int(found) if isinstance(found, int | float) and found == found else None

    def open(
        self, label: str | None, scratch: Path, encoding: TableEncoding | None = None
    ) -> TableSource:
        """Open a table; the first line of a text file is a header if it has the known names."""
        if self.format is None:
            table = open_frame(self.given, scratch)
        else:
            known = Known(label)
            if encoding is not None:
                known = Known(label, encoding.column_names, encoding.has_header)
            table = load_object(self.format.open)(list(self.files), known, self.where)
        check_unique(table.names, table.where)
        return table


def open_source(given: Any) -> Source:
    """Return a handle on arrays or frames, a path, a pattern or a URL; a handle as it is."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str | os.PathLike):
        return _at_path(given)
    if hasattr(given, "store_path"):
        return Source(given, "zarr", handle=find_zarr(given)[0])
    # An xarray DataArray over Dask.
    if hasattr(given, "dims") and isinstance(getattr(given, "data", None), da.Array):
        return Source(given.data, "dask")
    frame = find_frame(given)
    if frame is not None:
        return Source(given, frame.kind, frame.where)
    return Source(given, "dask" if dask.is_dask_collection(given) else "memory")


def _at_path(path: str | os.PathLike[str]) -> Source:
    files = find_files(path)
    known = shared_format(files)
    where = os.fspath(path)
    if known is not None:
        kind: Kind = "table" if known.holds == "table" else "features"
        return Source(path, kind, where, tuple(files), known)
    handle, dataset = find_zarr(path)
    return Source(path, "zarr", where, handle=handle, dataset=dataset)


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
    if "://" in text:
        _check_remote(text)
        return []
    if os.path.isdir(text):
        files = _files_in(Path(text))
        if not files and format_of(text) is not None:
            raise DataError(f"{text} is a folder, and holds no files of a table. Check the path.")
        return files
    if os.path.lexists(text):
        return [Path(text)]
    if not glob.has_magic(text):
        return []
    files = sorted(map(Path, glob.glob(text)), key=_natural_order)
    if not files:
        raise DataError(f"No file matches {text!r}; check the pattern.")
    parts = Path(text).parts
    folder = next((file for file in files if file.is_dir()), None)
    if folder is not None and "=" not in folder.name:
        raise DataError(
            f"{text!r} matches the folder {folder}; a pattern names files, as 'folder/*.csv'. Pass "
            "a folder itself if it is one table."
        )
    _check_folders(files, Path(*itertools.takewhile(lambda part: not glob.has_magic(part), parts)))
    return files


def _files_in(folder: Path) -> list[Path]:
    if any((folder / name).is_file() for name in ZARR_MARKERS):
        return []
    known = [own for own in FORMATS if own.in_folders]
    found = [
        file
        for file in folder.rglob("*")
        if any(own.is_part(file.name) for own in known) and file.is_file()
    ]
    _check_folders(found, folder)
    return sorted(found, key=_natural_order)


def _check_folders(files: list[Path], below: Path) -> None:
    """Refuse files in folders below one that are named by the values of a column."""
    for file in files:
        folders = file.relative_to(below).parts[: None if file.is_dir() else -1]
        by_value = next((name for name in folders if "=" in name), None)
        if by_value is not None:
            raise DataError(
                f"{below} keeps a column in the names of its folders ({by_value}); "
                "pass it as a Dask DataFrame: dask.dataframe.read_parquet(path)."
            )


def _check_remote(url: str) -> None:
    """Refuse a table behind a URL: tables are read from local files only."""
    known = format_of(urlsplit(url).path)
    if known is None:
        return
    lazily = f", or pass dask.dataframe.{known.lazily}({url!r}), which reads URLs"
    raise DataError(
        f"{url} is a table behind a URL; tables are read from local files, more than once. "
        f"Download it first{lazily if known.lazily else ''}."
    )


def shared_format(files: list[Path]) -> Format | None:
    """Return the format of files that are one table; None for no file, and for a folder."""
    if not files or (len(files) == 1 and files[0].is_dir()):
        return None
    formats = [format_of(file) for file in files]
    known = formats[0]
    odd = next((f for f, own in zip(files, formats, strict=True) if own is None), files[0])
    if known is None or any(own is not known for own in formats):
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
