"""Kernels that fall off with the distance, exponentially: values, decisions and their bounds."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from daskls.kernels.answers import (
    UNROLLED,
    decide_directly,
    decide_products,
    decide_products_narrowly,
    decide_roots,
    decide_roots_directly,
    decide_roots_narrowly,
    gather_columns,
    varying_columns,
)
from daskls.kernels.exponential import LOWEST_EXPONENT, exp_terms
from daskls.kernels.gram import (
    DECISION_TILE_ROWS,
    product_tiles,
    squared_distances,
    squared_matrix,
    squared_norms,
)
from daskls.kernels.kernel import Kernel, Out
from daskls.kernels.precision import MAX_SHIFT, differences_shift, exponential_shift, root_shift
from daskls.kernels.products import write_rbf
from daskls.kernels.wide_exponential import wide_exp_terms
from daskls.records import Float32, Float64, Floats, KernelSpec, LocalModel

__all__ = ["Exponential", "Gaussian", "OfDistances"]

# Features up to which differences in float32 cost less than a product in float64. What decides is
# a function of the model alone: the ways round differently.
DIRECT_FEATURES = 24


class OfDistances(Kernel):
    """A kernel ``exp(-gamma base)`` whose base is a distance, or a power of one."""

    unit_diagonal = True
    decides_in_tiles = True

    def apply(self, base: Out, spec: KernelSpec, out: Out) -> Out:
        """See `Kernel.apply`."""
        np.multiply(base, base.dtype.type(-spec.gamma), out=out)
        np.maximum(out, base.dtype.type(LOWEST_EXPONENT), out=out)
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
        write_rbf(base, *exp_terms(spec.gamma), sources, out, products)


class OfEuclideanDistances(OfDistances):
    """Of the Euclidean distance, by products of rows where these are quicker than differences.

    Attributes
    ----------
    ways : three functions of `kernels.answers`. From differences in float32, from products, and
        from products with the exponential in float32.
    bounds : two functions of `kernels.precision`. Of the first and of the last way.
    """

    ways: ClassVar[tuple[Callable[..., None], ...]]
    bounds: ClassVar[tuple[Callable[..., float], ...]]

    def decide(self, model: LocalModel, A: Float64, out: Float64) -> None:
        """See `Kernel.decide`; in float32 as far as a bound of the model allows."""
        varies = varying_columns(model.rows)
        # Many features of a cell are constant, indicators most of all: they cost once a query.
        columns, fixed = np.flatnonzero(varies), np.flatnonzero(~varies)
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
        """Whether float32 serves the distances too, and differences are the quickest way there."""
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
        # A query so far away that float32 has no number for it is as far from every support row.
        with np.errstate(over="ignore"):
            narrow[:, :n] = A
            offsets = offsets.astype(np.float32)
        terms = exp_terms(model.kernel.gamma)
        self.ways[0](narrow, offsets, BT, *terms, model.coef, model.class_ptr, out)


class Gaussian(OfEuclideanDistances):
    """Of the squared distance."""

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

    def slopes(self, K: Floats, spec: KernelSpec) -> Floats:
        """See `Kernel.slopes`: 2 gamma k."""
        return K * (2 * K.dtype.type(spec.gamma))


class Exponential(OfEuclideanDistances):
    """Of the distance."""

    formula = "exp(-gamma |x - z|)"
    width_power = 1.0
    is_raced = True
    # The matrix is far from singular: below, a ridge gains nothing (ijcnn1, Covertype, letter,
    # satimage, pendigits, spambase), and cells of 2000 rows would need float64.
    least_ridge = 3e-3
    coarse_ridges = (3e-3, 3e-2, 3e-1)
    usual_width = 2.0
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

    def slopes(self, K: Floats, spec: KernelSpec) -> Floats:
        """See `Kernel.slopes`: gamma k / |x - z|.

        A row's own term, which has no derivative there, counts as 0.
        """
        gamma = K.dtype.type(spec.gamma)
        # The distance is in the value itself: -log(k) / gamma.
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = -(gamma**2) * K / np.log(K)
        return np.where(np.isfinite(factors), factors, 0.0).astype(K.dtype)
