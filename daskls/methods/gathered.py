"""Prediction of very many rows that reads each model about once: queries are gathered by bundle.

A block of queries touches nearly all cells of a large model, so predicting block by block reads the
model once a block. Here a task a block writes its queries sorted by bundle, a task a run of bundles
predicts their queries and writes the answers sorted by block, and a task a block brings its answers
into order. Queries and answers travel by exchanges inside the unfinished output.

With several partitions, bundles are those of the first.
"""

import uuid
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from daskls.cluster import run_each
from daskls.errors import StoreError
from daskls.methods.predict import Wanted, cells_of, check_values, predict_block
from daskls.records import AnyArray, Int64, Reals, RowNumbers
from daskls.run.blocks import BlockRows, block_start, map_rows
from daskls.run.progress import Progress, watch
from daskls.store.arrays import PREDICT_AGAIN, ArrayHandle
from daskls.store.exchange import Exchange, Rows, leaf_ranges
from daskls.store.objects import ModelHandle
from daskls.store.reader import open_model

# Bundles and blocks, each as the first and the one after the last.
Run = tuple[tuple[int, int], tuple[int, int]]


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
    except StoreError:
        # Where the output was removed, what lay in it is missing.
        output.check_exists()
        raise


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
    found = predict_block(rows.X, handle, wanted).reshape(len(rows.X), answers.n_features)
    blocks = rows.numbers // block_rows
    answers.write_block(number, _bare_rows(found, rows.numbers), [blocks], 0)


def order_answers(block: int, answers: Exchange, output: ArrayHandle) -> None:
    """Write the answers of a block of queries into the output, in the order of rows."""
    rows = answers.read_run((block, block + 1), (0, answers.n_blocks))
    start = block * output.chunk_rows
    found = np.empty((len(rows.X), *output.shape[1:]), output.dtype)
    found[rows.numbers - start] = rows.X.reshape(found.shape)
    output.write(start, found)


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
