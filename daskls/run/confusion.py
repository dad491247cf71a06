"""Scores of a model on a data set: the confusion matrix, errors of numbers, losses of levels.

Each is a sum over blocks of rows, so only a few blocks are in memory at once.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.callbacks import Callback

from daskls.errors import DataError, listed
from daskls.records import Float64, Int64, Labels, SolverSpec
from daskls.run.compute import compute, local_scheduler, stream
from daskls.run.labels import check_numbers
from daskls.run.progress import Progress
from daskls.solvers.registry import find_measure


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix: ``counts[i, j]`` rows of ``labels[i]`` were predicted ``labels[j]``."""

    labels: list[Any]
    counts: Int64


def count_confusion(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> Confusion:
    """Compare a classifier's predictions with the labels of a data set.

    Parameters
    ----------
    estimator : fitted classifier
    dataset : Dataset
    client : distributed Client, or None for this process's threads
    on_progress : called with a `Progress` as blocks finish, or None

    Raises
    ------
    DataError : no labels, no rows, or no label that is a class of the model
    """
    _check_scored(dataset)
    known = estimator.classes_.tolist()
    _check_labels(dataset, known)
    counts = _score_blocks(
        count_block, dataset.classes, estimator.predict, dataset, client, on_progress
    )
    total = sum(counts, Counter[tuple[Any, Any]]())
    return tabulate(total, known)


def count_block(
    predicted: Labels, y: Labels, classes: list[Any] | None
) -> Counter[tuple[Any, Any]]:
    """Count the pairs (label, predicted label) of one block.

    Parameters
    ----------
    predicted : array (m,). Labels.
    y : array (m,). Codes into ``classes``; labels where that is None.
    """
    true, true_code = np.unique(y, return_inverse=True)
    given, given_code = np.unique(predicted, return_inverse=True)
    labels = true.tolist() if classes is None else [classes[code] for code in true]
    answers = given.tolist()
    table = np.zeros((len(true), len(given)), np.int64)
    np.add.at(table, (true_code, given_code), 1)
    return Counter({(labels[i], answers[j]): int(table[i, j]) for i, j in np.argwhere(table)})


def tabulate(total: Counter[tuple[Any, Any]], known: list[Any]) -> Confusion:
    """Return the counts as a matrix, the model's classes first; predictions are among these."""
    foreign = sorted({true for true, _ in total} - set(known), key=str)
    labels = [*known, *foreign]
    index = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    for (true, given), n in total.items():
        counts[index[true], index[given]] = n
    return Confusion(labels, counts)


def _check_labels(dataset: Any, known: list[Any]) -> None:
    """Raise DataError if no label of the data set is a class of the model.

    Only the names are compared: where y holds labels itself, nothing is known before it is read.
    """
    if dataset.classes is not None and not set(dataset.classes) & set(known):
        foreign, own = (listed(list(map(str, labels))) for labels in (dataset.classes, known))
        raise DataError(
            f"The data set {dataset.path} has the classes [{foreign}], the model [{own}]: they "
            "have none in common. Score on data of the kind that it was trained on."
        )


@dataclass(frozen=True)
class NumberScores:
    """The errors of predicted numbers, one value per column of y.

    Attributes
    ----------
    n_rows : int
    r2 : float64 array, shape (t,). 1 for perfect predictions, 0 for the mean of y. As in
        scikit-learn, R2 of a constant y is 1 for perfect predictions, else 0.
    rmse, mae : float64 arrays, shape (t,). In the units of y.
    """

    n_rows: int
    r2: Float64
    rmse: Float64
    mae: Float64


def score_numbers(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> NumberScores:
    """Compare a regressor's predictions with the numbers of a data set; as `count_confusion`.

    Raises
    ------
    DataError : no y, no rows, classes, or another number of columns than the model predicts
    """
    _check_scored(dataset)
    check_numbers(dataset.y.dtype, dataset.classes)
    target = estimator._reader.target
    width = dataset.y.shape[1] if dataset.y.ndim > 1 else 1
    if width != target.width:
        raise DataError(
            f"y of {dataset.path} has {width} columns, but the model predicts {target.width}. "
            "Score on targets of the kind that it was trained on."
        )
    found = _score_blocks(
        miss_block, target.center, estimator.predict, dataset, client, on_progress
    )
    return _of_sums(np.sum(found, axis=0))


def miss_block(predicted: Float64, y: Float64, center: Float64) -> Float64:
    """Return sums over the rows of one block, float64 (5, t).

    These are the number of rows, y and y^2 around ``center``, and the squared and absolute errors.
    """
    own = y.reshape(len(y), -1).astype(np.float64)
    apart, missed = own - center, own - predicted.reshape(own.shape)
    rows = np.full(own.shape[1], float(len(own)))
    sums = [rows, apart.sum(axis=0), (apart**2).sum(axis=0)]
    return np.stack([*sums, (missed**2).sum(axis=0), np.abs(missed).sum(axis=0)])


def _of_sums(sums: Float64) -> NumberScores:
    """Return the errors of all rows from the sums of `miss_block`."""
    n, apart, squares, missed, absolute = sums
    total = squares - apart**2 / n
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(total > 0, 1.0 - missed / total, (missed == 0).astype(float))
    return NumberScores(int(n[0]), r2, np.sqrt(missed / n), absolute / n)


@dataclass(frozen=True)
class IntervalScores:
    """How prediction intervals fit the numbers of a data set, one value per column of y.

    Attributes
    ----------
    covered : float64 array, shape (t,). The share of rows whose number lies in its interval.
    width : float64 array, shape (t,). The mean width, in the units of y.
    """

    covered: Float64
    width: Float64


def score_intervals(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> IntervalScores:
    """Compare a regressor's intervals with a data set that `score_numbers` accepts."""
    predict = estimator.predict_interval
    found = _score_blocks(cover_block, None, predict, dataset, client, on_progress)
    n, covered, widths = np.sum(found, axis=0)
    return IntervalScores(covered / n, widths / n)


def cover_block(ends: Float64, y: Float64, _: None) -> Float64:
    """Return sums over the rows of one block, float64 (3, t): rows, covered rows, and widths."""
    own = y.reshape(len(y), -1).astype(np.float64)
    lower, upper = np.moveaxis(ends.reshape(*own.shape, 2), 2, 0)
    inside = (lower <= own) & (own <= upper)
    rows = np.full(own.shape[1], float(len(own)))
    return np.stack([rows, inside.sum(axis=0), (upper - lower).sum(axis=0)])


@dataclass(frozen=True)
class LevelScores:
    """The losses of predictions at levels, one value per level.

    Attributes
    ----------
    n_rows : int
    levels : tuple of float
    loss : float64 array, shape (q,). The mean loss, in the units of y; squared losses in their
        square.
    d2 : float64 array, shape (q,). 1 minus the loss divided by that of the best constant.
    covered : float64 array, shape (q,). The share of rows whose number is at most the prediction.
    """

    n_rows: int
    levels: tuple[float, ...]
    loss: Float64
    d2: Float64
    covered: Float64


def score_levels(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> LevelScores:
    """Compare a regressor's predictions at levels with a data set; as `count_confusion`.

    The best constant needs all rows at once: the client holds y, 8 bytes per row.

    Raises
    ------
    DataError : no y, no rows, classes, or several columns
    """
    _check_scored(dataset)
    check_numbers(dataset.y.dtype, dataset.classes)
    if dataset.y.ndim > 1 and dataset.y.shape[1] > 1:
        raise DataError(
            f"y of {dataset.path} has {dataset.y.shape[1]} columns, but the model predicts "
            "levels of one. Score on targets of the kind that it was trained on."
        )
    spec = estimator._reader.resolved.spec
    found = _score_blocks(miss_levels, spec, estimator.predict, dataset, client, on_progress)
    n, losses, covered = np.sum(found, axis=0)
    (whole,) = compute([da.from_zarr(dataset.y)], client)
    own, measure = whole.reshape(-1).astype(np.float64), find_measure(spec)
    best = np.array([measure.constant_loss(own, level) for level in spec.levels])
    with np.errstate(divide="ignore", invalid="ignore"):
        d2 = np.where(best > 0, 1.0 - losses / n / best, (losses == 0).astype(float))
    return LevelScores(int(n[0]), spec.levels, losses / n, d2, covered / n)


def miss_levels(predicted: Float64, y: Float64, spec: SolverSpec) -> Float64:
    """Return sums over the rows of one block, float64 (3, q): rows, losses, and covered rows."""
    own, answers = y.reshape(-1, 1).astype(np.float64), predicted.reshape(len(y), -1)
    measure, columns = find_measure(spec), zip((own - answers).T, spec.levels, strict=True)
    losses = [measure.losses(missed, level).sum() for missed, level in columns]
    covered = (own <= answers).sum(axis=0)
    return np.stack([np.full(len(losses), float(len(own))), losses, covered])


def _score_blocks(
    score: Callable[..., Any],
    context: Any,
    predict: Callable[[str], da.Array],
    dataset: Any,
    client: Any,
    on_progress: Callable[[Any], None] | None,
) -> list[Any]:
    """Return ``score(predicted, y, context)`` of every block of a data set, in order.

    The dashboard shows the name of ``score``.
    """
    # Predicted from the path, by which the names of the columns are found too.
    predicted = predict(dataset.path)
    y = da.from_zarr(dataset.y, chunks=(predicted.chunks[0], *dataset.y.shape[1:]))
    run, name = dask.delayed(score, pure=False), score.__name__
    blocks = zip(predicted.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)
    tasks = [
        run(p, t, context, dask_key_name=f"{name}-{dask.base.tokenize(p.key)}-{i}")
        for i, (p, t) in enumerate(blocks)
    ]
    return _run_blocks(tasks, name, client, on_progress)


def _run_blocks(
    tasks: list[Any], name: str, client: Any, on_progress: Callable[[Any], None] | None
) -> list[Any]:
    """Return the results of tasks whose keys begin with ``name``, in order; report each."""
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
    # In the order of the blocks, on which the bits of sums depend.
    return [found[i] for i in range(len(tasks))]


def _check_scored(dataset: Any) -> None:
    """Raise DataError if the data set has no y or no rows to score."""
    if dataset.y is None or not dataset.n_rows:
        what = "rows" if dataset.y is not None else "labels"
        raise DataError(f"The data set {dataset.path} has no {what}, so there is nothing to score.")
