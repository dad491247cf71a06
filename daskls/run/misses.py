"""How far numbers of a model are from those of a data set, summed over blocks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np

from daskls.errors import DataError
from daskls.records import Float64
from daskls.run.confusion import check_scored, run_blocks
from daskls.run.labels import check_numbers

__all__ = ["Misses", "count_misses", "miss_block"]

MEASURED = "miss_block"


@dataclass(frozen=True)
class Misses:
    """How far numbers are off, one value a column of y.

    Attributes
    ----------
    n_rows : int
    r2 : float64 array, shape (t,). 1 is perfect, 0 what the mean of y comes to; NaN of a constant
        that is missed.
    rmse, mae : float64 arrays, shape (t,). In the units of y.
    """

    n_rows: int
    r2: Float64
    rmse: Float64
    mae: Float64


def miss_block(predicted: Float64, y: Float64, center: Float64) -> Float64:
    """Return sums over the rows of one block, float64 (5, t).

    Rows, y and y^2 around a center, and what was missed: squared and absolute.
    """
    own = y.reshape(len(y), -1).astype(np.float64)
    apart, missed = own - center, own - predicted.reshape(own.shape)
    rows = np.full(own.shape[1], float(len(own)))
    sums = [rows, apart.sum(axis=0), (apart**2).sum(axis=0)]
    return np.stack([*sums, (missed**2).sum(axis=0), np.abs(missed).sum(axis=0)])


def count_misses(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> Misses:
    """Compare a regressor's numbers with a data set's.

    Parameters
    ----------
    estimator : fitted regressor
    dataset : Dataset. Must have numbers.
    client : distributed Client, or None for this process's threads
    on_progress : called with a `Progress` as blocks finish, or None

    Raises
    ------
    DataError : no y, no rows, classes, or another number of columns than the model answers
    """
    check_scored(dataset)
    check_numbers(dataset.y.dtype, dataset.classes)
    target = estimator._reader.target
    width = dataset.y.shape[1] if dataset.y.ndim > 1 else 1
    if width != target.width:
        raise DataError(
            f"y of {dataset.path} has {width} columns, but the model answers {target.width}. Score "
            "on targets of the kind that it was trained on."
        )
    # By its path, which leads to the names of the columns too.
    predicted = estimator.predict(dataset.path)
    y = da.from_zarr(dataset.y).rechunk({0: predicted.chunks[0]})
    count = dask.delayed(miss_block, pure=False)
    blocks = zip(predicted.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)
    tasks = [
        count(p, t, target.center, dask_key_name=f"{MEASURED}-{dask.base.tokenize(p.key)}-{i}")
        for i, (p, t) in enumerate(blocks)
    ]
    found = run_blocks(tasks, MEASURED, client, on_progress)
    return _of_sums(np.sum(found, axis=0))


def _of_sums(sums: Float64) -> Misses:
    """Return the measures of all rows."""
    n, apart, squares, missed, absolute = sums
    total = squares - apart**2 / n
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(total > 0, 1.0 - missed / total, np.where(missed == 0, 1.0, np.nan))
    return Misses(int(n[0]), r2, np.sqrt(missed / n), absolute / n)
