"""Agreement of each training row's label with the models around it, to find mislabeled rows."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask.array as da
import numpy as np

from daskls.blas import one_blas_thread, undisturbed
from daskls.methods.base import method_of
from daskls.methods.neighborhoods.groups import open_searched, search_batches
from daskls.methods.neighborhoods.plan import NeighborSpec, batch_size
from daskls.methods.scores import SLAB_ROWS, labels_of
from daskls.neighbors.search import metric_of
from daskls.records import Float64, Int64, Ints, Labels, Reals
from daskls.run.blocks import block_start
from daskls.run.resources import find_slots
from daskls.seeds import LEFT_OUT
from daskls.solvers.base import Neighborhood
from daskls.solvers.hinge.neighborhood import fit_label, label_probability
from daskls.store.objects import ModelHandle
from daskls.store.reader import ModelReader, open_model


def agree_array(X: Reals, y: Labels, handle: ModelHandle, classes: Labels) -> Float64:
    codes = codes_of(y, classes, None)

    def evaluate(start: int) -> Float64:
        rows = slice(start, start + SLAB_ROWS)
        method, entered = method_of(reader.method), reader.transform(X[rows])
        return method.agreement(reader, entered, codes[rows], start)

    with handle.in_use(), ThreadPoolExecutor(find_slots()) as threads:
        reader = open_model(handle.location, handle.fingerprint)
        return np.concatenate(list(threads.map(evaluate, range(0, len(X), SLAB_ROWS))))


def agree_lazily(
    X: da.Array, y: da.Array, handle: ModelHandle, classes: Labels, names: Labels | None
) -> da.Array:
    """Return the agreement of each row's label as a lazy array (n,), in X's chunks."""
    return da.map_blocks(
        agree_block,
        X,
        y,
        handle=handle,
        classes=classes,
        names=names,
        drop_axis=1,
        dtype=np.float64,
        meta=np.empty(0),
    )


def agree_block(
    X: Reals,
    y: Labels,
    *,
    handle: ModelHandle,
    classes: Labels,
    names: Labels | None,
    block_info: Any = None,
) -> Float64:
    codes = codes_of(y[:, 0], classes, names)
    with handle.in_use():
        reader = open_model(handle.location, handle.fingerprint)
        method, first = method_of(reader.method), block_start(block_info)[1]
        return method.agreement(reader, reader.transform(X), codes, first)


def codes_of(y: Labels, classes: Labels, names: Labels | None) -> Int64:
    """Return the codes of labels; ``names`` are the labels of the codes that y may hold instead."""
    labels = y if names is None else names[y]
    # Classes need not be sorted.
    order = np.argsort(classes, kind="stable")
    codes: Int64 = order[np.searchsorted(classes[order], labels)]
    return codes


@undisturbed
def agrees(reader: ModelReader, X: Reals, codes: Ints) -> Float64:
    with one_blas_thread():
        scores = method_of(reader.method).scores(reader, X)
    labels = labels_of(scores, np.arange(reader.n_classes))
    agreement: Float64 = (labels == codes).astype(np.float64)
    return agreement


@undisturbed
def leave_one_out(
    method: NeighborSpec, reader: ModelReader, X: Reals, codes: Ints, first: int
) -> Float64:
    leaves = open_searched(method, reader)
    k = min(method.n_neighbors[0], leaves.n_rows - 1)
    metric = metric_of(reader.spec)
    size = batch_size(k, X.shape[1], reader.target.nbytes)
    agreement = np.empty(len(X))
    seed = int(reader.meta["seed"])
    with one_blas_thread():
        for queries, neighbors in search_batches(method, leaves, X, k + 1, metric, size):
            others = neighbors.others(first + queries)
            rows = leaves.read_positions(neighbors.positions[others].reshape(len(queries), -1))
            for i, query in enumerate(queries.tolist()):
                fields = rows.X[i], rows.codes[i], rows.weights[i], method.inner(k), reader.spec
                near = Neighborhood(*fields, method.percentiles, LEFT_OUT(seed, row=first + query))
                fitted = fit_label(near, int(codes[query]))
                agreement[query] = label_probability(fitted, X[query])
    return agreement
