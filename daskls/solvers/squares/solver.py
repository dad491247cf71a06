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
    """The solution of a cell's merged rows, with held-out values of those in ``asked``."""

    own: LocalRows
    Y: Float64
    merged: MergedRows
    cost: float
    ridges: Float64
    diagonal: Float64
    found: Solution
    asked: Int64

    def values_of(self, rows: Int64) -> Float64:
        assert self.found.held_out is not None
        values: Float64 = self.found.held_out[np.searchsorted(self.asked, rows)].astype(np.float64)
        return values

    def inverse_of(self, rows: Int64) -> Float64:
        assert self.found.inverse is not None
        return self.found.inverse[np.searchsorted(self.asked, rows)]


def _asked_last(merged: MergedRows, few: Int64, asked: Int64) -> tuple[MergedRows, Int64, Int64]:
    """Return merged rows with those in ``asked`` last, where held-out values take least time."""
    is_asked = np.zeros(len(merged.A), bool)
    is_asked[asked] = True
    order = np.argsort(is_asked, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    columns = merged.A[order], merged.Y[order], merged.weights[order], place[merged.of_row]
    return MergedRows(*columns), place[few], place[asked]


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
        own = self._rows(cell, spec)
        report = self._described(cell, own)
        Y = self._columns(cell, own)
        if Y is None or own.are_equal:
            return self._constant(cell, own, report)
        assert spec.C is not None
        merged = merge_equal_rows(own.rows, Y, own.weights)
        kernel = cell_kernel(spec, merged.A)
        # The error is of the same rows whatever else is asked: rows of rare classes are asked for
        # more often.
        few = evenly(len(merged.A), cell.n_evaluated)
        asked = few if cell.asked is None else np.union1d(few, merged.of_row[cell.asked])
        merged, few, asked = _asked_last(merged, few, asked)
        solved = self._solve(own, Y, merged, System(merged.A, kernel), spec.C[0], asked)
        model = self._as_model(solved, kernel, few, report)
        if cell.asked is None:
            return model
        return replace(model, held_out=solved.values_of(merged.of_row[cell.asked]))

    def _solve(
        self,
        own: LocalRows,
        Y: Float64,
        merged: MergedRows,
        system: System,
        cost: float,
        asked: Int64,
    ) -> SolvedCell:
        ridges: Float64 = 1.0 / (2.0 * cost * merged.weights)
        found = system.solve(merged.Y, ridges, offset=own.spec.fit_intercept, held_out=asked)
        return SolvedCell(own, Y, merged, cost, ridges, system.diagonal, found, asked)

    def _as_model(
        self, solved: SolvedCell, kernel: KernelSpec, few: Int64, report: CellReport
    ) -> LocalModel:
        own, found, A = solved.own, solved.found, solved.merged.A
        error = self._error(solved, few)
        rows, coef = in_float32(A, found.alpha, solved.diagonal, self._max_move(error))
        functions = self._functions(own, solved.Y)
        report = replace(
            report,
            C=solved.cost,
            gamma=kernel.gamma,
            validation_error=error,
            n_support=len(A),
            n_trained=1,
            n_tried=1,
            seconds=time.perf_counter() - own.started,
        )
        return LocalModel(
            frame=own.frame,
            rows=rows,
            coef=coef,
            classes=functions,
            class_ptr=np.array([0, *[len(rows)] * len(functions)], np.int64),
            intercepts=found.offsets,
            kernel=kernel,
            report=report,
            decision=self.decision,
        )

    def _rows(self, cell: CellRows, spec: SolverSpec) -> LocalRows:
        codes = cast(Codes, cell.targets)
        return LocalRows.of(cell.X, codes, cell.weights, spec, counts=cell.counts)

    def _described(self, cell: CellRows, own: LocalRows) -> CellReport:
        return own.described(cell.report)

    def _columns(self, cell: CellRows, own: LocalRows) -> Float64 | None:
        """Return targets as columns (m, r); None where one answer is right for all rows."""
        k = len(own.classes)
        return signs_of(own.present, k) if k > 1 else None

    def _constant(self, cell: CellRows, own: LocalRows, report: CellReport) -> LocalModel:
        return replace(own.constant(report), decision=self.decision)

    def _functions(self, own: LocalRows, Y: Float64) -> Codes:
        return own.classes.astype(np.int32)

    def _error(self, solved: SolvedCell, few: Int64) -> float:
        """Return the weighted share of wrong rows among some, left out with their copies."""
        own, merged, values = solved.own, solved.merged, solved.values_of(few)
        at = np.full(len(merged.A), -1)
        at[few] = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
        winner = at[merged.of_row]
        is_asked = winner >= 0
        wrong = winner[is_asked] != own.present[is_asked]
        return float(np.average(wrong, weights=own.weights[is_asked]))

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

    def _described(self, cell: CellRows, own: LocalRows) -> CellReport:
        return replace(own.described(cell.report), n_classes=0)

    def _columns(self, cell: CellRows, own: LocalRows) -> Float64 | None:
        Y = cast(Float64, cell.targets)
        return None if (Y[0] == Y).all() else Y

    def _constant(self, cell: CellRows, own: LocalRows, report: CellReport) -> LocalModel:
        Y = cast(Float64, cell.targets)
        is_constant = (Y[0] == Y).all()
        mean = Y[0] if is_constant else np.average(Y, axis=0, weights=cell.weights)
        return replace(
            own.constant(report),
            classes=self._functions(own, Y),
            class_ptr=np.zeros(Y.shape[1] + 1, np.int64),
            intercepts=np.asarray(mean, np.float64),
            decision=self.decision,
        )

    def _functions(self, own: LocalRows, Y: Float64) -> Codes:
        return np.arange(Y.shape[1], dtype=np.int32)

    def _error(self, solved: SolvedCell, few: Int64) -> float:
        rows, squared = self._left_out(solved, few)
        return float(np.average(squared, weights=solved.own.weights[rows]))

    def _left_out(self, solved: SolvedCell, few: Int64) -> tuple[Int64, Float64]:
        found = replace(solved.found, inverse=solved.inverse_of(few))
        own, Y = solved.own, solved.Y
        given = solved.merged, found, solved.ridges, Y, own.weights, few
        rows, values = without_one_copy(*given)
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
