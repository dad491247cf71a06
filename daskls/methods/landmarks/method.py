"""L3-SVMs: linear SVMs of clusters on shared landmarks, solved as one problem."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daskls.methods.base import Method
from daskls.methods.landmarks.model import read_linear_model
from daskls.methods.landmarks.spec import LandmarkSpec
from daskls.partition.base import Partition
from daskls.plan import Extent, Resources
from daskls.records import Float64, Reals
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

if TYPE_CHECKING:
    from daskls.run.contract import Beginning
    from daskls.run.progress import StageClock

__all__ = ["L3"]


@dataclass(frozen=True)
class L3(LandmarkSpec, Method):
    """L3-SVMs."""

    name = "l3"
    chosen = ("C",)

    def check(self, extent: Extent, resources: Resources) -> None:
        """As of `Method`."""
        from daskls.methods.landmarks.plan import check_landmarks

        check_landmarks(self, extent, resources)

    def cut(self, begun: "Beginning") -> Partition:
        """Cluster the sample."""
        from daskls.methods.landmarks.fit import cluster_sample

        return cluster_sample(self, begun)

    def fit(self, begun: "Beginning", clock: "StageClock", client: Any) -> None:
        """Choose landmarks and C, then solve the joint problem."""
        from daskls.methods.landmarks.fit import fit_jointly

        fit_jointly(self, begun, clock, client)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        """Evaluate the linear function of each query's cluster."""
        from daskls.methods.landmarks.answer import score_linearly

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
        return f"{len(root.store.names('joint'))} rounds over all clusters are begun"

    def count_open(self, report: Any) -> Any:
        """As of `Method`; the clusters of one model share theirs."""
        return np.max(report.n_at_limit)
