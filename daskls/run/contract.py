"""Contracts between estimators, methods and stages; the state that a fit begins with.

Stages know no method: they call the members of `Contract`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from daskls.kernels.frame import coded_names
from daskls.memory import TaskSizes
from daskls.partition.base import Partition
from daskls.plan import Extent, Resources, SamplePlan
from daskls.records import FeatureScale, Float64, ScalingSpec, SolverSpec
from daskls.run.progress import StageClock
from daskls.run.rows import BlockRows
from daskls.run.scan import TargetScan
from daskls.store.layout import Root

if TYPE_CHECKING:
    # A process that only predicts never loads what samples rows.
    from daskls.run.sample import Sample

__all__ = ["HELD_OUT", "Beginning", "Contract", "FitRequest"]

# Maps to probabilities of the values that the loss knows of rows without them.
HELD_OUT = "held_out"


class Contract(Protocol):
    """A method, as the stages that all methods share see it; `daskls.methods.base` says more."""

    @property
    def n_copies(self) -> int:
        """Copies of the rows that a fit writes beside the exchange."""

    @property
    def is_local(self) -> bool:
        """Whether predictions depend on training rows near a query alone."""

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""

    def for_rows(self, n_rows: int) -> "Contract":
        """Return the method with parameters capped to the number of rows."""

    def check(self, extent: Extent, resources: Resources) -> None:
        """Refuse tasks that would not fit in memory."""

    def cut(self, begun: "Beginning") -> Partition:
        """Return the partition by which rows are regrouped."""

    def fit(self, begun: "Beginning", clock: StageClock, client: Any) -> None:
        """Train the parts that the store does not hold yet; write the index of the model last."""

    def clean_up(self, root: Root) -> None:
        """Remove files that a finished model does not need."""

    def check_complete(self, root: Root) -> None:
        """Refuse a finished model that lacks a part."""


@dataclass(frozen=True, eq=False)
class FitRequest:
    """The request of an estimator.

    Attributes
    ----------
    estimator : str. The class's name.
    method : Contract. Does the method's own part.
    params : dict. JSON values that a saved model shows and a loaded estimator takes.
    spec : SolverSpec
    cell_size : int
    seed : int, or None to draw one (a store that has begun keeps its own)
    class_weight : dict label -> number, "balanced", or None
    n_partitions : int
    count_cells : function of the rows that count, or None. Where given, ``cell_size`` is a cell's
        share of them.
    sample_remedy : str. What to do where the sample is too large, in the method's own terms.
    feature_names : list of str, or None where X has no names
    scaling : ScalingSpec, or None where nothing is decided before space is cut
    minds_units : bool. Whether to warn of features with very different spreads.
    minds_space : bool. Whether to measure how much nearer the rows of a cell are to each other.
    is_nested : bool. Whether it is part of another fit, which has told its advice.
    n_folds : int, or None. Folds that every class should have a row for; None: nothing is
        cross-validated.
    table : dict, or None. How columns of a table became features, as JSON values.
    probability : "sigmoid" or "isotonic": maps of scores to probabilities are fitted to rows that
        a fit of their own held out; `HELD_OUT`: to values that the fit knows; or None
    """

    estimator: str
    method: Contract
    params: dict[str, Any]
    spec: SolverSpec
    cell_size: int
    seed: int | None
    class_weight: dict[Any, float] | str | None
    n_partitions: int = 1
    count_cells: Callable[[int], int] | None = None
    sample_remedy: str = ""
    feature_names: list[str] | None = None
    scaling: ScalingSpec | None = None
    minds_units: bool = False
    minds_space: bool = False
    is_nested: bool = False
    n_folds: int | None = None
    probability: str | None = None
    table: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Beginning:
    """Findings and decisions of stage 1.

    Once ``scale`` is known, sample and sizes are of scaled rows.
    """

    request: FitRequest
    rows: BlockRows
    scan: TargetScan
    resources: Resources
    sizes: TaskSizes
    sampling: SamplePlan
    sample: "Sample"
    seed: int
    class_weight: Float64
    root: Root
    scale: FeatureScale | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the features that leaves and cells see."""
        return np.dtype(self.rows.X.dtype if self.scale is None else np.float32)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features that leaves and cells see; their numbers where X has none."""
        names = self.request.feature_names
        n_features = self.rows.n_features
        names = [f"feature {i}" for i in range(n_features)] if names is None else names
        coded = coded_names(names, self.scale)
        return coded if self.scale is None else [coded[i] for i in self.scale.columns]

    @property
    def fingerprint(self) -> str:
        """The name of the fit among all fits."""
        return str(self.root.attributes["fingerprint"])
