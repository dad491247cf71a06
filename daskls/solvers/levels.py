"""The base of solvers at levels: one function per level in each cell, on one kernel matrix."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np

from daskls.records import F8, CellReport, Float64, KernelSpec, LocalModel, SolverSpec, Targets
from daskls.solvers.base import CellRows, LocalSolver, Sizes
from daskls.solvers.registry import find_measure
from daskls.solvers.rows import LocalRows, rows_nbytes
from daskls.solvers.squares.solver import cell_kernel
from daskls.solvers.tube import constants, values_model


@dataclass(frozen=True, eq=False)
class SolvedLevel:
    """The function of one level; C is for y in units of its deviation, NaN the loss of no rows."""

    beta: Float64
    offset: float
    cost: float
    loss: float
    on_edge: bool = False
    n_steps: int = 0
    n_trained: int = 1
    n_at_limit: int = 0
    n_tried: int = 1


class LevelProblem(Protocol):
    @property
    def diagonal(self) -> Float64:
        """The kernel matrix's diagonal."""

    def solve(self, level: float) -> SolvedLevel:
        """Choose C and train, for one level; the result does not depend on the other levels."""


class LevelsSolver(LocalSolver):
    """Trains one function per level in each cell, each with a C of its own."""

    @abstractmethod
    def problem(
        self, cell: CellRows, local: LocalRows, kernel: KernelSpec, spec: SolverSpec
    ) -> LevelProblem:
        """Return the problem of a cell whose rows and numbers are not all equal."""

    def completed(self, spec: SolverSpec, targets: Targets, weights: Float64) -> SolverSpec:
        measure, y = find_measure(spec), cast(Float64, targets)[:, 0]
        losses = tuple(measure.constant_loss(y, level, weights) for level in spec.levels)
        return replace(spec, constant_losses=losses)

    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        for cell in cells:
            yield self._fit_cell(cell, spec)

    def _fit_cell(self, cell: CellRows, spec: SolverSpec) -> LocalModel:
        alike = np.zeros(len(cell.X), np.int32)
        local = LocalRows.of(cell.X, alike, cell.weights, spec, counts=cell.counts)
        y = cast(Float64, cell.targets)[:, 0]
        report = replace(local.described(cell.report), n_classes=0)
        if local.are_equal or (y == y[0]).all():
            measure = find_measure(spec)
            values = [measure.constant(y, local.weights, level) for level in spec.levels]
            return constants(local, values, report)
        kernel = cell_kernel(spec, local.rows)
        problem = self.problem(cell, local, kernel, spec)
        solved = [problem.solve(level) for level in spec.levels]
        betas = np.stack([one.beta for one in solved], axis=1)
        offsets = [one.offset for one in solved]
        report = _report_levels(report, solved, spec, self.cost_unit(spec))
        return values_model(local, kernel, problem.diagonal, betas, offsets, report)

    def cost_unit(self, spec: SolverSpec) -> float:
        """Return the factor from C for y in units of its deviation to C as users give it."""
        return 1.0

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        m, cv, q = n_rows, sizes.spec.cv, len(sizes.spec.levels)
        return rows_nbytes(sizes, m) + m * m * (F8 + 2) + (2 * cv + 4 * q + 16) * m * F8

    def model_nbytes(self, sizes: Sizes, n_rows: int) -> int:
        return 2 * super().model_nbytes(sizes, n_rows)

    def n_coefficients(self, sizes: Sizes) -> int:
        return len(sizes.spec.levels)


def _report_levels(
    report: CellReport, solved: list[SolvedLevel], spec: SolverSpec, unit: float
) -> CellReport:
    """Return the report of all levels: the geometric mean of C, the mean of relative losses."""
    units = spec.constant_losses or (1.0,) * len(solved)
    relative = [one.loss / (scale or 1.0) for one, scale in zip(solved, units, strict=True)]
    return replace(
        report,
        C=float(np.exp(np.mean([np.log(one.cost * unit) for one in solved]))),
        validation_error=float(np.mean(relative)),
        n_steps=sum(one.n_steps for one in solved),
        n_at_limit=sum(one.n_at_limit for one in solved),
        n_trained=sum(one.n_trained for one in solved),
        n_tried=sum(one.n_tried for one in solved),
        edge="C" if any(one.on_edge for one in solved) else "",
    )
