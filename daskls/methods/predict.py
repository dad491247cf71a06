"""Stage 4: blocks of rows to scores or labels, lazily, in row order."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from daskls.kernels.decision import decide_pairs
from daskls.kernels.votes import pairs_of, spread_pairs, vote_scores
from daskls.methods.landmarks.answer import score_linearly
from daskls.methods.scores import model_scores
from daskls.methods.views import find_views
from daskls.records import FloatArray, IntArray, LocalModel
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.blocks import block_start, map_rows
from daskls.run.chunks import merge_chunks
from daskls.run.progress import Progress, watch
from daskls.run.resources import find_slots
from daskls.run.rows import BLOCK_NBYTES, BlockRows, cut_large, open_blocks
from daskls.run.values import first_bad_value, value_error
from daskls.store.arrays import ArrayHandle, new_output
from daskls.store.reader import ModelReader, open_model
from daskls.store.temporary import ModelHandle

__all__ = [
    "SUPER_NBYTES",
    "predict_block",
    "predict_lazily",
    "predict_to_zarr",
    "score_rows",
    "slab_rows",
]

# A block of queries is evaluated against every cell it touches: the larger it is, the fewer times
# the models are read. Chunks are merged up to about this size.
SUPER_NBYTES = 64 << 20
# Queries of one cell whose kernel values are held at once: fewer of a model of many support rows,
# whose values would be more than this; but no fewer than what a product is padded to. Whole tiles
# of kernels/gram.py.
SLAB_ROWS = 960
SLAB_NBYTES = 64 << 20
LEAST_SLAB_ROWS = 240


@undisturbed
def score_rows(reader: ModelReader, X: FloatArray) -> FloatArray:
    """Return the scores of rows, grouped by cell: (m,) for two classes, (m, k) for more.

    Positive speaks for the second of two classes; a cell of one class answers +-1.
    """
    answer = SCORES.get(reader.method.get("name", ""), _score_by_views)
    with one_blas_thread():
        return answer(reader, X)


def _score_lazily(reader: ModelReader, X: FloatArray) -> FloatArray:
    # Here, so that a process which only predicts never loads the trainers.
    from daskls.methods.neighborhoods.lazy import score_lazily

    return score_lazily(reader, X)


def _score_by_views(reader: ModelReader, X: FloatArray) -> FloatArray:
    """Return the scores of the models that each row asks: of one, or the mean of several."""
    n_classes, scores = _empty_scores(reader, X)
    views = find_views(reader, X)
    if len(views) == 1:
        for model, rows in _slabs(reader, views[0]):
            scores[rows] = model_scores(model, X[rows], n_classes)
        return scores
    for tile in _tiles(views[0], n_classes):
        own = [cells[tile] for cells in views]
        mean = _mean_decisions(reader, X[tile], own, n_classes)
        scores[tile] = _mean_scores(mean, n_classes)
    return scores


def _empty_scores(reader: ModelReader, X: FloatArray) -> tuple[int, FloatArray]:
    """Return the number of classes, and an array for the scores of rows."""
    n_classes = len(reader.meta["classes"]["values"])
    return n_classes, np.empty(len(X) if n_classes == 2 else (len(X), n_classes))


def _mean_scores(mean: FloatArray, n_classes: int) -> FloatArray:
    """Return the scores of mean decision values, one column a pair of classes."""
    scores: FloatArray = mean[:, 0] if n_classes == 2 else vote_scores(mean, n_classes)
    return scores


def _score_by_chunks(reader: ModelReader, X: FloatArray) -> FloatArray:
    """Return the scores of the mean of all chunks' clipped decision functions."""
    n_classes, scores = _empty_scores(reader, X)
    chunks = np.arange(reader.n_cells)
    for tile in _tiles(np.zeros(len(X), np.int64), n_classes):
        rows = X[tile]
        total = np.zeros((len(rows), len(pairs_of(n_classes))))
        # In the order of chunks: a sum's bits depend on its order.
        for model in reader.read_cells(chunks):
            for start in range(0, len(rows), SLAB_ROWS):
                slab = slice(start, start + SLAB_ROWS)
                decisions = decide_pairs(model, rows[slab]) if len(model.classes) > 1 else None
                total[slab] += spread_pairs(decisions, model.classes, n_classes)
        scores[tile] = _mean_scores(total / len(chunks), n_classes)
    return scores


# How the rows of a method are answered, where that is not by the models of cells or of centers.
SCORES: dict[str, Callable[[ModelReader, FloatArray], FloatArray]] = {
    "knn": _score_lazily,
    "knnsvm": _score_lazily,
    "l3": score_linearly,
    "chunks": _score_by_chunks,
}


def _slabs(reader: ModelReader, cells: IntArray) -> Iterator[tuple[LocalModel, IntArray]]:
    """Yield each cell that rows lie in, with at most `SLAB_ROWS` of them."""
    if not len(cells):
        return
    order = np.argsort(cells, kind="stable")
    touched, starts = np.unique(cells[order], return_index=True)
    groups = np.split(order, starts[1:])
    for model, rows in zip(reader.read_cells(touched), groups, strict=True):
        size = slab_rows(len(model.rows))
        for start in range(0, len(rows), size):
            yield model, rows[start : start + size]


def slab_rows(n_support: int) -> int:
    """Return how many queries are evaluated together by a model of so many support rows."""
    return min(SLAB_ROWS, max(SLAB_NBYTES // (8 * max(n_support, 1)), LEAST_SLAB_ROWS))


def _tiles(cells: IntArray, n_classes: int) -> Iterator[slice | IntArray]:
    """Yield rows in parts whose decisions of all pairs of classes fit `SUPER_NBYTES`.

    Rows of neighboring cells stay together, so that few cells are read more than once.
    """
    n_rows = max(SUPER_NBYTES // (8 * len(pairs_of(n_classes))), SLAB_ROWS)
    if len(cells) <= n_rows:
        yield slice(None)
        return
    order = np.argsort(cells, kind="stable")
    for start in range(0, len(cells), n_rows):
        yield order[start : start + n_rows]


def _mean_decisions(
    reader: ModelReader, X: FloatArray, views: list[IntArray], n_classes: int
) -> FloatArray:
    """Return the views' mean of clipped decision values, one column a pair of classes."""
    total = np.zeros((len(X), len(pairs_of(n_classes))))
    # In the order of views: a sum's bits depend on its order.
    for cells in views:
        for model, rows in _slabs(reader, cells):
            decisions = decide_pairs(model, X[rows]) if len(model.classes) > 1 else None
            total[rows] += spread_pairs(decisions, model.classes, n_classes)
    return total / len(views)


def labels_of(scores: FloatArray, classes: FloatArray) -> FloatArray:
    """Return the label of each row's scores."""
    winners = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    labels: FloatArray = classes[winners]
    return labels


def predict_block(
    X: FloatArray, handle: ModelHandle, classes: FloatArray | None, block_info: Any = None
) -> FloatArray:
    """Answer one block: labels if ``classes`` is given, else scores.

    Raises
    ------
    DataError : when a value is NaN, infinite or too large, with its row's number
    """
    bad = first_bad_value(X)
    if bad is not None:
        first_row = block_start(block_info)[1] if block_info else 0
        raise value_error(first_row + bad[0], bad[1])
    with handle.in_use():
        scores = score_rows(open_model(handle.path, handle.fingerprint), X)
    return scores if classes is None else labels_of(scores, classes)


def predict_lazily(
    X: da.Array, handle: ModelHandle, classes: FloatArray | None, n_scores: int
) -> da.Array:
    """Return a lazy array of labels (n,), or of scores (n,) or (n, k); rows and chunks as X's.

    Parameters
    ----------
    X : Dask array (n, d), one block of columns
    handle : ModelHandle
    classes : labels, or None for scores
    n_scores : int. Columns of the scores; 1 for two classes.
    """
    row_nbytes = X.shape[1] * X.dtype.itemsize
    given = X.chunks[0]
    X = cut_large(X, SUPER_NBYTES)
    merged = X.chunks[0]
    # Merging copies; chunks that are large already are not worth it.
    if max(merged) * row_nbytes < BLOCK_NBYTES:
        merged = merge_chunks(merged, max(SUPER_NBYTES // row_nbytes, 1))
    flat = classes is not None or n_scores == 1
    dtype = np.dtype(np.float64) if classes is None else classes.dtype
    answer = da.map_blocks(
        predict_block,
        X.rechunk({0: merged}),
        handle=handle,
        classes=classes,
        drop_axis=1 if flat else None,
        chunks=(merged,) if flat else (merged, (n_scores,)),
        dtype=dtype,
        meta=np.empty((0,) if flat else (0, 0), dtype),
    )
    return answer.rechunk({0: given})


def write_block(
    X: FloatArray,
    *,
    handle: ModelHandle,
    classes: FloatArray | None,
    target: ArrayHandle,
    block_info: Any = None,
) -> int:
    """Answer one block and write it; return its rows. The block owns its chunk of the output."""
    target.write(
        block_start(block_info)[1], predict_block(X, handle, classes, block_info=block_info)
    )
    return len(X)


def predict_to_zarr(
    source: Any,
    handle: ModelHandle,
    classes: FloatArray,
    path: Path,
    client: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> ArrayHandle:
    """Write the labels of all rows into a Zarr array, one chunk a super-block.

    Parameters
    ----------
    source : Zarr array, path of one, or Dask array: (n, d)
    handle : ModelHandle
    classes : array (k,). Strings are written as fixed-width.
    path : Path. Must not exist.
    client : distributed client, or None
    on_progress : called as blocks finish

    Returns
    -------
    output : ArrayHandle
    """
    X = open_blocks(source, "X", SUPER_NBYTES)
    row_nbytes = X.shape[1] * X.dtype.itemsize
    rows = max(1, *merge_chunks(X.chunks[0], max(SUPER_NBYTES // row_nbytes, 1)))
    # A chunk of the output is one block, so blocks must be regular.
    X = X.rechunk({0: rows})
    if classes.dtype.kind == "O":
        classes = classes.astype(str)
    blocks = BlockRows(X, X)
    with (
        new_output(path, X.shape[0], classes.dtype.str, rows) as output,
        watch("predict", blocks.n_blocks, output.count_chunks, on_progress),
    ):
        map_rows(
            write_block, blocks, X, client=client, handle=handle, classes=classes, target=output
        )
    return output


def predict_array(X: FloatArray, handle: ModelHandle, classes: FloatArray | None) -> FloatArray:
    """Answer rows in memory, on this machine's threads; no scheduler is involved.

    Raises
    ------
    DataError : when a value is NaN, infinite or too large, with its row's number
    """
    bad = first_bad_value(X)
    if bad is not None:
        raise value_error(*bad)
    slots = find_slots()
    rows = max(min(SUPER_NBYTES // (X.shape[1] * X.itemsize), -(-len(X) // slots)), SLAB_ROWS)
    with handle.in_use(), ThreadPoolExecutor(slots) as threads:
        reader = open_model(handle.path, handle.fingerprint)
        parts = list(
            threads.map(lambda i: score_rows(reader, X[i : i + rows]), range(0, len(X), rows))
        )
    scores = np.concatenate(parts)
    return scores if classes is None else labels_of(scores, classes)
