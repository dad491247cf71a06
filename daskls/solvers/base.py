"""The interface of a local solver: a batch of cells in, their models out, and its memory in bytes.

A solver of another loss, or on other hardware, is a subclass with a line in `solvers.registry`; it
projects the memory that it needs itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

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

# Small vectors of one value a row, of all the functions that are active at the peak.
ROW_TEMPORARIES = 128


@dataclass(frozen=True, eq=False)
class CellRows:
    """The rows of one cell, and the numbers that identify it.

    Attributes
    ----------
    X : real array, shape (m, d). By increasing global row number.
    targets : array, shape (m,). Class codes, of any subset of the classes; or numbers.
    weights : float array, shape (m,), > 0. Multiply C; validation errors are weighted by them.
    report : CellReport. Carries the cell's and the leaf's number; the solver fills in the rest.
    seed : tuple of int. Names the cell among all cells of all fits.
    asked : int64 array, shape (q,), or None. Rows whose held-out values the model is to bring, of a
        loss that knows them.
    """

    X: Reals
    targets: Targets
    weights: Float64
    report: CellReport
    seed: tuple[int, ...]
    asked: Int64 | None = None


class Sizes(Protocol):
    """The sizes of a fit that a projection of bytes uses."""

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def n_classes(self) -> int:
        """The classes of all rows, of which a cell holds as many at the most; or the numbers."""

    @property
    def n_outputs(self) -> int:
        """The functions of a model of one class against the rest, or of numbers."""

    @property
    def row_nbytes(self) -> int:
        """One row as it is read."""

    @property
    def spec(self) -> SolverSpec:
        """Parameters that cells are trained with."""


class LocalSolver(ABC):
    """Trains the models of cells. It has no state: one serves all fits of a process."""

    @abstractmethod
    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        """Train the model of each cell; yield them in the order of the cells.

        Parameters
        ----------
        cells : iterable of CellRows. Read lazily: how many are in memory at once is the solver's
            choice, and part of its `nbytes`.
        spec : SolverSpec
        """

    def settle(self, spec: SolverSpec, targets: Targets, weights: Float64) -> SolverSpec:
        """Return the spec with what cells are to know of all rows; as a rule there is nothing.

        Parameters
        ----------
        spec : SolverSpec
        targets, weights : arrays of the sampled rows, as cells see them
        """
        return spec

    @abstractmethod
    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """Return the bytes that training adds to a task, of cells of up to ``n_rows`` rows.

        Beside the rows that the task holds. An upper bound, which tests compare with measured
        peaks.
        """

    def model_nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """Return the bytes of the models of ``n_rows`` rows if every row is a support row."""
        return n_rows * (sizes.n_features + self.n_coefficients(sizes)) * F4

    def n_coefficients(self, sizes: Sizes) -> int:
        """Return the rows of a model's ``coef``: of one-vs-one a class's against each other."""
        return sizes.n_classes - 1


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """A center's k nearest rows, in order, and what is tried on them.

    Attributes
    ----------
    X : real array, shape (k, d). Nearest first.
    targets : array, shape (k,) or (k, t), as of `CellRows`
    weights : float array, shape (k,), > 0
    n_inner : int. k': the first so many rows, on which candidates are compared.
    spec : SolverSpec. Its C, and gamma if ``percentiles`` is None, are the candidates.
    percentiles : tuple of float, decreasing, or None. Widths, as percentiles of the distances.
    seed : tuple of int. Names the neighborhood.
    """

    X: Reals
    targets: Targets
    weights: Float64
    n_inner: int
    spec: SolverSpec
    percentiles: tuple[float, ...] | None
    seed: tuple[int, ...]


class NeighborhoodSolver(ABC):
    """Trains the models of neighborhoods. It has no state, as a `LocalSolver`.

    A model predicts queries near its center, so candidates are compared there: on the k' inner
    rows, while the outer ones always train.
    """

    @abstractmethod
    def grid_errors(self, near: Neighborhood) -> Float64:
        """Return the errors of every candidate on inner rows that its model did not see.

        Returns
        -------
        errors : float64 array, shape (n_gammas, n_costs, 2), widest first, smallest C first. What
            inner rows miss, times their weight and summed; the weight of all inner rows.
        """

    @abstractmethod
    def fit_neighborhood(self, near: Neighborhood, report: CellReport) -> LocalModel:
        """Train one model; of several candidates, the best on the inner rows.

        Parameters
        ----------
        near : Neighborhood
        report : CellReport. Carries the cell's and the leaf's number; the rest is filled in.
        """

    @abstractmethod
    def candidate_models(self, near: Neighborhood) -> Iterator[LocalModel]:
        """Yield the model of every candidate: widest first, smallest C first."""
