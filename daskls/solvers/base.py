"""The interface of a local solver: it trains the models of cells and projects its own memory.

A solver of another loss, or for other hardware, is a subclass with a line in `solvers.registry`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from daskls.records import (
    F4,
    CellReport,
    Float64,
    Int64,
    LocalModel,
    Reals,
    SolverSpec,
    Targets,
)

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
    """The rows of one cell, and the numbers that identify it.

    Attributes
    ----------
    X : real array, shape (m, d). By increasing global row number.
    targets : array, shape (m,) of class codes, any subset of the classes; or (m, t) of numbers
    weights : float array, shape (m,), > 0. Multiply C; validation errors are weighted by them.
    report : CellReport. Carries the cell's and the leaf's number; the solver fills in the rest.
    seed : tuple of int. Unique to the cell.
    asked : int64 array, shape (q,), or None. Rows whose held-out values the model should hold; only
        for losses with `Loss.knows_held_out`.
    n_evaluated : int. Rows that estimate the cell's error, where the solver evaluates only some.
    counts : int64 array, shape (m,), or None for 1 each. How many rows of the data each stands for:
        equal rows of equal targets are one, of their summed weight, and on one side of any split.
    """

    X: Reals
    targets: Targets
    weights: Float64
    report: CellReport
    seed: tuple[int, ...]
    asked: Int64 | None = None
    n_evaluated: int = EVALUATED_ROWS
    counts: Int64 | None = None


def evaluated_rows(n_rows: int, n_of_all: int) -> int:
    """Return how many rows of a cell estimate its error.

    >>> evaluated_rows(4000, 4000), evaluated_rows(4000, 16_000), evaluated_rows(4000, 10**6)
    (1000, 250, 64)
    """
    return max(EVALUATED_ROWS, -(-EVALUATED_IN_ALL * n_rows // n_of_all))


class Sizes(Protocol):
    """The sizes of a fit that determine a projection of bytes."""

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

    Attributes
    ----------
    merges_targets : bool. Whether rows of equal features are one row of the problem whatever their
        targets, so that a cell's size is the number of its distinct features.
    """

    merges_targets: ClassVar[bool] = False

    @abstractmethod
    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        """Train the model of each cell; yield them in the order of the cells.

        Parameters
        ----------
        cells : iterable of CellRows. Read lazily: the solver decides how many are in memory at
            once, and `nbytes` counts them.
        spec : SolverSpec
        """

    def settle(self, spec: SolverSpec, targets: Targets, weights: Float64) -> SolverSpec:
        """Return the spec with what cells must know about all rows added; by default unchanged.

        Parameters
        ----------
        spec : SolverSpec
        targets, weights : arrays of the sampled rows, in the form that cells get
        """
        return spec

    @abstractmethod
    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """Return the bytes that training cells of up to ``n_rows`` rows adds to a task.

        The rows that the task holds are not included. An upper bound, which tests compare with
        measured peaks.
        """

    def model_nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """Return the bytes of the models of ``n_rows`` rows if every row is a support row."""
        return n_rows * (sizes.n_features + self.n_coefficients(sizes)) * F4

    def n_coefficients(self, sizes: Sizes) -> int:
        """Return the coefficients per row: for one-vs-one, one against each other class."""
        return sizes.n_classes - 1


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """A center's k nearest rows, nearest first, and the candidates to try on them.

    Candidates are compared on the `n_inner` nearest. They are the C of `spec`, and its gamma, or
    widths as percentiles of the distances, decreasing. The seed is unique to the neighborhood.
    """

    X: Reals
    targets: Targets
    weights: Float64
    n_inner: int
    spec: SolverSpec
    percentiles: tuple[float, ...] | None
    seed: tuple[int, ...]


class NeighborhoodSolver(ABC):
    """Trains the models of neighborhoods. It has no state, like a `LocalSolver`.

    A model predicts queries near its center, so candidates are compared there: on the k' inner
    rows. The outer rows are always trained on.
    """

    @abstractmethod
    def grid_errors(self, near: Neighborhood) -> Float64:
        """Return the errors of every candidate on inner rows that its model has not seen.

        Returns
        -------
        errors : float64 array, shape (n_gammas, n_costs, 2), widest first, smallest C first. The
            sum of the inner rows' weighted errors, and the weight of all inner rows.
        """

    @abstractmethod
    def fit_neighborhood(self, near: Neighborhood, report: CellReport) -> LocalModel:
        """Train one model; of several candidates, the best on the inner rows.

        ``report`` carries the cell's and the leaf's number; the solver fills in the rest.
        """

    @abstractmethod
    def candidate_models(self, near: Neighborhood) -> Iterator[LocalModel]:
        """Yield the model of every candidate: widest first, smallest C first."""
