"""Convert tables of other formats to data sets on Zarr, a block of rows in memory at a time."""

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from daskls.datasets.readers._table import Options, Table
from daskls.datasets.readers.arrays import open_npy, open_npz
from daskls.datasets.readers.delimited import open_csv
from daskls.datasets.readers.parquet import open_parquet
from daskls.datasets.readers.svmlight import open_svmlight
from daskls.errors import DataError, ParameterError, StoreError
from daskls.records import AnyArray, TargetKind
from daskls.store.dataset import WRITE_AGAIN, Dataset, DatasetWriter, check_target
from daskls.store.files import disk_errors, local_path

__all__ = ["READERS", "convert"]

Reader = Callable[[Path, Options], AbstractContextManager[Table]]

READERS: dict[str, Reader] = {
    ".npz": open_npz,
    ".npy": open_npy,
    ".csv": open_csv,
    ".libsvm": open_svmlight,
    ".svmlight": open_svmlight,
    ".svm": open_svmlight,
    ".parquet": open_parquet,
}
# A text field costs some sixty bytes while it is parsed: 16 MiB a block.
BLOCK_FIELDS = 2**18


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    split: str | None = None,
    dtype: DTypeLike | None = None,
    n_features: int | None = None,
    chunk_rows: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    task: Literal["classification", "regression"] = "classification",
) -> Dataset:
    """Convert a file to a data set; labels of any kind become codes of sorted classes.

    Parameters
    ----------
    source : str or path. The suffix says the format:
        `.npz`: arrays X and y, or X_train, y_train, X_test, y_test (see `split`).
        `.npy`: one 2-d array.
        `.csv`: separated by commas, semicolons or tabs; a header line is recognized.
        `.libsvm`, `.svmlight`, `.svm`: `label index:value ..`, indices from 1; made dense.
        `.parquet`: numeric columns; needs `pip install daskls[parquet]`.
    target : str or path. The data set to make, a local folder.
    label : str, int or None. The label's column, by name or index (of the array, for `.npz`).
        None: the column named y, label, target or class, with a warning; else an error.
        "none": there is no label, all columns are features.
    split : "train", "test" or None, for `.npz` only. None: X and y, else the training rows.
    dtype : dtype of the stored features. None: integer and float types as they are in `.npz`,
        `.npy` and `.parquet`; float32 for text.
    n_features : int or None, for LIBSVM files only. None: the largest index.
    chunk_rows : int or None. Rows of a Zarr chunk; None: about 4 MiB.
    overwrite : bool. Replace a daskls data set at `target`.
    progress : function of (rows done, all rows) or None. Called after each block.
    task : "classification" or "regression". Whether the label's column holds classes, or numbers,
        which are kept as float64.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError : when the file is missing, damaged or empty, a cell is no number, a label is
        missing; the message names the line or row.
    ParameterError : when a parameter does not belong to the format.
    StoreError : when `target` exists and may not be replaced, or the disk is full.

    Notes
    -----
    If it is interrupted, nothing is left that opens as a data set. Memory: one block and one chunk.
    `.npz` needs free disk beside `target` for the unpacked arrays. Text is read twice. Labels that
    are whole numbers become integers. Features are stored as they are, NaN and infinity included:
    the estimators refuse those.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "fruit.csv")
    ...     _ = table.write_text("weight,red,kind\\n0.2,0.9,apple\\n0.1,0.3,lime\\n")
    ...     data = convert(table, Path(folder, "fruit.zarr"), label="kind")
    ...     tuple(data.feature_names), tuple(data.classes)
    (('weight', 'red'), ('apple', 'lime'))
    """
    path, reader = _find_reader(source)
    _check_options(path, split, n_features)
    check_target(target, overwrite)
    scratch = local_path(target, what="target").resolve().parent
    with disk_errors(scratch, WRITE_AGAIN):
        scratch.mkdir(parents=True, exist_ok=True)
    wanted = None if dtype is None else np.dtype(dtype)
    options = Options(label, split, wanted, n_features, scratch, kind_of(task))
    with reader(path, options) as table:
        if not table.n_rows or not table.n_features:
            raise DataError(f"{path} has {table.n_rows} rows of {table.n_features} features.")
        _check_room(table, table.dtype if wanted is None else wanted, scratch)
        writer = DatasetWriter(
            target,
            table.n_features,
            table.dtype if wanted is None else wanted,
            with_y=table.labels is not None,
            y_dtype="int32" if table.labels is None else table.labels.dtype,
            classes=None if table.labels is None else table.labels.classes,
            feature_names=table.feature_names,
            source=path.name,
            chunk_rows=chunk_rows,
            overwrite=overwrite,
        )
        with writer:
            _copy_rows(table, writer, progress)
    return writer.close()


def kind_of(task: str) -> TargetKind:
    """Return the kind of targets of a task.

    Raises
    ------
    ParameterError : it is none
    """
    kinds: dict[str, TargetKind] = {"classification": "classes", "regression": "numbers"}
    if task not in kinds:
        raise ParameterError(f"task is {task!r}; it must be one of {tuple(kinds)}.")
    return kinds[task]


def _check_room(table: Table, dtype: "np.dtype[Any]", folder: Path) -> None:
    """Refuse to begin what the disk has no room for: sparse rows are many times larger as dense.

    Raises
    ------
    StoreError
    """
    needed = table.n_rows * table.n_features * dtype.itemsize
    free = shutil.disk_usage(folder).free
    # Whole numbers are packed; most floats hardly shrink.
    if dtype.kind == "f" and needed > free:
        raise StoreError(
            f"No space left for {table.n_rows} rows of {table.n_features} features: they are "
            f"{needed >> 20} MiB of {dtype} as dense rows, and {free >> 20} MiB are free in "
            f"{folder}. Free some space, or give a larger disk; of sparse rows reduce the features "
            "first, as with scikit-learn's TruncatedSVD."
        )


def _copy_rows(
    table: Table, writer: DatasetWriter, progress: Callable[[int, int | None], None] | None
) -> None:
    """Pass every block on to the writer."""
    block_rows = max(1, min(writer.chunk_rows, BLOCK_FIELDS // table.n_features))
    done = 0
    for X, raw in table.blocks(block_rows):
        y: AnyArray | None = None
        if table.labels is not None and raw is not None:
            y = table.labels.encode(raw)
        writer.append(X, y)
        done += len(X)
        if progress is not None:
            progress(done, table.n_rows)
    if done != table.n_rows:
        raise DataError(
            f"Read {done} rows but {table.n_rows} at the first reading; "
            "do not change the file while it is converted."
        )


def _find_reader(source: str | os.PathLike[str]) -> tuple[Path, Reader]:
    """The reader for a file's suffix."""
    path = Path(source).expanduser()
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"Cannot read {path}: the suffix must be one of {', '.join(READERS)}.")
    if not path.is_file():
        raise DataError(f"No file {path}; check the path.")
    return path, reader


def _check_options(path: Path, split: str | None, n_features: int | None) -> None:
    """Refuse parameters that the format has no use for."""
    if split not in (None, "train", "test"):
        raise ParameterError(f"split must be 'train', 'test' or None, got {split!r}.")
    if split is not None and path.suffix.lower() != ".npz":
        raise ParameterError(f"split is for .npz files only, got split={split!r} for {path}.")
    if n_features is not None and READERS[path.suffix.lower()] is not open_svmlight:
        raise ParameterError(f"n_features is for LIBSVM files only; {path} has its own columns.")
