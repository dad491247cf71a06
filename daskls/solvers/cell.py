"""Train the model of one cell."""

import math
import time
from dataclasses import replace

import numpy as np

from daskls.kernels.gram import base_matrix, centered, squared_norms
from daskls.records import CellReport, FloatArray, IntArray, KernelSpec, LocalModel, SolverSpec
from daskls.solvers.folds import deal_folds
from daskls.solvers.grid import resolve_grid
from daskls.solvers.search import CellData, Choice, refit_cell, search_grid

__all__ = ["fit_cell"]


def fit_cell(
    X: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    spec: SolverSpec,
    report: CellReport,
    seed: tuple[int, ...],
) -> LocalModel:
    """Select C and gamma by cross-validation in one cell and train its model.

    Parameters
    ----------
    X : real array, shape (m, d). The cell's rows, by increasing global row number.
    codes : int array, shape (m,). Class codes, of any subset of the classes.
    weights : float array, shape (m,), > 0. Multiply C; validation errors are weighted by them.
    spec : SolverSpec
    report : CellReport. Carries the cell's and the leaf's number; the rest is filled in.
    seed : tuple of int. Names the cell among all cells of all fits.

    Returns
    -------
    model : LocalModel. A constant where only one class is present, all rows are equal, or there
        are fewer rows than folds.

    Notes
    -----
    Peak memory: 2 float32 matrices of m x m, one more a pair of classes beyond two.
    """
    started = time.perf_counter()
    # Equal rows need not equal their rounded mean: test for them before centering.
    all_equal = bool((X[0] == X).all())
    center = X[0].astype(np.float64) if all_equal else X.mean(axis=0, dtype=np.float64)
    # The model keeps float32 rows: train on exactly those, so that both see one kernel.
    rows = centered(X, center).astype(np.float32)
    A = rows.astype(np.float64)
    classes, present = np.unique(codes, return_inverse=True)
    radius = float(np.sqrt(squared_norms(A).max()))
    report = replace(report, n_rows=len(X), n_classes=len(classes), radius=radius)
    if len(classes) == 1 or len(X) < spec.cv or radius == 0.0:
        totals = np.bincount(present, weights)
        return _constant(center, classes[totals.argmax()], _timed(report, started))
    folds = deal_folds(present, spec.cv, seed)
    # Rows of a fold side by side: training without it then skips one range of every vector.
    order = np.argsort(folds, kind="stable")
    # In units near the radius, so that float32 neither overflows nor underflows; a power of two,
    # so that it rounds nothing.
    unit = 2.0 ** round(math.log2(radius)) if spec.kernel == "rbf" else 1.0
    cell = CellData(
        base_matrix(A[order] / unit, spec.kernel),
        present[order],
        folds[order],
        weights[order].astype(np.float32),
        len(classes),
    )
    grid = resolve_grid(spec, radius, len(X), X.shape[1])
    grid = replace(grid, gammas=tuple(gamma * unit**2 for gamma in grid.gammas))
    choice = search_grid(cell, spec, grid)
    if spec.refit == "cell":
        choice = refit_cell(cell, choice, spec, grid)
    kernel = replace(choice.kernel, gamma=choice.kernel.gamma / unit**2)
    choice = replace(choice, kernel=kernel)
    if not choice.coef.any():
        # Weights too small for float32, or a tol that the start satisfies: nothing was learned.
        totals = np.bincount(present, weights)
        return _constant(center, classes[totals.argmax()], _timed(report, started))
    by_class = np.argsort(cell.codes, kind="stable")
    choice = replace(choice, coef=choice.coef[:, by_class])
    return _assemble(
        center, rows[order][by_class], classes, cell.codes[by_class], choice, report, started
    )


def _timed(report: CellReport, started: float) -> CellReport:
    return replace(report, seconds=time.perf_counter() - started)


def _constant(center: FloatArray, code: int, report: CellReport) -> LocalModel:
    """Return the model that answers one class everywhere."""
    return LocalModel(
        center=center,
        rows=np.empty((0, len(center)), np.float32),
        coef=np.empty((0, 0), np.float32),
        classes=np.array([code], np.int32),
        class_ptr=np.zeros(2, np.int64),
        intercepts=np.empty(0),
        kernel=KernelSpec("linear"),
        report=report,
    )


def _assemble(
    center: FloatArray,
    rows: FloatArray,
    classes: IntArray,
    codes: IntArray,
    choice: Choice,
    report: CellReport,
    started: float,
) -> LocalModel:
    """Drop the rows without any coefficient and lay the rest out as a LocalModel."""
    support = np.flatnonzero(np.any(choice.coef != 0, axis=0))
    report = replace(
        report,
        C=choice.C,
        gamma=choice.kernel.gamma,
        validation_error=choice.error,
        n_steps=choice.counts.n_steps,
        n_at_limit=choice.counts.n_at_limit,
        n_trained=choice.counts.n_trained,
        n_support=len(support),
        edge=choice.edge,
    )
    return LocalModel(
        center=center,
        rows=rows[support],
        coef=np.ascontiguousarray(choice.coef[:, support]),
        classes=classes.astype(np.int32),
        class_ptr=np.searchsorted(codes[support], np.arange(len(classes) + 1)).astype(np.int64),
        intercepts=choice.intercepts,
        kernel=choice.kernel,
        report=_timed(report, started),
    )
