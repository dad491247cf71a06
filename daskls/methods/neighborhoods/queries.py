"""Predictions of lazy methods: neighbors vote, or train a model for the query."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np

from daskls.methods.neighborhoods.groups import open_searched, search_batches
from daskls.methods.neighborhoods.plan import NeighborSpec, batch_size
from daskls.methods.scores import empty_scores, model_scores
from daskls.neighbors.search import metric_of
from daskls.records import Float64, Int64, LocalModel, Reals
from daskls.seeds import QUERY
from daskls.solvers.base import BLANK_REPORT, Neighborhood
from daskls.solvers.registry import find_neighborhood_solver
from daskls.store.exchange import Rows
from daskls.store.reader import ModelReader


def score_lazily(method: NeighborSpec, reader: ModelReader, X: Reals) -> Float64:
    target = reader.target
    scores = empty_scores(len(X), target)
    for queries, rows in neighborhoods_of(method, reader, X):
        if not method.votes:
            scores[queries] = _model_scores(method, reader, X[queries], rows)
        elif target.kind == "numbers":
            scores[queries] = _means(rows).reshape(-1, *target.score_shape)
        else:
            scores[queries] = _votes(rows, target.n_classes)
    return scores


def neighborhoods_of(
    method: NeighborSpec, reader: ModelReader, X: Reals
) -> Iterator[tuple[Int64, Rows]]:
    """Yield batches of nearby queries, and their neighbors' rows in the order of row numbers.

    Where the inner ones choose parameters, these come first.
    """
    leaves = open_searched(method, reader)
    k = min(method.n_neighbors[0], leaves.n_rows)
    size = batch_size(k, X.shape[1], reader.target.nbytes) if len(X) else 1
    metric = metric_of(reader.spec)
    ends = (0, method.inner(k), k) if method.selection == "each" else (0, k)
    for queries, neighbors in search_batches(method, leaves, X, k, metric, size):
        # Sorted, so that equal sets of neighbors give equal models, bit for bit, for every query.
        by_number = [a + np.argsort(neighbors.numbers[:, a:b], axis=1) for a, b in pairwise(ends)]
        order = np.concatenate(by_number, axis=1)
        yield queries, leaves.read_positions(np.take_along_axis(neighbors.positions, order, axis=1))


def _votes(rows: Rows, n_classes: int) -> Float64:
    """Return each class's share of the neighbors' weight; for two classes the difference."""
    n_queries = len(rows.codes)
    votes = np.zeros((n_queries, n_classes))
    everyone = np.broadcast_to(np.arange(n_queries)[:, None], rows.codes.shape)
    np.add.at(votes, (everyone, rows.codes), rows.weights)
    votes /= votes.sum(axis=1, keepdims=True)
    return votes[:, 1] - votes[:, 0] if n_classes == 2 else votes


def _means(rows: Rows) -> Float64:
    numbers = cast(Float64, rows.targets)
    sums = np.zeros((len(numbers), numbers.shape[2]))
    # One neighbor at a time, so that bits do not depend on how many queries a batch has.
    for values, weights in zip(numbers.swapaxes(0, 1), rows.weights.T, strict=True):
        sums += values * weights[:, None]
    means: Float64 = sums / rows.weights.sum(axis=1, keepdims=True)
    return means


def _model_scores(method: NeighborSpec, reader: ModelReader, X: Reals, rows: Rows) -> Float64:
    scores = empty_scores(len(X), reader.target)
    # Queries with the same neighbors share a model.
    models: dict[bytes, LocalModel] = {}
    for i in range(len(X)):
        key = rows.numbers[i].tobytes()
        if key not in models:
            near = neighborhood_of(method, reader, rows, i)
            solver = find_neighborhood_solver(near.spec)
            models[key] = solver.fit_neighborhood(near, BLANK_REPORT)
        scores[i] = model_scores(models[key], X[i : i + 1], reader.n_classes)[0]
    return scores


def neighborhood_of(method: NeighborSpec, reader: ModelReader, rows: Rows, i: int) -> Neighborhood:
    spec = replace(reader.spec, search="full")
    seed = QUERY(int(reader.meta["seed"]), row=int(rows.numbers[i, 0]))
    fields = rows.X[i], rows.targets[i], rows.weights[i], method.inner(len(rows.X[i]))
    return Neighborhood(*fields, spec, method.percentiles, seed)
