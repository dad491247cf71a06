"""Least squares: one linear system per cell, solved by one factorization without iterations."""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from daskls.errors import ParameterError
from daskls.kernels.kernel import find_kernel
from daskls.records import (
    F8,
    CellReport,
    Codes,
    Decision,
    Float32,
    Float64,
    Floats,
    Int64,
    KernelSpec,
    LocalModel,
    SolverSpec,
)
from daskls.solvers.base import CellRows, LocalSolver, Sizes
from daskls.solvers.rows import LocalRows, kernel_of, rows_nbytes
from daskls.solvers.squares.system import (
    MergedRows,
    Solution,
    System,
    evenly,
    gamma_in_cell,
    merge_equal_rows,
    signs_of,
    without_one_copy,
)

# How far rounding coefficients to float32 may move a training row's value: a standard deviation.
MAX_MOVE = 5e-3
# For numbers: this share of their root mean squared error, but at least so much, in units of their
# deviation.
MOVE_SHARE, MIN_MOVE = 0.02, 1e-6
# Up to this C, rounding the coefficients of a kernel of distances moves no value of a cell of 2000
# rows by more, if values are off by 0.4 on average.
MILD_COST = 5e3


@dataclass(frozen=True, eq=False)
class SolvedCell:
    """The solution of a cell's merged rows, with held-out values of those in ``requested``."""

    local: LocalRows
    Y: Float64
    merged: MergedRows
    cost: float
    ridges: Float64
    diagonal: Float64
    solution: Solution
    requested: Int64

    def values_of(self, rows: Int64) -> Float64:
        assert self.solution.held_out is not None
        values: Float64 = self.solution.held_out[np.searchsorted(self.requested, rows)].astype(
            np.float64
        )
        return values

    def inverse_of(self, rows: Int64) -> Float64:
        assert self.solution.inverse is not None
        return self.solution.inverse[np.searchsorted(self.requested, rows)]


def _move_last(merged: MergedRows, few: Int64, requested: Int64) -> tuple[MergedRows, Int64, Int64]:
    """Return merged rows with ``requested`` ones last, where held-out values take least time."""
    is_requested = np.zeros(len(merged.A), bool)
    is_requested[requested] = True
    order = np.argsort(is_requested, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    columns = merged.A[order], merged.Y[order], merged.weights[order], place[merged.of_row]
    return MergedRows(*columns), place[few], place[requested]


class SquaresSolver(LocalSolver):
    """Kernel ridge regression of targets of +-1, one class against the rest.

    Source: Saunders, Gammerman, Vovk 1998; with an offset, Suykens, Vandewalle 1999. The ridge is
    1 / (2 C), as in the objective ``|f|^2 / 2 + C sum_i w_i (y_i - f(x_i))^2``.
    """

    decision: ClassVar[Decision] = "ovr"
    merges_targets = True

    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        if spec.C is None or len(spec.C) > 1:
            raise ParameterError(
                f"C={spec.C} is not one value, and least squares does not choose C in a cell; give "
                "one value."
            )
        for cell in cells:
            yield self._fit_cell(cell, spec)

    def _fit_cell(self, cell: CellRows, spec: SolverSpec) -> LocalModel:
        local = self._rows(cell, spec)
        report = self._described(cell, local)
        Y = self._columns(cell, local)
        if Y is None or local.are_equal:
            return self._constant(cell, local, report)
        assert spec.C is not None
        merged = merge_equal_rows(local.rows, Y, local.weights)
        kernel = cell_kernel(spec, merged.A)
        # The error is of the same rows whatever else is asked: rows of rare classes are asked for
        # more often.
        few = evenly(len(merged.A), cell.n_evaluated)
        rows = few if cell.requested is None else np.union1d(few, merged.of_row[cell.requested])
        merged, few, rows = _move_last(merged, few, rows)
        solved = self._solve(local, Y, merged, System(merged.A, kernel), spec.C[0], rows)
        model = self._as_model(solved, kernel, few, report)
        if cell.requested is None:
            return model
        return replace(model, held_out=solved.values_of(merged.of_row[cell.requested]))

    def _solve(
        self,
        local: LocalRows,
        Y: Float64,
        merged: MergedRows,
        system: System,
        cost: float,
        rows: Int64,
    ) -> SolvedCell:
        ridges: Float64 = 1.0 / (2.0 * cost * merged.weights)
        solution = system.solve(merged.Y, ridges, offset=local.spec.fit_intercept, held_out=rows)
        return SolvedCell(local, Y, merged, cost, ridges, system.diagonal, solution, rows)

    def _as_model(
        self, solved: SolvedCell, kernel: KernelSpec, few: Int64, report: CellReport
    ) -> LocalModel:
        local, solution, A = solved.local, solved.solution, solved.merged.A
        error = self._error(solved, few)
        rows, coef = in_float32(A, solution.alpha, solved.diagonal, self._max_move(error))
        functions = self._functions(local, solved.Y)
        report = replace(
            report,
            C=solved.cost,
            gamma=kernel.gamma,
            validation_error=error,
            n_support=len(A),
            n_trained=1,
            n_tried=1,
            seconds=time.perf_counter() - local.started,
        )
        return LocalModel(
            frame=local.frame,
            rows=rows,
            coef=coef,
            classes=functions,
            class_ptr=np.array([0, *[len(rows)] * len(functions)], np.int64),
            intercepts=solution.offsets,
            kernel=kernel,
            report=report,
            decision=self.decision,
        )

    def _rows(self, cell: CellRows, spec: SolverSpec) -> LocalRows:
        codes = cast(Codes, cell.targets)
        return LocalRows.of(cell.X, codes, cell.weights, spec, counts=cell.counts)

    def _described(self, cell: CellRows, local: LocalRows) -> CellReport:
        return local.described(cell.report)

    def _columns(self, cell: CellRows, local: LocalRows) -> Float64 | None:
        """Return targets as columns (m, r); None where one answer is right for all rows."""
        k = len(local.classes)
        return signs_of(local.present, k) if k > 1 else None

    def _constant(self, cell: CellRows, local: LocalRows, report: CellReport) -> LocalModel:
        return replace(local.constant(report), decision=self.decision)

    def _functions(self, local: LocalRows, Y: Float64) -> Codes:
        return local.classes.astype(np.int32)

    def _error(self, solved: SolvedCell, few: Int64) -> float:
        """Return the weighted share of wrong rows among some, left out with their copies."""
        local, merged, values = solved.local, solved.merged, solved.values_of(few)
        at = np.full(len(merged.A), -1)
        at[few] = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
        winner = at[merged.of_row]
        is_requested = winner >= 0
        wrong = winner[is_requested] != local.present[is_requested]
        return float(np.average(wrong, weights=local.weights[is_requested]))

    def _max_move(self, error: float) -> float:
        """Return how far rounding coefficients may move a training row's value."""
        return MAX_MOVE

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        m, k = n_rows, sizes.n_classes
        # Beside distances in float32, which `rows_nbytes` counts: the kernel matrix, factored in
        # place, in float64 if need be; a mask of its values, and as much to spare.
        matrices = m * m * (F8 + 2)
        return rows_nbytes(sizes, m) + matrices + 4 * m * (k + 1) * F8

    def model_nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """Twice where coefficients may be kept in two parts."""
        spec = sizes.spec
        is_mild = spec.C is None or max(spec.C) <= MILD_COST
        parts = 1 if is_mild and find_kernel(spec.kernel).unit_diagonal else 2
        return parts * super().model_nbytes(sizes, n_rows)

    def n_coefficients(self, sizes: Sizes) -> int:
        return sizes.n_outputs


class NumbersSolver(SquaresSolver):
    """Kernel ridge regression of numbers around their center; a row's numbers share one kernel."""

    decision = "values"

    def _rows(self, cell: CellRows, spec: SolverSpec) -> LocalRows:
        alike = np.zeros(len(cell.X), np.int32)
        return LocalRows.of(cell.X, alike, cell.weights, spec, counts=cell.counts)

    def _described(self, cell: CellRows, local: LocalRows) -> CellReport:
        return replace(local.described(cell.report), n_classes=0)

    def _columns(self, cell: CellRows, local: LocalRows) -> Float64 | None:
        Y = cast(Float64, cell.targets)
        return None if (Y[0] == Y).all() else Y

    def _constant(self, cell: CellRows, local: LocalRows, report: CellReport) -> LocalModel:
        Y = cast(Float64, cell.targets)
        is_constant = (Y[0] == Y).all()
        mean = Y[0] if is_constant else np.average(Y, axis=0, weights=cell.weights)
        return replace(
            local.constant(report),
            classes=self._functions(local, Y),
            class_ptr=np.zeros(Y.shape[1] + 1, np.int64),
            intercepts=np.asarray(mean, np.float64),
            decision=self.decision,
        )

    def _functions(self, local: LocalRows, Y: Float64) -> Codes:
        return np.arange(Y.shape[1], dtype=np.int32)

    def _error(self, solved: SolvedCell, few: Int64) -> float:
        rows, squared = self._left_out(solved, few)
        return float(np.average(squared, weights=solved.local.weights[rows]))

    def _left_out(self, solved: SolvedCell, few: Int64) -> tuple[Int64, Float64]:
        solution = replace(solved.solution, inverse=solved.inverse_of(few))
        local, Y = solved.local, solved.Y
        arguments = solved.merged, solution, solved.ridges, Y, local.weights, few
        rows, values = without_one_copy(*arguments)
        squared: Float64 = ((values - Y[rows]) ** 2).mean(axis=1)
        return rows, squared

    def _max_move(self, error: float) -> float:
        return min(max(MOVE_SHARE * math.sqrt(error), MIN_MOVE), MAX_MOVE)

    def model_nbytes(self, sizes: Sizes, n_rows: int) -> int:
        return 2 * LocalSolver.model_nbytes(self, sizes, n_rows)


def in_float32(
    A: Float32, alpha: Floats, diagonal: Float64, most: float
) -> tuple[Float32, Float32]:
    """Return rows and float32 coefficients of the same functions.

    Where rounding the coefficients would move values by more than a standard deviation of `most`,
    each row comes twice: with the rounded coefficients, and with the remainders.
    """
    whole = np.ascontiguousarray(alpha.T, np.float32)
    rest = alpha.T - whole.astype(np.float64)
    # Rounding errors are independent: their squares add up. |k(x, z)|^2 <= k(x, x) k(z, z).
    moved = np.sqrt((rest**2 @ diagonal).max() * diagonal.max())
    if moved <= most:
        return A, whole
    return np.vstack([A, A]), np.hstack([whole, rest.astype(np.float32)])


def cell_kernel(spec: SolverSpec, A: Float32) -> KernelSpec:
    """Return the kernel of a cell: gamma as given, or from the width in units of the cell."""
    if spec.width is not None:
        return kernel_of(spec, gamma_in_cell(spec.kernel, spec.width, A))
    return kernel_of(spec, 1.0 if spec.gamma is None else spec.gamma[0])
