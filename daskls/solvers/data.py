"""One cell's rows as the solvers read them, and the result of a search."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskls.kernels.votes import pairs_of
from daskls.records import Float32, Float64, Int64, KernelSpec, SolverSpec
from daskls.solvers.grid_points import NO_PASS, GridPoint

__all__ = ["CellData", "Choice", "Counts", "kernel_of", "max_steps"]


@dataclass
class CellData:
    """One cell's rows, ordered by fold, as the solvers see them.

    Attributes
    ----------
    rows : float32 array, shape (m, d). Centered, in the cell's unit of length.
    base : float32 array, shape (m, m). What the kernel is a function of; (0, 0) where it is not
        held.
    codes : int array, shape (m,). Position of each row's class among the classes present.
    folds : int array, shape (m,), increasing
    weights : float32 array, shape (m,), > 0
    n_classes : int
    """

    rows: Float32
    base: Float32
    codes: Int64
    folds: Int64
    weights: Float32
    n_classes: int

    def pairs(self) -> Iterator[tuple[int, int, Int64, Float32]]:
        """Yield each pair (a, b) with its rows and their signs, -1 for a and +1 for b."""
        for a, b in pairs_of(self.n_classes):
            rows = np.flatnonzero((self.codes == a) | (self.codes == b))
            yield a, b, rows, np.where(self.codes[rows] == b, np.float32(1), np.float32(-1))

    def fold_ptr(self, rows: Int64, n_folds: int) -> Int64:
        """Return where each fold begins among some rows, and the number of rows last."""
        return np.searchsorted(self.folds[rows], np.arange(n_folds + 1))


@dataclass
class Counts:
    """Pair steps, solves, and solves that ended above the gap's limit."""

    n_steps: int = 0
    n_trained: int = 0
    n_at_limit: int = 0

    def add(self, other: "Counts") -> None:
        """Add what another search counted."""
        self.n_steps += other.n_steps
        self.n_trained += other.n_trained
        self.n_at_limit += other.n_at_limit


@dataclass
class Choice:
    """The selected combination and the coefficients of its fold models' mean.

    ``coef`` is float32 (k - 1, m) as scikit-learn's ``dual_coef_``; ``intercepts`` float64, one a
    pair of classes. ``n_tried`` counts the combinations of the grid that were trained, ``first``
    names the point that the coarse pass chose, ``errors`` is as of `LocalModel`.
    """

    kernel: KernelSpec
    C: float
    error: float
    coef: Float32
    intercepts: Float64
    counts: Counts
    edge: str = ""
    n_tried: int = 0
    first: GridPoint = NO_PASS
    errors: Float32 | None = None


def max_steps(n_rows: int) -> int:
    """Return the step limit of one solve: a guard against endless loops, not a setting."""
    return 100_000 + 1000 * n_rows


def kernel_of(spec: SolverSpec, gamma: float) -> KernelSpec:
    """Return the kernel at one candidate gamma."""
    return KernelSpec(spec.kernel, gamma, spec.degree, spec.coef0)
