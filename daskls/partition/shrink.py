"""How much nearer the rows of a cell are to each other than to all others."""

import math
from dataclasses import dataclass

import numpy as np

from daskls.partition.base import Partition
from daskls.records import Float64, Ints, Reals

__all__ = ["Shrinkage", "measure_shrinkage"]

# Rows that are measured: as many as suffice for a share to 1 %.
SCATTER_ROWS = 16_384


@dataclass(frozen=True)
class Shrinkage:
    """What cells leave of the squared distances of rows to their mean.

    Attributes
    ----------
    n_cells : int
    share : float. Squared distances to the means of cells, of those to the mean of all.
    """

    n_cells: int
    share: float

    @property
    def dimensions(self) -> float:
        """The dimensions of a cube of even rows that as many equal cells would shrink as little.

        >>> Shrinkage(64, 1 / 16).dimensions
        3.0
        """
        shrunk = -math.log(self.share) if 0 < self.share < 1 else 0.0
        return 2 * math.log(self.n_cells) / shrunk if shrunk else math.inf


def measure_shrinkage(partition: Partition, X: Reals) -> Shrinkage | None:
    """Return what the cells of the first partition leave of the scatter of some rows.

    None where there are too few cells or rows to say, or cells have no place in space.

    Parameters
    ----------
    partition : Partition, whose leaves are the cells
    X : real array, shape (m, d). Sampled rows, as the partition sees them.
    """
    A = X[:: max(1, len(X) // SCATTER_ROWS)]
    found = partition.find(A)
    if found is None:
        return None
    n_cells = partition.n_leaves // partition.n_partitions
    within, left = _scatter(A, found[0])
    between, _ = _scatter(A, np.zeros(len(A), np.int64))
    # Means of few rows lie nearer to them than those of all rows of a cell do.
    if n_cells < 2 or left < len(A) / 2 or not between:
        return None
    return Shrinkage(n_cells, within / left * (len(A) - 1) / between)


def _scatter(A: Reals, groups: Ints) -> tuple[float, int]:
    """Return squared distances of rows to the means of their groups, and degrees of freedom."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    total = 0.0
    for own in np.split(order, starts[1:]):
        rows: Float64 = A[own].astype(np.float64)
        total += float(((rows - rows.mean(axis=0)) ** 2).sum())
    return total, len(A) - len(starts)
