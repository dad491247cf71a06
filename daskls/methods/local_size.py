"""The size of residuals near a row: that of its cells, drawn to that of all."""

from typing import Any

import numpy as np

from daskls.methods.base import method_of
from daskls.records import Float64, Int64, Reals
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.store.reader import ModelReader

__all__ = ["OF_ALL", "around", "cells_of", "sizes_of_cells", "sizes_of_rows"]

# Rows of all that each cell's own are mixed with. A mean square of n residuals of a heavy-tailed y
# (a kurtosis of 50 to 200, as of houses and pol) strays by sqrt(kurtosis / n) of itself: a cell of
# thousands of rows keeps its own size, one of a few dozen takes that of all.
OF_ALL = 50


def sizes_of_cells(report: Any) -> Float64:
    """Return the size of residuals in each cell, in units of that of all rows, all > 0.

    Parameters
    ----------
    report : record array (n_cells,). With the mean square that training rows of each cell missed
        by models without them; a cell that was asked about none has the size of all.

    Examples
    --------
    >>> report = np.rec.fromarrays([[4000, 1000], [0.01, 0.06]], names="n_rows, validation_error")
    >>> sizes_of_cells(report).round(3)
    array([0.71 , 1.713])
    """
    n_rows, squares = report.n_rows.astype(np.float64), report.validation_error
    known = np.isfinite(squares) & (n_rows > 0)
    pooled = np.average(squares[known], weights=n_rows[known]) if known.any() else 0.0
    if not pooled > 0:
        # Nothing is missed, or nothing was asked: all residuals are measured alike.
        return np.ones(len(n_rows))
    relative = np.where(known, squares / pooled, 1.0)
    sizes: Float64 = np.sqrt((n_rows * relative + OF_ALL) / (n_rows + OF_ALL))
    return sizes


@undisturbed
def cells_of(reader: ModelReader, X: Reals) -> Int64:
    """Return the cells that answer each row, int64 (m, p): one a partition, none where all do."""
    with one_blas_thread():
        views = method_of(reader.method).space(reader).find(reader.enter(X))
    if views is None:
        return np.empty((len(X), 0), np.int64)
    return np.stack([view.astype(np.int64) for view in views], axis=1)


def sizes_of_rows(sizes: Float64, cells: Int64) -> Float64:
    """Return the size of residuals at rows, float64 (m,): the root of the mean square of cells'.

    Parameters
    ----------
    sizes : float64 array, shape (n_cells,)
    cells : as of `cells_of`

    Examples
    --------
    >>> sizes_of_rows(np.array([1.0, 7.0]), np.array([[0, 0], [0, 1]]))
    array([1., 5.])
    """
    squares = sizes**2
    if not cells.shape[1]:
        return np.full(len(cells), np.sqrt(squares.mean()))
    found: Float64 = np.sqrt(squares[cells].mean(axis=1))
    return found


def around(answers: Float64, sizes: Float64, half_widths: tuple[float, ...]) -> Float64:
    """Return the lower and the upper end around answers (m,) or (m, t): (m, 2) or (m, t, 2).

    Examples
    --------
    >>> around(np.array([1.0, 2.0]), np.array([1.0, 2.0]), (0.5,))
    array([[0.5, 1.5],
           [1. , 3. ]])
    """
    half = np.outer(sizes, half_widths).reshape(answers.shape)
    return np.stack([answers - half, answers + half], axis=-1)
