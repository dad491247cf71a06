"""Least-squares classifiers, one a cell: one factorization, no iterations."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from daskls.errors import ParameterError
from daskls.kernels.registry import find_kernel
from daskls.records import (
    F8,
    Codes,
    Float32,
    Float64,
    Floats,
    Int64,
    KernelSpec,
    LocalModel,
    SolverSpec,
)
from daskls.solvers.base import CellRows, LocalSolver, Sizes
from daskls.solvers.data import kernel_of
from daskls.solvers.rows import LocalRows, rows_nbytes
from daskls.solvers.squares.cell import (
    MergedRows,
    gamma_in_cell,
    merge_equal_rows,
    signs_of,
)
from daskls.solvers.squares.system import System

__all__ = ["SquaresSolver", "cell_kernel"]

# What rounding coefficients to float32 may move a training row's value by, as a standard deviation.
MAX_MOVE = 5e-3
# C up to which rounding the coefficients of a kernel of distances moves no value of a cell of 2000
# rows as far, if they are off by 0.4 in the mean.
MILD_COST = 5e3


# Rows of a cell whose values without them tell its error: of all of them a cell would take twice as
# long.
EVALUATED_ROWS = 64


class SquaresSolver(LocalSolver):
    """Kernel ridge regression of targets of +-1, one class against the rest.

    Source: Saunders, Gammerman, Vovk 1998; Suykens, Vandewalle 1999, with an offset. The ridge is
    1 / (2 C), as in the objective ``|f|^2 / 2 + C sum_i w_i (y_i - f(x_i))^2``.
    """

    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        """Solve the system of each cell.

        Yields
        ------
        model : LocalModel. A constant where only one class is present, or all rows are equal.

        Raises
        ------
        ParameterError : C is so large that the ridge vanishes
        """
        if spec.C is None or len(spec.C) > 1:
            raise ParameterError(
                f"C={spec.C} is to be chosen, and least squares has nothing in a cell to choose it "
                "by; give one value."
            )
        for cell in cells:
            yield replace(self._fit_cell(cell, spec), decision="ovr")

    def _fit_cell(self, cell: CellRows, spec: SolverSpec) -> LocalModel:
        started = time.perf_counter()
        # Classes are told apart: the targets are codes.
        own = LocalRows.of(cell.X, cast(Codes, cell.targets), cell.weights, spec)
        report = own.described(cell.report)
        k = len(own.classes)
        if k == 1 or own.radius == 0.0:
            return own.constant(report)
        assert spec.C is not None
        cost = spec.C[0]
        merged = merge_equal_rows(own.rows, signs_of(own.present, k), own.weights)
        kernel = cell_kernel(spec, merged.A)
        ridges: Float64 = 1.0 / (2.0 * cost * merged.weights)
        system = System(merged.A, kernel)
        few = evenly(len(merged.A), EVALUATED_ROWS)
        asked = few if cell.asked is None else np.union1d(few, merged.of_row[cell.asked])
        found = system.solve(merged.Y, ridges, offset=spec.fit_intercept, held_out=asked)
        assert found.held_out is not None
        values = np.asarray(found.held_out, np.float64)
        rows, coef = _in_float32(merged.A, found.alpha, system.diagonal)
        report = replace(
            report,
            C=cost,
            gamma=kernel.gamma,
            # Of the same rows whatever else is asked: those of rare classes are asked more often.
            validation_error=_error(values[np.searchsorted(asked, few)], few, merged, own),
            n_support=len(merged.A),
            n_trained=1,
            n_tried=1,
            seconds=time.perf_counter() - started,
        )
        return LocalModel(
            frame=own.frame,
            rows=rows,
            coef=coef,
            classes=own.classes.astype(np.int32),
            class_ptr=np.array([0, *[len(rows)] * k], np.int64),
            intercepts=found.offsets,
            kernel=kernel,
            report=report,
            held_out=None if cell.asked is None else _of_rows(values, asked, merged, cell.asked),
        )

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """Return the bytes that a cell of so many rows adds: matrices, in float64 if need be."""
        m, k = n_rows, sizes.n_classes
        # Beside distances in float32, which are the rows': the kernel matrix, which becomes its own
        # factor, in float64 if need be; a mask of its values, and as much to spare.
        matrices = m * m * (F8 + 2)
        return rows_nbytes(sizes, m) + matrices + 4 * m * (k + 1) * F8

    def model_nbytes(self, sizes: Sizes, n_rows: int) -> int:
        """As of `LocalSolver`: twice as much where coefficients may be kept in two parts."""
        spec = sizes.spec
        is_mild = spec.C is None or max(spec.C) <= MILD_COST
        parts = 1 if is_mild and find_kernel(spec.kernel).unit_diagonal else 2
        return parts * super().model_nbytes(sizes, n_rows)

    def n_coefficients(self, sizes: Sizes) -> int:
        """As of `LocalSolver`: a class's function has all rows."""
        return sizes.n_classes if sizes.n_classes > 2 else 1


def evenly(n_rows: int, most: int) -> Int64:
    """Return at most so many rows, evenly spaced.

    >>> evenly(5, 3).tolist(), evenly(2, 3).tolist()
    ([0, 2, 4], [0, 1])
    """
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.int64)


def _of_rows(values: Float64, asked: Int64, merged: MergedRows, rows: Int64) -> Float64:
    """Return the held-out values of rows, which equal rows share."""
    own: Float64 = values[np.searchsorted(asked, merged.of_row[rows])]
    return own


def _error(values: Float64, asked: Int64, merged: MergedRows, own: LocalRows) -> float:
    """Return the weighted share of wrong rows among those that were left out, with their copies."""
    at = np.full(len(merged.A), -1)
    at[asked] = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
    winner = at[merged.of_row]
    is_asked = winner >= 0
    wrong = winner[is_asked] != own.present[is_asked]
    return float(np.average(wrong, weights=own.weights[is_asked]))


def _in_float32(A: Float32, alpha: Floats, diagonal: Float64) -> tuple[Float32, Float32]:
    """Return rows and float32 coefficients of the same functions.

    Where rounding coefficients would move values, each row comes twice: with the rounded
    coefficients, and with what that left of them. Of a small ridge, or of features of large values,
    they are many times what their sum comes to.

    Parameters
    ----------
    A : float32 array, shape (m, d)
    alpha : float array, shape (m, r)
    diagonal : float64 array, shape (m,). Of the kernel matrix.
    """
    whole = np.ascontiguousarray(alpha.T, np.float32)
    rest = alpha.T - whole.astype(np.float64)
    # Roundings are independent: their squares add up. |k(x, z)|^2 is at most k(x, x) k(z, z).
    moved = np.sqrt((rest**2 @ diagonal).max() * diagonal.max())
    if moved <= MAX_MOVE:
        return A, whole
    return np.vstack([A, A]), np.hstack([whole, rest.astype(np.float32)])


def cell_kernel(spec: SolverSpec, A: Float32) -> KernelSpec:
    """Return the kernel of a cell: gamma as given, or that of its width in the cell's unit."""
    if spec.width is not None:
        return kernel_of(spec, gamma_in_cell(spec.kernel, spec.width, A))
    return kernel_of(spec, 1.0 if spec.gamma is None else spec.gamma[0])
