"""The kernels of the registry: functions of distances, which have a width, and of inner products.

Kernels of inner products have no width: they depend on the units of features.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from daskls.errors import DataError
from daskls.kernels.answers import (
    UNROLLED,
    decide_directly,
    decide_distances,
    decide_products,
    decide_products_narrowly,
    decide_roots,
    decide_roots_directly,
    decide_roots_narrowly,
    decide_wide_distances,
    gather_columns,
    varying_columns,
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
    fixed_distances,
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
from daskls.kernels.precision import (
    MAX_SHIFT,
    differences_shift,
    exponential_shift,
    root_shift,
    sums_shift,
)
from daskls.records import SMALLEST, Float32, Float64, Floats, Int64, KernelSpec, LocalModel

# Features up to which differences in float32 cost less than a product in float64. The two round
# differently, so the choice between them is a function of the model alone.
DIRECT_FEATURES = 24


class OfDistances(Kernel):
    """A kernel ``exp(-gamma base)`` whose base is a distance, or a power of one."""

    unit_diagonal = True
    decides_in_tiles = True

    def apply(self, base: Out, spec: KernelSpec, out: Out) -> Out:
        """See `Kernel.apply`."""
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
        """See `Kernel.write`: by the compiled exponential, in one pass over memory."""
        if sources is None:
            sources = products = np.empty((0, len(out)), np.float32)
        write_exponential(base, *exp_terms(spec.gamma, LOWEST_SOLVED), sources, out, products)


class OfEuclideanDistances(OfDistances):
    """A kernel of the Euclidean distance, from differences of rows or, if faster, their products.

    Attributes
    ----------
    ways : three functions of `kernels.answers`. From differences in float32, from products, and
        from products with the exponential in float32.
    bounds : two functions of `kernels.precision`. For the first and for the last way.
    """

    ways: ClassVar[tuple[Callable[..., None], ...]]
    bounds: ClassVar[tuple[Callable[..., float], ...]]

    def decide(self, model: LocalModel, A: Float64, out: Float64) -> None:
        """See `Kernel.decide`; in float32 as far as a bound of the model allows."""
        columns, fixed = split_columns(model.rows)
        own, offsets = np.empty((len(A), len(columns))), np.empty(len(A))
        gather_columns(A, model.rows[0].astype(np.float64), columns, fixed, own, offsets)
        B = model.rows[:, columns].astype(np.float64)
        norms = squared_norms(B)
        if self._is_narrow(model, len(columns), norms):
            self._decide_directly(model, own, offsets, B, out)
            return
        offsets += squared_norms(own)
        gamma, coef, class_ptr = model.kernel.gamma, model.coef, model.class_ptr
        terms: tuple[Any, Any] = wide_exp_terms(gamma)
        _, decide, narrowly = self.ways
        if self.bounds[1](gamma, coef, class_ptr) <= MAX_SHIFT:
            decide, terms = narrowly, exp_terms(gamma)
        for rows, products in product_tiles(own, B, DECISION_TILE_ROWS):
            decide(products, offsets[rows], norms, *terms, coef, class_ptr, out[rows])

    def _is_narrow(self, model: LocalModel, n_features: int, norms: Float64) -> bool:
        """Whether float32 is accurate enough for distances too, and differences are faster."""
        if n_features > DIRECT_FEATURES:
            return False
        gamma, radius = model.kernel.gamma, float(np.sqrt(norms.max()))
        shift = self.bounds[0](gamma, model.coef, model.class_ptr, n_features, radius)
        return shift <= MAX_SHIFT

    def _decide_directly(
        self, model: LocalModel, A: Float64, offsets: Floats, B: Float64, out: Float64
    ) -> None:
        """Write decision values from differences of features in float32."""
        n = B.shape[1]
        width = -(-n // UNROLLED) * UNROLLED
        BT, narrow = np.zeros((width, len(B)), np.float32), np.zeros((len(A), width), np.float32)
        BT[:n] = B.T
        # A query beyond the range of float32 is equally far from all support rows.
        with np.errstate(over="ignore"):
            narrow[:, :n] = A
            offsets = offsets.astype(np.float32)
        terms = exp_terms(model.kernel.gamma)
        self.ways[0](narrow, offsets, BT, *terms, model.coef, model.class_ptr, out)


class Gaussian(OfEuclideanDistances):
    """The Gaussian kernel, a function of the squared distance."""

    formula = "exp(-gamma |x - z|^2)"
    width_power = 2.0
    is_raced = True
    is_everywhere = True
    ways = decide_directly, decide_products, decide_products_narrowly
    bounds = differences_shift, exponential_shift

    def block(self, A: Float64, B: Float64) -> Float64:
        """See `Kernel.block`: squared distances."""
        return squared_distances(A, B)

    def matrix(self, A: Float64) -> Float32:
        """See `Kernel.matrix`: squared distances."""
        return squared_matrix(A)

    def pair_slopes(self, K: Floats, spec: KernelSpec) -> Floats:
        """See `Kernel.pair_slopes`: 2 gamma k."""
        return K * (2 * K.dtype.type(spec.gamma))


class Exponential(OfEuclideanDistances):
    """The exponential kernel, a function of the distance."""

    formula = "exp(-gamma |x - z|)"
    width_power = 1.0
    is_raced = True
    # The kernel matrix is far from singular: a smaller ridge gains nothing (ijcnn1, Covertype,
    # letter, satimage, pendigits, spambase), and cells of 2000 rows would need float64.
    least_ridge = 3e-3
    coarse_ridges = (3e-3, 3e-2, 3e-1)
    first_width = 2.0
    ways = decide_roots_directly, decide_roots, decide_roots_narrowly
    bounds = root_shift, root_shift

    def block(self, A: Float64, B: Float64) -> Float64:
        """See `Kernel.block`: distances."""
        base = squared_distances(A, B)
        return np.sqrt(base, out=base)

    def matrix(self, A: Float64) -> Float32:
        """See `Kernel.matrix`: distances."""
        base = squared_matrix(A)
        return np.sqrt(base, out=base)

    def pair_slopes(self, K: Floats, spec: KernelSpec) -> Floats:
        """See `Kernel.pair_slopes`: gamma k / |x - z|.

        A row's own term, which has no derivative there, counts as 0.
        """
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
        """See `Kernel.block`: inner products."""
        return inner_products(A, B)

    def matrix(self, A: Float64) -> Float32:
        """See `Kernel.matrix`: inner products."""
        return product_matrix(A)

    def apply(self, base: Out, spec: KernelSpec, out: Out) -> Out:
        """See `Kernel.apply`."""
        np.copyto(out, base)
        return out


class Polynomial(Linear):
    """A power of the inner product."""

    formula = "(gamma x . z + coef0)^degree"
    has_gamma = True
    is_euclidean = False
    is_power = True

    def apply(self, base: Out, spec: KernelSpec, out: Out) -> Out:
        """See `Kernel.apply`.

        Raises
        ------
        DataError : when a value exceeds the range of the dtype
        """
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
        """See `Kernel.rounding`."""
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
        """See `Kernel.block`: distances."""
        out = np.empty((len(A), len(B)))
        rows, BT = padded(A, np.float64), transposed(B, np.float64)
        write_distances(rows, np.zeros(len(A)), BT, out)
        return out

    def matrix(self, A: Float64) -> Float32:
        """See `Kernel.matrix`: distances, in float32 throughout.

        No term is negative, so nothing cancels: the relative error is a few 1e-7.
        """
        out = np.empty((len(A), len(A)), np.float32)
        write_symmetric(padded(A, np.float32), transposed(A, np.float32), out)
        return out

    def distances(self, A: Float64) -> Float64:
        """See `Kernel.distances`."""
        return self.block(A, A)

    def shares(self, A: Floats) -> Float64:
        """See `Kernel.shares`."""
        own = np.abs(A - np.median(A, axis=0)).mean(axis=0, dtype=np.float64)
        return own / max(own.sum(), SMALLEST)

    def radius(self, A: Floats) -> float:
        """See `Kernel.radius`."""
        return float(np.abs(A).sum(axis=1, dtype=np.float64).max())

    def decide(self, model: LocalModel, A: Float64, out: Float64) -> None:
        """See `Kernel.decide`; in float32 if a bound of the model allows it."""
        columns, fixed = split_columns(model.rows)
        offsets = fixed_distances(A, model.rows[0].astype(np.float64), fixed)
        B = np.take(model.rows, columns, axis=1)
        kind, write, terms = self._way(model, B)
        # A query beyond the range of float32 is equally far from all support rows.
        with np.errstate(over="ignore"):
            own, offsets = padded(np.take(A, columns, axis=1), kind), offsets.astype(kind)
        BT, base = transposed(B, kind), np.empty((DECISION_TILE_ROWS, len(B)), kind)
        for start in range(0, len(A), DECISION_TILE_ROWS):
            rows = slice(start, start + DECISION_TILE_ROWS)
            tile = base[: len(own[rows])]
            write_distances(own[rows], offsets[rows], BT, tile)
            write(tile, *terms, model.coef, model.class_ptr, out[rows])

    def _way(self, model: LocalModel, B: Float32) -> tuple[type[Any], Callable[..., None], Any]:
        """Return the dtype of distances, the function that decides by them, and its terms."""
        gamma, n_features = model.kernel.gamma, B.shape[1]
        shift = sums_shift(gamma, model.coef, model.class_ptr, n_features, self.radius(B))
        if shift <= MAX_SHIFT:
            return np.float32, decide_distances, exp_terms(gamma)
        return np.float64, decide_wide_distances, wide_exp_terms(gamma)

    def scale_slopes(self, A: Floats, weights: Floats, K: Floats, spec: KernelSpec) -> Float64:
        """See `Kernel.scale_slopes`: ``dk(x, a) / d log f_j = -gamma k |a_j - x_j|``."""
        sums = np.zeros(A.shape[1])
        add_weighted_differences(np.ascontiguousarray(A.T), weights * K, sums)
        return -spec.gamma * sums


def split_columns(rows: Float32) -> tuple[Int64, Int64]:
    """Return the columns in which support rows vary, and those in which all are equal.

    Many features of a cell are constant, indicators most of all. What they add to a distance is
    the same for all support rows, so it is computed once per query.
    """
    varies = varying_columns(rows)
    return np.flatnonzero(varies), np.flatnonzero(~varies)


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
