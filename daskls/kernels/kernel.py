"""The interface of a kernel: its values and its decisions, and what the choices of a fit ask of it.

A kernel is a subclass with a line in `kernels.registry`. Values are written in two steps: its base,
what it is a function of for every pair of rows, which one GEMM serves for all widths; and the
function itself, one pass a width.

The registry of kernels: one line a kernel, by the name that users and stores know it by.

It names the modules of kernels: one is imported when it is looked up, all are when a trait is asked
for. What the package asks of a kernel is in `kernels.kernel`; nothing else compares a kernel's name
with another.
"""

from abc import ABC, abstractmethod
from functools import cache
from typing import ClassVar, TypeVar

import numpy as np

from daskls.kernels.answers import pair_decisions
from daskls.kernels.exponential import multiply_rows
from daskls.kernels.gram import squared_distances, squared_norms
from daskls.records import Float32, Float64, Floats, KernelSpec, LocalModel
from daskls.registry import load_object

Out = TypeVar("Out", Float32, Float64)


class Kernel(ABC):
    """A kernel k(x, z). It has no state: its parameters come as a `KernelSpec`.

    Attributes
    ----------
    formula : str. As docstrings give it.
    width_power : float. Its gamma is ``width ** -width_power``; 0: it has no width, and features
        no scale.
    unit_diagonal : bool. Whether k(x, x) is 1.
    has_gamma : bool. Whether gamma changes its values.
    is_euclidean : bool. Whether rows are near each other in its feature space as they are in their
        own, so that neighborhoods may take it around their mean.
    is_power : bool. Whether it is ``(gamma x . z + coef0)^degree``, by whose distances neighbors
        can be searched. Neighborhoods take no other kernel that is not ``is_euclidean``.
    decides_in_tiles : bool. Whether `decide` holds the values of some queries alone.
    is_raced : bool. Whether ``kernel="auto"`` chooses from it.
    is_everywhere : bool. Whether methods of neighborhoods and of samples take it, too.
    least_ridge : float. Below it a ridge gains nothing, or float32 does not carry it.
    coarse_ridges : tuple of float. Those of a first look at cells.
    usual_width : float. In units of a cell's median distance, a power of 2: the first that is
        looked at.
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
    coarse_ridges: ClassVar[tuple[float, ...]] = (1e-3, 1e-2, 1e-1)
    usual_width: ClassVar[float] = 1.0

    @property
    def has_width(self) -> bool:
        """Whether the kernel is a function of distances, which a width is in proportion to."""
        return self.width_power > 0

    @property
    def has_gradient(self) -> bool:
        """Whether `slopes` or `squared_gradients` is written: a scale can be learned with it."""
        own = type(self)
        by_slopes = own.slopes is not Kernel.slopes
        return by_slopes or own.squared_gradients is not Kernel.squared_gradients

    @abstractmethod
    def block(self, A: Float64, B: Float64) -> Float64:
        """Return the base of every row of A, shape (m, d), and of B, shape (s, d): shape (m, s).

        Row i of the result has the same bits regardless of the other rows of A and of their number.
        """

    @abstractmethod
    def matrix(self, A: Float64) -> Float32:
        """Return the base of A with itself as float32: symmetric; of distances the diagonal is 0.

        Peak memory: 4 m^2 bytes + one panel.
        """

    @abstractmethod
    def apply(self, base: Out, spec: KernelSpec, out: Out) -> Out:
        """Write the kernel's values into ``out`` (shape and kind of ``base``) and return it."""

    def write(
        self,
        base: Float32,
        spec: KernelSpec,
        out: Float32,
        sources: Float32 | None = None,
        products: Float32 | None = None,
    ) -> None:
        """Write a cell's kernel matrix, and its products with each source if there are any.

        Parameters
        ----------
        base, out : float32 arrays, shape (m, m)
        spec : KernelSpec
        sources, products : float32 arrays, shape (n, m), or None
        """
        self.apply(base, spec, out)
        if sources is not None:
            multiply_rows(out, sources, products)

    def decide(self, model: LocalModel, A: Float64, out: Float64) -> None:
        """Write the decision values of a model of pairs, without intercepts, shape (m, r)."""
        base = self.block(A, model.rows.astype(np.float64))
        K = self.apply(base, model.kernel, base)
        pair_decisions(K, model.coef, model.class_ptr, out)

    def slopes(self, K: Floats, spec: KernelSpec) -> Floats:
        """Return what a difference of rows is multiplied by in the derivative of a value.

        Asked for by `squared_gradients` alone; of kernels of Euclidean distances.

        Parameters
        ----------
        K : float array. Values of the kernel.
        spec : KernelSpec
        """
        raise NotImplementedError(f"No scale is learned with {self.formula}: see has_gradient")

    def squared_gradients(
        self, A: Floats, alpha: Floats, K: Floats, spec: KernelSpec, at: slice
    ) -> Float64:
        """Return sums of squared derivatives along each feature, over rows and functions.

        Parameters
        ----------
        A : float array, shape (m, d)
        alpha : float array, shape (m, r). Coefficients of r functions.
        K : float array, shape (h, m). Kernel values of the rows ``at`` and all rows.
        spec : KernelSpec
        at : slice. The h rows at which derivatives are taken.

        Returns
        -------
        sums : float64 array, shape (d,)

        Notes
        -----
        ``f(x) = sum_i alpha_i k(x, a_i)``; of Euclidean distances df/dx_j is
        ``sum_i alpha_i s_i (a_ij - x_j)`` with the slopes s_i.
        """
        queries = A[at]
        factors = self.slopes(K, spec)
        total = np.zeros(A.shape[1])
        for own in alpha.T:
            W = factors * own
            gradients = W @ A
            gradients -= W.sum(axis=1)[:, None] * queries
            total += np.einsum("ij,ij->j", gradients, gradients, dtype=np.float64)
        return total

    def rounding(self, spec: KernelSpec) -> float:
        """Return by how much a relative error of the base grows in a value, at the most."""
        return 1.0

    def distances(self, A: Float64) -> Float64:
        """Return the distances, shape (m, m), that widths are multiples of."""
        return np.sqrt(squared_distances(A, A))

    def radius(self, A: Floats) -> float:
        """Return the largest distance of a row to the origin, that widths are multiples of."""
        return float(np.sqrt(squared_norms(A).max()))

    def gamma_of(self, width: float) -> float:
        """Return gamma of a width; 1 of kernels without.

        >>> from daskls.kernels.kernel import find_kernel
        >>> find_kernel("rbf").gamma_of(0.5), find_kernel("exponential").gamma_of(0.5)
        (4.0, 2.0)
        """
        return float(width**-self.width_power)


# The `Kernel` of each name as ``module:class`` below the package.
KERNELS = {
    "rbf": "kernels.standard:Gaussian",
    "exponential": "kernels.standard:Exponential",
    "laplacian": "kernels.standard:Laplacian",
    "linear": "kernels.standard:Linear",
    "poly": "kernels.standard:Polynomial",
}


@cache
def find_kernel(name: str) -> Kernel:
    """Return the kernel of a name in `KERNELS`; its module is imported at the first call.

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
