"""SVMs of the hinge loss, and the base of solvers that cross-validate C and gamma in each cell."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, cast

from daskls.records import F4, MIB, Codes, LocalModel, SolverSpec
from daskls.solvers.base import CellRows, LocalSolver, Sizes
from daskls.solvers.grid import Grid, assign_folds, resolve_grid
from daskls.solvers.hinge.decomposed import holds_matrix
from daskls.solvers.hinge.width import CachedPairSolver, HingePairSolver
from daskls.solvers.rows import CellData, LocalRows, rows_nbytes
from daskls.solvers.search import GridSearch, grid_search_nbytes
from daskls.solvers.width import PairSolver, pairs_nbytes


class CellSolver(LocalSolver):
    """Cross-validated SVMs of one loss, solved by `width`; one cell in memory at a time."""

    width: ClassVar[type[PairSolver]]

    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        for cell in cells:
            yield self.fit_cell(cell, replace(spec, cv=min(spec.cv, len(cell.X))))

    def fit_cell(self, rows: CellRows, spec: SolverSpec) -> LocalModel:
        # Pairs of classes vote in a cell: its targets are codes.
        codes = cast(Codes, rows.targets)
        local = LocalRows.of(rows.X, codes, rows.weights, spec, counts=rows.counts)
        report = local.described(rows.report)
        if len(local.classes) == 1 or local.are_equal:
            return local.constant(report)
        whole = self.holds_matrix(spec, len(rows.X), len(local.classes))
        order, cell = local.data(assign_folds(local.present, spec.cv, rows.seed), whole=whole)
        grid = local.in_units(resolve_grid(spec, local.radius, local.n_rows, rows.X.shape[1]))
        choice = self.search(cell, spec, grid).choose(finish=True)
        return local.model(choice, order, cell, report)

    def holds_matrix(self, spec: SolverSpec, n_rows: int, n_classes: int) -> bool:
        return True

    def search(self, cell: CellData, spec: SolverSpec, grid: Grid) -> GridSearch:
        return GridSearch(cell, spec, grid, self.width)

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        parts = (rows_nbytes, pairs_nbytes, grid_search_nbytes, self.width.nbytes)
        return sum(part(sizes, n_rows) for part in parts)


class HingeSolver(CellSolver):
    """Local SVMs of the hinge loss.

    Matrices larger than ``cache_size`` are not held: up to that many MiB of their rows are.
    """

    width = HingePairSolver

    def holds_matrix(self, spec: SolverSpec, n_rows: int, n_classes: int) -> bool:
        return holds_matrix(spec, n_rows, n_classes)

    def search(self, cell: CellData, spec: SolverSpec, grid: Grid) -> GridSearch:
        return GridSearch(cell, spec, grid, self.width if len(cell.base) else CachedPairSolver)

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        whole = super().nbytes(sizes, n_rows)
        if holds_matrix(sizes.spec, n_rows, sizes.n_classes):
            return whole
        matrices = n_rows * n_rows * F4 + self.width.nbytes(sizes, n_rows)
        # Smaller cells of the same fit may be held whole, within ``cache_size``.
        smaller = int((sizes.spec.cache_size or 0.0) * MIB)
        return whole - matrices + max(CachedPairSolver.nbytes(sizes, n_rows), smaller)


# Without state, it is shared with the solver of neighborhoods.
HINGE = HingeSolver()
