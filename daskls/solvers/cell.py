"""Train the model of one cell."""

from dataclasses import replace

from daskls.records import CellReport, FloatArray, IntArray, LocalModel, SolverSpec
from daskls.solvers.folds import deal_folds
from daskls.solvers.grid import resolve_grid
from daskls.solvers.rows import LocalRows
from daskls.solvers.search import refit_cell, search_grid

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
    model : LocalModel. A constant where only one class is present, or all rows are equal.

    Notes
    -----
    A cell of fewer rows than folds is dealt as many folds as it has rows.

    Peak memory: 2 float32 matrices of m x m, for more than two classes as many again.
    """
    spec = replace(spec, cv=min(spec.cv, len(X)))
    own = LocalRows.of(X, codes, weights, spec)
    report = own.described(report)
    if len(own.classes) == 1 or own.radius == 0.0:
        return own.constant(report)
    order, cell = own.data(deal_folds(own.present, spec.cv, seed))
    grid = own.in_units(resolve_grid(spec, own.radius, len(X), X.shape[1]))
    choice = search_grid(cell, spec, grid)
    if spec.refit == "cell":
        choice = refit_cell(cell, choice, spec, grid)
    return own.model(choice, order, cell, report)
