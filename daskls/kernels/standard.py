"""The kernels of the registry: functions of distances, which have a width, and of inner products.

Kernels of inner products have no width: they depend on the units of features.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.kernels.answers import (
    decide_distances,
    decide_wide_distances,
    varying_columns,
    write_squares,
)
from daskls.kernels.exponential import (
    LOWEST_EXPONENT,
    LOWEST_SOLVED,
    exp_terms,
    wide_exp_terms,
    write_exponential,
)
from daskls.kernels.gram import (
    DECISION_TILE_ROWS,
    TOGETHER,
    add_weighted_differences,
    inner_products,
    product_matrix,
    product_tiles,
    squared_distances,
    squared_matrix,
    squared_norms,
    write_distances,
    write_symmetric,
)
from daskls.kernels.kernel import Kernel, Out
from daskls.kernels.precision import MAX_SHIFT, largest_shift
from daskls.records import SMALLEST, Float32, Float64, Floats, KernelSpec, LocalModel


class OfDistances(Kernel):
    """A kernel ``exp(-gamma base)`` whose base is a distance, or a power of one."""

    unit_diagonal = True
    decides_in_tiles = True

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
        """See `Kernel.decide`; in float32 from the distances on if a bound of the model allows it.

        Many features of a cell are constant, indicators most of all. What they add to a distance is
        the same for all support rows, so it is computed once per query.
        """
        varies = varying_columns(model.rows)
        columns, fixed = np.flatnonzero(varies), np.flatnonzero(~varies)
        rest = np.take(A, fixed, axis=1)
        rest -= model.rows[0, fixed]
        own, B = np.take(A, columns, axis=1), model.rows[:, columns].astype(np.float64)
        gamma, coef, class_ptr = model.kernel.gamma, model.coef, model.class_ptr
        kind: type[Any] = np.float64
        decide, terms = decide_wide_distances, wide_exp_terms(gamma)
        if largest_shift(gamma, coef, class_ptr, *self._roundings(gamma, B)) <= MAX_SHIFT:
            kind, decide, terms = np.float32, decide_distances, exp_terms(gamma)
        # A query beyond the range of float32 is equally far from all support rows.
        with np.errstate(over="ignore"):
            for rows, distances in self._tiles(own, rest, B, kind):
                decide(distances, *terms, coef, class_ptr, out[rows])

    @abstractmethod
    def _tiles(
        self, A: Float64, rest: Float64, B: Float64, kind: type[Any]
    ) -> Iterator[tuple[slice, Any]]:
        """Yield tiles of rows of A, and their base with all rows of B, (h, s), of dtype ``kind``.

        ``rest`` are the rows' differences along further features, in which all rows of B are equal.
        """

    @abstractmethod
    def _roundings(self, gamma: float, B: Float64) -> tuple[int, float]:
        """Return ``n_roundings`` and ``moved`` of `largest_shift` where tiles are in float32."""


class Gaussian(OfDistances):
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
    ) -> Iterator[tuple[slice, Any]]:
        norms_a, norms_b = squared_norms(A) + squared_norms(rest), squared_norms(B)
        narrow = np.empty((DECISION_TILE_ROWS, len(B)), np.float32)
        for rows, products in product_tiles(A, B, DECISION_TILE_ROWS):
            squares = (narrow if kind is np.float32 else products)[: rows.stop - rows.start]
            write_squares(products, norms_a[rows], norms_b, squares)
            yield rows, squares

    def _roundings(self, gamma: float, B: Float64) -> tuple[int, float]:
        return 3, 0.0

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
    coarse_ridges = (3e-3, 3e-2, 3e-1)
    first_width = 2.0

    def block(self, A: Float64, B: Float64) -> Float64:
        """Distances."""
        base = squared_distances(A, B)
        return np.sqrt(base, out=base)

    def matrix(self, A: Float64) -> Float32:
        """Distances."""
        base = squared_matrix(A)
        return np.sqrt(base, out=base)

    def _tiles(
        self, A: Float64, rest: Float64, B: Float64, kind: type[Any]
    ) -> Iterator[tuple[slice, Any]]:
        for rows, squares in super()._tiles(A, rest, B, kind):
            yield rows, np.sqrt(squares, out=squares)

    def _roundings(self, gamma: float, B: Float64) -> tuple[int, float]:
        return 4, 0.0

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


class Laplacian(OfDistances):
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
    coarse_ridges = (3e-3, 3e-2, 3e-1)
    first_width = 2.0

    def block(self, A: Float64, B: Float64) -> Float64:
        """L1 distances."""
        out = np.empty((len(A), len(B)))
        rows, BT = padded(A, np.float64), transposed(B, np.float64)
        write_distances(rows, np.zeros(len(A)), BT, out)
        return out

    def matrix(self, A: Float64) -> Float32:
        """L1 distances, in float32 throughout.

        No term is negative, so nothing cancels: the relative error is a few 1e-7.
        """
        out = np.empty((len(A), len(A)), np.float32)
        write_symmetric(padded(A, np.float32), transposed(A, np.float32), out)
        return out

    def distances(self, A: Float64) -> Float64:
        return self.block(A, A)

    def shares(self, A: Floats) -> Float64:
        own = np.abs(A - np.median(A, axis=0)).mean(axis=0, dtype=np.float64)
        return own / max(own.sum(), SMALLEST)

    def radius(self, A: Floats) -> float:
        return float(np.abs(A).sum(axis=1, dtype=np.float64).max())

    def _tiles(
        self, A: Float64, rest: Float64, B: Float64, kind: type[Any]
    ) -> Iterator[tuple[slice, Any]]:
        own, offsets = padded(A, kind), np.abs(rest).sum(axis=1).astype(kind)
        BT, base = transposed(B, kind), np.empty((DECISION_TILE_ROWS, len(B)), kind)
        for start in range(0, len(A), DECISION_TILE_ROWS):
            rows = slice(start, start + DECISION_TILE_ROWS)
            distances = base[: len(own[rows])]
            write_distances(own[rows], offsets[rows], BT, distances)
            yield rows, distances

    def _roundings(self, gamma: float, B: Float64) -> tuple[int, float]:
        return math.ceil(B.shape[1] / TOGETHER) + 8, gamma * self.radius(B)

    def scale_slopes(self, A: Floats, weights: Floats, K: Floats, spec: KernelSpec) -> Float64:
        """``dk(x, a) / d log f_j = -gamma k |a_j - x_j|``."""
        sums = np.zeros(A.shape[1])
        add_weighted_differences(np.ascontiguousarray(A.T), weights * K, sums)
        return -spec.gamma * sums


def padded(A: Floats, kind: type[Any]) -> Any:
    """Return rows zero-padded to a multiple of `TOGETHER` features; C-contiguous.

    >>> padded(np.ones((2, 9)), np.float32).shape
    (2, 16)
    """
    m, n = A.shape
    rows = np.zeros((m, -(-n // TOGETHER) * TOGETHER), kind)
    rows[:, :n] = A
    return rows


def transposed(B: Floats, kind: type[Any]) -> Any:
    """Return the transpose of what `padded` returns; C-contiguous."""
    return np.ascontiguousarray(padded(B, kind).T)
