"""Convert files of other formats to data sets on Zarr, with one block of rows in memory."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import DTypeLike

from daskls.errors import DataError, ParameterError
from daskls.records import TargetKind
from daskls.registry import load_object
from daskls.sources.base import Features, Missing, ReadOptions, TableOptions, Unknown
from daskls.sources.formats import FORMATS, Source, all_suffixes, format_of, open_files_at
from daskls.sources.write import columns_of, write_features
from daskls.store.dataset import WRITE_AGAIN, Dataset, check_target
from daskls.store.errors import disk_errors
from daskls.store.objects import store_at, temporary_root


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
    missing: Missing = "auto",
    unknown: Unknown = "zero",
    drop: str | Sequence[str] = (),
) -> Dataset:
    """Convert a file to a data set; labels of any kind become codes of sorted classes.

    Columns of a table become features as in a fit. The data set keeps the encoding, so models that
    are trained on it predict tables.

    Parameters
    ----------
    source : str, path or URL; for tables also a pattern or a folder. The suffix decides the format:
        `.npz`: arrays X and y, or X_train, y_train, X_test, y_test (see `split`).
        `.npy`: one 2-d array.
        `.csv`, `.tsv`, `.txt`: separated by commas, semicolons, tabs or bars; a header line is
        recognized; may be compressed (`.gz`, `.bz2`, `.zst`).
        `.libsvm`, `.svmlight`, `.svm`: `label index:value ..`, indices from 1; made dense.
        `.parquet`, `.pq`.
    target : str or path. The data set to make, a local folder.
    label : str, int or None. The label's column, by name or index (of the array, for `.npz`).
        None: the column named y, label, target or class, with a warning; else an error.
        "none": there is no label, all columns are features.
    split : "train", "test" or None, for `.npz` only. None: X and y, else the training rows.
    dtype : dtype of the stored features. None: that of integers and floats in `.npz`, `.npy`
        and `.parquet`; float32 for numbers of text. Tables with other columns: as in a fit.
    n_features : int or None, for LIBSVM files only. None: the largest index.
    chunk_rows : int or None. Rows of a Zarr chunk; None: about 4 MiB.
    overwrite : bool, default False. Replace a daskls data set at `target`.
    progress : function of (rows done, all rows) or None. Called after each block.
    task : "classification" or "regression", default "classification". Whether the label column
        holds classes, or numbers, which are kept as float64.
    missing, unknown, drop : as for ``fit``, for tables only

    Returns
    -------
    Dataset

    Raises
    ------
    DataError : the file is missing, damaged or empty; a label is missing, and the message names the
        row; or columns cannot become features.
    ParameterError : a parameter does not belong to the format.
    StoreError : `target` exists and may not be replaced, or the disk is full.

    Notes
    -----
    If the conversion is interrupted, nothing is left that opens as a data set. Memory: one block
    and one chunk. `.npz` needs free disk space beside `target` for the unpacked arrays. Text is
    read twice. Labels that are whole numbers become integers. Features are stored as they are,
    including infinity and the NaN of arrays, which the estimators refuse.

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
    opened = open_files_at(source)
    if opened is None:
        raise _no_files(source)
    _check_options(opened, {"split": split, "n_features": n_features})
    of_table = TableOptions(missing, unknown, (drop,) if isinstance(drop, str) else tuple(drop))
    if opened.kind != "table":
        of_table.check_unused(os.fspath(source))
        if missing == "refuse":
            raise ParameterError(
                f"missing='refuse' is for tables; {os.fspath(source)} holds an array, of which "
                "NaN is kept. Pass it to fit, which then refuses NaN."
            )
    check_target(target, overwrite)
    where = store_at(target, what="target")
    local = where.local()
    scratch = temporary_root() if local is None else Path(local).resolve().parent
    with disk_errors(scratch, WRITE_AGAIN):
        scratch.mkdir(parents=True, exist_ok=True)
    wanted = None if dtype is None else np.dtype(dtype)
    options = ReadOptions(label, split, wanted, n_features, scratch, kind_of(task), of_table)
    with ExitStack() as stack:
        features = open_files(opened, options, stack)
        if features.n_rows == 0 or not features.n_features:
            raise DataError(
                f"{source} has {features.n_rows} rows of {features.n_features} features; at "
                "least 1 of each is needed. Check the file."
            )
        return write_features(
            features,
            where.where(),
            dtype=wanted,
            chunk_rows=chunk_rows,
            overwrite=overwrite,
            on_rows=progress,
        )


def kind_of(task: str) -> TargetKind:
    kinds: dict[str, TargetKind] = {"classification": "classes", "regression": "numbers"}
    if task not in kinds:
        raise ParameterError(f"task is {task!r}; it must be one of {tuple(kinds)}.")
    return kinds[task]


def _no_files(source: str | os.PathLike[str]) -> DataError:
    where = os.fspath(source)
    if format_of(source) is None:
        return DataError(f"Cannot read {where}: the suffix must be one of {all_suffixes()}.")
    return DataError(f"No file {where}; check the path.")


def _check_options(source: Source, options: dict[str, object]) -> None:
    takes = () if source.format is None else source.format.takes
    if options["split"] not in (None, "train", "test"):
        raise ParameterError(f"split must be 'train', 'test' or None, got {options['split']!r}.")
    for name, value in options.items():
        if value is not None and name not in takes:
            ends = ", ".join(end for kind in FORMATS if name in kind.takes for end in kind.suffixes)
            raise ParameterError(
                f"{name} is for {ends} files only, got {name}={value!r} for {source.files[0]}."
            )


def open_files(source: Source, options: ReadOptions, stack: ExitStack) -> Features:
    """Open files as features; closing the stack removes their temporary files."""
    if source.kind == "features":
        assert source.format is not None
        if len(source.files) > 1:
            raise DataError(
                f"{source.where} matches {len(source.files)} files of arrays; convert them one "
                "by one."
            )
        opened = load_object(source.format.open)(source.files[0], options)
        features: Features = stack.enter_context(opened)
        return features
    is_name = isinstance(options.label, str) and options.label != "none"
    label = str(options.label) if is_name else None
    return columns_of(source.open(label, options.scratch), options)
