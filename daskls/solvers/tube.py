"""Support vector regression in each cell: C by folds on the loss, one width for all cells."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from daskls.kernels.hinge import solve_tube
from daskls.records import (
    F8,
    CellReport,
    Float32,
    Float64,
    Int64,
    KernelSpec,
    LocalModel,
    SolverSpec,
    Targets,
)
from daskls.solvers.base import CellRows, LocalSolver, Sizes
from daskls.solvers.grid import assign_folds, resolve_grid
from daskls.solvers.level_losses import Pinball
from daskls.solvers.rows import LocalRows, max_steps, rows_nbytes
from daskls.solvers.squares.solver import cell_kernel, in_float32
from daskls.solvers.squares.system import FAR_OFF, System

# How far rounding coefficients may move a value: a standard deviation, in units of y's.
MAX_TUBE_MOVE = 1e-5
# After so many worse values of C in a row, larger ones are not tried: the loss has one minimum.
PATIENCE = 2


class TubeSolver(LocalSolver):
    """Support vector regression with an epsilon-insensitive loss.

    Source: Vapnik 1995; Smola, Schoelkopf 2004. In the units of y the objective is scikit-learn's
    ``|f|^2 / 2 + C sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon)``.
    """

    def completed(self, spec: SolverSpec, targets: Targets, weights: Float64) -> SolverSpec:
        y = np.clip(cast(Float64, targets)[:, 0], -FAR_OFF, FAR_OFF)
        variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
        return replace(spec, constant_losses=(float(variance) or 1.0,))

    def fit(self, cells: Iterable[CellRows], spec: SolverSpec) -> Iterator[LocalModel]:
        for cell in cells:
            yield self._fit_cell(cell, spec)

    def _fit_cell(self, cell: CellRows, spec: SolverSpec) -> LocalModel:
        alike = np.zeros(len(cell.X), np.int32)
        local = LocalRows.of(cell.X, alike, cell.weights, spec, counts=cell.counts)
        y = cast(Float64, cell.targets)[:, 0]
        report = replace(local.described(cell.report), n_classes=0)
        if local.are_equal or (y == y[0]).all():
            return constants(local, [Pinball().constant(y, local.weights, 0.5)], report)
        kernel = cell_kernel(spec, local.rows)
        problem = TubeProblem(kernel_matrix(local.rows, kernel), y, local.weights, spec.tube, spec)
        costs = cost_candidates(local, spec)
        folds = assign_folds(np.zeros(len(y), np.int64), spec.cv, cell.seed)
        chosen = problem.choose(costs, folds)
        beta, offset = problem.finish(chosen)
        edge = "C" if len(costs) > 1 and chosen.cost in (costs[0], costs[-1]) else ""
        report = replace(
            report,
            C=chosen.cost * spec.unit,
            validation_error=chosen.squared_error / (spec.constant_losses or (1.0,))[0],
            n_steps=problem.n_steps,
            n_at_limit=problem.n_at_limit,
            n_trained=problem.n_trained,
            n_tried=chosen.n_tried,
            edge=edge,
        )
        return values_model(local, kernel, problem.diagonal, beta[:, None], [offset], report)

    def nbytes(self, sizes: Sizes, n_rows: int) -> int:
        m, cv = n_rows, sizes.spec.cv
        return rows_nbytes(sizes, m) + m * m * (F8 + 2) + (2 * cv + 12) * m * F8

    def model_nbytes(self, sizes: Sizes, n_rows: int) -> int:
        return 2 * super().model_nbytes(sizes, n_rows)

    def n_coefficients(self, sizes: Sizes) -> int:
        return 1


def kernel_matrix(A: Float32, kernel: KernelSpec) -> Float64:
    """Return the kernel matrix in float64: with large C, values are small differences."""
    return System(A, kernel).matrix64()


def cost_candidates(local: LocalRows, spec: SolverSpec) -> tuple[float, ...]:
    if spec.C is not None:
        return tuple(cost / spec.unit for cost in spec.C)
    return tuple(sorted(resolve_grid(spec, local.radius, local.n_rows, local.rows.shape[1]).costs))


def values_model(
    local: LocalRows,
    kernel: KernelSpec,
    diagonal: Float64,
    betas: Float64,
    offsets: Sequence[float],
    report: CellReport,
) -> LocalModel:
    support = np.flatnonzero(betas.any(axis=1))
    if not len(support):
        # Only offsets were learned: all numbers lie within the tube, or C x weight is too small.
        return constants(local, offsets, report)
    rows, coef = in_float32(local.rows[support], betas[support], diagonal[support], MAX_TUBE_MOVE)
    return LocalModel(
        frame=local.frame,
        rows=rows,
        coef=coef,
        classes=np.arange(len(offsets), dtype=np.int32),
        class_ptr=np.array([0, *[len(rows)] * len(offsets)], np.int64),
        intercepts=np.array(offsets),
        kernel=kernel,
        report=replace(
            report,
            gamma=kernel.gamma,
            n_support=len(support),
            seconds=time.perf_counter() - local.started,
        ),
        decision="values",
    )


def constants(local: LocalRows, values: Sequence[float], report: CellReport) -> LocalModel:
    return replace(
        local.constant(report),
        classes=np.arange(len(values), dtype=np.int32),
        class_ptr=np.zeros(len(values) + 1, np.int64),
        intercepts=np.array(values),
        decision="values",
    )


@dataclass(frozen=True, eq=False)
class _Chosen:
    """A chosen C, and where training on all rows starts: beta and ``g = K beta - y``."""

    cost: float
    loss: float
    squared_error: float
    beta: Float64
    g: Float64
    shift: float = 0.0
    n_tried: int = 1


class TubeProblem:
    def __init__(
        self, K: Float64, y: Float64, weights: Float64, epsilon: float, spec: SolverSpec
    ) -> None:
        self._K, self._y, self._weights = K, y, weights
        self._epsilon, self._spec = epsilon, spec
        self.n_steps = self.n_trained = self.n_at_limit = 0

    def bounds(self, costs: Float64) -> tuple[Float64, Float64]:
        return -costs, costs

    def losses(self, missed: Float64) -> Float64:
        return np.maximum(0.0, np.abs(missed) - self._epsilon)

    def search_tol(self, least: float) -> float:
        return self._spec.tol

    def shift(self, missed: Float64) -> float:
        return 0.0

    def _solve(self, costs: Float64, beta: Float64, g: Float64, tol: float) -> float:
        spec, most = self._spec, max_steps(len(self._y))
        arguments = self._K, self._y, *self.bounds(costs), self._epsilon, spec.fit_intercept
        n_steps, violation, low, high = solve_tube(*arguments, beta, g, tol, most)
        self.n_steps += n_steps
        self.n_trained += 1
        self.n_at_limit += violation > tol
        return -(low + high) / 2 if spec.fit_intercept else 0.0

    @property
    def diagonal(self) -> Float64:
        return np.diagonal(self._K)

    def choose(self, costs: tuple[float, ...], folds: Int64) -> _Chosen:
        """Return the C of the least loss; a solution is a feasible start for the next larger C."""
        start = np.zeros_like(self._y), -self._y
        if len(costs) == 1:
            return _Chosen(costs[0], float("nan"), float("nan"), *start)
        held_out = [folds == fold for fold in np.unique(folds)]
        state = [(start[0].copy(), start[1].copy()) for _ in held_out]
        best, least, n_worse, n_tried = None, np.inf, 0, 0
        for cost in costs:
            values, tol = np.empty_like(self._y), self.search_tol(least)
            for out, (beta, g) in zip(held_out, state, strict=True):
                offset = self._solve(np.where(out, 0.0, cost * self._weights), beta, g, tol)
                values[out] = (g + self._y)[out] + offset
            n_tried += 1
            shift = self.shift(self._y - values)
            loss, squared = self._mean_losses(values + shift)
            if loss < least:
                beta, g = (np.mean([pair[i] for pair in state], axis=0) for i in (0, 1))
                best, least, n_worse = _Chosen(cost, loss, squared, beta, g, shift), loss, 0
            else:
                n_worse += 1
                if n_worse == PATIENCE:
                    break
        assert best is not None
        return replace(best, n_tried=n_tried)

    def _mean_losses(self, values: Float64) -> tuple[float, float]:
        missed = np.clip(self._y - values, -FAR_OFF, FAR_OFF)
        means = (np.average(x, weights=self._weights) for x in (self.losses(missed), missed**2))
        first, second = means
        return float(first), float(second)

    def finish(self, chosen: _Chosen) -> tuple[Float64, float]:
        beta, g = chosen.beta.copy(), chosen.g.copy()
        offset = self._solve(chosen.cost * self._weights, beta, g, self._spec.tol)
        return beta, offset + chosen.shift
