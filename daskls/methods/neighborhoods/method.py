"""FaLK-SVM and related methods: models, or votes, of the nearest rows of centers or queries."""

from dataclasses import dataclass, replace

from daskls.errors import StoreError
from daskls.methods.neighborhoods.parts import (
    CENTER_PARTS,
    find_owners,
    nearest_centers,
    read_centers,
)
from daskls.methods.neighborhoods.plan import NeighborSpec, check_neighborhoods
from daskls.methods.probability import shares
from daskls.methods.scores import mean_of_views
from daskls.plan import Demand, Extent, Outlook, Resources
from daskls.records import Float64, Ints, Reals
from daskls.run.contract import FitState, Method
from daskls.store.contents import StorePart
from daskls.store.files import damaged
from daskls.store.layout import Root
from daskls.store.leaves import LeafReader
from daskls.store.models import finished_bundles
from daskls.store.reader import ModelReader


@dataclass(frozen=True)
class NeighborMethod(NeighborSpec, Method):
    """The base class of all methods on neighborhoods.

    The partition only decides which rows are stored together.
    """

    n_copies = 1
    is_local = True

    def check(self, extent: Extent, resources: Resources) -> None:
        """As of `Method`."""
        check_neighborhoods(extent, resources, max(self.n_neighbors))

    def demand(self, outlook: Outlook) -> Demand:
        """As of `Method`."""
        from daskls.methods.neighborhoods.demand import demand_of_rows

        return demand_of_rows(self, outlook)

    def fit(self, state: FitState) -> None:
        """Gather the rows by leaf, as the rows are the model, and select parameters."""
        from daskls.methods.neighborhoods.fit import fit_rows

        fit_rows(self, state)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        """Compute scores from the nearest rows of each query."""
        from daskls.methods.neighborhoods.lazy import score_lazily

        return score_lazily(self, reader, X)

    def check_complete(self, root: Root) -> None:
        """As of `Method`."""
        super().check_complete(root)
        LeafReader(root).check_bundles()

    def progress(self, root: Root) -> str:
        """As of `Method`."""
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
        """As of `Method`."""
        return CENTER_PARTS

    def demand(self, outlook: Outlook) -> Demand:
        """As of `Method`."""
        from daskls.methods.neighborhoods.demand import demand_of_centers

        return demand_of_centers(self, outlook)

    def fit(self, state: FitState) -> None:
        """Gather the rows by leaf, choose centers, train their neighborhoods."""
        from daskls.methods.neighborhoods.fit import fit_centers_of

        fit_centers_of(self, state)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        """Evaluate the models of each query's centers."""
        if self.assign == "point":
            return mean_of_views(reader, X, [find_owners(reader, X)])
        n_centers = self.n_centers if self.assign == "k_centers" else 1
        found = nearest_centers(reader, X, min(n_centers, reader.n_cells))
        return mean_of_views(reader, X, list(found.T))

    def clean_up(self, root: Root) -> None:
        """As of `Method`; also remove the rows where predictions only need the centers."""
        super().clean_up(root)
        if self.assign != "point":
            root.store.drop("rows")

    def check_complete(self, root: Root) -> None:
        """As of `Method`."""
        ModelReader(root.store)
        if read_centers(root) is None:
            raise StoreError(f"{root.where('centers')} is missing")
        if self.assign == "point":
            LeafReader(root).check_bundles()

    def agreement(self, reader: ModelReader, X: Reals, codes: Ints, first: int) -> Float64:
        """As of `Method`: 1 where the prediction is the row's label, else 0."""
        from daskls.methods.neighborhoods.noise import agrees

        return agrees(reader, X, codes)


@dataclass(frozen=True)
class KNNSVM(NeighborMethod):
    """kNNSVM: the SVM of each query's neighbors."""

    name = "knnsvm"

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        """Train the SVM of each query's nearest rows, with the selected width."""
        percentile = reader.selected("percentile")
        own = replace(self, percentiles=None if percentile is None else (percentile,))
        return super(KNNSVM, own).scores(reader, X)

    def check_index(self, reader: ModelReader) -> None:
        """As of `Method`."""
        if self.selection is not None and reader.selected("C") is None:
            raise damaged(reader.index.where(), "the model lacks what its fit selected")

    def agreement(self, reader: ModelReader, X: Reals, codes: Ints, first: int) -> Float64:
        """As of `Method`: by the SVM of the row's neighbors, without the row itself."""
        from daskls.methods.neighborhoods.noise import leave_one_out

        return leave_one_out(self, reader, X, codes, first)


@dataclass(frozen=True)
class KNN(NeighborMethod):
    """FkNN: the majority of each query's neighbors, or the mean of their numbers."""

    name = "knn"
    votes = True
    has_probabilities = True

    def probabilities(self, reader: ModelReader, scores: Float64) -> Float64:
        """Return the shares of the neighbors' votes."""
        return shares(scores)
