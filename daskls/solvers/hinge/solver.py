"""SVMs of the hinge loss, one a cell."""

from dataclasses import replace

import numpy as np

from daskls.records import F4, MIB, Float32, SolverSpec
from daskls.solvers.base import Sizes
from daskls.solvers.cell import CellSolver
from daskls.solvers.data import CellData, Choice, Counts
from daskls.solvers.grid import Grid
from daskls.solvers.hinge.problem import Problem
from daskls.solvers.hinge.rows_width import RowsWidth
from daskls.solvers.hinge.some_rows import holds_matrix
from daskls.solvers.hinge.width import HingeWidth
from daskls.solvers.pairs import ClassPairs
from daskls.solvers.search import GridSearch
from daskls.solvers.width import Seeds

__all__ = ["HINGE", "HingeSolver"]


class HingeSolver(CellSolver):
    """Local SVMs of the hinge loss.

    Notes
    -----
    Peak memory: 2 float32 matrices of m x m, for more than two classes as many again. Where
    ``cache_size`` is given and these are larger, rows of the kernel matrix are computed when they
    are needed, and so many MiB of them are kept: the same SVM within ``tol``.
    """

    width = HingeWidth

    def solve_all(
        self,
        K: Float32,
        signs: Float32,
        weights: Float32,
        start: Float32,
        cost: float,
        spec: SolverSpec,
    ) -> tuple[Float32, float, Counts]:
        """Train one pair on all of its rows; see `CellSolver.solve_all`.

        Solved to the plain duality gap, as this solution is kept, not only ranked by its error.
        """
        none_held_out = np.array([0, len(signs)])
        spec = replace(spec, clipped_gap=False)
        problem = Problem(K, signs, weights, none_held_out, spec)
        beta, offset = problem.solve_all(start, cost)
        return beta, offset, problem.counts

    def holds_matrix(self, spec: SolverSpec, n_rows: int, n_classes: int) -> bool:
        """As of `CellSolver`: unless ``cache_size`` is less than the cell's matrices."""
        return holds_matrix(spec, n_rows, n_classes)

    def search(self, cell: CellData, spec: SolverSpec, grid: Grid) -> GridSearch:
        """As of `CellSolver`; by rows of the kernel matrix where it is not held."""
        return GridSearch(cell, spec, grid, self.width if len(cell.base) else RowsWidth)

    def refit(self, cell: CellData, choice: Choice, spec: SolverSpec, grid: Grid) -> Choice:
        """As of `CellSolver`; by rows of the kernel matrix where it is not held."""
        if len(cell.base):
            return super().refit(cell, choice, spec, grid)
        # A fold of no rows: all of them train.
        pairs = ClassPairs.of(cell, 0)
        width = RowsWidth(pairs, replace(spec, clipped_gap=False), [-1])
        cost = choice.C * grid.refit_scale
        seeds = pairs.betas_of(choice.coef) * np.float32(grid.refit_scale)
        width.move(choice.kernel.gamma, Seeds(seeds[None], cost))
        line = width.solve(0, np.array([cost]), spec.tol)
        counts = Counts()
        counts.add(choice.counts)
        counts.add(width.counts)
        intercepts = line.offsets[0].astype(np.float64)
        coef = pairs.coefficients(line.betas)[0]
        return replace(choice, C=cost, coef=coef, intercepts=intercepts, counts=counts)

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """As of `LocalSolver`: of matrices, or of as many rows of them as are held."""
        whole = super().nbytes(sizes, n_rows)
        if holds_matrix(sizes.spec, n_rows, sizes.n_classes):
            return whole
        matrices = n_rows * n_rows * F4 + self.width.nbytes(sizes, n_rows)
        # Smaller cells may be held whole, in what is given for that.
        smaller = int((sizes.spec.cache_size or 0.0) * MIB)
        return whole - matrices + max(RowsWidth.nbytes(sizes, n_rows), smaller)


# It has no state: what trains neighborhoods uses the same one.
HINGE = HingeSolver()
