"""Stage 4 for very many rows: answers are written into a Zarr array, a chunk a block.

A block of queries touches nearly all cells of a large model, so predicting block by block reads the
model once a block. Where that takes long, queries are gathered by bundle: a task a block writes its
queries sorted by bundle, a task a run of bundles predicts their queries and writes the answers
sorted by block, and a task a block brings its answers into order. So each model is read about once.
Queries and answers travel by exchanges inside the unfinished output. With several partitions,
bundles are those of the first.
"""

import logging
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Any

import dask.array as da
import numpy as np

from daskls.cluster import run_each
from daskls.errors import DamageError, StoreError
from daskls.methods.base import method_of
from daskls.methods.predict import (
    Wanted,
    answer_dtype,
    answer_nbytes,
    answer_width,
    cells_of,
    check_values,
    predict_block,
)
from daskls.plan.checks import mib
from daskls.plan.prediction import PredictionPlan
from daskls.records import AnyArray, Int64, Reals, RowNumbers
from daskls.run.blocks import BlockRows, block_start, map_rows, merge_chunks
from daskls.run.progress import Progress, watch
from daskls.store.arrays import PREDICT_AGAIN, ArrayHandle, new_output
from daskls.store.exchange import Exchange, Rows, leaf_ranges
from daskls.store.objects import ModelHandle
from daskls.store.reader import ModelReader, open_model

log = logging.getLogger("daskls")
# Bundles and blocks, each as the first and the one after the last.
Run = tuple[tuple[int, int], tuple[int, int]]


def predict_to_zarr(
    X: da.Array,
    handle: ModelHandle,
    wanted: Wanted,
    reader: ModelReader,
    most: int,
    path: str,
    client: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> ArrayHandle:
    """Predict all rows into a Zarr array, one chunk per block of at most ``most`` rows.

    Queries are gathered by bundle where reading the model for each block would take longer.
    """
    rows = max(1, *merge_chunks(X.chunks[0], most))
    # Of a larger chunk equal parts.
    rows = -(-rows // -(-rows // most))
    # Each block writes its own chunk of the output, so blocks must be of equal size.
    X = X.rechunk({0: rows}, method="tasks")
    if not isinstance(wanted, str) and wanted.dtype.kind == "O":
        wanted = wanted.astype(str)
    shape = (X.shape[0], *answer_width(wanted, reader.target))
    blocks = BlockRows(X, X)
    with handle.in_use():
        plan = plan_prediction(blocks, reader, wanted)
    how = "gathered by bundle" if plan.pays_to_gather else f"in {plan.n_blocks} blocks"
    log.info("Predicting %d rows, %s, reads about %s.", plan.n_rows, how, mib(plan.nbytes))
    with new_output(path, shape, answer_dtype(wanted).str, rows) as output:
        if plan.pays_to_gather:
            n_bundles = len(reader.bundles)
            predict_gathered(blocks, handle, wanted, n_bundles, output, client, on_progress)
        else:
            kwargs = {"handle": handle, "wanted": wanted, "target": output}
            with watch("predict", blocks.n_blocks, output.count_chunks, on_progress):
                map_rows(write_block, blocks, X, client=client, **kwargs)
    # Written elsewhere, and renamed.
    return replace(output, path=str(path))


def plan_prediction(rows: BlockRows, reader: ModelReader, wanted: Wanted) -> PredictionPlan:
    method, store = method_of(reader.method), reader.root.store
    return PredictionPlan(
        rows.n_rows,
        rows.n_blocks,
        rows.n_features * rows.X.dtype.itemsize,
        answer_nbytes(reader.target, wanted),
        store.nbytes("bundles") + store.nbytes("rows"),
        method.space(reader).n_partitions if method.predicts_by_place else 0,
    )


def write_block(
    X: Reals, *, handle: ModelHandle, wanted: Wanted, target: ArrayHandle, block_info: Any = None
) -> int:
    target.write(
        block_start(block_info)[1], predict_block(X, handle, wanted, block_info=block_info)
    )
    return len(X)


# ---- queries gathered by bundle ----


def predict_gathered(
    rows: BlockRows,
    handle: ModelHandle,
    wanted: Wanted,
    n_bundles: int,
    output: ArrayHandle,
    client: Any,
    on_progress: Callable[[Progress], None] | None,
) -> None:
    """Fill an output whose chunks are the blocks of rows."""
    # An earlier call may have left files of the same place open in some process.
    call, n_blocks = uuid.uuid4().hex, rows.n_blocks
    queries = Exchange(
        f"{output.path}/queries-{call}",
        *(n_blocks, n_bundles, rows.n_features, rows.X.dtype.str),
        then=PREDICT_AGAIN,
    )
    try:
        with watch("regroup", n_blocks, queries.count_blocks, on_progress):
            counts = map_rows(
                gather_block, rows, rows.X, client=client, handle=handle, queries=queries
            )
        runs = list(cut_runs(np.stack(counts), output.chunk_rows))
        answers = Exchange(
            f"{output.path}/answers-{call}",
            *(len(runs), n_blocks, prod(output.shape[1:]), output.dtype),
            then=PREDICT_AGAIN,
        )
        shared = handle, wanted, queries, answers, output.chunk_rows
        with watch("predict", len(runs), answers.count_blocks, on_progress):
            run_each(predict_run, [*enumerate(runs)], *shared, client=client)
        queries.delete()
        with watch("order", n_blocks, output.count_chunks, on_progress):
            run_each(order_answers, range(n_blocks), answers, output, client=client)
        answers.delete()
    except StoreError as error:
        # Where the output was removed, what lay in it is missing.
        output.check_exists()
        if not isinstance(error, DamageError) or not error.where.startswith(output.path):
            raise
        raise StoreError(
            f"{error.where}, which held queries or predictions, is missing or damaged: a worker "
            f"does not see the folder of the output, or its disk failed; {PREDICT_AGAIN}."
        ) from error


def gather_block(
    X: Reals, *, handle: ModelHandle, queries: Exchange, block_info: Any = None
) -> Int64:
    """Write one block's queries as they are, sorted by bundle; return how many each bundle has."""
    block, start = block_start(block_info)
    check_values(X, handle, start)
    with handle.in_use():
        reader = open_model(handle.location, handle.fingerprint)
        bundles = reader.bundles_of(cells_of(reader, X)[:, 0])
    queries.write_block(block, _bare_rows(X, start + np.arange(len(X))), [bundles], 0)
    return np.bincount(bundles, minlength=queries.n_leaves)


def predict_run(
    item: tuple[int, Run],
    handle: ModelHandle,
    wanted: Wanted,
    queries: Exchange,
    answers: Exchange,
    block_rows: int,
) -> None:
    """Write the answers of the queries of some bundles, sorted by block."""
    number, run = item
    rows = queries.read_run(*run)
    values = predict_block(rows.X, handle, wanted).reshape(len(rows.X), answers.n_features)
    blocks = rows.numbers // block_rows
    answers.write_block(number, _bare_rows(values, rows.numbers), [blocks], 0)


def order_answers(block: int, answers: Exchange, output: ArrayHandle) -> None:
    """Write the answers of a block of queries into the output, in the order of rows."""
    rows = answers.read_run((block, block + 1), (0, answers.n_blocks))
    start = block * output.chunk_rows
    values = np.empty((len(rows.X), *output.shape[1:]), output.dtype)
    values[rows.numbers - start] = rows.X.reshape(values.shape)
    output.write(start, values)


def _bare_rows(values: AnyArray, numbers: RowNumbers) -> Rows:
    """Return rows of queries or answers, which have neither targets nor weights."""
    nothing = np.zeros(len(values))
    return Rows(values, nothing, nothing, numbers)


def cut_runs(counts: Int64, most: int) -> Iterator[Run]:
    """Yield runs of at most ``most`` queries, given those of each block in each bundle.

    A bundle with more is cut by blocks, none of which has more.

    >>> list(cut_runs(np.array([[2, 1, 4], [0, 1, 3]]), 5))
    [((0, 2), (0, 2)), ((2, 3), (0, 1)), ((2, 3), (1, 2))]
    """
    for bundles in leaf_ranges(counts.sum(axis=0), most):
        of_block = counts[:, slice(*bundles)].sum(axis=1)
        yield from ((bundles, blocks) for blocks in leaf_ranges(of_block, most))
