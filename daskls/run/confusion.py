"""The confusion matrix of a model on a data set, summed over blocks: memory of a few blocks.

How far numbers of a model are from those of a data set, summed over blocks.

What answers at levels lose on a data set, summed over blocks.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.callbacks import Callback

from daskls.errors import DataError
from daskls.records import Float64, Int64, Labels, SolverSpec
from daskls.run.compute import compute, local_scheduler, stream
from daskls.run.labels import check_numbers
from daskls.run.progress import Progress
from daskls.solvers.registry import find_measure
from daskls.sources.base import listed

CONFUSED = "count_block"


@dataclass(frozen=True)
class Confusion:
    """``counts[i, j]`` rows of class ``labels[i]`` were given ``labels[j]``."""

    labels: list[Any]
    counts: Int64


def count_block(
    predicted: Labels, y: Labels, classes: list[Any] | None
) -> Counter[tuple[Any, Any]]:
    """Count the pairs (label, predicted label) of one block.

    Parameters
    ----------
    predicted : array (m,) of labels
    y : array (m,) of codes into ``classes``, or of labels where that is None
    classes : list or None
    """
    true, true_code = np.unique(y, return_inverse=True)
    given, given_code = np.unique(predicted, return_inverse=True)
    labels = true.tolist() if classes is None else [classes[code] for code in true]
    answers = given.tolist()
    table = np.zeros((len(true), len(given)), np.int64)
    np.add.at(table, (true_code, given_code), 1)
    return Counter({(labels[i], answers[j]): int(table[i, j]) for i, j in np.argwhere(table)})


def count_confusion(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> Confusion:
    """Compare a model's labels with a data set's.

    Parameters
    ----------
    estimator : fitted estimator
    dataset : Dataset. Must have labels.
    client : distributed Client, or None for this process's threads
    on_progress : called with a `Progress` as blocks finish, or None

    Raises
    ------
    DataError : no labels, no rows, or no label that is a class of the model
    """
    check_scored(dataset)
    known = estimator.classes_.tolist()
    _check_labels(dataset, known)
    # By its path, which leads to the names of the columns too.
    predicted = estimator.predict(dataset.path)
    y = da.from_zarr(dataset.y, chunks=predicted.chunks)
    count = dask.delayed(count_block, pure=False)
    tasks = [
        count(p, t, dataset.classes, dask_key_name=f"{CONFUSED}-{dask.base.tokenize(p.key)}-{i}")
        for i, (p, t) in enumerate(zip(predicted.to_delayed(), y.to_delayed(), strict=True))
    ]
    counts = run_blocks(tasks, CONFUSED, client, on_progress)
    total = sum(counts, Counter[tuple[Any, Any]]())
    return tabulate(total, known)


def check_scored(dataset: Any) -> None:
    """Refuse a data set on which nothing can be scored.

    Raises
    ------
    DataError : no y, or no rows
    """
    if dataset.y is None or not dataset.n_rows:
        what = "rows" if dataset.y is not None else "labels"
        raise DataError(f"The data set {dataset.path} has no {what}, so there is nothing to score.")


def _check_labels(dataset: Any, known: list[Any]) -> None:
    """Refuse a data set whose labels are all foreign to the model, before anything is computed."""
    if dataset.classes is not None and not set(dataset.classes) & set(known):
        foreign, own = (listed(list(map(str, labels))) for labels in (dataset.classes, known))
        raise DataError(
            f"The data set {dataset.path} has the classes [{foreign}], the model [{own}]: they "
            "have none in common. Score on data of the kind that it was trained on."
        )


def run_blocks(
    tasks: list[Any], name: str, client: Any, on_progress: Callable[[Any], None] | None
) -> list[Any]:
    """Return the results of tasks, one a block, in their order; report each that is done.

    Parameters
    ----------
    tasks : list of Dask delayed, whose keys begin with ``name``
    name : str
    client : distributed Client, or None for this process's threads
    on_progress : called with a `Progress`, or None
    """
    n_done = 0

    def advance(step: int = 1) -> None:
        nonlocal n_done
        n_done += step
        if on_progress is not None:
            on_progress(Progress("scoring blocks", n_done, len(tasks)))

    def count_key(key: Any, *_: Any) -> None:
        advance(int(str(key).startswith(f"{name}-")))

    advance(0)
    if client is None:
        with Callback(posttask=count_key):
            return list(dask.compute(*tasks, scheduler=local_scheduler()))
    found = {}
    for i, result in stream(tasks, client):
        found[i] = result
        advance()
    # In the order of blocks: a sum's bits depend on it.
    return [found[i] for i in range(len(tasks))]


def tabulate(total: Counter[tuple[Any, Any]], known: list[Any]) -> Confusion:
    """Return the counts as a matrix: the model's classes first, in its order, then foreign ones."""
    foreign = sorted({true for true, _ in total} - set(known), key=str)
    labels = [*known, *foreign]
    index = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    for (true, given), n in total.items():
        counts[index[true], index[given]] = n
    return Confusion(labels, counts)


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
