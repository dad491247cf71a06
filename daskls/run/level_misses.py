"""What answers at levels lose on a data set, summed over blocks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np

from daskls.errors import DataError
from daskls.records import Float64, SolverSpec
from daskls.run.compute import compute
from daskls.run.confusion import check_scored, run_blocks
from daskls.run.labels import check_numbers
from daskls.solvers.registry import find_measure

__all__ = ["LevelMisses", "count_level_misses", "miss_levels"]

MEASURED_LEVELS = "miss_levels"


@dataclass(frozen=True)
class LevelMisses:
    """What is lost, one value a level.

    Attributes
    ----------
    n_rows : int
    levels : tuple of float
    loss : float64 array, shape (q,). The mean, in the units of y, of squares in their square.
    d2 : float64 array, shape (q,). 1 less the loss in units of that of the best constant.
    covered : float64 array, shape (q,). The share of rows whose number is at most the answer.
    """

    n_rows: int
    levels: tuple[float, ...]
    loss: Float64
    d2: Float64
    covered: Float64


def miss_levels(predicted: Float64, y: Float64, spec: SolverSpec) -> Float64:
    """Return sums over the rows of one block, float64 (3, q): rows, losses, rows at or below."""
    own, answers = y.reshape(-1, 1).astype(np.float64), predicted.reshape(len(y), -1)
    measure, columns = find_measure(spec), zip((own - answers).T, spec.levels, strict=True)
    losses = [measure.losses(missed, level).sum() for missed, level in columns]
    covered = (own <= answers).sum(axis=0)
    return np.stack([np.full(len(losses), float(len(own))), losses, covered])


def count_level_misses(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> LevelMisses:
    """Compare a model's answers at levels with a data set's numbers.

    Parameters
    ----------
    estimator : fitted regressor at levels
    dataset : Dataset. Must have numbers.
    client : distributed Client, or None for this process's threads
    on_progress : called with a `Progress` as blocks finish, or None

    Raises
    ------
    DataError : no y, no rows, classes, or several columns

    Notes
    -----
    The best constant is one of all rows: the client holds y, 8 bytes a row.
    """
    check_scored(dataset)
    check_numbers(dataset.y.dtype, dataset.classes)
    if dataset.y.ndim > 1 and dataset.y.shape[1] > 1:
        raise DataError(
            f"y of {dataset.path} has {dataset.y.shape[1]} columns, but the model answers levels "
            "of one. Score on targets of the kind that it was trained on."
        )
    spec = estimator._reader.resolved.spec
    predicted = estimator.predict(dataset.path)
    y = da.from_zarr(dataset.y).rechunk({0: predicted.chunks[0]})
    count = dask.delayed(miss_levels, pure=False)
    blocks = zip(predicted.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)
    tasks = [
        count(p, t, spec, dask_key_name=f"{MEASURED_LEVELS}-{dask.base.tokenize(p.key)}-{i}")
        for i, (p, t) in enumerate(blocks)
    ]
    n, losses, covered = np.sum(run_blocks(tasks, MEASURED_LEVELS, client, on_progress), axis=0)
    (whole,) = compute([y], client)
    own, measure = whole.reshape(-1).astype(np.float64), find_measure(spec)
    best = np.array([measure.constant_loss(own, level) for level in spec.levels])
    with np.errstate(divide="ignore", invalid="ignore"):
        d2 = np.where(best > 0, 1.0 - losses / n / best, (losses == 0).astype(float))
    return LevelMisses(int(n[0]), spec.levels, losses / n, d2, covered / n)
