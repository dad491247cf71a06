"""Predictions of the lazy methods: the neighbors of each query vote, or train an SVM around it."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from daskls.methods.neighborhoods.plan import batch_size
from daskls.methods.neighborhoods.spec import NeighborSpec
from daskls.methods.scores import empty_scores, model_scores
from daskls.neighbors.search import find_nearest, home_order, metric_of
from daskls.records import CellReport, Float64, Int64, LocalModel, Reals
from daskls.seeds import QUERY
from daskls.solvers.hinge.neighborhood import fit_neighborhood
from daskls.store.exchange import Rows
from daskls.store.leaves import open_leaves
from daskls.store.reader import ModelReader

__all__ = ["score_lazily"]


def score_lazily(method: NeighborSpec, reader: ModelReader, X: Reals) -> Float64:
    """Return the scores of rows: (m,) for two classes, (m, k) for more."""
    n_classes = reader.n_classes
    scores = empty_scores(len(X), reader.target)
    for queries, rows in _neighborhoods(method, reader, X):
        if method.votes:
            scores[queries] = _votes(rows, n_classes)
        else:
            scores[queries] = _svm_scores(method, reader, X[queries], rows)
    return scores


def _neighborhoods(
    method: NeighborSpec, reader: ModelReader, X: Reals
) -> Iterator[tuple[Int64, Rows]]:
    """Yield queries that are near each other, and the rows of their neighbors by row number."""
    leaves = open_leaves(str(reader.path), reader.fingerprint)
    k = min(method.n_neighbors[0], leaves.n_rows)
    size = batch_size(k, X.shape[1]) if len(X) else 1
    order = home_order(X, leaves.regions)
    metric = metric_of(reader.spec)
    for start in range(0, len(X), size):
        queries = order[start : start + size]
        found = find_nearest(X[queries], k, leaves.regions, leaves.read_leaf, metric)
        # Equal sets of neighbors then give equal models, bit for bit, whatever the query.
        by_number = np.argsort(found.numbers, axis=1)
        yield queries, leaves.read_positions(np.take_along_axis(found.positions, by_number, axis=1))


def _votes(rows: Rows, n_classes: int) -> Float64:
    """Return the share of each class in the neighbors' weight; of two classes their difference."""
    n_queries = len(rows.codes)
    votes = np.zeros((n_queries, n_classes))
    everyone = np.broadcast_to(np.arange(n_queries)[:, None], rows.codes.shape)
    np.add.at(votes, (everyone, rows.codes), rows.weights)
    votes /= votes.sum(axis=1, keepdims=True)
    return votes[:, 1] - votes[:, 0] if n_classes == 2 else votes


def _svm_scores(method: NeighborSpec, reader: ModelReader, X: Reals, rows: Rows) -> Float64:
    """Return what the SVM of each query's neighborhood answers it."""
    n_classes = reader.n_classes
    scores = empty_scores(len(X), reader.target)
    # Queries with the same neighbors share a model.
    models: dict[bytes, LocalModel] = {}
    for i in range(len(X)):
        key = rows.numbers[i].tobytes()
        if key not in models:
            models[key] = _fit(method, reader, rows, i)
        scores[i] = model_scores(models[key], X[i : i + 1], n_classes)[0]
    return scores


def _fit(method: NeighborSpec, reader: ModelReader, rows: Rows, i: int) -> LocalModel:
    """Train the SVM of one neighborhood."""
    spec = replace(reader.spec, search="full")
    k = rows.codes.shape[1]
    return fit_neighborhood(
        rows.X[i],
        rows.codes[i],
        rows.weights[i],
        k,
        spec,
        method.percentiles,
        CellReport(0, 0, 0, 0, 0.0),
        QUERY(int(reader.meta["seed"]), row=int(rows.numbers[i, 0])),
    )
