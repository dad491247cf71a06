"""SVMs of the hinge loss, and the base of solvers that cross-validate C and gamma in each cell.

A loss says how lines are solved (`Width`) and how one pair of classes is trained on all rows; grid,
folds, search, average and layout are the same for all.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.records import F4, MIB, Codes, Float32, LocalModel, SolverSpec
from daskls.solvers.base import CellRows, LocalSolver, Sizes
from daskls.solvers.grid import Grid, assign_folds, resolve_grid
from daskls.solvers.hinge.decomposed import holds_matrix
from daskls.solvers.hinge.problem import Problem
from daskls.solvers.hinge.width import HingeWidth, RowsWidth
from daskls.solvers.rows import CellData, Choice, Counts, LocalRows, rows_nbytes
from daskls.solvers.search import GridSearch, grid_search_nbytes
from daskls.solvers.width import ClassPairs, Seeds, Width, pairs_nbytes


class CellSolver(LocalSolver):
    """Cross-validated SVMs of one loss, one cell in memory at a time.

    Attributes
    ----------
    width : subclass of Width. Solves lines.
    """

    width: ClassVar[type[Width]]

    @abstractmethod
    def solve_all(
        self,
        K: Float32,
        signs: Float32,
        weights: Float32,
        start: Float32,
        cost: float,
        spec: SolverSpec,
    ) -> tuple[Float32, float, Counts]:
        """Train one pair of classes on all of its rows, to the precision of a kept model.

        Parameters
        ----------
        K : float32 array, shape (m, m), C-contiguous. Kernel values of the pair's rows.
        signs : float32 array, shape (m,). -1 for the pair's first class, +1 for its second.
        weights : float32 array, shape (m,), > 0. Multiply C.
        start : float32 array, shape (m,). Betas to start from.
        cost : float. C.
        spec : SolverSpec

        Returns
        -------
        beta : float32 array, shape (m,)
        offset : float. 0 if none is fitted.
        counts : Counts
        """

    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        """Select C and gamma by cross-validation in each cell and train its model.

        Yields
        ------
        model : LocalModel. A constant where only one class is present, or all rows are equal.

        Notes
        -----
        A cell with fewer rows than folds has as many folds as rows.
        """
        for cell in cells:
            yield self.fit_cell(cell, replace(spec, cv=min(spec.cv, len(cell.X))))

    def fit_cell(self, rows: CellRows, spec: SolverSpec) -> LocalModel:
        """Train the model of one cell, which has at least one row per fold."""
        # Pairs of classes vote in a cell: its targets are codes.
        codes = cast(Codes, rows.targets)
        own = LocalRows.of(rows.X, codes, rows.weights, spec, counts=rows.counts)
        report = own.described(rows.report)
        if len(own.classes) == 1 or own.are_equal:
            return own.constant(report)
        whole = self.holds_matrix(spec, len(rows.X), len(own.classes))
        order, cell = own.data(assign_folds(own.present, spec.cv, rows.seed), whole=whole)
        grid = own.in_units(resolve_grid(spec, own.radius, own.n_rows, rows.X.shape[1]))
        # With ``refit="folds"`` the mean of the chosen fold models is kept.
        choice = self.search(cell, spec, grid).choose(finish=spec.refit == "folds")
        if spec.refit == "cell":
            choice = self.refit(cell, choice, spec, grid)
        return own.model(choice, order, cell, report)

    def holds_matrix(self, spec: SolverSpec, n_rows: int, n_classes: int) -> bool:
        """Whether the kernel matrix of a cell is held whole."""
        return True

    def search(self, cell: CellData, spec: SolverSpec, grid: Grid) -> GridSearch:
        """Return the search of a cell's grid, not yet run."""
        return GridSearch(cell, spec, grid, self.width)

    def refit(self, cell: CellData, choice: Choice, spec: SolverSpec, grid: Grid) -> Choice:
        """Replace the mean of the fold models by one model of all rows, with the same lambda."""
        K = np.empty_like(cell.base)
        find_kernel(spec.kernel).write(cell.base, choice.kernel, K)
        pairs = ClassPairs.of(cell, 0)
        cost = choice.C * grid.refit_scale
        starts = pairs.betas_of(choice.coef) * np.float32(grid.refit_scale)
        betas, offsets, counts = np.empty_like(starts), np.empty(len(pairs)), Counts()
        counts.add(choice.counts)
        for p, (_, _, rows, signs) in enumerate(cell.pairs()):
            own = K if len(pairs) == 1 else K[np.ix_(rows, rows)]
            at = pairs.slice_of(p)
            betas[at], offsets[p], found = self.solve_all(
                own, signs, cell.weights[rows], starts[at], cost, spec
            )
            counts.add(found)
        coef = pairs.coefficients(betas[None])[0]
        return replace(choice, C=cost, coef=coef, intercepts=offsets, counts=counts)

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """See `LocalSolver`."""
        parts = (rows_nbytes, pairs_nbytes, grid_search_nbytes, self.width.nbytes)
        return sum(part(sizes, n_rows) for part in parts)


class HingeSolver(CellSolver):
    """Local SVMs of the hinge loss.

    Notes
    -----
    Peak memory: 2 float32 matrices of m x m, and as many again for more than two classes. Where
    they are larger than ``cache_size``, rows of the kernel matrix are computed when they are
    needed, and up to ``cache_size`` MiB of them are kept: the same SVM within ``tol``.
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
        """See `CellSolver`: to the plain duality gap, as the solution is kept, not only ranked."""
        none_held_out = np.array([0, len(signs)])
        spec = replace(spec, clipped_gap=False)
        problem = Problem(K, signs, weights, none_held_out, spec)
        beta, offset = problem.solve_all(start, cost)
        return beta, offset, problem.counts

    def holds_matrix(self, spec: SolverSpec, n_rows: int, n_classes: int) -> bool:
        """See `CellSolver`: unless ``cache_size`` is smaller than the cell's matrices."""
        return holds_matrix(spec, n_rows, n_classes)

    def search(self, cell: CellData, spec: SolverSpec, grid: Grid) -> GridSearch:
        """See `CellSolver`; by rows of the kernel matrix where it is not held whole."""
        return GridSearch(cell, spec, grid, self.width if len(cell.base) else RowsWidth)

    def refit(self, cell: CellData, choice: Choice, spec: SolverSpec, grid: Grid) -> Choice:
        """See `CellSolver`; by rows of the kernel matrix where it is not held whole."""
        if len(cell.base):
            return super().refit(cell, choice, spec, grid)
        # Fold -1 has no rows: all of them train.
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
        """See `LocalSolver`: whole matrices, or as many of their rows as are held."""
        whole = super().nbytes(sizes, n_rows)
        if holds_matrix(sizes.spec, n_rows, sizes.n_classes):
            return whole
        matrices = n_rows * n_rows * F4 + self.width.nbytes(sizes, n_rows)
        # Smaller cells of the same fit may be held whole, within ``cache_size``.
        smaller = int((sizes.spec.cache_size or 0.0) * MIB)
        return whole - matrices + max(RowsWidth.nbytes(sizes, n_rows), smaller)


# Without state, it is shared with the solver of neighborhoods.
HINGE = HingeSolver()
