"""Kernels of inner products. They have no width: the units of features count as they are."""

import numpy as np

from daskls.errors import DataError
from daskls.kernels.gram import inner_products, product_matrix
from daskls.kernels.kernel import Kernel, Out
from daskls.records import Float32, Float64, KernelSpec

__all__ = ["Linear", "Polynomial"]


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
        DataError : values beyond the range of the dtype
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
