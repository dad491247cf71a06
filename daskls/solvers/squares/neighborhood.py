"""The least-squares model of one neighborhood, and the errors of candidates on its inner rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.records import CellReport, Float32, Float64, Int64, LocalModel, SolverSpec
from daskls.solvers.base import (
    BLANK_REPORT,
    EVALUATED_ROWS,
    CellRows,
    Neighborhood,
    NeighborhoodSolver,
)
from daskls.solvers.copies import find_units
from daskls.solvers.evaluate import total
from daskls.solvers.grid import Grid, count_gammas
from daskls.solvers.percentiles import neighborhood_grid
from daskls.solvers.rows import LocalRows, kernel_of
from daskls.solvers.squares.solver import NumbersSolver, SolvedCell
from daskls.solvers.squares.system import MergedRows, System, evenly, merge_equal_rows


@dataclass(frozen=True, eq=False)
class OpenProblem:
    """A neighborhood with something to learn, its `merged` rows nearest first.

    `local` are units: copies are one row. `n_inner` counts units with a copy among the inner rows.
    """

    local: LocalRows
    Y: Float64
    merged: MergedRows
    base: Float32
    grid: Grid
    n_inner: int
    report: CellReport

    @property
    def inner(self) -> Int64:
        # Merged rows are in order of first occurrence, so those of inner rows come first.
        return np.arange(int(self.merged.of_row[: self.n_inner].max()) + 1)

    @property
    def inner_weight(self) -> float:
        return total(self.local.weights[: self.n_inner])


class NumberNeighborhoods(NumbersSolver, NeighborhoodSolver):
    def grid_errors(self, near: Neighborhood) -> Float64:
        problem = self._open(near, BLANK_REPORT)
        if isinstance(problem, OpenProblem):
            errors = self._errors(problem)
            return np.stack([errors, np.full_like(errors, problem.inner_weight)], axis=2)
        # There is nothing to learn: all candidates miss by the same.
        missed = ((near.targets - problem.intercepts) ** 2).mean(axis=1)[: near.n_inner]
        weights = near.weights[: near.n_inner]
        error = total(weights * missed), total(weights)
        return np.full((count_gammas(near.spec, near.percentiles), near.spec.n_costs, 2), error)

    def fit_neighborhood(self, near: Neighborhood, report: CellReport) -> LocalModel:
        problem = self._open(near, report)
        if isinstance(problem, LocalModel):
            return problem
        gammas, costs = problem.grid.gammas, problem.grid.costs
        if len(gammas) * len(costs) == 1:
            return self._candidate(problem, gammas[0], costs[0])
        errors = self._errors(problem)
        g, c = np.unravel_index(int(errors.argmin()), errors.shape)
        model = self._candidate(problem, gammas[g], costs[c])
        n_tried = errors.size
        report = replace(model.report, n_tried=n_tried, n_trained=n_tried + 1)
        mean = errors / problem.inner_weight
        return replace(model, report=report, errors=mean.astype(np.float32))

    def candidate_models(self, near: Neighborhood) -> Iterator[LocalModel]:
        problem = self._open(near, BLANK_REPORT)
        if isinstance(problem, LocalModel):
            n_candidates = count_gammas(near.spec, near.percentiles) * near.spec.n_costs
            yield from [problem] * n_candidates
            return
        for gamma in problem.grid.gammas:
            for cost in problem.grid.costs:
                yield self._candidate(problem, gamma, cost)

    def _rows(self, cell: CellRows, spec: SolverSpec) -> LocalRows:
        """For rows that are near each other in the kernel's feature space."""
        alike = np.zeros(len(cell.X), np.int32)
        return LocalRows.of(cell.X, alike, cell.weights, spec)

    def _open(self, near: Neighborhood, report: CellReport) -> OpenProblem | LocalModel:
        cell = CellRows(near.X, near.targets, near.weights, report, near.seed)
        local = self._rows(cell, near.spec)
        report, Y = self._described(cell, local), self._columns(cell, local)
        if Y is None or local.are_equal:
            return self._constant(cell, local, report)
        units = find_units(near)
        local, Y = units.of(local), Y[units.first]
        merged = merge_equal_rows(local.rows, Y, local.weights)
        in_units = (merged.A / np.float32(local.unit)).astype(np.float64)
        base = find_kernel(near.spec.kernel).matrix(in_units)
        grid = neighborhood_grid(local, base, near.percentiles, near.seed)
        return OpenProblem(local, Y, merged, base, grid, units.n_inner, report)

    def _solve_at(self, problem: OpenProblem, gamma: float, cost: float, rows: Int64) -> SolvedCell:
        local, merged = problem.local, problem.merged
        kernel = kernel_of(local.spec, gamma)
        system = System(merged.A / np.float32(local.unit), kernel, problem.base)
        return self._solve(local, problem.Y, merged, system, cost, rows)

    def _errors(self, problem: OpenProblem) -> Float64:
        inner, weights = problem.inner, problem.local.weights
        errors = []
        for gamma in problem.grid.gammas:
            for cost in problem.grid.costs:
                rows, squared = self._left_out(self._solve_at(problem, gamma, cost, inner), inner)
                # An equal row of another target may be an outer row.
                missed = (squared * weights[rows])[rows < problem.n_inner]
                errors.append(total(missed))
        return np.reshape(errors, (len(problem.grid.gammas), -1))

    def _candidate(self, problem: OpenProblem, gamma: float, cost: float) -> LocalModel:
        few = evenly(len(problem.inner), EVALUATED_ROWS)
        solved = self._solve_at(problem, gamma, cost, few)
        kernel = kernel_of(problem.local.spec, gamma / problem.local.gamma_unit)
        return self._as_model(solved, kernel, few, problem.report)
