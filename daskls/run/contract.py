"""The contract of a method, the request of an estimator, and the state of a fit after stage 1.

A method's module is light: `Method.fit` imports the trainers, so that a process that only predicts
never loads them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from daskls.gaps import names_of
from daskls.kernels.frame import encoded_names
from daskls.kernels.kernel import find_kernel
from daskls.memory import TaskSizes
from daskls.partition.base import Partition
from daskls.partition.space import grow_forest
from daskls.partition.stored import model_partition
from daskls.plan.bundles import (
    Resources,
    SamplePlan,
    expected_cells,
    model_nbytes,
    plan_bundles,
    plan_sample,
    share_of,
)
from daskls.plan.fit import FitCost
from daskls.records import (
    F4,
    F8,
    FeatureScale,
    Float64,
    Int64,
    Ints,
    Reals,
    ReserveSpec,
    ScalingSpec,
    SolverSpec,
)
from daskls.run.blocks import BlockRows
from daskls.run.progress import StageClock
from daskls.run.scan import TargetScan, class_weights
from daskls.store.contents import StorePart
from daskls.store.exchange import Exchange
from daskls.store.layout import Root
from daskls.store.leaves import CACHE_NBYTES, LeafReader, open_leaves
from daskls.store.reader import ModelReader
from daskls.targets import Target

if TYPE_CHECKING:
    # A process that only predicts must not load the modules that sample rows.
    from daskls.run.reserve import Reserve
    from daskls.run.sample import Sample


# Bytes of a query while queries are sorted by cell, or by leaf: the order, and copies.
QUERY_NBYTES = 128
# Probabilities by sigmoids of each query's own neighbors, for which a fit has nothing to do.
EACH = "each"
# Most leaves whose bundles a plan makes one by one.
MOST_LEAVES = 20_000


@dataclass(frozen=True)
class Method(ABC):
    """The contract of all methods.

    Attributes
    ----------
    name : str. In stores, and in the registry of methods.
    keeps_rows : bool. Whether models search among their training rows, which a fit gathers by leaf.
    chosen : tuple of str. Parameters that cells choose by cross-validation.
    is_local : bool. Whether predictions depend only on training rows near the query, so a
        part of space at full density is as good as all of it.
    has_probabilities : bool. Whether scores are probabilities, which need no fitted maps.
    knows_held_out : bool. Whether held-out values of the loss, where it has them, are values that
        the method would predict for new rows.
    has_grids : bool. Whether each cell searches its own grid of C and gamma.
    step : str, or None. The quantity in which models differ where several are tried and one is
        kept.
    """

    name: ClassVar[str]
    keeps_rows: ClassVar[bool] = False
    chosen: ClassVar[tuple[str, ...]] = ("C", "gamma")
    is_local: ClassVar[bool] = False
    has_probabilities: ClassVar[bool] = False
    knows_held_out: ClassVar[bool] = False
    has_grids: ClassVar[bool] = False
    step: ClassVar[str | None] = None

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as JSON values, which are stored and identify the fit."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        parameters = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in values.items()
            if key != "name"
        }
        return cls(**parameters)

    @classmethod
    def parts(cls) -> tuple[StorePart, ...]:
        """Return what the method keeps in a store beside `daskls.store.contents.SHARED_PARTS`.

        Parts with a key of their own are derived from the partition and are removed with it.
        """
        return ()

    # --- a fit

    @abstractmethod
    def check(self, sizes: TaskSizes, resources: Resources) -> None:
        """Raise MemoryPlanError for tasks that would not fit; asked again once sizes are known."""

    def expected_leaves(self, n_rows: int, sampling: SamplePlan, cell_size: int) -> int:
        """Return the expected number of leaves; by default that of trees grown on the sample."""
        if sampling.n_sample == n_rows:
            return expected_cells(n_rows, cell_size)
        return -(-n_rows // sampling.leaf_rows)

    def expected(
        self, sizes: TaskSizes, n_leaves: int, n_partitions: int, resources: Resources
    ) -> FitCost:
        """Return what `fit` is expected to take; by default that of cells with one model each."""
        n_rows = n_partitions * sizes.n_rows
        # Of very many leaves, the bundles are extrapolated.
        known = min(n_leaves, MOST_LEAVES)
        bundles = plan_bundles(sizes, [n_rows // n_leaves] * known)
        n_cells = n_partitions * expected_cells(sizes.n_rows, sizes.cell_size)
        n_bundles = len(bundles) * n_leaves // known
        largest = max(bundle.nbytes for bundle in bundles)
        return FitCost(n_bundles, n_cells, largest, model_nbytes(sizes, n_rows))

    def cut(self, state: "FitState") -> Partition:
        """Return the partition by which rows are regrouped; by default grown on the sample."""
        X = state.sample.X
        # In float64, as it is subtracted from rows before they become float32.
        center = X.mean(axis=0, dtype=np.float64)
        bound = state.sampling.max_sampled_rows
        return grow_forest(X, bound, center, state.request.n_partitions, state.seed)

    def is_trained(self, root: Root) -> bool:
        """Whether the store holds all that needs the rows by leaf."""
        return False

    @abstractmethod
    def train(self, state: "FitState", regrouped: "RegroupedRows | None") -> None:
        """Train the parts that the store does not hold yet; write the model's index last.

        There are no regrouped rows where `is_trained`, or where the store keeps the rows.
        """

    def clean_up(self, root: Root) -> None:
        """Remove the files that a finished model does not need, also those of earlier fits."""
        root.remove_leftovers(self.parts())

    # --- a model

    @property
    def predicts_by_place(self) -> bool:
        """Whether a query is predicted by the cells of the partition that it lies in, alone."""
        return self.is_local and not self.keeps_rows

    @abstractmethod
    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        """Return the scores of rows: (m,) for two classes, (m, k) for more."""

    def for_rows(self, n_rows: int) -> Self:
        return self

    def query_nbytes(self, reader: ModelReader) -> int:
        """Return the bytes that a query takes, beside its features, while its cells are found."""
        n_cells = self.space(reader).n_partitions if self.has_space(reader) else 1
        return QUERY_NBYTES + F8 * n_cells

    def probabilities(self, reader: ModelReader, scores: Float64) -> Float64:
        """Return the probability of each class, (m, k), where `has_probabilities`."""
        raise NotImplementedError

    def local_probabilities(self, reader: ModelReader, X: Reals) -> Float64:
        """Return the same of rows, where they were asked of `EACH`."""
        raise NotImplementedError

    def check_complete(self, root: Root) -> None:
        """Raise StoreError, which names the part, if a finished model lacks one."""
        self.check_index(ModelReader(root.store))

    def check_index(self, reader: ModelReader) -> None:  # noqa: B027
        """Raise DamageError if the model's index is malformed."""

    def has_space(self, reader: ModelReader) -> bool:
        """Whether a model has a partition, which `space` then returns."""
        return "partition" in reader.index.attrs

    def space(self, reader: ModelReader) -> Partition:
        return model_partition(reader)

    def agreement(self, reader: ModelReader, X: Reals, codes: Ints, first: int) -> Float64:
        """Return the probability of each training row's label, (m,); ``first`` is a row number."""
        raise NotImplementedError

    def progress(self, root: Root) -> str:
        return "it has begun"

    def count_open(self, report: Any) -> Any:
        """Return how many solves stopped before they reached ``tol``, from a model's report."""
        return np.sum(report.n_at_limit)


@dataclass(frozen=True, eq=False)
class FitRequest:
    """The request of an estimator for a fit.

    `params` are JSON values that a saved model shows and a loaded estimator takes; `count_cells`,
    from the number of rows of positive weight, or `usual`, from rows, features and outputs, decides
    the size of cells where it is given. `is_nested`: part of another fit, which has given the
    advice. `sample_remedy` says, in the method's own terms, what to do where the sample is too
    large. None of `seed` draws one, of `n_folds` means that nothing is cross-validated, of
    `scaling` that nothing is decided before space is cut. `origin` tells people where rows came
    from, as JSON values.
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
    usual: Callable[[int, int, int], tuple[int, int]] | None = None
    sample_remedy: str = ""
    feature_names: list[str] | None = None
    scaling: ScalingSpec | None = None
    checks_units: bool = False
    measures_shrinkage: bool = False
    is_nested: bool = False
    n_folds: int | None = None
    probability: str | None = None
    reserved_for: ReserveSpec | None = None
    table: dict[str, Any] | None = None
    takes_nan: bool = True
    origin: dict[str, Any] = field(default_factory=dict)

    def for_data(self, n_rows: int, n_features: int, n_targets: int) -> Self:
        if self.count_cells is not None:
            return replace(self, cell_size=share_of(n_rows, self.count_cells(n_rows)))
        if self.usual is None:
            return self
        cell_size, n_partitions = self.usual(n_rows, n_features, n_targets)
        # Settled for good: fits of some of the rows, for probabilities, are like the model.
        return replace(self, cell_size=cell_size, n_partitions=n_partitions, usual=None)


@dataclass(frozen=True, eq=False)
class ScannedRows:
    """The state of a fit once y is read, before X is: all that is planned follows from it."""

    request: FitRequest
    rows: BlockRows
    scan: TargetScan
    resources: Resources

    @property
    def sizes(self) -> TaskSizes:
        return sizes_of(self.request, self.rows, self.scan.target, self.scan.n_kept)

    @property
    def sampling(self) -> SamplePlan:
        return plan_sample(self.scan.n_kept, self.rows.n_features, self.request.cell_size)

    @cached_property
    def class_weight(self) -> Float64:
        return class_weights(self.request.class_weight, self.rows, self.scan)

    def check_memory(self, largest_leaf: int | None = None) -> None:
        """Raise MemoryPlanError for tasks that would not fit; the largest leaf may be known."""
        sizes = self.sizes
        if largest_leaf is not None:
            sizes = replace(sizes, leaf_rows=largest_leaf, at="found")
        self.request.method.check(sizes, self.resources)


def sizes_of(request: FitRequest, rows: BlockRows, target: Target, n_rows: int) -> TaskSizes:
    sampling = plan_sample(n_rows, rows.n_features, request.cell_size)
    return TaskSizes(
        rows.n_features,
        rows.X.dtype.itemsize,
        target.n_functions,
        request.cell_size,
        request.spec,
        target_nbytes=target.width * target.dtype.itemsize,
        # Rows are copied only where some may be left out, or lack values.
        n_block_copies=2
        + (rows.weights is not None or request.reserved_for is not None)
        + (rows.filling is not None),
        source_nbytes=rows.source_nbytes,
        unpack_nbytes=rows.unpack_nbytes,
        n_rows=n_rows,
        leaf_rows=min(sampling.largest_rows, n_rows),
        block_rows=rows.block_rows,
    )


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit as its tasks know it: the store, the parameters as decided, the counts of the data.

    `method` is a `Method`, or what its own tasks read of it. `counts` are those of `TargetScan`. Of
    gathered rows a process keeps `cache_nbytes`.
    """

    root: str
    fingerprint: str
    method: Any
    spec: SolverSpec
    cell_size: int
    seed: int
    counts: Int64
    probability: str | None = None
    cache_nbytes: int = CACHE_NBYTES

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    def open_rows(self) -> LeafReader:
        return open_leaves(self.root, self.fingerprint, self.cache_nbytes)


@dataclass(frozen=True, eq=False)
class FitState(ScannedRows):
    """The findings and decisions so far, and what a fit runs with; it never travels to a task.

    Once ``scale`` is known, ``sample`` and ``sizes`` are those of scaled rows. ``scan`` knows
    nothing of the rows of ``reserve``.
    """

    sample: "Sample"
    seed: int
    root: Root
    clock: StageClock
    client: Any
    scale: FeatureScale | None = None
    reserve: "Reserve | None" = None

    @property
    def sizes(self) -> TaskSizes:
        raw = super().sizes
        if self.scale is None:
            return raw
        raw_nbytes = raw.n_features * raw.itemsize
        n_features = len(self.scale.columns)
        return replace(raw, n_features=n_features, itemsize=F4, raw_nbytes=raw_nbytes)

    @property
    def scale_gamma(self) -> float:
        """1 / (d x variance of the sampled values); the sample is all rows up to some 65,000."""
        variance = float(self.sample.X.var(dtype=np.float64))
        # As in scikit-learn, 1 where all values are equal.
        return 1.0 / (self.sizes.n_features * variance) if variance else 1.0

    @property
    def resolved_spec(self) -> SolverSpec:
        """The spec, with scikit-learn's gamma "scale" if the kernel needs one and has none."""
        spec = self.request.spec
        if spec.gamma is not None or not find_kernel(spec.kernel).has_gamma:
            return spec
        return replace(spec, gamma=(self.scale_gamma,))

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.rows.X.dtype if self.scale is None else np.float32)

    @property
    def feature_names(self) -> list[str]:
        names = self.request.feature_names or names_of(self.rows.X.shape[1], self.rows.gaps)
        coded = encoded_names(names, self.scale)
        return coded if self.scale is None else [coded[i] for i in self.scale.columns]

    @property
    def fingerprint(self) -> str:
        return self.root.fingerprint

    @cached_property
    def fit(self) -> Fit:
        """The record that every task gets."""
        request = self.request
        return Fit(
            self.root.where(),
            self.fingerprint,
            request.method,
            request.spec,
            request.cell_size,
            self.seed,
            self.scan.counts,
            request.probability,
            min(CACHE_NBYTES, self.resources.task_nbytes // 4),
        )


@dataclass(frozen=True, eq=False)
class RegroupedRows:
    """All rows by leaf: the partition, the files that hold them, and how many each leaf has."""

    partition: Partition
    exchange: Exchange
    leaf_rows: Int64
