"""Stage 4: predict labels, scores, probabilities, numbers or intervals of rows, in row order."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import dask.array as da
import numpy as np

from daskls.blas import one_blas_thread, undisturbed
from daskls.errors import MemoryPlanError
from daskls.methods.base import method_of
from daskls.methods.scores import SLAB_ROWS, labels_of
from daskls.plan.exchange import BLOCK_NBYTES
from daskls.records import F4, F8, MIB, Float64, Int64, Labels, Reals
from daskls.run.blocks import block_start, merge_chunks
from daskls.run.contract import EACH
from daskls.run.labels import first_bad_value, value_error
from daskls.run.resources import find_slots, free_nbytes
from daskls.run.rows import cut_large
from daskls.store.objects import ModelHandle
from daskls.store.reader import ModelReader, open_model
from daskls.targets import Target

# The kind of answer: labels, given as the array of classes; scores; probabilities; numbers in the
# units of y; or intervals around these.
Wanted = Labels | Literal["scores", "probabilities", "numbers", "intervals"]
SCORES: Literal["scores"] = "scores"
PROBABILITIES: Literal["probabilities"] = "probabilities"
OF_NUMBERS: Literal["numbers"] = "numbers"
INTERVALS: Literal["intervals"] = "intervals"

# The most bytes of a block of queries with all that is computed of them. A block is evaluated
# against every cell that it touches, so larger blocks read each model less often.
SUPER_NBYTES = 256 << 20
# A block takes this share of a task's memory at most. Beside it are models, kernel values, and the
# rows and answers of other blocks, which Dask reads ahead and keeps.
BLOCK_SHARE = 3
# Scores that become answers at once: probabilities take several arrays of their size.
CONVERTED_ROWS = 1 << 14


def row_nbytes(reader: ModelReader, n_features: int, itemsize: int, wanted: Wanted) -> int:
    n_given = n_features + (reader.n_features if reader.n_features != n_features else 0)
    held = held_nbytes(n_given, reader.width, itemsize, math.prod(reader.target.score_shape))
    cells = method_of(reader.method).query_nbytes(reader)
    return held + cells + answer_nbytes(reader.target, wanted)


def held_nbytes(n_features: int, width: int, itemsize: int, n_scores: int) -> int:
    """Return the bytes of a query's features, ``width`` of them scaled, and of its scores."""
    # Merged from chunks; then scaled, and in the order of a search.
    features = 2 * n_features * itemsize + 2 * width * max(itemsize, F4)
    # And a copy: of a mean, in another order, or above a threshold.
    return features + 2 * F8 * n_scores


def answer_nbytes(target: Target, wanted: Wanted) -> int:
    return math.prod(answer_width(wanted, target)) * answer_dtype(wanted).itemsize


def most_rows(
    reader: ModelReader, n_features: int, itemsize: int, wanted: Wanted, task_nbytes: int
) -> int:
    return rows_within(task_nbytes, row_nbytes(reader, n_features, itemsize, wanted))


def rows_within(task_nbytes: int, row_nbytes: int) -> int:
    return max(min(SUPER_NBYTES, task_nbytes // BLOCK_SHARE) // row_nbytes, SLAB_ROWS)


def predict_array(X: Reals, handle: ModelHandle, wanted: Wanted) -> Float64 | Labels:
    """Predict rows in memory with threads of this process; DataError names a bad row."""
    check_values(X, handle)
    slots = find_slots()
    with handle.in_use(), ThreadPoolExecutor(slots) as threads:
        reader = open_model(handle.location, handle.fingerprint)
        out = _empty(len(X), wanted, reader.target)
        most = most_rows(reader, X.shape[1], X.itemsize, wanted, free_nbytes() // slots)
        rows = max(min(most, -(-len(X) // slots)), SLAB_ROWS)
        blocks = [slice(start, start + rows) for start in range(0, len(X), rows)]
        list(threads.map(lambda block: _answer(reader, X[block], wanted, out[block]), blocks))
    return out


def predict_lazily(
    X: da.Array, handle: ModelHandle, wanted: Wanted, target: Target, most: int
) -> da.Array:
    """Return a lazy array of answers, in the row chunks of X."""
    chunks, row = X.chunks[0], X.shape[1] * X.dtype.itemsize
    X = cut_large(X, most * row)
    merged = X.chunks[0]
    # Merging copies rows, which is not worth it where chunks are large already.
    if max(merged) * row < BLOCK_NBYTES:
        merged = merge_chunks(merged, most)
    width, dtype = answer_width(wanted, target), answer_dtype(wanted)
    predicted = da.map_blocks(
        predict_block,
        X.rechunk({0: merged}, method="tasks"),
        handle=handle,
        wanted=wanted,
        most=most,
        drop_axis=None if width else 1,
        new_axis=2 if len(width) > 1 else None,
        chunks=(merged, *((n,) for n in width)),
        dtype=dtype,
        meta=np.empty((0,) * (1 + len(width)), dtype),
    )
    return predicted.rechunk({0: chunks}, method="tasks")


def check_chunks(X: da.Array, target: Target, wanted: Wanted, worker_nbytes: float) -> None:
    row = X.shape[1] * X.dtype.itemsize + answer_nbytes(target, wanted)
    rows = max(X.chunks[0], default=0)
    if rows * row > worker_nbytes:
        fitting = max(int(worker_nbytes) // (4 * row), 1)
        raise MemoryPlanError(
            f"The largest chunk of X has {rows} rows, which take {rows * row // MIB} MiB with "
            f"their answers, but a worker may use {int(worker_nbytes) // MIB} MiB; pass "
            f"X.rechunk({{0: {fitting}}}), call predict_to_zarr, or give each worker more memory."
        )


def _empty(n_rows: int, wanted: Wanted, target: Target) -> Float64 | Labels:
    return np.empty((n_rows, *answer_width(wanted, target)), answer_dtype(wanted))


def answer_dtype(wanted: Wanted) -> np.dtype[Any]:
    return np.dtype(np.float64) if isinstance(wanted, str) else wanted.dtype


def answer_width(wanted: Wanted, target: Target) -> tuple[int, ...]:
    if not isinstance(wanted, str):
        return ()
    if wanted == PROBABILITIES:
        return (target.n_classes,)
    if wanted == INTERVALS:
        return (*target.answer_shape, 2)
    return target.answer_shape if wanted == OF_NUMBERS else target.score_shape


def predict_block(
    X: Reals, handle: ModelHandle, wanted: Wanted, most: int | None = None, block_info: Any = None
) -> Float64 | Labels:
    """Predict the rows of one block, at most ``most`` at once; DataError names a bad row."""
    check_values(X, handle, block_start(block_info)[1] if block_info else 0)
    with handle.in_use():
        reader = open_model(handle.location, handle.fingerprint)
        out, most = _empty(len(X), wanted, reader.target), most or max(len(X), 1)
        for start in range(0, len(X), most):
            rows = slice(start, start + most)
            _answer(reader, X[rows], wanted, out[rows])
    return out


def check_values(X: Reals, handle: ModelHandle, first_row: int = 0) -> None:
    """Refuse a bad value, and warn of missing ones where training rows had none."""
    bad = first_bad_value(X)
    if bad is None:
        return
    with handle.in_use():
        reader = open_model(handle.location, handle.fingerprint)
    if reader.gaps is not None:
        bad = first_bad_value(X, but_nan=True)
    if bad is not None:
        raise value_error(bad._replace(row=first_row + bad.row), reader.feature_names)
    if reader.gaps is not None:
        reader.gaps.warn(X, reader.feature_names)


def _answer(reader: ModelReader, X: Reals, wanted: Wanted, out: Float64 | Labels) -> None:
    is_proba = isinstance(wanted, str) and wanted == PROBABILITIES
    if is_proba and reader.meta.get("probability") == EACH:
        out[:] = _local_probabilities(reader, X)
        return
    scores = score_rows(reader, X)
    for start in range(0, len(X), CONVERTED_ROWS):
        rows = slice(start, start + CONVERTED_ROWS)
        out[rows] = _converted(reader, X[rows], scores[rows], wanted)


def _converted(reader: ModelReader, X: Reals, scores: Float64, wanted: Wanted) -> Float64 | Labels:
    if not isinstance(wanted, str):
        return labels_of(_above(reader, scores), wanted)
    if wanted == SCORES:
        return _above(reader, scores)
    if wanted == OF_NUMBERS:
        return reader.target.inverse_transform(scores)
    if wanted == INTERVALS:
        return _around(reader, X, reader.target.inverse_transform(scores))
    method = method_of(reader.method)
    if method.has_probabilities:
        return method.probabilities(reader, scores)
    # Imported here so that a process that only predicts labels never loads it.
    from daskls.methods.probability import maps_of, probabilities

    return probabilities(maps_of(reader), scores)


def _above(reader: ModelReader, scores: Float64) -> Float64:
    """Return scores minus the model's threshold, which is 0 without a bound on false alarms."""
    bound = reader.false_alarm
    return scores if bound is None else scores - bound.threshold


@undisturbed
def score_rows(reader: ModelReader, X: Reals) -> Float64:
    """Return the scores of rows: (m,) for two classes or one output, else (m, k).

    Of two classes the second has positive scores, before a bound on false alarms moves the
    threshold. Regression scores are centered, and in units of the target's scale.
    """
    with one_blas_thread():
        return method_of(reader.method).scores(reader, reader.transform(X))


@undisturbed
def _local_probabilities(reader: ModelReader, X: Reals) -> Float64:
    with one_blas_thread():
        return method_of(reader.method).local_probabilities(reader, reader.transform(X))


@undisturbed
def cells_of(reader: ModelReader, X: Reals) -> Int64:
    """Return the cells that predict each row, int64 (m, p), one per partition; p is 0 if all do."""
    with one_blas_thread():
        leaves = method_of(reader.method).space(reader).find(reader.transform(X))
    if leaves is None:
        return np.empty((len(X), 0), np.int64)
    return np.stack([cells.astype(np.int64) for cells in leaves], axis=1)


def _around(reader: ModelReader, X: Reals, answers: Float64) -> Float64:
    assert reader.interval is not None
    sizes = sizes_of_rows(reader.interval_sizes, cells_of(reader, X))
    return around(answers, sizes, reader.interval.half_widths)


def sizes_of_rows(sizes: Float64, cells: Int64) -> Float64:
    """Return the size of residuals at rows, (m,): the root mean square of their cells'.

    >>> sizes_of_rows(np.array([1.0, 7.0]), np.array([[0, 0], [0, 1]]))
    array([1., 5.])
    """
    squares = sizes**2
    if not cells.shape[1]:
        return np.full(len(cells), np.sqrt(squares.mean()))
    rms: Float64 = np.sqrt(squares[cells].mean(axis=1))
    return rms


def around(answers: Float64, sizes: Float64, half_widths: tuple[float, ...]) -> Float64:
    """Return lower and upper ends, (m, 2) or (m, t, 2), of intervals around answers (m,) or (m, t).

    >>> around(np.array([1.0, 2.0]), np.array([1.0, 2.0]), (0.5,))
    array([[0.5, 1.5],
           [1. , 3. ]])
    """
    half = np.outer(sizes, half_widths).reshape(answers.shape)
    return np.stack([answers - half, answers + half], axis=-1)
