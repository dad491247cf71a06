"""A data set on disk: a Zarr group with arrays `X (n, d)` and `y (n,)`, written chunk by chunk.

A writer builds it beside its place, and renames it at the end; in a bucket, it writes the group's
own description last. So what a writer leaves that was stopped never opens as a data set.
"""

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import zarr
from numpy.typing import ArrayLike, DTypeLike

from daskls.errors import DataError, ParameterError, StoreError
from daskls.records import AnyArray
from daskls.store.arrays import (
    NO_ARRAY,
    ArrayHandle,
    create_array,
    find_array,
    handle_of,
    open_array,
    read_errors,
    readable,
    remote_errors,
    shared_path,
    writable,
)
from daskls.store.errors import MALFORMED
from daskls.store.objects import (
    CLAIM,
    DESCRIPTION,
    BaseStore,
    expand_path,
    group_at,
    is_bucket,
    open_store,
    write_errors,
)

DATASET_FORMAT = 1
DATASET_KIND = "dataset"
UNFINISHED = "dataset-unfinished"
# The entries of a data set.
OWN_NAMES = {"X", "y", DESCRIPTION, CLAIM}
WRITE_AGAIN = "write the data set again"
# Small, as a task holds a chunk both packed and unpacked; not smaller, as each chunk is a file to
# open and to list.
CHUNK_NBYTES = 4 * 2**20


@dataclass(frozen=True)
class Dataset:
    """An opened data set.

    No row is read until its arrays are indexed. With `classes`, sorted, y holds codes: row i has
    the label `classes[y[i]]`. `source` says where the rows came from, for people. `table` is how
    columns of a table became features, as JSON values; None if they are numbers as they were.
    """

    path: str
    X: zarr.Array
    y: zarr.Array | None
    classes: list[Any] | None
    feature_names: list[str] | None
    source: str
    table: dict[str, Any] | None = None

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
    if "daskls_format" not in attributes:
        # Not written by daskls: its arrays must show that it is a data set.
        attributes = {}
    else:
        _check_format(where, attributes)
    with read_errors(where):
        X, y = (_member(where, group, name) for name in ("X", "y"))
    _check_arrays(where, X, y)
    classes, names = attributes.get("classes"), attributes.get("feature_names")
    if classes is not None and not isinstance(classes, list):
        raise StoreError(f"{where!r} has damaged classes, {classes!r}; write it again.")
    wanted = [str] * X.shape[1]
    if names is not None and not (isinstance(names, list) and [*map(type, names)] == wanted):
        raise StoreError(
            f"{where!r} has damaged feature_names: wanted {X.shape[1]} names, one per column of X, "
            f"got {names!r}; write it again."
        )
    source, table = str(attributes.get("source", "")), attributes.get("table")
    return Dataset(where, X, y, classes, names, source, table)


def find_zarr(source: Any) -> tuple[ArrayHandle | None, Dataset | None]:
    """Return the handle of an array, or of a data set's features together with the data set."""
    if not isinstance(source, str | os.PathLike):
        return find_array(source), None
    path = shared_path(source)
    try:
        with remote_errors(path):
            return handle_of(path, open_array(path)), None
    except NO_ARRAY:
        dataset = open_dataset(path)
        return find_array(dataset.X), dataset


def _open_group(where: str) -> zarr.Group:
    """Return the Zarr group at `where`; the error says whether it is absent or something else."""
    if "://" not in where and not os.path.lexists(where):
        raise StoreError(f"No data set at {where!r}: the path does not exist; check the path.")
    try:
        with remote_errors(where):
            return zarr.open_group(store=readable(where), mode="r")
    except (FileNotFoundError, *MALFORMED, zarr.errors.ContainsArrayError) as error:
        raise StoreError(
            f"{where!r} is not a daskls data set (no Zarr group: {error}); "
            "make one with `daskls convert`."
        ) from error


def _member(where: str, group: zarr.Group, name: str) -> Any:
    """Return an array of a group, opened by itself: a missing chunk is not read as zeros."""
    member = group.get(name)
    return open_array(f"{where}/{name}") if isinstance(member, zarr.Array) else member


def _check_format(where: str, attributes: dict[str, Any]) -> None:
    """Refuse daskls' other groups, and data sets of a newer format."""
    kind, version = attributes.get("kind"), attributes["daskls_format"]
    if kind != DATASET_KIND:
        raise StoreError(
            f"{where!r} is a Zarr group but not a daskls data set (kind {kind!r}, wanted "
            f"{DATASET_KIND!r}); make one with `daskls convert`."
        )
    if not isinstance(version, int) or version > DATASET_FORMAT:
        raise StoreError(
            f"{where!r} has data set format {version!r}; this daskls reads up to {DATASET_FORMAT}. "
            "Upgrade daskls."
        )


def _check_arrays(where: str, X: object, y: object) -> None:
    if not isinstance(X, zarr.Array):
        raise StoreError(
            f"{where!r} has no array 'X', so it is not a daskls data set, or a damaged one; give a "
            "Zarr group with arrays X (n, d) and y (n,), as `daskls convert` writes it."
        )
    if X.ndim != 2:
        raise StoreError(f"{where!r}: 'X' must have 2 dimensions, got shape {X.shape}.")
    if y is None:
        return
    if not isinstance(y, zarr.Array) or y.ndim != 1:
        raise StoreError(f"{where!r}: 'y' must be an array of 1 dimension.")
    if X.shape[0] != y.shape[0]:
        raise StoreError(
            f"{where!r}: 'X' has {X.shape[0]} rows but 'y' has {y.shape[0]}; write it again."
        )


def check_target(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Refuse a path where no data set may be written; touch nothing.

    Only a data set of daskls, with `overwrite`, may be there, and a URL must be of a kind that
    `store=` takes.
    """
    where = expand_path(path)
    if "://" in where and not is_bucket(where):
        raise StoreError(f"Cannot write to the URL {where!r}; write to a local folder and copy it.")
    if is_bucket(where) and "/" not in where.partition("://")[2].strip("/"):
        raise StoreError(f"{where!r} names a bucket but no path in it. Give a path as well.")
    store = open_store(where)
    if not store.exists(""):
        return
    kind = kind_at(store)
    if kind not in (DATASET_KIND, UNFINISHED):
        raise StoreError(
            f"{where!r} exists and is not a daskls data set, so it is not replaced; "
            "choose another path or remove it yourself."
        )
    if not overwrite:
        what = "a data set" if kind == DATASET_KIND else "an incomplete data set"
        raise StoreError(f"{where!r} already holds {what}; pass overwrite=True to replace it.")


def kind_at(store: BaseStore) -> str | None:
    """Return the `kind` that a store's own metadata claims, whatever the state of its arrays."""
    names = store.names()
    if DESCRIPTION not in names and {*names} <= OWN_NAMES and not store.is_object():
        # Left in a bucket by a writer that was killed.
        return UNFINISHED
    attributes = group_at(store) or {}
    return attributes.get("kind") if "daskls_format" in attributes else None


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
    table : dict or None. How columns became features, as JSON values.
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
        table: dict[str, Any] | None = None,
        chunk_rows: int | None = None,
        overwrite: bool = False,
    ) -> None:
        self.path = expand_path(path)
        self.n_rows = 0
        _check_shape(n_features, np.dtype(dtype), chunk_rows, feature_names)
        self.chunk_rows = chunk_rows or default_chunk_rows(n_features, dtype)
        self._n_classes = None if classes is None else len(classes)
        self._attributes = {
            "daskls_format": DATASET_FORMAT,
            "kind": DATASET_KIND,
            "classes": None if classes is None else np.asarray(classes).tolist(),
            "feature_names": None if feature_names is None else [str(f) for f in feature_names],
            "source": source,
            **({} if table is None else {"table": table}),
        }
        check_target(self.path, overwrite)
        store = open_store(self.path)
        store.then = WRITE_AGAIN
        self._building = store.building(replaces=overwrite)
        self._place = self._building.__enter__()
        self._open = True
        # Of X and, with labels, of y: the rows of a chunk that is not yet full.
        self._buffers: list[AnyArray] = [np.empty((self.chunk_rows, n_features), dtype)]
        self._buffers += [np.empty(self.chunk_rows, y_dtype)] if with_y else []
        self._n_buffered = 0
        try:
            with write_errors(self.path, WRITE_AGAIN):
                self._arrays = [
                    create_array(
                        f"{self._place.where}/{name}", (0, *rows.shape[1:]), rows.dtype, len(rows)
                    )
                    for name, rows in zip("Xy", self._buffers, strict=False)
                ]
        except BaseException:
            self.abort()
            raise

    def append(self, X: ArrayLike, y: ArrayLike | None = None) -> None:
        """Append rows X (m, d), y (m,); whole chunks are written to disk at once.

        DataError where a shape is wrong, a value does not fit the stored dtype, or a class code is
        out of range: no row of the block is then kept.
        """
        if not self._open:
            raise StoreError(f"The writer of {self.path!r} is closed; open a new one.")
        blocks = self._validated(np.asarray(X), None if y is None else np.asarray(y))
        first = 0
        while first < len(blocks[0]):
            taken = min(self.chunk_rows - self._n_buffered, len(blocks[0]) - first)
            for buffer, block in zip(self._buffers, blocks, strict=True):
                buffer[self._n_buffered : self._n_buffered + taken] = block[first : first + taken]
            self._n_buffered += taken
            first += taken
            # Only whole chunks are written: appending to one would read and rewrite it.
            if self._n_buffered == self.chunk_rows:
                self._flush()

    def _validated(self, X: AnyArray, y: AnyArray | None) -> list[AnyArray]:
        """Return the block in the stored dtypes, or raise DataError."""
        n_features = self._buffers[0].shape[1]
        if X.ndim != 2 or X.shape[1] != n_features:
            raise DataError(f"X must have shape (m, {n_features}), got {X.shape}.")
        if (y is None) != (len(self._buffers) == 1):
            got, wanted = ("no y", "one") if y is None else ("y", "none")
            raise DataError(f"Got {got} where the data set was opened with {wanted}; see `with_y`.")
        X = _cast("X", X, self._buffers[0].dtype)
        if y is None:
            return [X]
        if y.shape != (len(X),):
            raise DataError(f"y must have shape ({len(X)},) as X has rows, got {y.shape}.")
        if self._n_classes is not None and y.size and not 0 <= y.min() <= y.max() < self._n_classes:
            raise DataError(
                f"y must hold class codes 0 to {self._n_classes - 1}, "
                f"got {y.min()} to {y.max()}; map the labels to codes first."
            )
        return [X, _cast("y", y, self._buffers[1].dtype)]

    def _flush(self) -> None:
        """Write the buffered rows; they always start at a chunk's first row."""
        stop = self.n_rows + self._n_buffered
        # Zarr would recreate a removed data set, with only the rows from here on.
        self._place.check()
        with write_errors(self.path, WRITE_AGAIN):
            for array, buffer in zip(self._arrays, self._buffers, strict=True):
                # A resize writes a few hundred bytes of metadata: negligible beside a chunk.
                array.resize((stop, *buffer.shape[1:]))
                array[self.n_rows : stop] = buffer[: self._n_buffered]
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
        self._building.__exit__(None, None, None)

    def abort(self) -> None:
        """Remove what this writer wrote; does nothing after `close`."""
        if self._open:
            self._open = False
            given_up = StoreError(f"The writer of {self.path!r} was given up.")
            self._building.__exit__(StoreError, given_up, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None and self._open:
                self._finish()
        finally:
            self.abort()


def _check_shape(
    n_features: int, dtype: np.dtype[Any], chunk_rows: int | None, feature_names: Any
) -> None:
    if n_features < 1:
        raise ParameterError(f"n_features must be at least 1, got {n_features}.")
    if dtype.kind not in "iuf":
        raise ParameterError(f"dtype must be an integer or floating point type, got {dtype}.")
    if chunk_rows is not None and chunk_rows < 1:
        raise ParameterError(f"chunk_rows must be at least 1, got {chunk_rows}.")
    if feature_names is not None and len(feature_names) != n_features:
        raise ParameterError(
            f"feature_names must hold {n_features} names, one per feature, "
            f"got {len(feature_names)}."
        )


def _cast(name: str, values: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return values in the stored dtype; DataError where that changes them beyond rounding."""
    if values.dtype == dtype:
        return values
    same_kind = values.dtype.kind == "b" or np.can_cast(values.dtype, dtype, "same_kind")
    if not same_kind:
        raise DataError(f"{name} has type {values.dtype}, which cannot be stored as {dtype}.")
    try:
        # By default NumPy turns values that are too large into infinity, and only warns.
        with np.errstate(over="raise"):
            stored = values.astype(dtype)
    except FloatingPointError as error:
        raise DataError(f"{name} holds values too large for {dtype}; store float64.") from error
    # Integers wrap around silently.
    if dtype.kind in "iu" and not np.array_equal(stored, values):
        raise DataError(
            f"{name} holds values from {values.min()} to {values.max()}, "
            f"out of the range of {dtype}; choose a wider type."
        )
    return stored
