"""Growing a tree of full cells: a region is cut across its longest side, in whole shares.

A region of n rows needs at least q = ceil(n / cell_size) cells. It is cut where the first
floor(q / 2) of its q equal shares end, so every leaf comes out with close to n / q rows: as few
cells as the bound allows, all of them full. Where ties leave no such cut (an indicator has but two
values), the nearest gap is taken.

The cut runs across the feature of largest variance, so that a group of rows that share an indicator
stays whole; or across the principal direction, where features vary together so much that it has
more than `SLANTED` times that variance. On data with indicators, slanted cuts mix groups and cost
accuracy; on images, no single pixel cuts anything.

Source: the recursive partition on a subsample of Thomann et al., AISTATS 2017, appendix C.
Difference: the paper finds centers by farthest-first traversal, which isolates outliers in cells
of a few rows. Each of our cuts still gives a row to the nearer of two centers, mirror images of
each other in the cut.
"""

from collections.abc import Iterator

import numpy as np

from daskls.kernels.route import project
from daskls.records import FloatArray, IntArray, Tree

__all__ = ["grow_tree"]

SLANTED = 2.1


def grow_tree(X: FloatArray, max_rows: int, center: FloatArray) -> Tree:
    """Grow a tree whose leaves hold at most ``max_rows`` rows of X.

    Parameters
    ----------
    X : real array, shape (m, d)
    max_rows : int, >= 1. The bound of a leaf. A leaf of equal rows is exempt.
    center : float64 array, shape (d,). Subtracted in float64; the tree's center.

    Returns
    -------
    tree : Tree

    Notes
    -----
    The result depends on the rows' values alone: an order of the rows that changes the rounding
    of their covariance may move a cut. Cost O(m d^2 log(m / max_rows)), and O(d^3) a cut; memory
    3 copies of X in float64 and 4 matrices of d x d.
    """
    A = np.subtract(X, center, dtype=np.float64, order="C")
    directions: list[FloatArray] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    n_leaves = 0
    # Depth first, left before right: leaves are numbered from left to right. Each entry holds a
    # region's rows and the place in its parent that waits for its number.
    stack: list[tuple[IntArray, int, int]] = [(np.arange(len(A)), -1, 0)]
    while stack:
        rows, parent, side = stack.pop()
        cut = _cut(A[rows], max_rows) if len(rows) > max_rows else None
        number = ~n_leaves if cut is None else len(thresholds)
        if parent >= 0:
            children[parent][side] = number
        if cut is None:
            n_leaves += 1
            continue
        direction, threshold, first = cut
        directions.append(direction)
        thresholds.append(threshold)
        children.append([0, 0])
        stack.append((rows[~first], number, 1))
        stack.append((rows[first], number, 0))
    d = A.shape[1]
    return Tree(
        np.asarray(center, np.float64),
        np.array(directions, np.float64).reshape(-1, d),
        np.array(thresholds, np.float64),
        np.array(children, np.int32).reshape(-1, 2),
    )


def _cut(A: FloatArray, max_rows: int) -> tuple[FloatArray, float, IntArray] | None:
    """Return (direction, threshold, rows on the first side), or None if all rows are equal."""
    n_shares = -(-len(A) // max_rows)
    n_first = len(A) * (n_shares // 2) // n_shares
    position = np.empty(len(A))
    for direction in _directions(A):
        project(A, direction, position)
        threshold = _threshold(np.sort(position), n_first)
        if threshold is not None:
            return direction, threshold, position <= threshold
    return None


def _directions(A: FloatArray) -> Iterator[FloatArray]:
    """Yield the direction to cut across; then the features that vary, by variance.

    The second feature serves where coordinates along the first direction all round to one value.
    """
    spread = A - A.mean(axis=0)
    scatter = spread.T @ spread
    values, vectors = np.linalg.eigh(scatter)
    scatter_of = np.diagonal(scatter)
    if values[-1] > SLANTED * scatter_of.max():
        # An eigenvector's sign is arbitrary; fix it, as it decides which child comes first.
        longest = vectors[:, -1]
        yield np.ascontiguousarray(longest * np.sign(longest[np.abs(longest).argmax()]))
    varies = np.ptp(A, axis=0) > 0
    for feature in np.argsort(-scatter_of, kind="stable"):
        if varies[feature]:
            yield np.eye(A.shape[1])[feature]


def _threshold(position: FloatArray, n_first: int) -> float | None:
    """Return a cut of sorted positions that leaves ``n_first`` rows below, as near as ties allow.

    None if all positions are equal.
    """
    gaps = np.flatnonzero(position[1:] > position[:-1]) + 1
    if len(gaps) == 0:
        return None
    place = gaps[np.abs(gaps - n_first).argmin()]
    below, above = position[place - 1], position[place]
    middle = below + (above - below) / 2
    # The midpoint of two adjacent floats rounds to one of them; it must not be the upper one.
    return float(middle if middle < above else below)
