"""Stage 4: blocks of rows to scores or labels, lazily, in row order."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from daskls.methods.average import SLAB_ROWS, SUPER_NBYTES
from daskls.methods.base import method_of
from daskls.methods.scores import labels_of
from daskls.records import Float64, Labels, Reals
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

__all__ = ["predict_block", "predict_lazily", "predict_to_zarr", "score_rows"]


@undisturbed
def score_rows(reader: ModelReader, X: Reals) -> Float64:
    """Return the scores of rows, grouped by cell: (m,) for two classes, (m, k) for more.

    Positive speaks for the second of two classes; a cell of one class answers +-1.
    """
    with one_blas_thread():
        return method_of(reader.method).scores(reader, reader.enter(X))


def predict_block(
    X: Reals, handle: ModelHandle, classes: Labels | None, block_info: Any = None
) -> Float64 | Labels:
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
    X: da.Array, handle: ModelHandle, classes: Labels | None, n_scores: int
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
    predicted = da.map_blocks(
        predict_block,
        X.rechunk({0: merged}),
        handle=handle,
        classes=classes,
        drop_axis=1 if flat else None,
        chunks=(merged,) if flat else (merged, (n_scores,)),
        dtype=dtype,
        meta=np.empty((0,) if flat else (0, 0), dtype),
    )
    return predicted.rechunk({0: given})


def write_block(
    X: Reals,
    *,
    handle: ModelHandle,
    classes: Labels | None,
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
    classes: Labels,
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


def predict_array(X: Reals, handle: ModelHandle, classes: Labels | None) -> Float64 | Labels:
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
