"""Stratified folds of one cell."""

import numpy as np

from daskls.records import Int64

__all__ = ["assign_folds"]


def assign_folds(codes: Int64, n_folds: int, seed: tuple[int, ...]) -> Int64:
    """Assign the rows of each class to the folds in turn, in an order drawn from ``seed``.

    Each class begins at the fold after the last one's end, so fold sizes differ by at most one, and
    so do the counts of each class. A class with fewer rows than folds keeps its row order.

    Parameters
    ----------
    codes : int array, shape (m,). Class of each row.
    n_folds : int
    seed : tuple of int. Names the cell, so that folds depend on no other cell.

    Returns
    -------
    folds : int64 array, shape (m,), values 0 to n_folds - 1

    Examples
    --------
    >>> assign_folds(np.array([0, 0, 1]), 5, (0,))
    array([0, 1, 2])
    """
    rng = np.random.default_rng(seed)
    folds = np.empty(len(codes), dtype=np.int64)
    assigned = 0
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        if len(members) >= n_folds:
            members = rng.permutation(members)
        folds[members] = (assigned + np.arange(len(members))) % n_folds
        assigned += len(members)
    return folds
