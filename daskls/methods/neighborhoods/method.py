"""FaLK-SVM and related methods: models, or votes, of the nearest rows of centers or queries."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self, cast

import numpy as np

from daskls.errors import StoreError
from daskls.memory import TaskSizes
from daskls.methods.neighborhoods.groups import (
    GRAPH_PARTS,
    GRAPHS,
    open_searched,
    search_batches,
)
from daskls.methods.neighborhoods.parts import (
    CENTER_PARTS,
    find_owners,
    nearest_centers,
    read_centers,
)
from daskls.methods.neighborhoods.plan import NeighborSpec, batch_size, check_neighborhoods
from daskls.methods.probability import shares
from daskls.methods.scores import empty_scores, mean_of_views, model_scores
from daskls.neighbors.search import metric_of
from daskls.plan.bundles import Resources
from daskls.plan.fit import Expected
from daskls.records import F8, Float64, Int64, Ints, LocalModel, Reals
from daskls.run.contract import FitState, Method, Regrouped
from daskls.seeds import QUERY
from daskls.solvers.base import BLANK_REPORT, Neighborhood
from daskls.solvers.registry import find_neighborhood_solver
from daskls.store.contents import StorePart
from daskls.store.errors import damaged
from daskls.store.exchange import Rows
from daskls.store.layout import Root
from daskls.store.leaves import LeafReader
from daskls.store.models import all_bundles, finished_bundles
from daskls.store.reader import ModelReader


@dataclass(frozen=True)
class NeighborMethod(NeighborSpec, Method):
    """The base class of methods on neighborhoods; partitions only say which rows lie together."""

    keeps_rows = True
    is_local = True

    @classmethod
    def parts(cls) -> tuple[StorePart, ...]:
        return GRAPH_PARTS

    def check(self, sizes: TaskSizes, resources: Resources) -> None:
        check_neighborhoods(sizes, resources, max(self.n_neighbors), self.n_groups)

    def expected(
        self, sizes: TaskSizes, n_leaves: int, n_partitions: int, resources: Resources
    ) -> Expected:
        from daskls.methods.neighborhoods.fit import expected_rows

        return expected_rows(self, sizes, resources)

    def train(self, state: FitState, regrouped: Regrouped | None) -> None:
        from daskls.methods.neighborhoods.fit import fit_rows

        fit_rows(self, state)

    def query_nbytes(self, reader: ModelReader) -> int:
        return super().query_nbytes(reader) + 8 * F8 * self.n_centers

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        return score_lazily(self, reader, X)

    def check_complete(self, root: Root) -> None:
        super().check_complete(root)
        self.check_rows(root)

    def check_rows(self, root: Root) -> None:
        leaves = LeafReader(root)
        leaves.check_bundles()
        if self.n_groups is not None:
            all_bundles(root.store, leaves.n_leaves, GRAPHS)

    def progress(self, root: Root) -> str:
        done = sum(last - first + 1 for first, last in finished_bundles(root.store))
        centers = read_centers(root)
        of = "" if centers is None else f" of {len(centers.positions)}"
        return f"{done}{of} neighborhoods are trained"


@dataclass(frozen=True)
class Falk(NeighborMethod):
    """FaLK-SVM: SVMs around centers that cover the rows."""

    name = "falk"

    @classmethod
    def parts(cls) -> tuple[StorePart, ...]:
        return (*GRAPH_PARTS, *CENTER_PARTS)

    def expected(
        self, sizes: TaskSizes, n_leaves: int, n_partitions: int, resources: Resources
    ) -> Expected:
        from daskls.methods.neighborhoods.fit import expected_centers

        return expected_centers(self, sizes, resources)

    def train(self, state: FitState, regrouped: Regrouped | None) -> None:
        from daskls.methods.neighborhoods.fit import fit_centers_of

        fit_centers_of(self, state)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        if self.assign == "point":
            return mean_of_views(reader, X, [find_owners(self, reader, X)])
        n_centers = self.n_centers if self.assign == "k_centers" else 1
        found = nearest_centers(reader, X, min(n_centers, reader.n_cells))
        return mean_of_views(reader, X, list(found.T))

    def clean_up(self, root: Root) -> None:
        """Also removes the rows where predictions only need the centers."""
        super().clean_up(root)
        if self.assign != "point":
            root.store.drop("rows", GRAPHS)

    def check_complete(self, root: Root) -> None:
        ModelReader(root.store)
        if read_centers(root) is None:
            raise StoreError(f"{root.where('centers')} is missing")
        if self.assign == "point":
            self.check_rows(root)

    def agreement(self, reader: ModelReader, X: Reals, codes: Ints, first: int) -> Float64:
        from daskls.methods.neighborhoods.noise import agrees

        return agrees(reader, X, codes)


@dataclass(frozen=True)
class KNNSVM(NeighborMethod):
    """kNNSVM: the SVM of each query's neighbors."""

    name = "knnsvm"

    def inner(self, n_neighbors: int) -> int:
        return min(self.n_assigned or n_neighbors, n_neighbors)

    def _of(self, reader: ModelReader) -> Self:
        """Return the method with the widths that a query tries."""
        if self.selection == "each":
            return self
        percentile = reader.selected("percentile")
        return replace(self, percentiles=None if percentile is None else (percentile,))

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        return super(KNNSVM, self._of(reader)).scores(reader, X)

    def local_probabilities(self, reader: ModelReader, X: Reals) -> Float64:
        from daskls.methods.neighborhoods.sigmoids import label_shares

        return label_shares(self._of(reader), reader, X)

    def check_index(self, reader: ModelReader) -> None:
        if self.selection == "left_out" and reader.selected("C") is None:
            raise damaged(reader.index.where(), "the model lacks what its fit selected")

    def agreement(self, reader: ModelReader, X: Reals, codes: Ints, first: int) -> Float64:
        from daskls.methods.neighborhoods.noise import leave_one_out

        return leave_one_out(self, reader, X, codes, first)


@dataclass(frozen=True)
class KNN(NeighborMethod):
    """FkNN: the majority of each query's neighbors, or the mean of their numbers."""

    name = "knn"
    votes = True
    has_probabilities = True

    def probabilities(self, reader: ModelReader, scores: Float64) -> Float64:
        return shares(scores)


# ---- predictions of lazy methods: neighbors vote, or train a model for the query ----


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
    for queries, found in search_batches(method, leaves, X, k, metric, size):
        # Sorted, so that equal sets of neighbors give equal models, bit for bit, for every query.
        by_number = [a + np.argsort(found.numbers[:, a:b], axis=1) for a, b in pairwise(ends)]
        order = np.concatenate(by_number, axis=1)
        yield queries, leaves.read_positions(np.take_along_axis(found.positions, order, axis=1))


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
    found = np.zeros((len(numbers), numbers.shape[2]))
    # One neighbor at a time, so that bits do not depend on how many queries a batch has.
    for own, weights in zip(numbers.swapaxes(0, 1), rows.weights.T, strict=True):
        found += own * weights[:, None]
    means: Float64 = found / rows.weights.sum(axis=1, keepdims=True)
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
    own = rows.X[i], rows.targets[i], rows.weights[i], method.inner(len(rows.X[i]))
    return Neighborhood(*own, spec, method.percentiles, seed)
