"""The interface between the grid search and a loss: lines of solves at one width."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from daskls.kernels.registry import find_kernel
from daskls.records import F4, Float32, Float64, Int64, KernelSpec, SolverSpec
from daskls.solvers.base import Sizes
from daskls.solvers.data import Counts, kernel_of
from daskls.solvers.pairs import ClassPairs

__all__ = ["Line", "Seeds", "Width"]


@dataclass(frozen=True, eq=False)
class Line:
    """Solutions without one fold: betas float32 (n, s), offsets float32 (n, n_pairs)."""

    betas: Float32
    offsets: Float32


@dataclass(frozen=True, eq=False)
class Seeds:
    """Each fold's solution at the best point so far: betas float32 (n_folds, s), and its C.

    ``cost`` is 0 where there is none yet.
    """

    betas: Float32
    cost: float


class Width(ABC):
    """Solves all pairs of a cell at one width after the other, fold by fold along C.

    A decision function is ``K beta + offset``; the objective of ``beta`` depends on the loss.

    Parameters
    ----------
    pairs : ClassPairs
    spec : SolverSpec
    folds : list of int. The folds that hold rows.

    Attributes
    ----------
    K : float32 array, shape (m, m). The cell's kernel matrix at the width.
    counts : Counts. Of all solves.
    """

    def __init__(self, pairs: ClassPairs, spec: SolverSpec, folds: list[int]) -> None:
        self.pairs, self.spec, self.folds = pairs, spec, folds
        self.counts = Counts()
        self.K = np.empty_like(pairs.cell.base)

    @classmethod
    def nbytes(cls, sizes: Sizes, n_rows: int) -> int:
        """Return the bytes that an instance holds, for a cell of so many rows."""
        return n_rows * n_rows * F4

    def move(self, gamma: float, seeds: Seeds) -> None:
        """Go to a width: write its kernel matrix.

        Parameters
        ----------
        gamma : float
        seeds : Seeds. Where later solves may start.
        """
        kernel = kernel_of(self.spec, gamma)
        find_kernel(kernel.name).write(self.pairs.cell.base, kernel, self.K)

    def decide(self, line: Line, held_out: slice) -> Int64:
        """Return which class wins each held-out row at each C of the line solved last: (n, h)."""
        return self.pairs.decide(self.K, line.betas, line.offsets, held_out)

    @abstractmethod
    def solve(self, at: int, costs: Float64, tol: float) -> Line:
        """Train every pair without one fold at each C; count.

        Parameters
        ----------
        at : int. Index of the fold among ``folds``.
        costs : float64 array, shape (n,), increasing
        tol : float
        """

    def finish(  # noqa: B027 - nothing to do is an answer, too
        self, kernel: KernelSpec, cost: float, betas: Float32, offsets: Float64
    ) -> None:
        """Bring the fold models at the width to the precision of kept models, in place; count.

        A loss whose solves already have that precision does nothing.

        Parameters
        ----------
        kernel : KernelSpec. That of the width.
        cost : float. The chosen C.
        betas : float32 array, shape (n_folds, s)
        offsets : float64 array, shape (n_folds, n_pairs)
        """
