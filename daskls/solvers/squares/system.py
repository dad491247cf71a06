"""The linear system of a cell: ``(K + R) alpha = Y``, with R = ridge / w on the diagonal.

One factorization serves all columns of Y. Held-out values come from the inverse: without row i, the
value there is ``y_i - alpha_i / (K + R)^-1_ii`` (Allen 1974; Rifkin, Lippert 2007). With an offset
the system is bordered, ``[[K + R, 1], [1', 0]]``, and the same holds for its inverse.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_blas_funcs, lapack

from daskls.errors import ParameterError
from daskls.kernels.copies import find_copies
from daskls.kernels.gram import mirror, squared_columns
from daskls.kernels.kernel import Kernel, find_kernel
from daskls.records import EPS, Float32, Float64, Floats, Int64, Ints, KernelSpec

# A pivot below this many rounding errors of the trace, which bounds the largest eigenvalue, is lost
# among them: leave-one-out values are silently wrong. Measured: see tests/solvers/squares. Pivots
# and trace are those of the system times the weights of its rows, which changes a factorization by
# rounding alone: so the copies that a row stands for cost none. No pivot is below the ridge,
# but with a narrow or a rough kernel all are far above it: the Laplacian and the exponential kernel
# rarely need float64, which takes twice as long.
SAFE_ROUNDINGS = 8.0
# The leading rows, as a share, whose pivots are looked at first where the ridge promises nothing.
# They are the pivots of the whole, for 1/64 of its cost, and reveal most systems that need float64.
LEADING_SHARE = 0.25
# The ridge, in roundings, that the error asks for where it is lost even in float64.
REMEDY_ROUNDINGS = 64.0
# For more than this share of the rows the whole inverse takes hardly longer, and no memory beyond
# the factor's.
MAX_REQUESTED = 0.25
# Outliers, for losses that these move little: targets that miss by more than two median
# errors, 1.35 deviations of normal ones, as Huber's; at first, what is so many spreads off. The
# share of what an outlier moves shrinks by a factor in each round.
MOST_MISSED, MOST_SPREADS, OUTLIER_ROUNDS = 2.0, 3.0, 8
# An error of more spreads counts as one of so many: beyond, float64 would not tell the errors of
# all other rows in a sum.
FAR_OFF = 1e6
EPS32 = float(np.finfo(np.float32).eps)


def may_need_float64(least_pivot: float, trace: float) -> bool:
    """Whether float32 might lose the digits of a system with so small a pivot, or bound of one.

    >>> may_need_float64(1e-2, 2000), may_need_float64(1e-4, 2000)
    (False, True)
    """
    return least_pivot < SAFE_ROUNDINGS * EPS32 * trace


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution: alpha (m, r), offsets (r,), and each row's value without it."""

    alpha: Floats
    offsets: Float64
    held_out: Floats | None
    inverse: Float64 | None = None


class System:
    """A cell's kernel matrix, and solutions for ridges and right-hand sides.

    A solve holds 2 float32 matrices of m x m; in float64, 2 float64 ones beside one of float32.
    """

    def __init__(self, A: Float32, kernel: KernelSpec, base: Float32 | None = None) -> None:
        self._A, self._spec, self._kernel = A, kernel, find_kernel(kernel.name)
        self._base = self._kernel.matrix(A.astype(np.float64)) if base is None else base

    def solve(
        self, Y: Float64, ridges: Float64, *, offset: bool = False, held_out: bool | Int64 = False
    ) -> Solution:
        """Solve for all columns of Y (m, r), with the ridges (m,) on the diagonal of R.

        Leave-one-out values double the work; for some rows they are fast if these are the last.
        """
        return _solve_by(self._factor(ridges), Y, offset=offset, held_out=held_out)

    def error_slopes(
        self, Y: Float64, ridges: Float64, weights: Float64, *, offset: bool = False
    ) -> tuple[float, Floats]:
        """Return the weighted sum of squared leave-one-out errors, and its slopes by kernel values.

        With the inverse G and alpha = G Y, an error is ``e = alpha_i / G_ii``, and a change dK of
        the kernel matrix changes G by ``-G dK G``. The derivatives (m, m) are therefore ``G B G -
        sym(G a alpha')`` with ``a = 2 w e / G_ii`` and ``B_ii = a . e``.
        """
        factor = self._factor(ridges)
        alpha = _solve_by(factor, Y, offset=offset, held_out=False).alpha
        G = _whole_inverse(factor, offset=offset)
        diagonal = np.diagonal(G).astype(np.float64)[:, None]
        missed = alpha / diagonal
        pulled = 2.0 * weights[:, None] * missed / diagonal
        squared = (pulled * missed).sum(axis=1)
        moved = G @ pulled.astype(G.dtype)
        G *= np.sqrt(squared).astype(G.dtype)
        syrk, syr2k = get_blas_funcs(("syrk", "syr2k"), (G,))
        slopes = syrk(1.0, G.T, trans=1, lower=1)
        slopes = syr2k(-0.5, moved, alpha, 1.0, slopes, lower=1, overwrite_c=1).T
        mirror(slopes)
        return float(weights @ (missed**2).sum(axis=1)), slopes

    def without_outliers(self, Y: Float64, ridges: Float64, *, offset: bool = False) -> Float64:
        """Return targets that miss their leave-one-out values by at most `MOST_MISSED` medians.

        Source: Huber, Robust Statistics, 1981, chapter 7: least squares of such pseudo-values, in
        turns. Difference: the values are those without the row.
        """
        if offset and len(Y) == 1:
            # Without its only row an offset has nothing to follow.
            return np.clip(Y, -MOST_SPREADS, MOST_SPREADS)
        G = _whole_inverse(self._factor(ridges), offset=False)
        of_ones = G.sum(axis=1, dtype=np.float64) if offset else np.zeros(len(G))
        of_ones /= np.sqrt(of_ones.sum()) or 1.0
        inverse = np.diagonal(G).astype(np.float64) - of_ones**2
        clipped = np.clip(Y, -MOST_SPREADS, MOST_SPREADS)
        for _ in range(OUTLIER_ROUNDS):
            alpha = G @ clipped.astype(G.dtype) - np.outer(of_ones, of_ones @ clipped)
            values = clipped - alpha / inverse[:, None]
            most = MOST_MISSED * np.median(np.abs(Y - values), axis=0)
            clipped = values + np.clip(Y - values, -most, most)
        return clipped

    def _factor(self, ridges: Float64) -> Floats:
        """Return the factor of K + R: in float32, or in float64 where that loses its digits."""
        trace = float((self.diagonal / ridges).sum())
        factor = self._factor32(ridges, trace)
        if factor is None:
            factor = _factorize(self.matrix64(), ridges)
            # One unit in which no pivot is lost is enough: the pivot of a row of weight 1e-30 is
            # its own ridge, which the others' trace buries in theirs, but not that of K alone.
            units = (ridges, trace), (np.ones(len(ridges)), float(self.diagonal.sum()))
            if factor is None or all(_least_pivot(factor, r) < EPS * t for r, t in units):
                least = float(ridges.min())
                raise _ridge_error(least, len(ridges), least * trace, self._kernel)
        return factor

    def _factor32(self, ridges: Float64, trace: float) -> Floats | None:
        if not may_need_float64(1.0, trace):
            return _factorize(self.matrix32(), ridges)
        for n in (int(LEADING_SHARE * len(ridges)), len(ridges)):
            factor = _factorize(self.matrix32(n), ridges[:n])
            if factor is None or may_need_float64(_least_pivot(factor, ridges[:n]), trace):
                return None
        return factor

    @property
    def diagonal(self) -> Float64:
        if self._kernel.unit_diagonal:
            return np.ones(len(self._base))
        base = np.diagonal(self._base).astype(np.float64)
        return self._kernel.apply(base, self._spec, base)

    def matrix32(self, n: int | None = None) -> Float32:
        """Return the kernel matrix, or that of its first rows, in float32, a new array."""
        base = np.ascontiguousarray(self._base[:n, :n])
        K = np.empty_like(base)
        self._kernel.write(base, self._spec, K)
        return K

    def matrix64(self) -> Float64:
        """Return the kernel matrix in float64, from distances in float64; a new array."""
        A = self._A.astype(np.float64)
        K = self._kernel.block(A, A)
        self._kernel.apply(K, self._spec, K)
        if self._kernel.unit_diagonal:
            np.fill_diagonal(K, 1.0)
        return K


def _least_pivot(factor: Floats, ridges: Float64) -> float:
    """Return the least pivot in units of its ridge: but for rounding it is at least 1."""
    pivots = np.diagonal(factor).astype(np.float64) ** 2
    return float((pivots / ridges).min(initial=np.inf))


def _ridge_error(ridge: float, n_rows: int, trace: float, kernel: Kernel) -> ParameterError:
    remedy = "" if kernel.unit_diagonal else ", or scale the features to values near 1"
    return ParameterError(
        f"C times a row's weight is {1 / (2 * ridge):.3g}; in a cell of {n_rows} rows this is a "
        f"ridge of {ridge:.3g}, which is 0 within float64's precision. Lower C or the weights, "
        f"so that their product is {1 / (2 * REMEDY_ROUNDINGS * EPS * trace):.1g} or "
        f"less{remedy}."
    )


def _routines(dtype: np.dtype[np.generic]) -> tuple[object, object, object]:
    if dtype == np.float32:
        return lapack.spotrf, lapack.spotrs, lapack.strtri
    return lapack.dpotrf, lapack.dpotrs, lapack.dtrtri


def _factorize(K: Floats, ridges: Float64) -> Floats | None:
    diagonal = K.ravel()[:: len(K) + 1]
    diagonal += ridges.astype(K.dtype)
    potrf, _, _ = _routines(K.dtype)
    # K is symmetric: its transpose is the same matrix in Fortran's order, which LAPACK overwrites.
    factor, failed = potrf(K.T, lower=1, overwrite_a=1, clean=0)  # type: ignore[operator]
    return None if failed else factor


def _solve_by(factor: Floats, Y: Float64, *, offset: bool, held_out: bool | Int64) -> Solution:
    m, r = Y.shape
    ones = np.ones((m, 1)) if offset else np.empty((m, 0))
    _, potrs, _ = _routines(factor.dtype)
    sides = np.asarray(np.hstack([Y, ones]), factor.dtype, order="F")
    solved, _ = potrs(factor, sides, lower=1)  # type: ignore[operator]
    alpha, offsets = solved[:, :r], np.zeros(r)
    if offset:
        # The last row of the bordered system says that the alphas of a column sum to 0.
        of_ones = solved[:, r].astype(np.float64)
        total = of_ones.sum()
        offsets = alpha.sum(axis=0, dtype=np.float64) / total
        alpha = (alpha - np.outer(of_ones, offsets)).astype(factor.dtype)
    if held_out is False:
        return Solution(alpha, offsets, None)
    rows = slice(None) if held_out is True else held_out
    diagonal = _inverse_diagonal(factor, None if held_out is True else held_out)
    if offset:
        diagonal = diagonal - of_ones[rows] ** 2 / total
        if m == 1:
            # Without its only row an offset has nothing to follow.
            return Solution(alpha, offsets, np.zeros((len(diagonal), r)), diagonal)
    return Solution(alpha, offsets, Y[rows] - alpha[rows] / diagonal[:, None], diagonal)


def _whole_inverse(factor: Floats, *, offset: bool) -> Floats:
    """Return the inverse of K + R from its factor, which is overwritten; bordered by an offset."""
    potri = lapack.spotri if factor.dtype == np.float32 else lapack.dpotri
    G: Floats = potri(factor, lower=1, overwrite_c=1)[0].T
    mirror(G)
    if offset:
        of_ones = G.sum(axis=1, dtype=np.float64)
        of_ones = (of_ones / np.sqrt(of_ones.sum())).astype(G.dtype)
        G -= np.outer(of_ones, of_ones)
    return G


def _inverse_diagonal(factor: Floats, rows: Int64 | None) -> Float64:
    """Return the diagonal of a matrix's inverse from its factor, or some of it; may overwrite it.

    All of it costs half of the matrix's whole inverse; some rows as much as that number of
    right-hand sides; the last rows follow from the last rows of the factor.
    """
    if rows is not None and len(rows):
        first = int(rows.min())
        factor, rows = _without_first(factor, first), rows - first
    if rows is None or len(rows) > len(factor) * MAX_REQUESTED:
        _, _, trtri = _routines(factor.dtype)
        inverse, _ = trtri(factor, lower=1, overwrite_c=1)  # type: ignore[operator]
        diagonal: Float64 = squared_columns(inverse.T)
        return diagonal if rows is None else diagonal[rows]
    sides = np.zeros((len(factor), len(rows)), factor.dtype, order="F")
    sides[rows, np.arange(len(rows))] = 1.0
    trtrs = lapack.strtrs if factor.dtype == np.float32 else lapack.dtrtrs
    columns, _ = trtrs(factor, sides, lower=1, overwrite_b=1)
    squares: Float64 = np.einsum("ij,ij->j", columns, columns, dtype=np.float64)
    return squares


def _without_first(factor: Floats, n: int) -> Floats:
    """Return a factor without its first rows and columns, in its own memory."""
    size = len(factor) - n
    following = factor.ravel(order="F")[: size * size].reshape(size, size, order="F")
    if n:
        # From the first on: each column moves forward, to where none is that has yet to move.
        for column in range(size):
            following[:, column] = factor[n:, n + column]
    return following


# The number of rows whose distances to each other give the unit of widths.
MEASURED_ROWS = 200
# Distances below this share of the largest one to the origin are those of equal rows.
ROUNDING = 1e-7


def signs_of(present: Ints, n_classes: int) -> Float64:
    """Return one-vs-rest targets, +1 for a row's class, else -1; of two classes the second's.

    >>> signs_of(np.array([0, 1]), 2).tolist()
    [[-1.0], [1.0]]
    """
    wanted = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    return np.where(present[:, None] == wanted, 1.0, -1.0)


def gamma_in_cell(name: str, width: float, A: Float32) -> float:
    return find_kernel(name).gamma_of(width * median_distance(name, A))


def median_distance(name: str, A: Float32) -> float:
    """Return the unit of a kernel's widths for some rows; see `gamma_in_cell`."""
    S = A[:: max(1, len(A) // MEASURED_ROWS)].astype(np.float64)
    apart = find_kernel(name).distances(S)[np.triu_indices(len(S), 1)]
    # Rounding leaves small distances between equal rows, which do not count.
    apart = apart[apart > ROUNDING * np.sqrt((S * S).sum(axis=1).max())]
    return float(np.median(apart)) if len(apart) else 1.0


@dataclass(frozen=True, eq=False)
class MergedRows:
    """Distinct rows (k, d) in order of first occurrence; Y is the mean of their copies."""

    A: Float32
    Y: Float64
    weights: Float64
    of_row: Int64


def merge_equal_rows(A: Float32, Y: Float64, weights: Float64) -> MergedRows:
    """Merge equal rows into one of summed weight and mean target."""
    return merge_groups(A, Y, weights, find_copies(A))


def merge_groups(
    A: Float32, Y: Float64, weights: Float64, copies: tuple[Int64, Int64] | None
) -> MergedRows:
    if copies is None:
        return MergedRows(A, Y, weights, np.arange(len(A)))
    first, of_row = copies
    summed: Float64 = np.bincount(of_row, weights).astype(np.float64)
    targets = [np.bincount(of_row, weights * column) / summed for column in Y.T]
    return MergedRows(A[first], np.stack(targets, axis=1), summed, of_row)


def without_one_copy(
    merged: MergedRows, solved: Solution, ridges: Float64, Y: Float64, weights: Float64, few: Int64
) -> tuple[Int64, Float64]:
    """Return rows (q,) and values (q, r) of copies without each of them, while their copies stay.

    A row's own target moves its value with leverage h = w / W (1 - ridge V), for its weight w, the
    weight W of all copies and the diagonal V of the inverse: without it the value is y - (y - f) /
    (1 - h).
    """
    at = np.full(len(merged.A), -1)
    at[few] = np.arange(len(few))
    rows = np.flatnonzero(at[merged.of_row] >= 0)
    of_row = merged.of_row[rows]
    assert solved.inverse is not None
    fitted = merged.Y[of_row] - (ridges[:, None] * solved.alpha)[of_row]
    h = (1.0 - ridges[of_row] * solved.inverse[at[of_row]]) * weights[rows] / merged.weights[of_row]
    missed = Y[rows] - fitted
    values: Float64 = Y[rows] - missed / (1.0 - h)[:, None]
    return rows, values


def evenly(n_rows: int, most: int) -> Int64:
    """Return at most ``most`` of the rows 0 to n_rows - 1, evenly spaced.

    >>> evenly(5, 3).tolist(), evenly(2, 3).tolist()
    ([0, 2, 4], [0, 1])
    """
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.int64)
