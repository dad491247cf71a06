"""Methods that train one SVM on a sample chosen around the support rows of small subsamples."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from daskls.memory import TaskSizes
from daskls.methods.sampling.parts import SAMPLING_PARTS
from daskls.methods.sampling.plan import (
    SamplingSpec,
    beside_svc,
    check_rounds,
    check_subsamples,
    most_pairs,
)
from daskls.methods.scores import mean_of_partitions
from daskls.plan.bundles import Resources
from daskls.plan.fit import FitCost
from daskls.records import Float64, Reals
from daskls.run.contract import FitState, Method, RegroupedRows
from daskls.store.contents import StorePart
from daskls.store.layout import Root
from daskls.store.models import bundle_key, finished_bundles
from daskls.store.reader import ModelReader

if TYPE_CHECKING:
    from daskls.methods.sampling.search import SampleSearch


@dataclass(frozen=True)
class Sampling(SamplingSpec, Method):
    """The base class of both methods: one model predicts everywhere."""

    keeps_rows = True
    # The one model is trained with given parameters.
    chosen = ()
    # The expected rows of the largest sample for each row of all subsamples; measured on ijcnn1.
    growth: ClassVar[float]

    @classmethod
    def parts(cls) -> tuple[StorePart, ...]:
        return SAMPLING_PARTS

    @abstractmethod
    def searcher(self) -> "type[SampleSearch]":
        """Return the class of the search, which trains one model after the other."""

    def expected(
        self, sizes: TaskSizes, n_leaves: int, n_partitions: int, resources: Resources
    ) -> FitCost:
        from daskls.methods.sampling.fit import expected_samples

        return expected_samples(self, sizes, resources, self.growth)

    def train(self, state: FitState, regrouped: RegroupedRows | None) -> None:
        from daskls.methods.sampling.fit import fit_samples

        fit_samples(self, self.searcher(), state)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        return mean_of_partitions(reader, X, [np.zeros(len(X), np.int64)])

    def clean_up(self, root: Root) -> None:
        """Also removes the other models, and the rows."""
        indexed = {(b.first_leaf, b.last_leaf) for b in ModelReader(root.store).bundles}
        others = set(finished_bundles(root.store)) - indexed
        root.store.drop(*(bundle_key(*bundle) for bundle in others))
        super().clean_up(root)
        root.store.drop("rows", "leaves", "partition")

    def progress(self, root: Root) -> str:
        return f"{len(finished_bundles(root.store))} candidates are trained"


@dataclass(frozen=True)
class LocalSampling(Sampling):
    """Barcenas et al.: rows are drawn from growing balls around support rows."""

    name = "local-sampling"
    step = "radius_scale"
    growth = 6.0

    def check(self, sizes: TaskSizes, resources: Resources) -> None:
        lighter = beside_svc(resources)
        draws, fraction = check_subsamples(self, sizes, lighter, "raise n_subsamples or ")
        most_pairs(sizes, draws.n_sampled, sizes.leaf_rows, lighter, fraction)

    def searcher(self) -> "type[SampleSearch]":
        from daskls.methods.sampling.balls import RadiusSearch

        return RadiusSearch


@dataclass(frozen=True)
class CGLQ(Sampling):
    """Camelo et al.: each round adds the nearest rows of support rows."""

    name = "cglq"
    step = "round"
    growth = 2.5

    def check(self, sizes: TaskSizes, resources: Resources) -> None:
        lighter = beside_svc(resources)
        draws, _ = check_subsamples(self, sizes, lighter)
        check_rounds(sizes, lighter, draws, self.n_neighbors)

    def searcher(self) -> "type[SampleSearch]":
        from daskls.methods.sampling.fit import RoundSearch

        return RoundSearch
