"""What X is, asked once, where it comes in; every stage after that reads the answer.

A `Source` holds what was given, its kind, sizes and names: no rows of what is not in memory. The
same door takes y and weights.
"""

import math
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import dask
import dask.array as da

from daskls.errors import DataError
from daskls.registry import load_object
from daskls.sources.base import TableSource, check_unique
from daskls.sources.formats import Format, find_files, shared_format
from daskls.sources.frames import column_names, find_frame, open_frame
from daskls.store.arrays import ArrayHandle, find_zarr
from daskls.store.dataset import Dataset

__all__ = ["Source", "check_label", "open_source"]

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
