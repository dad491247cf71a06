"""What X is, asked once, where it comes in; every stage after that reads the answer.

A `Source` holds what was given, its kind, sizes and names: no rows of what is not in memory. The
same door takes y and weights.

The formats of files, and the files that a path, a folder or a pattern leads to.

One line a format: `fit`, `predict`, `convert` and the command line read it. It names modules and
imports none, so that a process loads the readers that it uses and no others.
"""

import glob
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
from daskls.sources.frames import column_names, find_frame, open_frame
from daskls.store.arrays import ArrayHandle, find_zarr
from daskls.store.dataset import Dataset
from daskls.store.files import expand_path

OF_ZARR = ("zarr.json", ".zgroup", ".zarray")


@dataclass(frozen=True)
class Format:
    """A format of files.

    Attributes
    ----------
    suffixes : tuple of str. In small letters, the dot included.
    open : str. As ``module:function`` below the package. Of a table it takes (paths, label, where)
        and returns a `TableSource`; of features it takes (path, `ReadOptions`) and is a context
        that yields `Features`.
    holds : "table" of named columns, of any kinds; or "features", numbers without names
    packings : tuple of str. Suffixes that may follow.
    in_folders : bool. Whether a folder of such files is a table.
    takes : tuple of str. Arguments of `daskls.datasets.convert` that are for this format alone.
    lazily : str. The function of dask.dataframe that reads such files behind a URL, or "".
    """

    suffixes: tuple[str, ...]
    open: str
    holds: Literal["table", "features"] = "table"
    packings: tuple[str, ...] = ()
    in_folders: bool = False
    takes: tuple[str, ...] = ()
    lazily: str = ""

    def matches(self, name: str) -> bool:
        """Whether a file of this name has this format."""
        packed = next((end for end in self.packings if name.endswith(end)), "")
        return name.removesuffix(packed).endswith(self.suffixes)


FORMATS = (
    Format(
        (".csv", ".tsv", ".txt"),
        "sources.files:open_text",
        packings=(".gz", ".bz2", ".zst"),
        lazily="read_csv",
    ),
    Format(
        (".parquet", ".pq"), "sources.files:open_parquet", in_folders=True, lazily="read_parquet"
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


def format_of(path: str | os.PathLike[str]) -> Format | None:
    """Return the format of a file, by its suffix; None of any other.

    Examples
    --------
    >>> format_of("rows.csv.gz").suffixes[0], format_of("rows.pq").suffixes[0]
    ('.csv', '.parquet')
    >>> format_of("rows.zarr")
    """
    name = Path(path).name.lower()
    return next((known for known in FORMATS if known.matches(name)), None)


def all_suffixes() -> str:
    """Return the suffixes of files that can be read, for errors."""
    ends = ", ".join(end for known in FORMATS for end in known.suffixes)
    packed = ", ".join(end for known in FORMATS for end in known.packings)
    return f"{ends}; text may be packed ({packed})"


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path leads to, in natural order; none where it leads to Zarr data.

    Raises
    ------
    DataError : a pattern that nothing matches; folders named by values of a column; a URL of a
        file that is not read from there
    """
    text = expand_path(path)
    if "://" in text:
        _check_remote(text)
        return []
    if os.path.isdir(text):
        return _files_in(Path(text))
    if os.path.lexists(text):
        return [Path(text)]
    if not glob.has_magic(text):
        return []
    files = sorted(map(Path, glob.glob(text)), key=_natural_order)
    if not files:
        raise DataError(f"No file matches {text!r}; check the pattern.")
    return files


def _files_in(folder: Path) -> list[Path]:
    """Return the files of a folder, and of those in it, that are parts of one table."""
    if any((folder / name).is_file() for name in OF_ZARR):
        return []
    ends = [end for known in FORMATS if known.in_folders for end in known.suffixes]
    found = [file for end in ends for file in folder.rglob(f"*{end}")]
    by_value = next((f for f in found if "=" in str(f.parent.relative_to(folder))), None)
    if by_value is not None:
        raise DataError(
            f"{folder} keeps a column in the names of its folders ({by_value.parent.name}); "
            "pass it as a Dask DataFrame: dask.dataframe.read_parquet(path)."
        )
    return sorted((file for file in found if file.name[0] not in "._"), key=_natural_order)


def _check_remote(url: str) -> None:
    """Refuse tables behind URLs, which are read from local files alone.

    Raises
    ------
    DataError
    """
    known = format_of(urlsplit(url).path)
    if known is None:
        return
    lazily = f", or pass dask.dataframe.{known.lazily}({url!r}), which reads URLs"
    raise DataError(
        f"{url} is a table behind a URL; tables are read from local files, more than once. "
        f"Download it first{lazily if known.lazily else ''}."
    )


def shared_format(files: list[Path]) -> Format | None:
    """Return the format of files that are one table; None of no file, and of a folder.

    Raises
    ------
    DataError : they have several formats, or one that is not known
    """
    if not files or (len(files) == 1 and files[0].is_dir()):
        return None
    formats = [format_of(file) for file in files]
    known = formats[0]
    odd = next((f for f, own in zip(files, formats, strict=True) if own is None), files[0])
    if known is None or any(own is not known for own in formats):
        raise DataError(
            f"Cannot read {odd}: files of one table have one suffix, of {all_suffixes()}."
        )
    return known


def _natural_order(path: Path) -> list[str | int]:
    """Return a sorting key by which part 10 comes after part 9."""
    parts = re.split(r"(\d+)", str(path))
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


Kind = Literal["memory", "frame", "table", "dask table", "features", "dask", "zarr"]


@dataclass(frozen=True, eq=False)
class Source:
    """A handle on rows, as they were given.

    Attributes
    ----------
    given : what was given; of an xarray DataArray over Dask the array in it
    kind : "memory": an array, or what scikit-learn makes one of; "frame": a DataFrame in memory,
        which is an array too, where its labels come beside it; "table": named columns that are
        read in batches, of files or a lazy frame; "dask table"; "features": a file of numbers
        without names; "dask": an array; "zarr": an array or a data set
    where : str. What to call it in errors.
    files, format : of kinds that are files
    handle : of an array on Zarr on a disk, or behind a path or URL
    dataset : of a data set on Zarr
    """

    given: Any
    kind: Kind
    where: str = "X"
    files: tuple[Path, ...] = ()
    format: Format | None = None
    handle: ArrayHandle | None = None
    dataset: Dataset | None = None

    @property
    def in_memory(self) -> bool:
        """Whether scikit-learn's checks may look at the rows."""
        return self.kind in ("memory", "frame")

    @property
    def has_columns(self) -> bool:
        """Whether it has to become features before it is used, unless it is a frame in memory."""
        return self.kind in ("frame", "table", "dask table", "features")

    def is_table(self, y: Any) -> bool:
        """Whether a column of it is to be learned: a frame with labels beside it is an array."""
        return self.has_columns and not (
            self.kind == "frame" and y is not None and not isinstance(y, str)
        )

    @cached_property
    def names(self) -> list[str] | None:
        """Names of the columns, or of a data set's features; None where X has none.

        Names that are not text, as the numbers that pandas gives, are no names.

        Raises
        ------
        DataError : when some names are text and others are not
        """
        if self.dataset is not None or self.kind == "zarr":
            return None if self.dataset is None else self.dataset.feature_names
        return column_names(self.given)

    @property
    def array(self) -> Any:
        """The array of features: of a data set its own, else what was given."""
        return self.given if self.dataset is None else self.dataset.X

    @property
    def local_path(self) -> str | None:
        """The path that workers must see; None of what is in memory, lazy or behind a URL."""
        if self.kind != "zarr" or self.handle is None or "://" in self.handle.path:
            return None
        return self.handle.path

    @cached_property
    def nbytes(self) -> int | None:
        """Bytes of the files, or of the array once it is read; None where only reading tells."""
        if self.files:
            return sum(file.stat().st_size for file in self.files)
        if self.handle is not None:
            return math.prod(self.handle.shape) * self.handle.itemsize
        found = getattr(self.array, "nbytes", None)
        # Dask has NaN where it does not know the rows; pandas has a value a column.
        return int(found) if isinstance(found, int | float) and found == found else None

    def open(self, label: str | None, scratch: Path) -> TableSource:
        """Open a table of named columns.

        Parameters
        ----------
        label : str or None. A name that makes the first line of a text file a header.
        scratch : Path. A folder, for what has to be on disk first; the caller removes it.

        Raises
        ------
        DataError : two columns of one name; files that cannot be read
        """
        if self.format is None:
            table = open_frame(self.given, scratch)
        else:
            table = load_object(self.format.open)(list(self.files), label, self.where)
        check_unique(table.names, table.where)
        return table


def open_source(given: Any) -> Source:
    """Return a handle on what was given; one that is a handle already stays.

    Parameters
    ----------
    given : array of NumPy, Dask or Zarr, a frame, or what NumPy makes an array of; a path, a
        pattern or a URL

    Raises
    ------
    DataError : files of several formats, or of one that is not known
    StoreError : a path that leads to nothing, or to no array and no data set
    """
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
    """Return a handle on what a path leads to."""
    files = find_files(path)
    known = shared_format(files)
    where = os.fspath(path)
    if known is not None:
        kind: Kind = "table" if known.holds == "table" else "features"
        return Source(path, kind, where, tuple(files), known)
    handle, dataset = find_zarr(path)
    return Source(path, "zarr", where, handle=handle, dataset=dataset)


def check_label(label: Any) -> None:
    """Refuse labels beside a table: they are a column of it.

    Raises
    ------
    DataError
    """
    if label is not None and not isinstance(label, str):
        raise DataError(
            f"y is of type {type(label).__name__} beside a table; name the column of the table "
            "that holds the labels, as in fit(X, NAME) or --label NAME."
        )
