"""L3-SVMs: linear SVMs of clusters on shared landmarks, solved as one problem."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.memory import TaskSizes
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
from daskls.plan.bundles import Resources, SamplePlan
from daskls.plan.fit import FitCost
from daskls.records import Float64, Reals
from daskls.run.contract import FitState, Method, RegroupedRows
from daskls.store.contents import StorePart
from daskls.store.layout import Root
from daskls.store.reader import ModelReader


@dataclass(frozen=True)
class L3(LandmarkSpec, Method):
    name = "l3"
    chosen = ("C",)

    @classmethod
    def parts(cls) -> tuple[StorePart, ...]:
        return LANDMARK_PARTS

    def check(self, sizes: TaskSizes, resources: Resources) -> None:
        check_landmarks(self, sizes, resources)

    def expected_leaves(self, n_rows: int, sampling: SamplePlan, cell_size: int) -> int:
        return min(self.n_cells or count_clusters(n_rows), sampling.n_sample)

    def expected(
        self, sizes: TaskSizes, n_leaves: int, n_partitions: int, resources: Resources
    ) -> FitCost:
        return expected_landmarks(self, sizes, n_leaves)

    def cut(self, state: FitState) -> Partition:
        from daskls.methods.landmarks.fit import cluster_sample

        return cluster_sample(self, state)

    def train(self, state: FitState, regrouped: RegroupedRows | None) -> None:
        from daskls.methods.landmarks.fit import fit_jointly

        assert regrouped is not None
        fit_jointly(self, state, regrouped)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        return score_linearly(reader, X)

    def check_index(self, reader: ModelReader) -> None:
        read_linear_model(reader)

    def has_space(self, reader: ModelReader) -> bool:
        return True

    def space(self, reader: ModelReader) -> Partition:
        return read_linear_model(reader).cells

    def progress(self, root: Root) -> str:
        return f"{count_rounds(root)} rounds over all clusters have begun"

    def count_open(self, report: Any) -> Any:
        """The solves are joint, so each cluster reports the same number."""
        return np.max(report.n_at_limit)
