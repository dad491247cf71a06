"""The interface of a kernel, and the registry of kernels.

A kernel's values are computed in two steps: the base of each pair of rows, by one GEMM for all
widths; and a function of the base, in one pass per width. Nothing outside of the registry compares
kernels by name.
"""

from abc import ABC, abstractmethod
from functools import cache
from typing import ClassVar, TypeVar

import numpy as np

from daskls.kernels.decisions import pair_decisions
from daskls.kernels.exponential import multiply_rows
from daskls.kernels.gram import squared_distances, squared_norms
from daskls.records import SMALLEST, Float32, Float64, Floats, KernelSpec, LocalModel
from daskls.registry import load_object

Out = TypeVar("Out", Float32, Float64)


class Kernel(ABC):
    """A kernel k(x, z). It has no state: its parameters come as a `KernelSpec`.

    Its gamma is ``width ** -width_power``; without a width features are not scaled either.
    `unit_diagonal`: k(x, x) is 1. `is_euclidean`: its feature space orders neighbors as the
    Euclidean distance does; `is_power`: it is ``(gamma x . z + coef0)^degree``, in whose feature
    space neighbors can be searched, too. `decides_in_tiles`: `decide` holds kernel values of one
    tile of queries at a time. `is_raced`: ``kernel="auto"`` may choose it; `is_everywhere`:
    neighborhood and sampling methods accept it. Ridges below `least_ridge` gain nothing;
    `first_width`, in units of a cell's median distance, is tried first, a power of 2.
    """

    formula: ClassVar[str]
    width_power: ClassVar[float] = 0.0
    unit_diagonal: ClassVar[bool] = False
    has_gamma: ClassVar[bool] = True
    is_euclidean: ClassVar[bool] = True
    is_power: ClassVar[bool] = False
    decides_in_tiles: ClassVar[bool] = False
    is_raced: ClassVar[bool] = False
    is_everywhere: ClassVar[bool] = False
    least_ridge: ClassVar[float] = 0.0
    first_width: ClassVar[float] = 1.0

    @property
    def has_width(self) -> bool:
        """Whether it is a function of distances, which a width scales."""
        return self.width_power > 0

    @property
    def sees_origin(self) -> bool:
        """Whether its functions, up to an offset, depend on where the origin is."""
        return not (self.has_width or self.is_euclidean)

    @property
    def has_slopes(self) -> bool:
        """Whether it overrides `pair_slopes` or `scale_slopes`, so that a scale can be learned."""
        cls = type(self)
        return (
            cls.pair_slopes is not Kernel.pair_slopes or cls.scale_slopes is not Kernel.scale_slopes
        )

    @abstractmethod
    def block(self, A: Float64, B: Float64) -> Float64:
        """Return the base of all pairs of rows, (m, s), each with the bits of its two rows."""

    @abstractmethod
    def matrix(self, A: Float64) -> Float32:
        """Return the base of A with itself, float32 (m, m), symmetric; distances: diagonal 0."""

    @abstractmethod
    def apply(self, base: Out, spec: KernelSpec, out: Out) -> Out:
        """Write kernel values into ``out``, shaped and typed as ``base`` or itself; return it."""

    def write(
        self,
        base: Float32,
        spec: KernelSpec,
        out: Float32,
        sources: Float32 | None = None,
        products: Float32 | None = None,
    ) -> None:
        """Write a cell's kernel matrix (m, m), and its product with each source (n, m), if any."""
        self.apply(base, spec, out)
        if sources is not None:
            multiply_rows(out, sources, products)

    def decide(self, model: LocalModel, A: Float64, out: Float64) -> None:
        """Write the decision values of a model of pairs, without intercepts, shape (m, r)."""
        base = self.block(A, model.rows.astype(np.float64))
        K = self.apply(base, model.kernel, base)
        pair_decisions(K, model.coef, model.class_ptr, out)

    def pair_slopes(self, K: Floats, spec: KernelSpec) -> Floats:
        """Return the factors s in ``dk(x, a) / dx = s (a - x)``, of Euclidean distances."""
        raise NotImplementedError(f"No scale is learned with {self.formula}: see has_slopes")

    def scale_slopes(self, A: Floats, weights: Floats, K: Floats, spec: KernelSpec) -> Float64:
        """Return how a weighted sum of kernel values changes with the factors of features.

        A (m, d) are rows times these factors; the weights (m, m) are symmetric. Returns derivatives
        by the logarithms of the factors: ``dk(x, a) / d log f_j = -s (a_j - x_j)^2``, with the
        factor s of `pair_slopes`.
        """
        W = weights * self.pair_slopes(K, spec)
        # A row is at no distance from itself: its own terms would only cancel.
        np.fill_diagonal(W, 0.0)
        crossed = np.einsum("ij,ij->j", A, W @ A, dtype=np.float64)
        return 2 * (crossed - W.sum(axis=1, dtype=np.float64) @ np.square(A, dtype=np.float64))

    def rounding(self, spec: KernelSpec) -> float:
        """Return the largest factor by which a relative error of the base grows in a value."""
        return 1.0

    def distances(self, A: Float64) -> Float64:
        """Return the distances of rows, shape (m, m), in which widths are measured."""
        return np.sqrt(squared_distances(A, A))

    def shares(self, A: Floats) -> Float64:
        """Return the share of each feature in the distances of rows, (d,), if there are any."""
        variance = A.var(axis=0, dtype=np.float64)
        return variance / max(variance.sum(), SMALLEST)

    def radius(self, A: Floats) -> float:
        """Return the largest distance of a row to the origin, measured as by `distances`."""
        return float(np.sqrt(squared_norms(A).max()))

    def gamma_of(self, width: float) -> float:
        """Return the gamma of a width; 1 for a kernel without width.

        >>> find_kernel("rbf").gamma_of(0.5), find_kernel("exponential").gamma_of(0.5)
        (4.0, 2.0)
        """
        return float(width**-self.width_power)


# The class of each kernel, as ``module:class`` inside the package.
KERNELS = {
    "rbf": "kernels.standard:Gaussian",
    "exponential": "kernels.standard:Exponential",
    "laplacian": "kernels.standard:Laplacian",
    "linear": "kernels.standard:Linear",
    "poly": "kernels.standard:Polynomial",
}


@cache
def find_kernel(name: str) -> Kernel:
    """Return the kernel of a name in `KERNELS`, importing its module at the first call.

    >>> find_kernel("rbf").formula
    'exp(-gamma |x - z|^2)'
    """
    kernel: Kernel = load_object(KERNELS[name])()
    return kernel


def kernels_with(trait: str) -> tuple[str, ...]:
    """Return the names of the kernels that have a trait, in the registry's order.

    >>> kernels_with("is_raced")
    ('rbf', 'exponential', 'laplacian')
    """
    return tuple(name for name in KERNELS if getattr(find_kernel(name), trait))
