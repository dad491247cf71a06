"""The rows of a cell as least squares sees them: targets of +-1, equal rows as one."""

from dataclasses import dataclass

import numpy as np

from daskls.kernels.registry import find_kernel
from daskls.records import Float32, Float64, Int64, Ints
from daskls.solvers.squares.system import Solution

__all__ = [
    "MergedRows",
    "gamma_in_cell",
    "median_distance",
    "merge_equal_rows",
    "signs_of",
    "without_one_copy",
]

# Rows whose distances to each other tell the unit of widths.
MEASURED_ROWS = 200
# Of the largest distance to the origin: distances so small are those of equal rows.
ROUNDING = 1e-7


def signs_of(present: Ints, n_classes: int) -> Float64:
    """Return targets of one-vs-rest: +1 of a row's class, else -1; of two classes of the second.

    Parameters
    ----------
    present : int array, shape (m,). Positions of the rows' classes among those of the cell.
    n_classes : int, >= 2. Of the cell.

    Returns
    -------
    signs : float64 array, shape (m, r): r = n_classes, or 1 of two

    Examples
    --------
    >>> signs_of(np.array([0, 1]), 2).tolist()
    [[-1.0], [1.0]]
    """
    wanted = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    return np.where(present[:, None] == wanted, 1.0, -1.0)


def gamma_in_cell(name: str, width: float, A: Float32) -> float:
    """Return gamma of a width that is a multiple of the median distance of a cell's rows.

    Of some of them, evenly spaced; equal rows are left out. The median is 1 where all are equal.
    """
    return find_kernel(name).gamma_of(width * median_distance(name, A))


def median_distance(name: str, A: Float32) -> float:
    """Return the unit of a kernel's widths among some rows, see `gamma_in_cell`."""
    S = A[:: max(1, len(A) // MEASURED_ROWS)].astype(np.float64)
    apart = find_kernel(name).distances(S)[np.triu_indices(len(S), 1)]
    # Products leave rounding errors between equal rows, which are no distances.
    apart = apart[apart > ROUNDING * np.sqrt((S * S).sum(axis=1).max())]
    return float(np.median(apart)) if len(apart) else 1.0


@dataclass(frozen=True, eq=False)
class MergedRows:
    """Rows of which no two are equal.

    Attributes
    ----------
    A : float32 array, shape (k, d). In the order in which they come first.
    Y : float64 array, shape (k, r). Means of their targets, by weight.
    weights : float64 array, shape (k,). Sums.
    of_row : int64 array, shape (m,). Which of them each row is.
    """

    A: Float32
    Y: Float64
    weights: Float64
    of_row: Int64


def merge_equal_rows(A: Float32, Y: Float64, weights: Float64) -> MergedRows:
    """Merge equal rows into one of summed weight and mean target.

    The same coefficients in sum, from a smaller system. Leaving one of them out leaves out all
    copies, which would reveal a class; of numbers see `without_one_copy`.
    """
    # Adding 0 makes one zero of two: rows are compared by their bytes.
    keys = np.ascontiguousarray(A + np.float32(0.0)).view(np.dtype((np.void, 4 * A.shape[1])))
    _, first, group = np.unique(keys.ravel(), return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    of_row = position[group]
    if len(first) == len(A):
        return MergedRows(A, Y, weights, of_row)
    summed: Float64 = np.bincount(of_row, weights).astype(np.float64)
    targets = [np.bincount(of_row, weights * column) / summed for column in Y.T]
    return MergedRows(A[first[order]], np.stack(targets, axis=1), summed, of_row)


def without_one_copy(
    merged: MergedRows, found: Solution, ridges: Float64, Y: Float64, weights: Float64, asked: Int64
) -> tuple[Int64, Float64]:
    """Return values of rows without each of them, while their copies stay.

    Parameters
    ----------
    merged : MergedRows
    found : Solution. Of the merged rows, with the inverse of those asked for.
    ridges : float64 array, shape (k,)
    Y : float64 array, shape (m, r). Targets of all rows.
    weights : float64 array, shape (m,)
    asked : int64 array, increasing. The merged rows whose copies are wanted.

    Returns
    -------
    rows : int64 array, shape (q,). All copies of these.
    values : float64 array, shape (q, r)

    Notes
    -----
    A row's own target moves its value by h = w / W (1 - ridge V), of its weight w, the weight W of
    all copies and the diagonal V of the inverse: without it the value is y - (y - f) / (1 - h).
    """
    at = np.full(len(merged.A), -1)
    at[asked] = np.arange(len(asked))
    rows = np.flatnonzero(at[merged.of_row] >= 0)
    of_row = merged.of_row[rows]
    assert found.inverse is not None
    fitted = merged.Y[of_row] - (ridges[:, None] * found.alpha)[of_row]
    own = (
        (1.0 - ridges[of_row] * found.inverse[at[of_row]]) * weights[rows] / merged.weights[of_row]
    )
    missed = Y[rows] - fitted
    values: Float64 = Y[rows] - missed / (1.0 - own)[:, None]
    return rows, values
