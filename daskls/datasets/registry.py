"""All synthetic sets by name, their best accuracy, and the function that writes one to Zarr."""

import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from daskls.datasets._base import CLASSES, Generator, check_at_least
from daskls.datasets.sets import Checkerboard, Friedman1, Noisy28, SwissRoll, TwoSpirals
from daskls.errors import ParameterError
from daskls.store.dataset import Dataset, DatasetWriter, default_chunk_rows

# Called with the number of rows done, and that of all rows if it is known.
Progress = Callable[[int, int | None], None]

GENERATORS: dict[str, type[Generator]] = {
    "checkerboard": Checkerboard,
    "friedman1": Friedman1,
    "noisy28": Noisy28,
    "swiss_roll": SwissRoll,
    "two_spirals": TwoSpirals,
}


def bayes_accuracy(name: str, **params: Any) -> float:
    """Return the best possible accuracy on a synthetic set, or the best R2 if y is a number.

    Parameters
    ----------
    name : str. "checkerboard", "friedman1" (numbers), "noisy28", "swiss_roll" or "two_spirals".
    **params : the set's parameters, as for its `make_` function; for "friedman1" `d` and `noise`

    Raises
    ------
    ParameterError : the name is unknown, or a parameter is unknown or out of its range.

    Examples
    --------
    >>> bayes_accuracy("checkerboard", flip=0.25)
    0.75
    """
    return _generator(name, params).bayes_accuracy()


def write(
    name: str,
    path: str | os.PathLike[str],
    n_rows: int,
    *,
    random_state: int = 0,
    chunk_rows: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **params: Any,
) -> Dataset:
    """Write a synthetic set to Zarr, one chunk in memory at a time.

    Parameters
    ----------
    name : str. As for `bayes_accuracy`.
    path : str or path. The data set to make.
    n_rows : int, >= 0
    random_state : int, default 0. The rows are those of the `make_` function with the same seed.
    chunk_rows : int or None. Rows of a Zarr chunk; None: about 4 MiB. Does not change the data.
    overwrite : bool, default False. Replace a daskls data set at `path`.
    progress : function of (rows done, all rows) or None
    **params : as for `bayes_accuracy`

    Returns
    -------
    Dataset

    Raises
    ------
    ParameterError : the name is unknown, or a parameter is unknown or out of its range.
    StoreError : `path` exists and may not be replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = write("checkerboard", f"{folder}/rows.zarr", 1000)
    ...     data.n_rows, data.n_features
    (1000, 2)
    """
    generator = _generator(name, params)
    check_at_least("n_rows", n_rows, 0)
    X, y = generator.rows(0, 0, random_state)
    n_features, is_numbers = X.shape[1], y.dtype.kind == "f"
    block_rows = chunk_rows or default_chunk_rows(n_features, "float32")
    writer = DatasetWriter(
        path,
        n_features,
        "float32",
        classes=None if is_numbers else CLASSES,
        y_dtype=str(y.dtype),
        source=f"daskls.datasets {name}, random_state={random_state}, {params}",
        chunk_rows=chunk_rows,
        overwrite=overwrite,
    )
    with writer:
        for first in range(0, n_rows, block_rows):
            m = min(block_rows, n_rows - first)
            X, y = generator.rows(first, m, random_state)
            writer.append(X, y if is_numbers else (y + 1) // 2)
            if progress is not None:
                progress(first + m, n_rows)
    return writer.close()


def _generator(name: str, params: dict[str, Any]) -> Generator:
    if name not in GENERATORS:
        raise ParameterError(f"No data set {name!r}; choose one of {', '.join(GENERATORS)}.")
    known = [field.name for field in fields(GENERATORS[name])]
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ParameterError(
            f"{name} has no parameter {unknown[0]!r}; it takes {', '.join(known)}."
        )
    return GENERATORS[name](**params)
