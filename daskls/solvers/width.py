"""The interface between the grid search and a loss: solves of all pairs of classes at one width."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from daskls.kernels.decisions import write_winners
from daskls.kernels.exponential import multiply_rows
from daskls.kernels.kernel import find_kernel
from daskls.records import F4, Float32, Float64, Floats, Int64, KernelSpec, SolverSpec
from daskls.solvers.base import Sizes
from daskls.solvers.rows import CellData, SolverCounts, kernel_of

# The most values of the gathered matrices of pairs, in units of the cell's own matrix, unless a
# single one holds more. All pairs of classes of equal size need two together.
BLOCKS_SHARE = 3
# Bytes per row of a pair: its number, its index among coefficients, its sign, its bound.
PAIR_ROW_NBYTES = 2 * 8 + 2 * 4


@dataclass(frozen=True, eq=False)
class ClassPairs:
    """All pairs (a, b) of the classes of a cell, in scikit-learn's order, one after the other.

    Pair p has the rows `rows[ptr[p]:ptr[p + 1]]` of the cell, by fold, of signs -1 for a and +1 for
    b and of bounds at C = 1; `at` is the row of ``dual_coef_`` that holds each beta.
    """

    cell: CellData
    rows: Int64
    ptr: Int64
    signs: Float32
    bounds: Float32
    fold_ptr: Int64
    at: Int64

    @classmethod
    def of(cls, cell: CellData, n_folds: int) -> "ClassPairs":
        rows, signs, fold_ptr, at = [], [], [], []
        for a, b, pair_rows, pair_signs in cell.pairs():
            rows.append(pair_rows)
            signs.append(pair_signs)
            at.append(np.where(pair_signs > 0, a, b - 1))
            fold_ptr.append(np.append(cell.fold_ptr(pair_rows, n_folds), len(pair_rows)))
        flat = np.concatenate(rows)
        flat_signs = np.concatenate(signs)
        ptr = np.cumsum([0, *map(len, rows)])
        bounds = flat_signs * cell.weights[flat]
        folds = np.stack(fold_ptr).astype(np.int64)
        return cls(cell, flat, ptr, flat_signs, bounds, folds, np.concatenate(at))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def sizes(self) -> Int64:
        return np.diff(self.ptr)

    def groups(self) -> list[tuple[int, int]]:
        """Return runs of pairs (first, last excluded) whose matrices are gathered together."""
        max_values = BLOCKS_SHARE * len(self.cell.codes) ** 2
        runs, n_values = [0], 0
        for p, m in enumerate(self.sizes.tolist()):
            if n_values and n_values + m * m > max_values:
                runs.append(p)
                n_values = 0
            n_values += m * m
        return list(zip(runs, [*runs[1:], len(self)], strict=True))

    def bounds_without(self, fold: int) -> Float32:
        trains = self.cell.folds[self.rows] != fold
        bounds: Float32 = self.bounds * trains
        return bounds

    def slice_of(self, p: int) -> slice:
        return slice(self.ptr[p], self.ptr[p + 1])

    def coefficients(self, betas: Floats) -> Float32:
        """Lay betas, shape (n, s), out as scikit-learn's ``dual_coef_``, shape (n, k - 1, m)."""
        cell = self.cell
        coef = np.zeros((len(betas), cell.n_classes - 1, len(cell.codes)), np.float32)
        coef[:, self.at, self.rows] = betas
        return coef

    def betas_of(self, coef: Float32) -> Float32:
        betas: Float32 = coef[self.at, self.rows]
        return betas

    def decide(self, K: Float32, betas: Float32, offsets: Float32, held_out: slice) -> Int64:
        """Return the class (n, h) that wins each held-out row, by betas (n, s)."""
        if len(self) == 1:
            return (self.values(K, betas, offsets, held_out) > 0).astype(np.int64)
        cell, n = self.cell, len(betas)
        k = cell.n_classes
        coef = self.coefficients(betas).reshape(n * (k - 1), -1)
        kernel_rows = K[held_out]
        parts = np.empty((k, n * (k - 1), len(kernel_rows)), np.float32)
        for c in range(k):
            members = np.flatnonzero(cell.codes == c)
            np.matmul(coef[:, members], kernel_rows[:, members].T, out=parts[c])
        winners = np.empty((n, len(kernel_rows)), np.int64)
        write_winners(parts.reshape(k, n, k - 1, -1), offsets, winners)
        return winners

    def values(self, K: Float32, betas: Float32, offsets: Float32, held_out: slice) -> Float32:
        kernel_rows = K[held_out]
        values = np.empty((len(betas), len(kernel_rows)), np.float32)
        multiply_rows(kernel_rows, betas, values)
        values += offsets
        return values


def pairs_nbytes(sizes: Sizes, n_rows: int) -> int:
    # Held twice while they are concatenated.
    return 2 * (sizes.n_classes - 1) * n_rows * PAIR_ROW_NBYTES


@dataclass(frozen=True, eq=False)
class PathSolutions:
    """Solutions without one fold, one per C: betas float32 (n, s), offsets float32 (n, n_pairs)."""

    betas: Float32
    offsets: Float32


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Each fold's solution at the best candidate so far, (n_folds, s), and its C; 0: none yet."""

    betas: Float32
    cost: float


class PairSolver(ABC):
    """Solves all pairs of a cell at one width after the other, fold by fold along C.

    K (m, m) is the cell's kernel matrix at the current width.
    """

    def __init__(self, pairs: ClassPairs, spec: SolverSpec, folds: list[int]) -> None:
        self.pairs, self.spec, self.folds = pairs, spec, folds
        self.counts = SolverCounts()
        self.K = np.empty_like(pairs.cell.base)

    @classmethod
    def nbytes(cls, sizes: Sizes, n_rows: int) -> int:
        return n_rows * n_rows * F4

    def move(self, gamma: float, seeds: WarmStart) -> None:
        """Move to a width: compute its kernel matrix. Later solves may start at the seeds."""
        kernel = kernel_of(self.spec, gamma)
        find_kernel(kernel.name).write(self.pairs.cell.base, kernel, self.K)

    def decide(self, line: PathSolutions, held_out: slice) -> Int64:
        return self.pairs.decide(self.K, line.betas, line.offsets, held_out)

    @abstractmethod
    def solve(self, at: int, costs: Float64, tol: float) -> PathSolutions:
        """Train every pair without the fold ``folds[at]`` at each C, increasing."""

    def finish(  # noqa: B027 - by default there is nothing to do
        self, kernel: KernelSpec, cost: float, betas: Float32, offsets: Float64
    ) -> None:
        """Train the fold models on to the precision of kept models, in place."""
