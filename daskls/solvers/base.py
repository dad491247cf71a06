"""The interface of a local solver: it trains the models of cells and projects its own memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from daskls.records import F4, CellReport, Float64, Int64, LocalModel, Reals, SolverSpec, Targets

# Bytes per row of the small vectors that all active functions hold at the peak.
ROW_TEMPORARIES = 128
# Rows of a cell whose held-out values estimate its error, where the solver evaluates only some:
# with all of them least squares would take twice as long. With few cells there are more of each, so
# that the mean over cells is of at least EVALUATED_IN_ALL.
EVALUATED_ROWS, EVALUATED_IN_ALL = 64, 1000
# The report to start from where nobody asks for the cell's number.
BLANK_REPORT = CellReport(0, 0, 0, 0, 0.0)


@dataclass(frozen=True, eq=False)
class CellRows:
    """The rows of one cell by increasing global number, and the numbers that identify it.

    targets are (m,) class codes or (m, t) numbers; the report carries the cell's and the leaf's
    number, the solver fills in the rest. The model should hold held-out values of `requested` rows.
    `n_evaluated` rows estimate the cell's error, where only some do. `counts` says how many rows of
    the data each stands for: equal rows of equal targets are one, of their summed weight.
    """

    X: Reals
    targets: Targets
    weights: Float64
    report: CellReport
    seed: tuple[int, ...]
    requested: Int64 | None = None
    n_evaluated: int = EVALUATED_ROWS
    counts: Int64 | None = None


def evaluated_rows(n_rows: int, n_of_all: int) -> int:
    """Return how many rows of a cell estimate its error.

    >>> evaluated_rows(4000, 4000), evaluated_rows(4000, 16_000), evaluated_rows(4000, 10**6)
    (1000, 250, 64)
    """
    return max(EVALUATED_ROWS, -(-EVALUATED_IN_ALL * n_rows // n_of_all))


class Sizes(Protocol):
    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def n_classes(self) -> int:
        """The number of classes in the data, the most that a cell holds; or of numbers per row."""

    @property
    def n_outputs(self) -> int:
        """The number of functions of a one-vs-rest model, or of a regression."""

    @property
    def row_nbytes(self) -> int:
        """The bytes of one row as it is read."""

    @property
    def spec(self) -> SolverSpec:
        """The parameters that cells are trained with."""


class LocalSolver(ABC):
    """Trains the models of cells. It has no state: one instance serves all fits of a process.

    `merges_targets`: rows of equal features are one row of the problem whatever their targets, so
    that a cell's size is the number of its distinct features.
    """

    merges_targets: ClassVar[bool] = False

    @abstractmethod
    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        """Train the model of each cell, in order; cells are read lazily."""

    def completed(self, spec: SolverSpec, targets: Targets, weights: Float64) -> SolverSpec:
        """Return the spec with what cells must know about all rows, as the sample tells."""
        return spec

    @abstractmethod
    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """Return the most bytes that training cells of up to ``n_rows`` rows adds to a task."""

    def model_nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """Return the bytes of the models of ``n_rows`` rows if every row is a support row."""
        return n_rows * (sizes.n_features + self.n_coefficients(sizes)) * F4

    def n_coefficients(self, sizes: Sizes) -> int:
        """Return the coefficients per row: for one-vs-one, one against each other class."""
        return sizes.n_classes - 1


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """A center's k nearest rows, nearest first, and candidates to compare on the inner ones."""

    X: Reals
    targets: Targets
    weights: Float64
    n_inner: int
    spec: SolverSpec
    percentiles: tuple[float, ...] | None
    seed: tuple[int, ...]


class NeighborhoodSolver(ABC):
    """Trains the models of neighborhoods. It has no state, like a `LocalSolver`."""

    @abstractmethod
    def grid_errors(self, near: Neighborhood) -> Float64:
        """Return summed errors of every candidate on inner rows held out, and these rows' weight.

        float64 (n_gammas, n_costs, 2), widest first, smallest C first.
        """

    @abstractmethod
    def fit_neighborhood(self, near: Neighborhood, report: CellReport) -> LocalModel:
        """Train one model; of several candidates, the best on the inner rows."""

    @abstractmethod
    def candidate_models(self, near: Neighborhood) -> Iterator[LocalModel]:
        """Yield the model of every candidate: widest first, smallest C first."""
