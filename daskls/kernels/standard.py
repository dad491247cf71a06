"""The kernels of the registry: functions of distances, which have a width, and of inner products.

Kernels of inner products have no width: they depend on the units of features.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from daskls.errors import DataError
from daskls.kernels.decisions import decide_narrowly, decide_widely, gather_columns, varying_columns
from daskls.kernels.exponential import (
    LOWEST_EXPONENT,
    LOWEST_SOLVED,
    exp_terms,
    wide_exp_terms,
    write_exponential,
)
from daskls.kernels.gram import (
    DECISION_TILE_ROWS,
    SQUARED_TOGETHER,
    TOGETHER,
    add_weighted_differences,
    inner_products,
    product_matrix,
    product_tiles,
    squared_distances,
    squared_matrix,
    squared_norms,
    write_distances,
    write_squares,
    write_symmetric,
)
from daskls.kernels.kernel import Kernel, Out
from daskls.kernels.precision import MAX_SHIFT, largest_shift
from daskls.records import SMALLEST, Float32, Float64, Floats, KernelSpec, LocalModel

# Features up to which differences in float32 cost less than a product in float64. The two round
# differently, so the choice between them is a function of the model alone.
DIRECT_FEATURES = 24


class DistanceKernel(Kernel):
    """A kernel ``exp(-gamma base)`` whose base is a distance, or a power of one.

    `of_roots`: the base is the root of what `_tiles` describes. `summed_together` differences of
    features are added up before they join a sum.
    """

    unit_diagonal = True
    decides_in_tiles = True
    of_roots: ClassVar[bool] = False
    summed_together: ClassVar[int] = 1

    def apply(self, base: Out, spec: KernelSpec, out: Out) -> Out:
        # Of float32 only matrices are written by it.
        lowest = LOWEST_SOLVED if base.dtype == np.float32 else LOWEST_EXPONENT
        np.multiply(base, base.dtype.type(-spec.gamma), out=out)
        np.maximum(out, base.dtype.type(lowest), out=out)
        return np.exp(out, out=out)

    def write(
        self,
        base: Float32,
        spec: KernelSpec,
        out: Float32,
        sources: Float32 | None = None,
        products: Float32 | None = None,
    ) -> None:
        """By the compiled exponential, in one pass over memory."""
        if sources is None:
            sources = products = np.empty((0, len(out)), np.float32)
        write_exponential(base, *exp_terms(spec.gamma, LOWEST_SOLVED), sources, out, products)

    def decide(self, model: LocalModel, A: Float64, out: Float64) -> None:
        """In float32 as far as a bound of the model allows.

        What constant features of a cell add to a distance is computed once per query.
        """
        varies = varying_columns(model.rows)
        columns, fixed = np.flatnonzero(varies), np.flatnonzero(~varies)
        rest = gather_columns(A, model.rows[0].astype(np.float64), fixed)
        varying = gather_columns(A, np.zeros(A.shape[1]), columns)
        B = model.rows[:, columns].astype(np.float64)
        gamma, coef, class_ptr = model.kernel.gamma, model.coef, model.class_ptr
        # At most 12 on the way from a difference to its kernel value, apart from the long sum.
        roundings = math.ceil(len(columns) / self.summed_together) + 12
        moved = gamma ** (1 / self.width_power) * self.radius(B)
        kind: type[Any] = np.float64
        if largest_shift(gamma, coef, class_ptr, roundings, moved) <= MAX_SHIFT:
            kind = np.float32
        decide, terms = decide_widely, wide_exp_terms(gamma)
        if largest_shift(gamma, coef, class_ptr) <= MAX_SHIFT:
            decide, terms = decide_narrowly, exp_terms(gamma)
        # A query beyond the range of float32 is equally far from all support rows.
        with np.errstate(over="ignore"):
            tiles, norms_a, norms_b, times = self._tiles(varying, rest, B, kind)
            for rows, base in tiles:
                distances = base, norms_a[rows], norms_b, times, self.of_roots
                decide(*distances, *terms, coef, class_ptr, out[rows])

    @abstractmethod
    def _tiles(
        self, A: Float64, rest: Float64, B: Float64, kind: type[Any]
    ) -> tuple[Iterator[tuple[slice, Any]], Floats, Floats, float]:
        """Return tiles of ``base``, and the other arguments of `decide_narrowly` for distances.

        ``rest`` are the rows' differences along further features, in which all rows of B are equal.
        """


class Gaussian(DistanceKernel):
    """The Gaussian kernel, a function of the squared distance."""

    formula = "exp(-gamma |x - z|^2)"
    width_power = 2.0
    is_raced = True
    is_everywhere = True

    def block(self, A: Float64, B: Float64) -> Float64:
        """Squared distances."""
        return squared_distances(A, B)

    def matrix(self, A: Float64) -> Float32:
        """Squared distances."""
        return squared_matrix(A)

    def _tiles(
        self, A: Float64, rest: Float64, B: Float64, kind: type[Any]
    ) -> tuple[Iterator[tuple[slice, Any]], Floats, Floats, float]:
        offsets = squared_norms(rest)
        if kind is np.float32 and A.shape[1] <= DIRECT_FEATURES:
            return difference_tiles(write_squares, A, B, offsets.astype(kind))
        tiles = product_tiles(A, B, DECISION_TILE_ROWS)
        return tiles, offsets + squared_norms(A), squared_norms(B), -2.0

    def pair_slopes(self, K: Floats, spec: KernelSpec) -> Floats:
        """2 gamma k."""
        return K * (2 * K.dtype.type(spec.gamma))


class Exponential(Gaussian):
    """The exponential kernel, a function of the distance."""

    formula = "exp(-gamma |x - z|)"
    width_power = 1.0
    is_everywhere = False
    # The kernel matrix is far from singular: a smaller ridge gains nothing (ijcnn1, Covertype,
    # letter, satimage, pendigits, spambase), and cells of 2000 rows would need float64.
    least_ridge = 3e-3
    first_width = 2.0
    of_roots = True

    def block(self, A: Float64, B: Float64) -> Float64:
        """Distances."""
        base = squared_distances(A, B)
        return np.sqrt(base, out=base)

    def matrix(self, A: Float64) -> Float32:
        """Distances."""
        base = squared_matrix(A)
        return np.sqrt(base, out=base)

    def pair_slopes(self, K: Floats, spec: KernelSpec) -> Floats:
        """``gamma k / |x - z|``; a row's own term, which has no derivative there, counts as 0."""
        gamma = K.dtype.type(spec.gamma)
        # The distance follows from the value: -log(k) / gamma.
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = -(gamma**2) * K / np.log(K)
        return np.where(np.isfinite(factors), factors, 0.0).astype(K.dtype)


class Linear(Kernel):
    """The inner product itself."""

    formula = "x . z"
    has_gamma = False
    is_everywhere = True

    def block(self, A: Float64, B: Float64) -> Float64:
        return inner_products(A, B)

    def matrix(self, A: Float64) -> Float32:
        return product_matrix(A)

    def apply(self, base: Out, spec: KernelSpec, out: Out) -> Out:
        np.copyto(out, base)
        return out


class Polynomial(Linear):
    """A power of the inner product."""

    formula = "(gamma x . z + coef0)^degree"
    has_gamma = True
    is_euclidean = False
    is_power = True

    def apply(self, base: Out, spec: KernelSpec, out: Out) -> Out:
        """DataError when a value exceeds the range of the dtype."""
        np.multiply(base, base.dtype.type(spec.gamma), out=out)
        out += base.dtype.type(spec.coef0)
        with np.errstate(over="ignore"):
            np.power(out, base.dtype.type(spec.degree), out=out)
        if not np.isfinite(out).all():
            raise DataError(
                f"A polynomial kernel of degree {spec.degree} with gamma={spec.gamma:g} overflows "
                f"{out.dtype} on these rows. Scale the features, for example with scikit-learn's "
                "StandardScaler, or lower gamma or degree."
            )
        return out

    def rounding(self, spec: KernelSpec) -> float:
        return spec.degree


class Laplacian(DistanceKernel):
    """The Laplacian kernel, a function of the L1 distance, as scikit-learn's `laplacian_kernel`."""

    formula = "exp(-gamma |x - z|_1)"
    width_power = 1.0
    is_raced = True
    is_euclidean = False
    # By leave-one-out squared errors of 1500 rows, at the best width of each ridge, 3e-3 loses at
    # most 0.5 % to any smaller ridge (ijcnn1 and letter; dense cells of Covtype, ijcnn1 and
    # pendigits), 1e-2 as much as 1.6 %. Elsewhere the best is 3e-2 (page-blocks, satimage), 1e-1
    # (spambase) or 3e-1 (phoneme). With it, cells of 2000 rows stay in float32.
    least_ridge = 3e-3
    first_width = 2.0
    summed_together = TOGETHER

    def block(self, A: Float64, B: Float64) -> Float64:
        """L1 distances."""
        out = np.empty((len(A), len(B)))
        rows, BT = padded(A, np.float64), transposed(B, np.float64)
        write_distances(rows, BT, out)
        return out

    def matrix(self, A: Float64) -> Float32:
        """L1 distances, in float32 throughout: no term is negative, so nothing cancels."""
        out = np.empty((len(A), len(A)), np.float32)
        write_symmetric(padded(A, np.float32), transposed(A, np.float32), out)
        return out

    def distances(self, A: Float64) -> Float64:
        return self.block(A, A)

    def shares(self, A: Floats) -> Float64:
        deviation = np.abs(A - np.median(A, axis=0)).mean(axis=0, dtype=np.float64)
        return deviation / max(deviation.sum(), SMALLEST)

    def radius(self, A: Floats) -> float:
        return float(np.abs(A).sum(axis=1, dtype=np.float64).max())

    def _tiles(
        self, A: Float64, rest: Float64, B: Float64, kind: type[Any]
    ) -> tuple[Iterator[tuple[slice, Any]], Floats, Floats, float]:
        return difference_tiles(write_distances, A, B, np.abs(rest).sum(axis=1).astype(kind))

    def scale_slopes(self, A: Floats, weights: Floats, K: Floats, spec: KernelSpec) -> Float64:
        """``dk(x, a) / d log f_j = -gamma k |a_j - x_j|``."""
        sums = np.zeros(A.shape[1])
        add_weighted_differences(np.ascontiguousarray(A.T), weights * K, sums)
        return -spec.gamma * sums


def difference_tiles(
    write: Callable[..., None], A: Float64, B: Float64, offsets: Floats
) -> tuple[Iterator[tuple[slice, Any]], Floats, Floats, float]:
    """Return what `DistanceKernel._tiles` does, from differences in the offsets' dtype."""
    kind = offsets.dtype.type
    together = SQUARED_TOGETHER if write is write_squares else TOGETHER
    padded_A, BT = padded(A, kind, together), transposed(B, kind, together)
    base = np.empty((DECISION_TILE_ROWS, len(B)), kind)

    def tiles() -> Iterator[tuple[slice, Any]]:
        for start in range(0, len(A), DECISION_TILE_ROWS):
            rows = slice(start, start + DECISION_TILE_ROWS)
            write(padded_A[rows], BT, base)
            yield rows, base

    return tiles(), offsets, np.zeros(len(B), kind), kind(1)


def padded(A: Floats, kind: type[Any], together: int = TOGETHER) -> Any:
    """Return rows zero-padded to a multiple of ``together`` features; C-contiguous.

    >>> padded(np.ones((2, 9)), np.float32).shape
    (2, 16)
    """
    m, n = A.shape
    rows = np.zeros((m, -(-n // together) * together), kind)
    rows[:, :n] = A
    return rows


def transposed(B: Floats, kind: type[Any], together: int = TOGETHER) -> Any:
    """Return the transpose of what `padded` returns; C-contiguous."""
    return np.ascontiguousarray(padded(B, kind, together).T)
