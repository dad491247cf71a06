"""The contract of a method, the request of an estimator, and the state that a fit begins with.

A method is a frozen record of its parameters beyond the solver's. Its module is light: what trains
is imported by `Method.fit`, so that a process which only predicts never loads the trainers. Stages
know no method: they call the members of `Method`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from daskls.kernels.frame import coded_names
from daskls.memory import TaskSizes
from daskls.partition.base import Partition
from daskls.partition.stored import model_partition
from daskls.plan import (
    Demand,
    Extent,
    Outlook,
    Resources,
    SamplePlan,
    demand_of_cells,
    expected_cells,
)
from daskls.records import (
    FeatureScale,
    Float64,
    Ints,
    Reals,
    ReserveSpec,
    ScalingSpec,
    SolverSpec,
)
from daskls.run.blocks import BlockRows
from daskls.run.progress import StageClock
from daskls.run.scan import TargetScan
from daskls.store.contents import StorePart
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

if TYPE_CHECKING:
    # A process that only predicts never loads what samples rows.
    from daskls.run.sample import Sample


# Maps to probabilities of the values that the loss knows of rows without them.
HELD_OUT = "held_out"


@dataclass(frozen=True)
class Method(ABC):
    """The contract of all methods.

    Attributes
    ----------
    name : str. In stores, and in the register of methods.
    n_copies : int. How many times a fit writes the rows beside the exchange.
    chosen : tuple of str. Parameters that cells choose by cross-validation.
    is_local : bool. Whether predictions depend on the training rows near a query alone, so that a
        part of space at full density is as good as all of it.
    has_probabilities : bool. Whether scores are probabilities by themselves, without fitted maps.
    knows_held_out : bool. Whether the values of rows without them, where the loss knows them, are
        those of queries.
    has_grids : bool. Whether each cell searches a grid of C and gamma for itself.
    step : str, or None. The quantity that differs from one model to the next where several are
        tried and one is kept.
    """

    name: ClassVar[str]
    n_copies: ClassVar[int] = 0
    chosen: ClassVar[tuple[str, ...]] = ("C", "gamma")
    is_local: ClassVar[bool] = False
    has_probabilities: ClassVar[bool] = False
    knows_held_out: ClassVar[bool] = False
    has_grids: ClassVar[bool] = False
    step: ClassVar[str | None] = None

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as JSON values: what names a fit's store, and what it keeps."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the method that `to_json` has written."""
        given = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in values.items()
            if key != "name"
        }
        return cls(**given)

    @classmethod
    def parts(cls) -> tuple[StorePart, ...]:
        """Return what the method keeps in a store beside `daskls.store.contents.SHARED_PARTS`.

        Parts of a key of its own are made from the partition, and go with it.
        """
        return ()

    # --- a fit

    @abstractmethod
    def check(self, extent: Extent, resources: Resources) -> None:
        """Refuse, before any training, tasks that would not fit in memory.

        Called twice: with the sizes that are expected, then with those that were found.

        Raises
        ------
        MemoryPlanError : when a task needs more than it may use. The message names the parameter
            to change.
        """

    def expected_leaves(self, n_rows: int, sampling: SamplePlan, cell_size: int) -> int:
        """Return how many leaves rows are regrouped by, as expected before any is read.

        Those of trees that are grown on the sample, unless a method cuts in another way.
        """
        if sampling.n_sample == n_rows:
            return expected_cells(n_rows, cell_size)[0]
        return -(-n_rows // sampling.leaf_rows)

    def demand(self, outlook: Outlook) -> Demand:
        """Return the tasks, bytes and pieces of work of `cut` and `fit`, as expected.

        Those of cells that space is cut into, one model each, unless a method says otherwise.
        """
        own = demand_of_cells(outlook)
        return replace(own, stages=(outlook.grown, *own.stages))

    @abstractmethod
    def cut(self, begun: "Beginning") -> Partition:
        """Return the partition by which rows are regrouped."""

    @abstractmethod
    def fit(self, begun: "Beginning", clock: StageClock, client: Any) -> None:
        """Train the parts that the store does not hold yet; write the index of the model last."""

    def clean_up(self, root: Root) -> None:
        """Remove files that a finished model does not need, those of earlier fits too."""
        root.remove_leftovers(self.parts())

    # --- a model

    @abstractmethod
    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        """Return the scores of rows, (m,) for two classes, (m, k) for more."""

    def for_rows(self, n_rows: int) -> Self:
        """Return the method with parameters capped to the number of rows."""
        return self

    def probabilities(self, reader: ModelReader, scores: Float64) -> Float64:
        """Return the probability of each class, (m, k), by the rows' scores.

        Only of methods with `has_probabilities`: the others' scores are mapped.
        """
        raise NotImplementedError

    def check_complete(self, root: Root) -> None:
        """Refuse a finished model that lacks a part.

        Raises
        ------
        StoreError : saying which
        """
        self.check_index(ModelReader(root.store))

    def check_index(self, reader: ModelReader) -> None:  # noqa: B027
        """Refuse a model whose index is malformed.

        Raises
        ------
        DamageError
        """

    def has_space(self, reader: ModelReader) -> bool:
        """Whether a model has a partition, which `space` then returns."""
        return "partition" in reader.index.attrs

    def space(self, reader: ModelReader) -> Partition:
        """Return the partition of a model's cells.

        Raises
        ------
        StoreError : when it has none
        """
        return model_partition(reader)

    def agreement(self, reader: ModelReader, X: Reals, codes: Ints, first: int) -> Float64:
        """Return how probable each training row's label is, float64 (m,).

        Parameters
        ----------
        reader : ModelReader. Of a model of these rows.
        X : array (m, d). Training rows.
        codes : int array (m,). Their labels' codes.
        first : int. The global number of the first row.
        """
        raise NotImplementedError

    def progress(self, root: Root) -> str:
        """Describe the progress of a fit that was stopped."""
        return "it has begun"

    def count_open(self, report: Any) -> Any:
        """Return the solves that stopped short of ``tol``, from a model's report."""
        return np.sum(report.n_at_limit)


@dataclass(frozen=True, eq=False)
class FitRequest:
    """The request of an estimator.

    Attributes
    ----------
    estimator : str. The class's name.
    method : Method. Does its own part.
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
    reserved_for : ReserveSpec, or None. What rows are reserved for, which nothing else sees.
    """

    estimator: str
    method: Method
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
    reserved_for: ReserveSpec | None = None
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
