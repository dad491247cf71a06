"""The size of residuals near a row, that of its cells, and intervals in proportion to it."""

import numpy as np

from daskls.methods.base import method_of
from daskls.records import Float64, Int64, Reals
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.store.reader import ModelReader

__all__ = ["around", "cells_of", "sizes_of_rows"]


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
