"""L3-SVMs: linear SVMs of clusters on shared landmarks, solved as one problem."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.methods.landmarks.parts import (
    LANDMARK_PARTS,
    count_rounds,
    read_linear_model,
    score_linearly,
)
from daskls.methods.landmarks.plan import (
    LandmarkSpec,
    check_landmarks,
    count_clusters,
    expected_landmarks,
)
from daskls.partition.base import Partition
from daskls.plan.bundles import Extent, Resources, SamplePlan
from daskls.plan.fit import Expected
from daskls.records import Float64, Reals
from daskls.run.contract import FitState, Method
from daskls.store.contents import StorePart
from daskls.store.layout import Root
from daskls.store.reader import ModelReader


@dataclass(frozen=True)
class L3(LandmarkSpec, Method):
    """L3-SVMs."""

    name = "l3"
    chosen = ("C",)

    @classmethod
    def parts(cls) -> tuple[StorePart, ...]:
        """As of `Method`."""
        return LANDMARK_PARTS

    def check(self, extent: Extent, resources: Resources) -> None:
        """As of `Method`."""
        check_landmarks(self, extent, resources)

    def expected_leaves(self, n_rows: int, sampling: SamplePlan, cell_size: int) -> int:
        """As of `Method`: the number of clusters."""
        return min(self.n_cells or count_clusters(n_rows), sampling.n_sample)

    def expected(
        self, extent: Extent, n_leaves: int, n_partitions: int, resources: Resources
    ) -> Expected:
        """As of `Method`."""
        return expected_landmarks(self, extent, n_leaves)

    def cut(self, state: FitState) -> Partition:
        """Cluster the sample."""
        from daskls.methods.landmarks.fit import cluster_sample

        return cluster_sample(self, state)

    def fit(self, state: FitState) -> None:
        """Choose landmarks and C, then solve the joint problem."""
        from daskls.methods.landmarks.fit import fit_jointly

        fit_jointly(self, state)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        """Evaluate the linear function of each query's cluster."""
        return score_linearly(reader, X)

    def check_index(self, reader: ModelReader) -> None:
        """As of `Method`."""
        read_linear_model(reader)

    def has_space(self, reader: ModelReader) -> bool:
        """As of `Method`."""
        return True

    def space(self, reader: ModelReader) -> Partition:
        """As of `Method`."""
        return read_linear_model(reader).cells

    def progress(self, root: Root) -> str:
        """As of `Method`."""
        return f"{count_rounds(root)} rounds over all clusters have begun"

    def count_open(self, report: Any) -> Any:
        """As of `Method`; the solves are joint, so each cluster reports the same number."""
        return np.max(report.n_at_limit)
