"""Scores of a model on a data set: the confusion matrix, errors of numbers, losses of levels."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.callbacks import Callback

from daskls.cluster import compute, local_scheduler, stream
from daskls.errors import DataError, listed
from daskls.records import Float64, Int64, Labels, SolverSpec
from daskls.run.labels import check_numbers
from daskls.run.progress import Progress
from daskls.solvers.registry import find_measure

# The most rows that a client takes of a data set: for pictures, and for the best constants.
MOST_ROWS = 20_000


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix: ``counts[i, j]`` rows of ``labels[i]`` were predicted ``labels[j]``."""

    labels: list[Any]
    counts: Int64


def score_dataset(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> Any:
    """Compare predictions with a data set: `Confusion`, `NumberScores` or `LevelScores`."""
    _check_scored(dataset)
    if estimator._kind == "classes":
        _check_labels(dataset, estimator.classes_.tolist())
    # Predicted from the path, by which the names of the columns are found too.
    predicted, y = estimator.predict(dataset.path), da.from_zarr(dataset.y)
    tasks, combine = score_blocks(estimator, predicted, y, dataset.classes, client)
    return combine(_run_blocks(tasks, client, on_progress))


def score_blocks(
    estimator: Any, predicted: da.Array, y: da.Array, classes: Any, client: Any
) -> tuple[list[Any], Callable[[Any], Any]]:
    """Return a lazy sum for every block of rows, and the function that makes scores of all sums."""
    target, spec = estimator._reader.target, estimator._reader.resolved.spec
    if estimator._kind == "classes":
        known = estimator.classes_.tolist()
        tasks = _each_block(count_block, classes, predicted, y)
        return tasks, lambda counts: tabulate(sum(counts, Counter[tuple[Any, Any]]()), known)
    check_numbers(y.dtype, classes)
    width = y.shape[1] if y.ndim > 1 else 1
    if width != target.width:
        raise DataError(
            f"y has {width} columns, but the model predicts {target.width}. Score on as many "
            "columns as it was trained on."
        )
    if target.quantile is None:
        return _each_block(miss_block, target.center, predicted, y), _of_sums
    measure = find_measure(spec)
    some = compute([y[:: -(-len(y) // MOST_ROWS)]], client)[0].reshape(-1).astype(np.float64)
    best = [measure.constant(some, np.ones(len(some)), level) for level in spec.levels]
    tasks = _each_block(miss_levels, (spec, best), predicted, y)
    return tasks, lambda sums: _of_level_sums(spec.levels, sums)


def count_block(
    predicted: Labels, y: Labels, classes: list[Any] | None
) -> Counter[tuple[Any, Any]]:
    """Count the pairs (label, predicted label) of one block; with ``classes`` y holds codes."""
    true, true_code = np.unique(y, return_inverse=True)
    answer, answer_code = np.unique(predicted, return_inverse=True)
    labels = true.tolist() if classes is None else [classes[code] for code in true]
    answers = answer.tolist()
    table = np.zeros((len(true), len(answer)), np.int64)
    np.add.at(table, (true_code, answer_code), 1)
    return Counter({(labels[i], answers[j]): int(table[i, j]) for i, j in np.argwhere(table)})


def tabulate(total: Counter[tuple[Any, Any]], known: list[Any]) -> Confusion:
    """Return the counts as a matrix, the model's classes first; predictions are among these."""
    foreign = sorted({true for true, _ in total} - set(known), key=str)
    labels = [*known, *foreign]
    index = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    for (true, predicted), n in total.items():
        counts[index[true], index[predicted]] = n
    return Confusion(labels, counts)


def _check_labels(dataset: Any, known: list[Any]) -> None:
    """Raise DataError if no label of the data set is named as a class of the model."""
    if dataset.classes is not None and not set(dataset.classes) & set(known):
        foreign, classes = (listed(list(map(str, labels))) for labels in (dataset.classes, known))
        raise DataError(
            f"The data set {dataset.path} has the classes [{foreign}], the model [{classes}]: they "
            "have none in common. Score on data of the kind that it was trained on."
        )


@dataclass(frozen=True)
class NumberScores:
    """The errors of predicted numbers, one value per column of y; rmse and mae are in its units.

    As in scikit-learn, R2 of a constant y is 1 for perfect predictions, else 0.
    """

    n_rows: int
    r2: Float64
    rmse: Float64
    mae: Float64


def miss_block(predicted: Float64, y: Float64, center: Float64) -> Float64:
    """Return rows, y and y^2 around ``center``, and squared and absolute errors, summed: (5, t)."""
    observed = y.reshape(len(y), -1).astype(np.float64)
    apart, missed = observed - center, observed - predicted.reshape(observed.shape)
    rows = np.full(observed.shape[1], float(len(observed)))
    sums = [rows, apart.sum(axis=0), (apart**2).sum(axis=0)]
    return np.stack([*sums, (missed**2).sum(axis=0), np.abs(missed).sum(axis=0)])


def _of_sums(sums: Any) -> NumberScores:
    n, apart, squares, missed, absolute = _added(sums)
    total = squares - apart**2 / n
    # Of a constant, what rounding leaves of the difference is no variance.
    is_varied = total > 1e-12 * squares
    r2 = np.where(is_varied, 1.0 - missed / np.where(is_varied, total, 1.0), missed == 0)
    return NumberScores(int(n[0]), r2, np.sqrt(missed / n), absolute / n)


def _added(sums: Any) -> Float64:
    total: Float64 = np.sum(sums, axis=0)
    if not np.isfinite(total).all():
        raise DataError("y contains NaN or infinity. Remove such rows.")
    return total


def score_intervals(
    estimator: Any, dataset: Any, client: Any, on_progress: Callable[[Any], None] | None
) -> tuple[Float64, Float64]:
    """Return the share of a data set's rows in their intervals, and the mean width: (t,) each."""
    predicted, y = estimator.predict_interval(dataset.path), da.from_zarr(dataset.y)
    tasks = _each_block(cover_block, None, predicted, y)
    n, covered, widths = np.sum(_run_blocks(tasks, client, on_progress), axis=0)
    return covered / n, widths / n


def cover_block(ends: Float64, y: Float64, _: None) -> Float64:
    """Return sums over the rows of one block, float64 (3, t): rows, covered rows, and widths."""
    observed = y.reshape(len(y), -1).astype(np.float64)
    lower, upper = np.moveaxis(ends.reshape(*observed.shape, 2), 2, 0)
    inside = (lower <= observed) & (observed <= upper)
    rows = np.full(observed.shape[1], float(len(observed)))
    return np.stack([rows, inside.sum(axis=0), (upper - lower).sum(axis=0)])


@dataclass(frozen=True)
class LevelScores:
    """The losses of predictions at levels, one value per level, in the units of y or their square.

    `d2` compares with the best constant for some of the rows, `MOST_ROWS` at most; `covered` is the
    share of rows whose number is at most the prediction.
    """

    n_rows: int
    levels: tuple[float, ...]
    loss: Float64
    d2: Float64
    covered: Float64


def miss_levels(predicted: Float64, y: Float64, fixed: tuple[SolverSpec, list[float]]) -> Float64:
    """Return rows, losses, losses of constants, and covered rows, summed: float64 (4, q)."""
    spec, constants = fixed
    observed, answers = y.reshape(-1, 1).astype(np.float64), predicted.reshape(len(y), -1)
    measure = find_measure(spec)
    losses = [
        [
            measure.losses(column, level).sum()
            for column, level in zip(missed.T, spec.levels, strict=True)
        ]
        for missed in (observed - answers, observed - np.array(constants))
    ]
    rows = np.full(len(constants), float(len(observed)))
    return np.stack([rows, *np.array(losses), (observed <= answers).sum(axis=0)])


def _of_level_sums(levels: tuple[float, ...], sums: Any) -> LevelScores:
    n, losses, best, covered = _added(sums)
    d2 = np.where(best > 0, 1.0 - losses / np.where(best > 0, best, 1.0), losses == 0)
    return LevelScores(int(n[0]), levels, losses / n, d2, covered / n)


def _each_block(
    score: Callable[..., Any], context: Any, predicted: da.Array, y: da.Array
) -> list[Any]:
    """Return ``score(predicted, y, context)`` of every block of rows, lazily, in order."""
    y = y.rechunk((predicted.chunks[0], *y.shape[1:]))
    run, name = dask.delayed(score, pure=False), score.__name__
    blocks = zip(predicted.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)
    return [
        run(p, t, context, dask_key_name=f"{name}-{dask.base.tokenize(p.key)}-{i}")
        for i, (p, t) in enumerate(blocks)
    ]


def _run_blocks(
    tasks: list[Any], client: Any, on_progress: Callable[[Any], None] | None
) -> list[Any]:
    n_done, keys = 0, {task.key for task in tasks}

    def advance(step: int = 1) -> None:
        nonlocal n_done
        n_done += step
        if on_progress is not None:
            on_progress(Progress("scoring blocks", n_done, len(tasks)))

    def count_key(key: Any, *_: Any) -> None:
        advance(int(key in keys))

    advance(0)
    if client is None:
        with Callback(posttask=count_key):
            return list(dask.compute(*tasks, scheduler=local_scheduler()))
    results = {}
    for i, result in stream(tasks, client):
        results[i] = result
        advance()
    # In the order of the blocks, on which the bits of sums depend.
    return [results[i] for i in range(len(tasks))]


def _check_scored(dataset: Any) -> None:
    if dataset.y is None or not dataset.n_rows:
        what = "rows" if dataset.y is not None else "labels"
        raise DataError(f"The data set {dataset.path} has no {what}, so there is nothing to score.")
