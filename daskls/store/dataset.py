"""A data set on disk: a Zarr group with arrays `X (n, d)` and `y (n,)`, written chunk by chunk.

A writer builds it beside its place, and renames it at the end; in a bucket, it writes the group's
own description last. So what a writer leaves that was stopped never opens as a data set.
"""

import os
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import zarr
from numpy.typing import ArrayLike, DTypeLike

from daskls.errors import DataError, StoreError
from daskls.records import AnyArray
from daskls.store.dataset_checks import (
    DATASET_FORMAT,
    DATASET_KIND,
    WRITE_AGAIN,
    cast,
    check_arrays,
    check_attributes,
    check_shape,
    check_target,
    read_classes,
    read_names,
)
from daskls.store.errors import MALFORMED
from daskls.store.locations import (
    expand_path,
    open_store,
    remote_errors,
    write_errors,
)
from daskls.store.sources import (
    OWN_ARRAY,
    open_array,
    open_zarr_group,
    own_codecs,
    read_errors,
    writable,
)

# Small, as a task holds a chunk both packed and unpacked; not smaller, as each chunk is a file to
# open and to list.
CHUNK_NBYTES = 4 * 2**20


@dataclass(frozen=True)
class Dataset:
    """An opened data set.

    No row is read until its arrays are indexed. With `classes`, sorted, y holds codes: row i has
    the label `classes[y[i]]`. `source` says where the rows came from, for people.
    """

    path: str
    X: zarr.Array
    y: zarr.Array | None
    classes: list[Any] | None
    feature_names: list[str] | None
    source: str

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])


def default_chunk_rows(n_features: int, dtype: DTypeLike) -> int:
    """Return the rows of a chunk of at most 4 MiB of X: a power of two, at least 1.

    >>> default_chunk_rows(28, "float32")
    32768
    """
    rows = CHUNK_NBYTES // (n_features * np.dtype(dtype).itemsize)
    return 1 << max(rows.bit_length() - 1, 0)


def open_dataset(path: str | os.PathLike[str]) -> Dataset:
    """Open a data set for reading: any Zarr group with an array X, and y if it has labels.

    The path may be a URL that Zarr can open. Without attributes of daskls, y holds the labels
    themselves and columns have no names. StoreError where it is absent, unfinished, newer, or no
    data set.
    """
    where = expand_path(path)
    group = _open_group(where)
    with read_errors(where):
        attributes = dict(group.attrs)
    check_attributes(where, attributes)
    with remote_errors(where), read_errors(where):
        X, y = (_member(where, group, name) for name in ("X", "y"))
    check_arrays(where, X, y)
    return Dataset(
        path=where,
        X=X,
        y=y,
        classes=read_classes(where, attributes),
        feature_names=read_names(where, attributes, X),
        source=str(attributes.get("source", "")),
    )


def _member(where: str, group: zarr.Group, name: str) -> Any:
    """Return an array of a group, opened by itself: a missing chunk is not read as zeros."""
    member = group.get(name)
    return open_array(f"{where}/{name}") if isinstance(member, zarr.Array) else member


def _open_group(where: str) -> zarr.Group:
    """Return the Zarr group at `where`; the error says whether it is absent or something else."""
    if "://" not in where and not os.path.lexists(where):
        raise StoreError(f"No data set at {where!r}: the path does not exist; check the path.")
    try:
        with remote_errors(where):
            return open_zarr_group(where)
    except (FileNotFoundError, *MALFORMED, zarr.errors.ContainsArrayError) as error:
        raise StoreError(
            f"{where!r} is not a daskls data set (no Zarr group: {error}); "
            "make one with `daskls convert`."
        ) from error


class _GivenUpError(Exception):
    """What ends the building of a data set that is given up."""


class DatasetWriter:
    """Writes a data set block by block, without knowing the number of rows in advance.

    Use it as a context manager: leaving the block finishes the data set; an exception inside it
    removes what was written. Memory: one chunk, besides the block passed in. What is replaced stays
    until the new data set is whole; in a bucket, it is removed at once.

    Parameters
    ----------
    path : str or path. A folder that does not exist yet, or a URL as for `store=`.
    with_y : bool. Whether every block comes with labels.
    classes : sequence or None. Sorted labels; then y holds codes 0 .. len(classes) - 1.
    source : str. Where the rows come from.
    chunk_rows : int or None. Rows of a chunk, of X and of y; None: about 4 MiB of X.
    overwrite : bool. Replace a daskls data set at `path`; anything else there is never removed.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with DatasetWriter(folder.name + "/rows.zarr", 2, "float32", classes=[-1, 1]) as writer:
    ...     writer.append(np.zeros((3, 2)), np.array([0, 1, 1]))
    >>> open_dataset(folder.name + "/rows.zarr").n_rows
    3
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        n_features: int,
        dtype: DTypeLike,
        *,
        with_y: bool = True,
        y_dtype: DTypeLike = "int32",
        classes: Any = None,
        feature_names: Any = None,
        source: str = "",
        chunk_rows: int | None = None,
        overwrite: bool = False,
    ) -> None:
        self.path = expand_path(path)
        self.n_rows = 0
        self._dtype = np.dtype(dtype)
        self._y_dtype = np.dtype(y_dtype)
        check_shape(n_features, self._dtype, chunk_rows, feature_names)
        self.chunk_rows = chunk_rows or default_chunk_rows(n_features, self._dtype)
        self._n_classes = None if classes is None else len(classes)
        self._attributes = {
            "daskls_format": DATASET_FORMAT,
            "kind": DATASET_KIND,
            "classes": _plain_list(classes),
            "feature_names": None if feature_names is None else [str(f) for f in feature_names],
            "source": source,
        }
        check_target(self.path, overwrite)
        store = open_store(self.path)
        store.then = WRITE_AGAIN
        self._building = ExitStack()
        self._place = self._building.enter_context(store.building(replaces=overwrite))
        try:
            with write_errors(self.path, WRITE_AGAIN):
                self._X = self._create_array("X", (n_features,), self._dtype)
                self._y = self._create_array("y", (), self._y_dtype) if with_y else None
        except BaseException:
            self._building.__exit__(*sys.exc_info())
            raise
        self._X_buffer = np.empty((self.chunk_rows, n_features), self._dtype)
        self._y_buffer = np.empty(self.chunk_rows, self._y_dtype) if with_y else None
        self._n_buffered = 0
        self._open = True

    def _create_array(
        self, name: str, row_shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> zarr.Array:
        return zarr.create_array(
            writable(f"{self._place.where}/{name}"),
            shape=(0, *row_shape),
            chunks=(self.chunk_rows, *row_shape),
            dtype=dtype,
            compressors=own_codecs(dtype),
            zarr_format=3,
            **OWN_ARRAY,
        )

    def append(self, X: ArrayLike, y: ArrayLike | None = None) -> None:
        """Append rows X (m, d), y (m,); whole chunks are written to disk at once.

        DataError where a shape is wrong, a value does not fit the stored dtype, or a class code is
        out of range: no row of the block is then kept.
        """
        if not self._open:
            raise StoreError(f"The writer of {self.path!r} is closed; open a new one.")
        X_block, y_block = self._validated(np.asarray(X), None if y is None else np.asarray(y))
        first = 0
        while first < len(X_block):
            taken = min(self.chunk_rows - self._n_buffered, len(X_block) - first)
            filled = slice(self._n_buffered, self._n_buffered + taken)
            self._X_buffer[filled] = X_block[first : first + taken]
            if self._y_buffer is not None and y_block is not None:
                self._y_buffer[filled] = y_block[first : first + taken]
            self._n_buffered += taken
            first += taken
            # Only whole chunks are written: appending to one would read and rewrite it.
            if self._n_buffered == self.chunk_rows:
                self._flush()

    def _validated(self, X: AnyArray, y: AnyArray | None) -> tuple[AnyArray, AnyArray | None]:
        """Return the block in the stored dtypes, or raise DataError."""
        n_features = self._X_buffer.shape[1]
        if X.ndim != 2 or X.shape[1] != n_features:
            raise DataError(f"X must have shape (m, {n_features}), got {X.shape}.")
        if (y is None) != (self._y_buffer is None):
            got, wanted = ("no y", "one") if y is None else ("y", "none")
            raise DataError(f"Got {got} where the data set was opened with {wanted}; see `with_y`.")
        X = cast("X", X, self._dtype)
        if y is None:
            return X, None
        if y.shape != (len(X),):
            raise DataError(f"y must have shape ({len(X)},) as X has rows, got {y.shape}.")
        if self._n_classes is not None and y.size and not 0 <= y.min() <= y.max() < self._n_classes:
            raise DataError(
                f"y must hold class codes 0 to {self._n_classes - 1}, "
                f"got {y.min()} to {y.max()}; map the labels to codes first."
            )
        return X, cast("y", y, self._y_dtype)

    def _flush(self) -> None:
        """Write the buffered rows; they always start at a chunk's first row."""
        stop = self.n_rows + self._n_buffered
        # Zarr would recreate a removed data set, with only the rows from here on.
        self._place.check()
        with write_errors(self.path, WRITE_AGAIN):
            # A resize writes a few hundred bytes of metadata: negligible beside a chunk.
            self._X.resize((stop, self._X_buffer.shape[1]))
            self._X[self.n_rows : stop] = self._X_buffer[: self._n_buffered]
            if self._y is not None and self._y_buffer is not None:
                self._y.resize((stop,))
                self._y[self.n_rows : stop] = self._y_buffer[: self._n_buffered]
        self.n_rows = stop
        self._n_buffered = 0

    def close(self) -> Dataset:
        """Finish the data set, if that is not done yet; return it opened."""
        if self._open:
            self._finish()
        return open_dataset(self.path)

    def _finish(self) -> None:
        """Write the last chunk, then the description that makes it a data set."""
        if self._n_buffered:
            self._flush()
        self._place.check()
        with write_errors(self.path, WRITE_AGAIN):
            zarr.create_group(
                writable(self._place.where), zarr_format=3, attributes=self._attributes
            )
        self._open = False
        self._building.close()

    def abort(self) -> None:
        """Remove what this writer wrote; does nothing after `close`."""
        if self._open:
            self._open = False
            with suppress(_GivenUpError):
                self._building.__exit__(_GivenUpError, _GivenUpError(), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.abort()
        elif self._open:
            try:
                self._finish()
            except BaseException:
                self.abort()
                raise


def _plain_list(classes: Any) -> list[Any] | None:
    return None if classes is None else np.asarray(classes).tolist()
