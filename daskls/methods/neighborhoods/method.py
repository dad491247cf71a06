"""FaLK-SVM and related methods: models, or votes, of the nearest rows of centers or queries."""

from dataclasses import dataclass, replace
from typing import Self

from daskls.errors import StoreError
from daskls.memory import TaskSizes
from daskls.methods.neighborhoods.groups import GRAPH_PARTS, GRAPHS
from daskls.methods.neighborhoods.parts import (
    CENTER_PARTS,
    find_owners,
    nearest_centers,
    read_centers,
)
from daskls.methods.neighborhoods.plan import NeighborSpec, check_neighborhoods
from daskls.methods.neighborhoods.queries import score_lazily
from daskls.methods.probability import shares
from daskls.methods.scores import mean_of_partitions
from daskls.plan.bundles import Resources
from daskls.plan.fit import FitCost
from daskls.records import F8, Float64, Ints, Reals
from daskls.run.contract import FitState, Method, RegroupedRows
from daskls.store.contents import StorePart
from daskls.store.errors import damaged
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
    ) -> FitCost:
        from daskls.methods.neighborhoods.fit import expected_rows

        return expected_rows(self, sizes, resources)

    def train(self, state: FitState, regrouped: RegroupedRows | None) -> None:
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
    ) -> FitCost:
        from daskls.methods.neighborhoods.fit import expected_centers

        return expected_centers(self, sizes, resources)

    def train(self, state: FitState, regrouped: RegroupedRows | None) -> None:
        from daskls.methods.neighborhoods.fit import fit_centers_of

        fit_centers_of(self, state)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        if self.assign == "point":
            return mean_of_partitions(reader, X, [find_owners(self, reader, X)])
        n_centers = self.n_centers if self.assign == "k_centers" else 1
        cells = nearest_centers(reader, X, min(n_centers, reader.n_cells))
        return mean_of_partitions(reader, X, list(cells.T))

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
            raise damaged(reader.index.where(), "it lacks the selected values of C and gamma")

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
